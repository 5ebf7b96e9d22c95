// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/lib/version"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// csvName is the name of the CSV of a version.
func csvName(version string) string { return packageName + ".v" + version }

// newCSV returns the ClusterServiceVersion of the operator.
func newCSV(o options, p *parts) (*v1alpha1.ClusterServiceVersion, error) {
	m, err := readMetadata()
	if err != nil {
		return nil, err
	}
	kinds, err := describe(m.Kinds, of(p.bundle, "CustomResourceDefinition"))
	if err != nil {
		return nil, err
	}
	deployment, err := p.install(o.image)
	if err != nil {
		return nil, err
	}
	annotations, err := annotate(o, m, p)
	if err != nil {
		return nil, err
	}
	parsed, err := semver.Parse(o.version)
	if err != nil {
		return nil, fmt.Errorf("version %q: %w", o.version, err)
	}
	csv := &v1alpha1.ClusterServiceVersion{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.ClusterServiceVersionAPIVersion, Kind: v1alpha1.ClusterServiceVersionKind},
		ObjectMeta: metav1.ObjectMeta{Name: csvName(o.version), Annotations: annotations, Labels: m.Labels},
		Spec: v1alpha1.ClusterServiceVersionSpec{
			DisplayName: m.DisplayName, Description: strings.ReplaceAll(strings.TrimSpace(description), "$VERSION", "v"+o.version), Maturity: m.Maturity, MinKubeVersion: m.MinKubeVersion,
			Version: version.OperatorVersion{Version: parsed}, Keywords: m.Keywords, Links: m.Links, Provider: m.Provider,
			Icon:         []v1alpha1.Icon{{Data: base64.StdEncoding.EncodeToString(icon), MediaType: "image/svg+xml"}},
			InstallModes: m.InstallModes, NativeAPIs: m.NativeAPIs, CustomResourceDefinitions: v1alpha1.CustomResourceDefinitions{Owned: kinds},
			RelatedImages: []v1alpha1.RelatedImage{{Name: "manager", Image: o.image}, {Name: "must-gather", Image: o.mustGatherImage}},
			InstallStrategy: v1alpha1.NamedInstallStrategy{
				StrategyName: v1alpha1.InstallStrategyNameDeployment, StrategySpec: *deployment,
			},
		},
	}
	if o.replaces != "" {
		csv.Spec.Replaces = csvName(o.replaces)
	}
	return csv, nil
}

// readDeployment returns the Deployment, which has one container of the operator's image.
func (p *parts) readDeployment() (*appsv1.Deployment, error) {
	deployment := &appsv1.Deployment{}
	if err := convert(p.deployment, deployment); err != nil {
		return nil, err
	}
	pod := deployment.Spec.Template.Spec
	if len(pod.Containers) != 1 || len(pod.InitContainers) > 0 || !strings.HasPrefix(pod.Containers[0].Image, imageName) {
		return nil, fmt.Errorf("the Deployment has other containers than the one of %s", imageName)
	}
	return deployment, nil
}

// install returns the Deployment and what it is allowed. The manager of the lifecycle creates the service account by its name here.
func (p *parts) install(image string) (*v1alpha1.StrategyDetailsDeployment, error) {
	deployment, err := p.readDeployment()
	if err != nil {
		return nil, err
	}
	deployment.Spec.Template.Spec.Containers[0].Image = image
	return &v1alpha1.StrategyDetailsDeployment{
		DeploymentSpecs: []v1alpha1.StrategyDeploymentSpec{{Name: deployment.Name, Label: deployment.Labels, Spec: deployment.Spec}},
		Permissions: []v1alpha1.StrategyDeploymentPermissions{
			{ServiceAccountName: p.account.GetName(), Rules: p.rulesIn(namespace)},
		},
		ClusterPermissions: []v1alpha1.StrategyDeploymentPermissions{
			{ServiceAccountName: p.account.GetName(), Rules: p.rulesIn("")},
		},
	}, nil
}

// annotate returns the annotations of the CSV.
func annotate(o options, m *metadata, p *parts) (map[string]string, error) {
	annotations := maps.Clone(m.Annotations)
	annotations["containerImage"] = o.image
	annotations["operators.openshift.io/must-gather-image"] = o.mustGatherImage
	if o.created != "" {
		annotations["createdAt"] = o.created
	}
	// Each version knows the objects of all older ones, so that none has to be installed in between.
	annotations["olm.skipRange"] = "<" + o.version
	annotations["operatorframework.io/suggested-namespace"] = namespace
	for _, object := range of(p.supplement, "Namespace") {
		template, err := json.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("write the template of the namespace: %w", err)
		}
		annotations["operatorframework.io/suggested-namespace-template"] = strings.TrimSpace(string(template))
	}
	examples, err := examplesOf(o.samples)
	if err != nil {
		return nil, err
	}
	annotations["alm-examples"] = examples
	return annotations, nil
}

// examplesOf returns the samples of a folder as a JSON list.
func examplesOf(folder string) (string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return "", fmt.Errorf("find the samples in %s: %w", folder, err)
	}
	slices.Sort(files)
	examples := make([]map[string]any, 0, len(files))
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // a file of the source tree
		if err != nil {
			return "", fmt.Errorf("read a sample: %w", err)
		}
		var example map[string]any
		if err := yaml.Unmarshal(text, &example); err != nil {
			return "", fmt.Errorf("read the sample %s: %w", file, err)
		}
		examples = append(examples, example)
	}
	text, err := json.MarshalIndent(examples, "", "  ")
	if err != nil {
		return "", fmt.Errorf("write the samples of %s: %w", folder, err)
	}
	return string(text), nil
}
