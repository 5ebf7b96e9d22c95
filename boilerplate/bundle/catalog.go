// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// opmVersion is the one with which boilerplate/olm checks the catalogue.
const opmVersion = "v1.65.0"

const catalogDockerfile = `
# The catalogue as an image: docker build -f deploy/catalog/catalog.Dockerfile deploy/catalog
FROM quay.io/operator-framework/opm:` + opmVersion + `
ENTRYPOINT ["/bin/opm"]
CMD ["serve", "/configs", "--cache-dir=/tmp/cache"]
COPY configs /configs
RUN ["/bin/opm", "serve", "/configs", "--cache-dir=/tmp/cache", "--cache-only"]
LABEL operators.operatorframework.io.index.configs.v1=/configs
`

// subscription installs the operator from the catalogue.
const subscription = `# After deploy/bundle/supplement.yaml, which has the namespace: oc apply -f deploy/catalog/subscription.yaml
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata:
  name: %[1]s
  namespace: openshift-marketplace
spec:
  displayName: Managed Upgrade Operator
  publisher: The managed-upgrade-operator authors
  sourceType: grpc
  image: %[2]s-catalog:latest
  grpcPodConfig:
    securityContextConfig: restricted
  updateStrategy:
    registryPoll:
      interval: 1h
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata:
  name: %[1]s
  namespace: %[3]s
spec:
  targetNamespaces: [%[3]s]
  upgradeStrategy: Default
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata:
  name: %[1]s
  namespace: %[3]s
spec:
  source: %[1]s
  sourceNamespace: openshift-marketplace
  name: %[1]s
  channel: %[4]s
  # New versions are installed when no job is in flight. Manual: when somebody approves the InstallPlan.
  installPlanApproval: Automatic
`

// property of a bundle in a catalogue.
type property struct {
	Type  string `json:"type"`
	Value any    `json:"value"`
}

// csvMetadata is what a catalogue says of a CSV: the property olm.csv.metadata.
type csvMetadata struct {
	Annotations    map[string]string                  `json:"annotations"`
	APIServices    map[string]any                     `json:"apiServiceDefinitions"`
	Kinds          v1alpha1.CustomResourceDefinitions `json:"crdDescriptions"`
	Description    string                             `json:"description"`
	DisplayName    string                             `json:"displayName"`
	InstallModes   []v1alpha1.InstallMode             `json:"installModes"`
	Keywords       []string                           `json:"keywords"`
	Labels         map[string]string                  `json:"labels"`
	Links          []v1alpha1.AppLink                 `json:"links"`
	Maturity       string                             `json:"maturity"`
	MinKubeVersion string                             `json:"minKubeVersion"`
	NativeAPIs     []metav1.GroupVersionKind          `json:"nativeAPIs"`
	Provider       v1alpha1.AppLink                   `json:"provider"`
}

// bundleEntry is a bundle in a catalogue, of the schema olm.bundle.
type bundleEntry struct {
	Schema        string                  `json:"schema"`
	Name          string                  `json:"name"`
	Package       string                  `json:"package"`
	Image         string                  `json:"image"`
	Properties    []property              `json:"properties"`
	RelatedImages []v1alpha1.RelatedImage `json:"relatedImages"`
}

// writeCatalog writes a catalogue with the package, its channel and this one version: whoever has an older one may go to it at once.
func writeCatalog(o options, csv *v1alpha1.ClusterServiceVersion) error {
	m, err := readMetadata()
	if err != nil {
		return err
	}
	if err := os.RemoveAll(o.catalog); err != nil {
		return fmt.Errorf("remove the catalogue that was there: %w", err)
	}
	entry := map[string]any{"name": csv.Name, "skipRange": csv.Annotations["olm.skipRange"]}
	if csv.Spec.Replaces != "" {
		entry["replaces"] = csv.Spec.Replaces
	}
	bundle, err := runtime.DefaultUnstructuredConverter.ToUnstructured(catalogued(o, csv))
	if err != nil {
		return fmt.Errorf("write the bundle into the catalogue: %w", err)
	}
	entries := []*unstructured.Unstructured{
		{Object: map[string]any{
			"schema": "olm.package", "name": packageName, "defaultChannel": m.Channel, "description": csv.Spec.Description,
			"icon": map[string]any{"base64data": csv.Spec.Icon[0].Data, "mediatype": csv.Spec.Icon[0].MediaType},
		}},
		{Object: map[string]any{"schema": "olm.channel", "name": m.Channel, "package": packageName, "entries": []any{entry}}},
		{Object: bundle},
	}
	if err := writeObjects(filepath.Join(o.catalog, "configs", packageName, "catalog.yaml"), entries...); err != nil {
		return err
	}
	if err := writeFile(filepath.Join(o.catalog, "catalog.Dockerfile"), []byte(generated+catalogDockerfile)); err != nil {
		return err
	}
	return writeFile(filepath.Join(o.catalog, "subscription.yaml"), []byte(generated+"\n"+fmt.Sprintf(subscription, packageName, imageName, namespace, m.Channel)))
}

// catalogued returns what the catalogue says of the bundle.
func catalogued(o options, csv *v1alpha1.ClusterServiceVersion) *bundleEntry {
	spec := csv.Spec
	entry := &bundleEntry{
		Schema: "olm.bundle", Name: csv.Name, Package: packageName, Image: o.bundleImage,
		// The tools that mirror a catalogue take all images from here.
		RelatedImages: append([]v1alpha1.RelatedImage{{Image: o.bundleImage}}, spec.RelatedImages...),
	}
	kinds := slices.Clone(spec.CustomResourceDefinitions.Owned)
	slices.SortFunc(kinds, func(a, b v1alpha1.CRDDescription) int {
		return cmp.Or(cmp.Compare(group(a), group(b)), cmp.Compare(a.Kind, b.Kind))
	})
	for _, kind := range kinds {
		entry.Properties = append(entry.Properties, property{"olm.gvk", map[string]any{"group": group(kind), "version": kind.Version, "kind": kind.Kind}})
	}
	entry.Properties = append(entry.Properties,
		property{"olm.package", map[string]any{"packageName": packageName, "version": spec.Version.String()}},
		property{"olm.csv.metadata", csvMetadata{
			Annotations: csv.Annotations, APIServices: map[string]any{}, Kinds: spec.CustomResourceDefinitions, Description: spec.Description,
			DisplayName: spec.DisplayName, InstallModes: spec.InstallModes, Keywords: spec.Keywords, Labels: csv.Labels, Links: spec.Links,
			Maturity: spec.Maturity, MinKubeVersion: spec.MinKubeVersion, NativeAPIs: spec.NativeAPIs, Provider: spec.Provider,
		}},
	)
	return entry
}

// group of a kind, which stands in the name of its CRD.
func group(kind v1alpha1.CRDDescription) string {
	_, group, _ := strings.Cut(kind.Name, ".")
	return group
}
