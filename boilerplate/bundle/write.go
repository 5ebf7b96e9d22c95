// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

const (
	licence = `# SPDX-FileCopyrightText: The managed-upgrade-operator authors
# SPDX-License-Identifier: Apache-2.0

`
	generated = licence + "# Code generated from deploy/ by boilerplate/bundle. DO NOT EDIT.\n"
)

// dockerfile of the bundle. The labels say the same as metadata/annotations.yaml.
const dockerfile = `
# The bundle as an image: docker build -f deploy/bundle/bundle.Dockerfile deploy/bundle
FROM scratch
%s
COPY manifests /manifests/
COPY metadata /metadata/
COPY tests/scorecard /tests/scorecard/
`

// scorecard is the configuration of operator-sdk's tests of bundles.
const scorecard = `apiVersion: scorecard.operatorframework.io/v1alpha3
kind: Configuration
metadata:
  name: config
stages:
- parallel: true
  tests:
  - image: quay.io/operator-framework/scorecard-test:v1.41.1
    entrypoint: [scorecard-test, basic-check-spec]
    labels: {suite: basic, test: basic-check-spec-test}
  - image: quay.io/operator-framework/scorecard-test:v1.41.1
    entrypoint: [scorecard-test, olm-bundle-validation]
    labels: {suite: olm, test: olm-bundle-validation-test}
  - image: quay.io/operator-framework/scorecard-test:v1.41.1
    entrypoint: [scorecard-test, olm-crds-have-validation]
    labels: {suite: olm, test: olm-crds-have-validation-test}
  - image: quay.io/operator-framework/scorecard-test:v1.41.1
    entrypoint: [scorecard-test, olm-crds-have-resources]
    labels: {suite: olm, test: olm-crds-have-resources-test}
  - image: quay.io/operator-framework/scorecard-test:v1.41.1
    entrypoint: [scorecard-test, olm-spec-descriptors]
    labels: {suite: olm, test: olm-spec-descriptors-test}
  - image: quay.io/operator-framework/scorecard-test:v1.41.1
    entrypoint: [scorecard-test, olm-status-descriptors]
    labels: {suite: olm, test: olm-status-descriptors-test}
`

// label is one of the image of a bundle, and an annotation of its metadata.
type label struct{ key, value string }

func labels(m *metadata) []label {
	const prefix = "operators.operatorframework.io."
	return []label{
		{prefix + "bundle.mediatype.v1", "registry+v1"},
		{prefix + "bundle.manifests.v1", "manifests/"},
		{prefix + "bundle.metadata.v1", "metadata/"},
		{prefix + "bundle.package.v1", packageName},
		{prefix + "bundle.channels.v1", m.Channel},
		{prefix + "bundle.channel.default.v1", m.Channel},
		{prefix + "test.mediatype.v1", "scorecard+v1"},
		{prefix + "test.config.v1", "tests/scorecard/"},
		{"com.redhat.openshift.versions", m.OpenShiftVersions},
	}
}

// writeBundle writes all files of the bundle, and the supplement next to them. What was there before is removed.
func writeBundle(o options, csv *v1alpha1.ClusterServiceVersion, p *parts) error {
	m, err := readMetadata()
	if err != nil {
		return err
	}
	if err := os.RemoveAll(o.bundle); err != nil {
		return fmt.Errorf("remove the bundle that was there: %w", err)
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(csv)
	if err != nil {
		return fmt.Errorf("write the CSV: %w", err)
	}
	manifests := []*unstructured.Unstructured{{Object: object}}
	for _, object := range p.bundle {
		object = object.DeepCopy()
		object.SetNamespace("") // that in which the bundle is installed
		manifests = append(manifests, object)
	}
	for _, object := range manifests {
		if err := writeObjects(filepath.Join(o.bundle, "manifests", fileName(object)), object); err != nil {
			return err
		}
	}
	if err := writeObjects(filepath.Join(o.bundle, "supplement.yaml"), p.supplement...); err != nil {
		return err
	}
	annotations, dockerLabels := "annotations:\n", make([]string, 0, len(labels(m)))
	for _, l := range labels(m) {
		annotations += fmt.Sprintf("  %s: %s\n", l.key, l.value)
		dockerLabels = append(dockerLabels, fmt.Sprintf("LABEL %s=%s", l.key, l.value))
	}
	for name, text := range map[string]string{
		"metadata/annotations.yaml":   annotations,
		"tests/scorecard/config.yaml": scorecard,
		"bundle.Dockerfile":           fmt.Sprintf(dockerfile, strings.Join(dockerLabels, "\n")),
	} {
		if err := writeFile(filepath.Join(o.bundle, name), []byte(generated+text)); err != nil {
			return err
		}
	}
	return nil
}

// fileName of an object in a bundle. That of the CSV has no version, so that two versions can be compared.
func fileName(object *unstructured.Unstructured) string {
	switch kind := strings.ToLower(object.GetKind()); kind {
	case "clusterserviceversion":
		return packageName + "." + kind + ".yaml"
	case "customresourcedefinition":
		return object.GetName() + ".crd.yaml"
	default:
		return object.GetName() + "." + kind + ".yaml"
	}
}

// writeObjects writes objects into a file, with what is empty left out.
func writeObjects(path string, objects ...*unstructured.Unstructured) error {
	text := bytes.NewBufferString(generated)
	for i, object := range objects {
		object = object.DeepCopy()
		prune(object.Object)
		body, err := yaml.Marshal(object.Object)
		if err != nil {
			return fmt.Errorf("write %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		if i > 0 {
			text.WriteString("---\n")
		}
		text.Write(body)
	}
	return writeFile(path, text.Bytes())
}

// prune removes what Go writes for fields that were not set: nulls everywhere, and an empty status.
func prune(object map[string]any) {
	if status, ok := object["status"].(map[string]any); ok && len(status) == 0 || object["kind"] == v1alpha1.ClusterServiceVersionKind {
		delete(object, "status")
	}
	pruneNulls(object)
}

func pruneNulls(node any) {
	switch node := node.(type) {
	case map[string]any:
		for key, child := range node {
			if child == nil {
				delete(node, key)
			}
			pruneNulls(child)
		}
	case []any:
		for _, child := range node {
			pruneNulls(child)
		}
	}
}

func writeFile(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // a folder of the source tree
		return fmt.Errorf("make the folder of %s: %w", path, err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil { //nolint:gosec // a file of the source tree
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
