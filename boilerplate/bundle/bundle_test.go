// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What the metadata and the image say of the bundle is where its files are.
func TestMetadataSaysWhereTheFilesAre(t *testing.T) {
	m := makeBundle(t)
	annotations := map[string]string{}
	metadata, err := read(filepath.Join(m.folder, "bundle", "metadata", "annotations.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range metadata {
		for key, value := range object.Object["annotations"].(map[string]any) {
			annotations[key] = value.(string)
		}
	}
	dockerfile, err := os.ReadFile(filepath.Join(m.folder, "bundle", "bundle.Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range annotations {
		if !strings.Contains(string(dockerfile), "LABEL "+key+"="+value+"\n") {
			t.Errorf("the image does not have the label %s=%s", key, value)
		}
		if folder, ok := strings.CutSuffix(value, "/"); ok {
			if files, err := os.ReadDir(filepath.Join(m.folder, "bundle", folder)); err != nil || len(files) == 0 {
				t.Errorf("%s: %d files, %v", value, len(files), err)
			}
			if !strings.Contains(string(dockerfile), "COPY "+folder+" /"+value) && !strings.Contains(string(dockerfile), "COPY "+folder+" /"+folder+"/") {
				t.Errorf("the image has no %s", value)
			}
		}
	}
	if annotations["operators.operatorframework.io.bundle.package.v1"] != packageName || annotations["operators.operatorframework.io.bundle.channels.v1"] != "stable" {
		t.Errorf("the bundle is of %v", annotations)
	}
}

// What deploy/ has is in the bundle or in the supplement, once, and as it is in deploy/.
func TestEveryObjectOfDeployIsInOnePlace(t *testing.T) {
	m := makeBundle(t)
	inCSV := []string{"ServiceAccount /" + packageName, "Deployment /" + packageName}
	_, taken, err := grantsOf(m.deploy)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range taken {
		inCSV = append(inCSV, nameOf(object))
	}
	var want, got []string
	for _, object := range m.deploy {
		if name := nameOf(object); !slices.Contains(inCSV, name) {
			want = append(want, name)
		}
	}
	for _, object := range slices.Concat(m.objects, m.supplement) {
		got = append(got, nameOf(object))
		source := m.source(object)
		if source == nil {
			continue // it shows in the difference of the lists
		}
		source = source.DeepCopy()
		source.SetNamespace(object.GetNamespace())
		if difference := cmp.Diff(source.Object, object.Object); difference != "" {
			t.Errorf("%s is not as in deploy/:\n%s", nameOf(object), difference)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if difference := cmp.Diff(want, got); difference != "" {
		t.Errorf("in deploy/ (-) but not in the bundle (+):\n%s", difference)
	}
}

// nameOf names an object. That of the operator's namespace has it not in a bundle.
func nameOf(object *unstructured.Unstructured) string {
	in := object.GetNamespace()
	if in == namespace {
		in = ""
	}
	return object.GetKind() + " " + in + "/" + object.GetName()
}

// source returns the object of deploy/ from which one was made.
func (m made) source(object *unstructured.Unstructured) *unstructured.Unstructured {
	for _, source := range m.deploy {
		if nameOf(source) == nameOf(object) {
			return source
		}
	}
	return nil
}

func TestDeploymentIsThatOfDeploy(t *testing.T) {
	m := makeBundle(t)
	want := &appsv1.Deployment{}
	if err := convert(named(m.deploy, "Deployment", namespace, packageName), want); err != nil {
		t.Fatal(err)
	}
	want.Spec.Template.Spec.Containers[0].Image = digest
	deployments := m.csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
	if len(deployments) != 1 || deployments[0].Name != packageName {
		t.Fatalf("the CSV has %d Deployments", len(deployments))
	}
	if difference := cmp.Diff(want.Spec, deployments[0].Spec); difference != "" {
		t.Errorf("the Deployment differs from that of deploy/:\n%s", difference)
	}
	related := m.csv.Spec.RelatedImages
	const mustGather = imageName + "-must-gather:v1.2.3"
	if m.csv.Annotations["operators.openshift.io/must-gather-image"] != mustGather || len(related) != 2 || related[1].Image != mustGather {
		t.Errorf("data for support is collected by %s, and the related images are %v", m.csv.Annotations["operators.openshift.io/must-gather-image"], related)
	}
	if m.csv.Annotations["containerImage"] != digest || related[0].Image != digest {
		t.Errorf("the image is said to be %s, and the related ones are %v", m.csv.Annotations["containerImage"], related)
	}
}

// The manager of the lifecycle takes no other kinds, and puts everything into the namespace of the operator.
func TestBundleHasOnlyWhatIsTaken(t *testing.T) {
	m := makeBundle(t)
	for _, object := range m.objects {
		if !slices.Contains(bundleKinds, object.GetKind()) || object.GetNamespace() != "" {
			t.Errorf("%s cannot be in a bundle", nameOf(object))
		}
	}
	others := []string{"Namespace", "NetworkPolicy", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
	for _, object := range m.supplement {
		own := object.GetNamespace() == "" || object.GetNamespace() == namespace
		if own && !slices.Contains(others, object.GetKind()) {
			t.Errorf("%s can be in the bundle, and is not", nameOf(object))
		}
	}
}

// A catalogue that has the newest version alone is enough.
func TestCatalogHasTheVersion(t *testing.T) {
	m := makeBundle(t)
	if m.csv.Name != "managed-upgrade-operator.v1.2.3" || m.csv.Spec.Version.String() != "1.2.3" || m.csv.Spec.Replaces != "managed-upgrade-operator.v1.2.2" {
		t.Errorf("the CSV is %s of version %s, and replaces %q", m.csv.Name, m.csv.Spec.Version, m.csv.Spec.Replaces)
	}
	var schemas []string
	for _, entry := range m.catalog {
		schema, _, _ := unstructured.NestedString(entry.Object, "schema")
		schemas = append(schemas, schema)
		switch schema {
		case "olm.channel":
			want := []any{map[string]any{"name": m.csv.Name, "skipRange": "<1.2.3", "replaces": "managed-upgrade-operator.v1.2.2"}}
			if difference := cmp.Diff(want, entry.Object["entries"]); difference != "" {
				t.Errorf("the channel has other entries:\n%s", difference)
			}
		case "olm.bundle":
			if entry.GetName() != "" || entry.Object["name"] != m.csv.Name || entry.Object["image"] != imageName+"-bundle:v1.2.3" {
				t.Errorf("the bundle is %v, image %v", entry.Object["name"], entry.Object["image"])
			}
		}
	}
	if want := []string{"olm.package", "olm.channel", "olm.bundle"}; !slices.Equal(schemas, want) {
		t.Errorf("the catalogue has %v, want %v", schemas, want)
	}
	tools, err := os.ReadFile("../olm/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(tools), "github.com/operator-framework/operator-registry "+opmVersion) {
		t.Errorf("the catalogue is served by opm %s, but checked by another one", opmVersion)
	}
}

// The console offers to create the namespace as deploy/ has it.
func TestNamespaceIsThatOfDeploy(t *testing.T) {
	m := makeBundle(t)
	template := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(m.csv.Annotations["operatorframework.io/suggested-namespace-template"]), &template.Object); err != nil {
		t.Fatal(err)
	}
	if difference := cmp.Diff(named(m.deploy, "Namespace", "", namespace).Object, template.Object); difference != "" {
		t.Errorf("the namespace that is suggested differs from that of deploy/:\n%s", difference)
	}
}

func TestBadOptionsAreRefused(t *testing.T) {
	for _, tc := range []struct {
		reason string
		change func(*options)
		words  string
	}{
		{"a version that is none", func(o *options) { o.version = "v1" }, `"v1"`},
		{"a version to replace that is none", func(o *options) { o.replaces = "latest" }, `"latest"`},
		{"no folder to build", func(o *options) { o.deploy = "nowhere" }, "nowhere"},
		{"a folder without the operator", func(o *options) { o.deploy = "../../deploy/crds" }, "there is no ServiceAccount and Deployment"},
	} {
		o := options{deploy: "../../deploy", samples: "../../deploy/samples", bundle: t.TempDir(), catalog: t.TempDir(), version: "1.2.3"}
		tc.change(&o)
		if err := run(o); err == nil || !strings.Contains(err.Error(), tc.words) {
			t.Errorf("%s: got %v, want words %q", tc.reason, err, tc.words)
		}
	}
}

// The version and the image are those of deploy/, unless others are given.
func TestVersionIsThatOfDeploy(t *testing.T) {
	objects, err := deployed()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ shipped, version, image, words string }{
		{imageName + ":v2.3.4-rc.1", "2.3.4-rc.1", imageName + ":v2.3.4-rc.1", ""},
		{imageName + ":latest", "", "", ":latest"},
		{imageName, "", "", "want -version"},
		{digest, "", "", "@sha256"},
		{"quay.io/else/where:v1.0.0", "", "", "other containers"},
	} {
		p, err := split(objects)
		if err != nil {
			t.Fatal(err)
		}
		p.deployment = p.deployment.DeepCopy()
		containers, _, _ := unstructured.NestedSlice(p.deployment.Object, "spec", "template", "spec", "containers")
		containers[0].(map[string]any)["image"] = tc.shipped
		if err := unstructured.SetNestedSlice(p.deployment.Object, containers, "spec", "template", "spec", "containers"); err != nil {
			t.Fatal(err)
		}
		o := options{}
		err = o.complete(p)
		if tc.words != "" {
			if err == nil || !strings.Contains(err.Error(), tc.words) {
				t.Errorf("%s: got %v, want words %q", tc.shipped, err, tc.words)
			}
		} else if err != nil || o.version != tc.version || o.image != tc.image {
			t.Errorf("%s: version %s, image %s, %v", tc.shipped, o.version, o.image, err)
		}
	}
}

// What the manager of the lifecycle cannot create is told of, with its kind.
func TestPageNamesWhatIsLeftOut(t *testing.T) {
	page, err := os.ReadFile("../../docs/olm.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range makeBundle(t).supplement {
		if !strings.Contains(string(page), object.GetKind()) {
			t.Errorf("the page says nothing of %s", nameOf(object))
		}
	}
}
