// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Bundle makes what the Operator Lifecycle Manager installs of what `oc apply -k deploy` does: a bundle, what of deploy/ cannot stand in one,
// and a catalogue with it. Permissions, pods and kinds have this one source.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// options say what is made.
type options struct {
	// deploy is the folder of kustomize, samples that of the examples.
	deploy, samples string
	// bundle and catalog are the folders that are written; what is in them goes.
	bundle, catalog string
	// version of the operator, without a v.
	version string
	// image of the operator, bundleImage that of the bundle, mustGatherImage that of what collects data for support. By digest for a release.
	image, bundleImage, mustGatherImage string
	// created is when the image of the operator was made, in RFC 3339; empty for what is not known.
	created string
	// replaces is the version before; empty where it is enough that all older versions can be replaced.
	replaces string
}

func main() {
	var o options
	flag.StringVar(&o.deploy, "deploy", "deploy", "`folder` that kustomize builds")
	flag.StringVar(&o.samples, "samples", "deploy/samples", "`folder` with an example of each kind")
	flag.StringVar(&o.bundle, "bundle", "deploy/bundle", "`folder` to write the bundle to")
	flag.StringVar(&o.version, "version", "", "`version` of the operator, as 1.2.3; by default that of the image in deploy/")
	flag.StringVar(&o.image, "image", "", "`image` of the operator; by default that in deploy/")
	flag.StringVar(&o.bundleImage, "bundle-image", "", "`image` of the bundle, in the catalogue; the tag of the version by default")
	flag.StringVar(&o.mustGatherImage, "must-gather-image", "", "`image` that collects data for support; the tag of the version by default")
	flag.StringVar(&o.created, "created", "", "`time` at which the image was made, in RFC 3339")
	flag.StringVar(&o.replaces, "replaces", "", "`version` that this one replaces, besides all older ones")
	flag.StringVar(&o.catalog, "catalog", "deploy/catalog", "`folder` to write the catalogue to")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "bundle: "+err.Error())
		os.Exit(1)
	}
}

func run(o options) error {
	objects, err := build(o.deploy)
	if err != nil {
		return err
	}
	return generate(o, objects)
}

// generate writes what is made of these objects.
func generate(o options, objects []*unstructured.Unstructured) error {
	parts, err := split(objects)
	if err != nil {
		return err
	}
	if err := o.complete(parts); err != nil {
		return err
	}
	csv, err := newCSV(o, parts)
	if err != nil {
		return err
	}
	if err := writeBundle(o, csv, parts); err != nil {
		return err
	}
	return writeCatalog(o, csv)
}

// complete sets the options that were not given, by the image of the Deployment, and checks them.
func (o *options) complete(p *parts) error {
	deployment, err := p.readDeployment()
	if err != nil {
		return err
	}
	shipped := deployment.Spec.Template.Spec.Containers[0].Image
	if o.image == "" {
		o.image = shipped
	}
	if o.version == "" {
		o.version = strings.TrimPrefix(strings.TrimPrefix(shipped, imageName), ":v")
	}
	for _, version := range []string{o.version, o.replaces} {
		if _, err := semver.Parse(version); version != "" && err != nil {
			return fmt.Errorf("version %q: %w", version, err)
		}
	}
	if o.version == "" {
		return fmt.Errorf("want -version: the image in deploy/ is %s", shipped)
	}
	if o.bundleImage == "" {
		o.bundleImage = imageName + "-bundle:v" + o.version
	}
	if o.mustGatherImage == "" {
		o.mustGatherImage = imageName + "-must-gather:v" + o.version
	}
	return nil
}
