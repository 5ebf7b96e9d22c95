// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Bounds of what a NodeForceDrain records.
const (
	// MaxObservedDrains is how many drains a NodeForceDrain follows at once. Those beyond it wait for their turn.
	MaxObservedDrains = 256
	// MaxDrainedPods is how many of its deletions a NodeForceDrain lists; the newest are kept.
	MaxDrainedPods = 32
)

// NodeForceDrainSpec says which pods are deleted from nodes whose drain hangs, and when.
type NodeForceDrainSpec struct {
	// nodeSelector selects nodes by their labels. Absent or empty: all.
	// +optional
	NodeSelector *metav1.LabelSelector `json:"nodeSelector,omitempty"`

	// namespaceSelector selects the namespaces of pods by their labels. Absent or empty: all.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// podJQSelector is a jq expression that is applied to each pod, as JSON; a pod is selected if one of its outputs is
	// true. Absent or empty: all pods. A pod for which it fails, or takes longer than 250 ms, is not selected. Example: .metadata.labels.tier == "batch"
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	PodJQSelector string `json:"podJQSelector,omitempty"`

	// nodeDrainGracePeriod is how long a node may drain before its remaining pods are deleted, with their own grace period and whatever
	// PodDisruptionBudgets say. Absent or 0: they are not deleted.
	// +optional
	NodeDrainGracePeriod *Duration `json:"nodeDrainGracePeriod,omitempty"`

	// protectedPodGracePeriod is how long a node may drain before its pods that a PodDisruptionBudget protects are deleted. Absent: as nodeDrainGracePeriod says. 0: they
	// are not deleted.
	// +optional
	ProtectedPodGracePeriod *Duration `json:"protectedPodGracePeriod,omitempty"`

	// ignoredNamespacePatterns are regular expressions (RE2). Pods in namespaces of which one matches a part of the name are left alone.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	IgnoredNamespacePatterns []string `json:"ignoredNamespacePatterns,omitempty"`

	// podForceDeleteGracePeriod is how long a pod of a draining node may take to end, after its deletion was asked for, before it is
	// deleted with a grace period of one second. It counts from the beginning of the drain at the earliest. Absent or 0: it is left alone.
	// +optional
	PodForceDeleteGracePeriod *Duration `json:"podForceDeleteGracePeriod,omitempty"`
}

// NodeForceDrainStatus tells what was seen and done.
type NodeForceDrainStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions: Ready tells whether the spec can be used and its deletions are permitted.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// lastObservedNodeDrain has the drains that were seen last, by node. Those that are over are dropped when a new one is recorded.
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=nodeName
	// +optional
	LastObservedNodeDrain []ObservedNodeDrain `json:"lastObservedNodeDrain,omitempty"`

	// podsDeleted counts the pods that were deleted after nodeDrainGracePeriod.
	// +optional
	PodsDeleted int64 `json:"podsDeleted,omitempty"`

	// podsForceDeleted counts the pods that were deleted with a grace period of one second.
	// +optional
	PodsForceDeleted int64 `json:"podsForceDeleted,omitempty"`

	// lastDeletedPods are the deletions of last, newest first.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	LastDeletedPods []DeletedPod `json:"lastDeletedPods,omitempty"`
}

// ObservedNodeDrain is a drain of a node.
type ObservedNodeDrain struct {
	// nodeName is the name of the node.
	// +required
	NodeName string `json:"nodeName"`

	// drainID is the value of the annotation machineconfiguration.openshift.io/desiredDrain.
	// +required
	DrainID string `json:"drainID"`

	// observedTime is when the drain was first seen. The grace period of the drain counts from here.
	// +required
	ObservedTime metav1.MicroTime `json:"observedTime"`
}

// DeletedPod is a pod that was deleted from a draining node.
type DeletedPod struct {
	// namespace of the pod.
	// +required
	Namespace string `json:"namespace"`

	// name of the pod.
	// +required
	Name string `json:"name"`

	// uid of the pod.
	// +required
	UID string `json:"uid"`

	// nodeName is the node that it was deleted from.
	// +required
	NodeName string `json:"nodeName"`

	// forced tells whether it was deleted with a grace period of one second.
	// +optional
	Forced bool `json:"forced,omitempty"`

	// time of the deletion.
	// +required
	Time metav1.Time `json:"time"`
}

// NodeForceDrain deletes pods that hold up the drain of a node by the machine-config operator. It takes a permission that
// the operator does not have unless it is given: see docs/force-drain.md.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName={forcedrain,nfd},categories=managedupgrade
// +kubebuilder:printcolumn:name="Node Grace",type=string,JSONPath=`.spec.nodeDrainGracePeriod`
// +kubebuilder:printcolumn:name="Pod Grace",type=string,JSONPath=`.spec.podForceDeleteGracePeriod`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Deleted",type=integer,JSONPath=`.status.podsDeleted`
// +kubebuilder:printcolumn:name="Forced",type=integer,JSONPath=`.status.podsForceDeleted`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NodeForceDrain struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec says which pods are deleted, and when.
	// +required
	Spec NodeForceDrainSpec `json:"spec"`

	// status tells what was seen and done.
	// +optional
	Status NodeForceDrainStatus `json:"status,omitzero"`
}

// NodeForceDrainList is a list of NodeForceDrains.
//
// +kubebuilder:object:root=true
type NodeForceDrainList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []NodeForceDrain `json:"items"`
}
