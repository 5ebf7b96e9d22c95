// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// UpgraderSpec is a variant of an upgrade: an ordered list of steps of the catalogue. docs/steps.md has the steps, their parameters,
// and what must stand before what.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable, because jobs may be going by it; create another Upgrader"
type UpgraderSpec struct {
	// description of the variant, for people.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Description string `json:"description,omitempty"`

	// steps in the order in which they run. docs/steps.md has the rules of that order, which stand here too.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=step
	// +required
	Steps []UpgraderStep `json:"steps"`

	// failUnlessCommenced fails a job that has not commenced within config.upgradeWindow.timeOut, as upgrader OSD does. Otherwise it is skipped at the
	// end of its window.
	// +optional
	FailUnlessCommenced bool `json:"failUnlessCommenced,omitempty"`
}

// UpgraderStep is a step of the catalogue.
type UpgraderStep struct {
	// step is the condition of the step, e.g. UpgradeCommenced.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Step string `json:"step"`

	// parameters of the step, as docs/steps.md lists them.
	// +kubebuilder:validation:MaxProperties=8
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(self[k]) <= 1024)",message="the value of a parameter must not be longer than 1024 bytes"
	// +optional
	Parameters map[string]string `json:"parameters,omitempty"`
}

// UpgraderStatus tells whether jobs can use the upgrader.
type UpgraderStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions: Ready tells whether jobs can use the upgrader, and if not, which rule its steps break.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Upgrader is a variant of an upgrade that needs no code. Jobs choose it by its name, in config.upgrader.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=managedupgrade
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="the name must not be longer than 63 characters, because config.upgrader takes no more"
type Upgrader struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the list of steps.
	// +required
	Spec UpgraderSpec `json:"spec"`

	// status tells whether jobs can use the upgrader.
	// +optional
	Status UpgraderStatus `json:"status,omitzero"`
}

// UpgraderList is a list of Upgraders.
//
// +kubebuilder:object:root=true
type UpgraderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []Upgrader `json:"items"`
}
