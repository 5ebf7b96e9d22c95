// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"maps"
	"strings"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	nodeKind          = corev1.SchemeGroupVersion.WithKind("Node")
	machineConfigKind = mcfgv1.GroupVersion.WithKind("MachineConfig")
)

// NodeMetadata returns an empty Node of which only metadata is read.
func NodeMetadata() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(nodeKind)
	return m
}

// MachineConfigMetadata returns an empty MachineConfig of which only metadata is read: the spec of a rendered one
// holds every file of a node, a megabyte or more.
func MachineConfigMetadata() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(machineConfigKind)
	return m
}

// TrimMachineConfig removes from a MachineConfig's metadata what this package does not read.
func TrimMachineConfig(mc *metav1.PartialObjectMetadata) {
	kept := map[string]string{}
	if version, ok := mc.Annotations[ReleaseImageVersionAnnotation]; ok {
		kept[ReleaseImageVersionAnnotation] = version
	}
	mc.Annotations = kept
	mc.Labels = nil
	mc.ManagedFields = nil
	mc.OwnerReferences = nil
}

// TrimNode removes from a Node's metadata what this package does not read: all annotations but those of the
// machine-config operator.
func TrimNode(node *metav1.PartialObjectMetadata) {
	maps.DeleteFunc(node.Annotations, func(key, _ string) bool { return !strings.HasPrefix(key, mcoPrefix) })
	node.ManagedFields = nil
	node.OwnerReferences = nil
}
