// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed" // the texts below
	"fmt"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

var (
	//go:embed metadata.yaml
	metadataText []byte
	//go:embed description.md
	description string
	//go:embed icon.svg
	icon []byte
)

// metadata is what metadata.yaml says.
type metadata struct {
	DisplayName       string                    `json:"displayName"`
	Maturity          string                    `json:"maturity"`
	MinKubeVersion    string                    `json:"minKubeVersion"`
	OpenShiftVersions string                    `json:"openShiftVersions"`
	Channel           string                    `json:"channel"`
	Keywords          []string                  `json:"keywords"`
	Provider          v1alpha1.AppLink          `json:"provider"`
	Links             []v1alpha1.AppLink        `json:"links"`
	InstallModes      []v1alpha1.InstallMode    `json:"installModes"`
	NativeAPIs        []metav1.GroupVersionKind `json:"nativeAPIs"`
	Labels            map[string]string         `json:"labels"`
	Annotations       map[string]string         `json:"annotations"`
	Kinds             []kindMetadata            `json:"kinds"`
}

// kindMetadata is what is shown of a kind.
type kindMetadata struct {
	// CRD is the name of the CRD.
	CRD         string `json:"crd"`
	DisplayName string `json:"displayName"`
	// Makes are the kinds of the objects that the operator makes for one of this kind.
	Makes []v1alpha1.APIResourceReference `json:"makes"`
	// Spec and Status are the fields that are shown, in this order.
	Spec   []fieldMetadata `json:"spec"`
	Status []fieldMetadata `json:"status"`
}

// fieldMetadata is a field, by its path below spec or status, and what it is called.
type fieldMetadata struct {
	Path string `json:"path"`
	Name string `json:"name"`
}

func readMetadata() (*metadata, error) {
	m := &metadata{}
	if err := yaml.UnmarshalStrict(metadataText, m); err != nil {
		return nil, fmt.Errorf("read metadata.yaml: %w", err)
	}
	return m, nil
}
