// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What the console shows a field as.
const (
	showText       = "urn:alm:descriptor:text"
	showConditions = "urn:alm:descriptor:io.kubernetes.conditions"
	showPhase      = "urn:alm:descriptor:io.kubernetes.phase"
	showInput      = "urn:alm:descriptor:com.tectonic.ui:text"
	showNumber     = "urn:alm:descriptor:com.tectonic.ui:number"
	showSwitch     = "urn:alm:descriptor:com.tectonic.ui:booleanSwitch"
	showSelector   = "urn:alm:descriptor:com.tectonic.ui:selector:core:v1"
	showChoice     = "urn:alm:descriptor:com.tectonic.ui:select:"
)

// describe returns what the CSV says of each kind: one entry for each CRD, in the order of the metadata.
func describe(kinds []kindMetadata, crds []*unstructured.Unstructured) ([]v1alpha1.CRDDescription, error) {
	byName := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, object := range crds {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := convert(object, crd); err != nil {
			return nil, err
		}
		byName[crd.Name] = crd
	}
	var descriptions []v1alpha1.CRDDescription
	for _, kind := range kinds {
		crd, ok := byName[kind.CRD]
		if !ok {
			return nil, fmt.Errorf("describe %s: there is no such CRD", kind.CRD)
		}
		delete(byName, kind.CRD)
		description, err := describeKind(kind, crd)
		if err != nil {
			return nil, fmt.Errorf("describe %s: %w", kind.CRD, err)
		}
		descriptions = append(descriptions, description)
	}
	for name := range byName {
		return nil, fmt.Errorf("nothing is said of the CRD %s in metadata.yaml", name)
	}
	return descriptions, nil
}

func describeKind(kind kindMetadata, crd *apiextensionsv1.CustomResourceDefinition) (v1alpha1.CRDDescription, error) {
	stored := crd.Spec.Versions[0]
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			stored = v
		}
	}
	schema := stored.Schema.OpenAPIV3Schema
	d := v1alpha1.CRDDescription{
		Name: crd.Name, Version: stored.Name, Kind: crd.Spec.Names.Kind, DisplayName: kind.DisplayName, Description: schema.Description, Resources: kind.Makes,
	}
	for _, field := range kind.Spec {
		found, err := lookUp(schema, "spec", field.Path)
		if err != nil {
			return d, err
		}
		d.SpecDescriptors = append(d.SpecDescriptors, v1alpha1.SpecDescriptor{
			Path: field.Path, DisplayName: field.Name, Description: found.Description, XDescriptors: specShownAs(found),
		})
	}
	for _, field := range kind.Status {
		found, err := lookUp(schema, "status", field.Path)
		if err != nil {
			return d, err
		}
		d.StatusDescriptors = append(d.StatusDescriptors, v1alpha1.StatusDescriptor{
			Path: field.Path, DisplayName: field.Name, Description: found.Description, XDescriptors: []string{statusShownAs(field.Path)},
		})
	}
	return d, nil
}

// lookUp returns the schema of a field.
func lookUp(schema *apiextensionsv1.JSONSchemaProps, top, path string) (*apiextensionsv1.JSONSchemaProps, error) {
	for _, name := range append([]string{top}, strings.Split(path, ".")...) {
		field, ok := schema.Properties[name]
		if !ok {
			return nil, fmt.Errorf("there is no field %s.%s", top, path)
		}
		schema = &field
	}
	return schema, nil
}

func specShownAs(field *apiextensionsv1.JSONSchemaProps) []string {
	switch {
	case len(field.Enum) > 0:
		var shown []string
		for _, value := range field.Enum {
			var text string
			if err := json.Unmarshal(value.Raw, &text); err == nil && text != "" {
				shown = append(shown, showChoice+text)
			}
		}
		return shown
	case field.Type == "boolean":
		return []string{showSwitch}
	case field.Type == "integer":
		return []string{showNumber}
	case field.Type == "string":
		return []string{showInput}
	case field.Properties["matchLabels"].Type != "":
		return []string{showSelector}
	}
	return nil // objects and lists are edited as YAML
}

func statusShownAs(path string) string {
	switch path {
	case "conditions":
		return showConditions
	case "phase":
		return showPhase
	}
	return showText
}
