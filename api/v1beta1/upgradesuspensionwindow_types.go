// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// UpgradeSuspensionWindowSpec is a time in which nothing is upgraded.
//
// +kubebuilder:validation:XValidation:rule="self.end > self.start",message="end must be after start"
type UpgradeSuspensionWindowSpec struct {
	// start of the window.
	// +required
	Start metav1.Time `json:"start"`

	// end of the window. The window holds from start up to, but not including, end.
	// +required
	End metav1.Time `json:"end"`

	// reason is shown wherever the window has an effect.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Reason string `json:"reason,omitempty"`

	// configSelector selects the UpgradeConfigs that create no jobs in the window. Absent: none; empty: all.
	// +optional
	ConfigSelector *metav1.LabelSelector `json:"configSelector,omitempty"`

	// jobSelector selects the UpgradeJobs that do not start in the window. Absent: none; empty: all.
	// +optional
	JobSelector *metav1.LabelSelector `json:"jobSelector,omitempty"`
}

// UpgradeSuspensionWindowStatus lists what the window matches.
type UpgradeSuspensionWindowStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// matchingConfigs are the UpgradeConfigs that the window selects, by name.
	// +listType=map
	// +listMapKey=name
	// +optional
	MatchingConfigs []MatchingObject `json:"matchingConfigs,omitempty"`

	// matchingJobs are the UpgradeJobs that the window selects and whose startAfter lies in it, by name.
	// +listType=map
	// +listMapKey=name
	// +optional
	MatchingJobs []MatchingObject `json:"matchingJobs,omitempty"`

	// conditions: Ready tells whether the spec can be used.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MatchingObject is an object in the window's namespace.
type MatchingObject struct {
	// name of the object.
	// +required
	Name string `json:"name"`
}

// UpgradeSuspensionWindow keeps UpgradeConfigs from creating jobs, and UpgradeJobs from starting, for a time.
// Jobs that run go on.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName={upgradewindow,upwin},categories=managedupgrade
// +kubebuilder:printcolumn:name="Start",type=string,JSONPath=`.spec.start`
// +kubebuilder:printcolumn:name="End",type=string,JSONPath=`.spec.end`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.spec.reason`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type UpgradeSuspensionWindow struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the time and what it applies to.
	// +required
	Spec UpgradeSuspensionWindowSpec `json:"spec"`

	// status lists what the window matches.
	// +optional
	Status UpgradeSuspensionWindowStatus `json:"status,omitzero"`
}

// UpgradeSuspensionWindowList is a list of UpgradeSuspensionWindows.
//
// +kubebuilder:object:root=true
type UpgradeSuspensionWindowList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []UpgradeSuspensionWindow `json:"items"`
}
