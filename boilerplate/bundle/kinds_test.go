// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// crds returns the CRDs of a bundle.
func (m made) crds(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crds := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, object := range of(m.objects, "CustomResourceDefinition") {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := convert(object, crd); err != nil {
			t.Fatal(err)
		}
		crds[crd.Name] = crd
	}
	return crds
}

// Every kind is described, and every field that is shown is one of its kind, with the words of the CRD.
func TestDescriptorsNameFieldsOfTheCRDs(t *testing.T) {
	m := makeBundle(t)
	crds := m.crds(t)
	for _, kind := range m.csv.Spec.CustomResourceDefinitions.Owned {
		crd, ok := crds[kind.Name]
		if !ok {
			t.Errorf("the CSV has the kind %s, of which there is no CRD", kind.Name)
			continue
		}
		delete(crds, kind.Name)
		if kind.Kind != crd.Spec.Names.Kind || kind.Description == "" || kind.DisplayName == "" || len(kind.SpecDescriptors) == 0 || len(kind.StatusDescriptors) == 0 {
			t.Errorf("%s: described as %s %q, with %d fields of its spec and %d of its status", kind.Name, kind.Kind, kind.DisplayName, len(kind.SpecDescriptors), len(kind.StatusDescriptors))
		}
		for _, d := range kind.SpecDescriptors {
			expectField(t, crd, kind.Version, "spec."+d.Path, d.DisplayName, d.Description)
		}
		for _, d := range kind.StatusDescriptors {
			expectField(t, crd, kind.Version, "status."+d.Path, d.DisplayName, d.Description)
		}
	}
	for name := range crds {
		t.Errorf("nothing is said of the kind %s", name)
	}
}

func expectField(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, version, path, name, description string) {
	t.Helper()
	i := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version })
	if i < 0 {
		t.Fatalf("%s has no version %s", crd.Name, version)
	}
	schema := *crd.Spec.Versions[i].Schema.OpenAPIV3Schema
	for _, part := range strings.Split(path, ".") {
		schema = schema.Properties[part]
	}
	if schema.Type == "" || name == "" || description != schema.Description {
		t.Errorf("%s: %s is called %q and described as %q, want a field and its own description %q", crd.Name, path, name, description, schema.Description)
	}
}

func TestUnknownFieldsAreRefused(t *testing.T) {
	crds := of(makeBundle(t).objects, "CustomResourceDefinition")
	known, err := readMetadata()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		reason string
		change func(*[]kindMetadata)
		words  string
	}{
		{"a field of the spec", func(kinds *[]kindMetadata) { (*kinds)[0].Spec = []fieldMetadata{{Path: "schedule.moon"}} }, "spec.schedule.moon"},
		{"a field of the status", func(kinds *[]kindMetadata) { (*kinds)[0].Status = []fieldMetadata{{Path: "mood"}} }, "status.mood"},
		{"a kind", func(kinds *[]kindMetadata) { (*kinds)[0].CRD = "moons.example.com" }, "moons.example.com"},
		{"a kind that is left out", func(kinds *[]kindMetadata) { *kinds = (*kinds)[1:] }, known.Kinds[0].CRD},
	} {
		kinds := slices.Clone(known.Kinds)
		tc.change(&kinds)
		if _, err := describe(kinds, crds); err == nil || !strings.Contains(err.Error(), tc.words) {
			t.Errorf("%s: got %v, want words %q", tc.reason, err, tc.words)
		}
	}
}

// The console shows a field as what it is.
func TestFieldsAreShownAsWhatTheyAre(t *testing.T) {
	m := makeBundle(t)
	shown := map[string][]string{}
	for _, kind := range m.csv.Spec.CustomResourceDefinitions.Owned {
		for _, d := range kind.SpecDescriptors {
			shown[kind.Name+" spec."+d.Path] = d.XDescriptors
		}
		for _, d := range kind.StatusDescriptors {
			shown[kind.Name+" status."+d.Path] = d.XDescriptors
		}
	}
	for field, want := range map[string][]string{
		"upgradeconfigs.managedupgrade.appuio.io spec.schedule.cron":            {showInput},
		"upgradeconfigs.managedupgrade.appuio.io spec.schedule.suspend":         {showSwitch},
		"upgradeconfigs.managedupgrade.appuio.io spec.failedJobsHistoryLimit":   {showNumber},
		"upgradejobhooks.managedupgrade.appuio.io spec.failurePolicy":           {showChoice + "Abort", showChoice + "Ignore"},
		"upgradesuspensionwindows.managedupgrade.appuio.io spec.configSelector": {showSelector},
		"upgradejobs.managedupgrade.appuio.io status.phase":                     {showPhase},
		"upgradejobs.managedupgrade.appuio.io status.conditions":                {showConditions},
		"upgradeconfigs.managedupgrade.appuio.io status.nextPossibleSchedules":  {showText},
		"upgradeconfigs.upgrade.managed.openshift.io spec.PDBForceDrainTimeout": {showNumber},
	} {
		got := slices.Clone(shown[field])
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s is shown as %v, want %v", field, got, want)
		}
	}
}

// There is an example of every kind, and the API server would take it.
func TestExamplesAreValid(t *testing.T) {
	m := makeBundle(t)
	var examples []*unstructured.Unstructured
	if err := json.Unmarshal([]byte(m.csv.Annotations["alm-examples"]), &examples); err != nil {
		t.Fatal(err)
	}
	crds := m.crds(t)
	for _, kind := range m.csv.Spec.CustomResourceDefinitions.Owned {
		found := 0
		for _, example := range examples {
			if gvk := example.GroupVersionKind(); gvk.Group == group(kind) && gvk.Version == kind.Version && gvk.Kind == kind.Kind {
				found++
				expectValid(t, crds[kind.Name], kind, example)
			}
		}
		if found != 1 {
			t.Errorf("%s has %d examples, want one", kind.Name, found)
		}
	}
	if len(examples) != len(crds) {
		t.Errorf("there are %d examples of %d kinds", len(examples), len(crds))
	}
}

func expectValid(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, kind v1alpha1.CRDDescription, example *unstructured.Unstructured) {
	t.Helper()
	for _, version := range crd.Spec.Versions {
		if version.Name != kind.Version {
			continue
		}
		schema := &apiextensions.CustomResourceValidation{}
		if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(version.Schema, schema, nil); err != nil {
			t.Fatal(err)
		}
		validator, _, err := schemavalidation.NewSchemaValidator(schema.OpenAPIV3Schema)
		if err != nil {
			t.Fatal(err)
		}
		for _, finding := range schemavalidation.ValidateCustomResource(nil, example.Object, validator) {
			t.Errorf("the example of %s: %v", kind.Name, finding)
		}
		structural, err := structuralschema.NewStructural(schema.OpenAPIV3Schema)
		if err != nil {
			t.Fatal(err)
		}
		unknown := pruning.PruneWithOptions(example.DeepCopy().Object, structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
		if len(unknown) > 0 {
			t.Errorf("the example of %s has the unknown fields %v", kind.Name, unknown)
		}
	}
}

// The icon is a picture of a size that a CSV can have, and draws nothing from elsewhere.
func TestIconIsAPicture(t *testing.T) {
	decoder := xml.NewDecoder(strings.NewReader(string(icon)))
	for first := true; ; first = false {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if start, ok := token.(xml.StartElement); ok && first && start.Name.Local != "svg" {
			t.Errorf("it is no SVG but %s", start.Name.Local)
		}
	}
	if len(icon) > 10_000 || strings.Contains(string(icon), "href") || strings.Contains(string(icon), "<script") {
		t.Errorf("it has %d bytes, or is more than a picture", len(icon))
	}
}
