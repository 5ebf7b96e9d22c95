// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// digest is an image as a release names it.
const digest = imageName + "@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// made is a bundle as it was written, read back.
type made struct {
	folder  string
	deploy  []*unstructured.Unstructured
	csv     *v1alpha1.ClusterServiceVersion
	objects []*unstructured.Unstructured
	// supplement is what stands next to the bundle.
	supplement []*unstructured.Unstructured
	catalog    []*unstructured.Unstructured
}

// deployed is what kustomize makes of deploy/, which takes longer than the rest.
var deployed = sync.OnceValues(func() ([]*unstructured.Unstructured, error) { return build("../../deploy") })

// folder takes the bundles of all tests: it takes seconds to make one, with the race detector.
var folder string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if folder, err = os.MkdirTemp("", "bundle-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(folder)
		return m.Run()
	}())
}

// theBundle is made of deploy/, as version 1.2.3, which replaces 1.2.2.
var theBundle = sync.OnceValues(func() (made, error) {
	o := options{
		samples: "../../deploy/samples", bundle: filepath.Join(folder, "bundle"), catalog: filepath.Join(folder, "catalog"),
		version: "1.2.3", image: digest, created: "2026-11-22T00:00:00Z", replaces: "1.2.2",
	}
	m := made{folder: folder, csv: &v1alpha1.ClusterServiceVersion{}}
	var err error
	if m.deploy, err = deployed(); err != nil {
		return m, err
	}
	if err := generate(o, m.deploy); err != nil {
		return m, err
	}
	files, err := filepath.Glob(filepath.Join(o.bundle, "manifests", "*.yaml"))
	if err != nil {
		return m, err
	}
	for _, file := range files {
		objects, err := read(file)
		if err != nil {
			return m, err
		}
		m.objects = append(m.objects, objects...)
	}
	csv := of(m.objects, v1alpha1.ClusterServiceVersionKind)
	if len(csv) != 1 {
		return m, fmt.Errorf("there are %d CSVs", len(csv))
	}
	m.objects = slices.DeleteFunc(m.objects, func(object *unstructured.Unstructured) bool { return object == csv[0] })
	if m.supplement, err = read(filepath.Join(o.bundle, "supplement.yaml")); err != nil {
		return m, err
	}
	if m.catalog, err = read(filepath.Join(o.catalog, "configs", packageName, "catalog.yaml")); err != nil {
		return m, err
	}
	return m, convert(csv[0], m.csv)
})

// makeBundle returns the bundle; a test does not change it.
func makeBundle(t *testing.T) made {
	t.Helper()
	m, err := theBundle()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// read returns the objects of a file.
func read(path string) ([]*unstructured.Unstructured, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(text, []byte(generated)) {
		return nil, fmt.Errorf("%s does not begin with who holds the rights, and that it is generated", path)
	}
	var objects []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		objects = append(objects, object)
	}
}
