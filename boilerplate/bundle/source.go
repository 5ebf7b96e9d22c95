// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const (
	// packageName is the name in catalogues, and of the operator's Deployment and service account.
	packageName = "managed-upgrade-operator"
	// namespace in which deploy/ installs, and the only one in which the bundle does.
	namespace = "managed-upgrade-operator"
	// imageName is the image in deploy/, whatever its tag.
	imageName = "ghcr.io/appuio/managed-upgrade-operator"
)

// bundleKinds are the kinds that the Operator Lifecycle Manager takes from a bundle on every OpenShift that the operator supports, besides the
// CSV and what goes into it. NetworkPolicies are not among them before OpenShift 4.20, and one kind too many fails the whole installation.
var bundleKinds = []string{
	"ClusterRole", "ClusterRoleBinding", "ConfigMap", "CustomResourceDefinition", "PodDisruptionBudget", "PriorityClass", "PrometheusRule", "Role", "RoleBinding",
	"Service", "ServiceMonitor",
}

// parts of deploy/. Each object is in one of them.
type parts struct {
	// account, deployment and grants are what the CSV consists of.
	account    *unstructured.Unstructured
	deployment *unstructured.Unstructured
	grants     []grant
	// bundle are objects that the Operator Lifecycle Manager creates besides: in the namespace of the operator, or of the whole cluster.
	bundle []*unstructured.Unstructured
	// supplement is what it cannot create.
	supplement []*unstructured.Unstructured
}

// build returns what kustomize makes of a folder.
func build(folder string) ([]*unstructured.Unstructured, error) {
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", folder, err)
	}
	objects := make([]*unstructured.Unstructured, 0, resources.Size())
	for _, resource := range resources.Resources() {
		text, err := resource.AsYAML()
		if err != nil {
			return nil, fmt.Errorf("read %s of %s: %w", resource.CurId(), folder, err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &object.Object); err != nil {
			return nil, fmt.Errorf("read %s of %s: %w", resource.CurId(), folder, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// split tells which object goes where.
func split(objects []*unstructured.Unstructured) (*parts, error) {
	p := &parts{}
	grants, taken, err := grantsOf(objects)
	if err != nil {
		return nil, err
	}
	p.grants = grants
	for _, object := range objects {
		foreign := object.GetNamespace() != "" && object.GetNamespace() != namespace
		switch kind := object.GetKind(); {
		case slices.Contains(taken, object):
		case kind == "ServiceAccount" && object.GetName() == packageName:
			p.account = object
		case kind == "Deployment" && object.GetName() == packageName:
			p.deployment = object
		case foreign || !slices.Contains(bundleKinds, kind):
			p.supplement = append(p.supplement, object)
		default:
			p.bundle = append(p.bundle, object)
		}
	}
	if p.account == nil || p.deployment == nil {
		return nil, fmt.Errorf("there is no ServiceAccount and Deployment of the name %s", packageName)
	}
	return p, nil
}

// of returns the objects of a kind.
func of(objects []*unstructured.Unstructured, kind string) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	for _, object := range objects {
		if object.GetKind() == kind {
			found = append(found, object)
		}
	}
	return found
}

// named returns the object of a kind, namespace and name; nil if there is none.
func named(objects []*unstructured.Unstructured, kind, namespace, name string) *unstructured.Unstructured {
	for _, object := range of(objects, kind) {
		if object.GetNamespace() == namespace && object.GetName() == name {
			return object
		}
	}
	return nil
}
