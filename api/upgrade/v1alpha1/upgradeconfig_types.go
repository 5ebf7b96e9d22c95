// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// UpgradeConfigName is the name of the object that is carried out. There is no other in the Managed Upgrade Operator.
	UpgradeConfigName = "managed-upgrade-config"

	// UpgradeConfigLabel names, on an UpgradeJob, the UpgradeConfig that it carries out.
	UpgradeConfigLabel = "upgrade.managed.openshift.io/upgradeconfig"

	// AcceptRisksAnnotation names, on an UpgradeConfig, the risks of a conditional update that are accepted: separated by commas, or * for all.
	AcceptRisksAnnotation = "managedupgrade.appuio.io/accept-risks"
)

// UpgradeType is a way to upgrade a cluster: the upgrader of that name.
// +kubebuilder:validation:Enum=OSD;ARO
type UpgradeType string

const (
	// OSD is for OpenShift Dedicated and for Red Hat OpenShift Service on AWS.
	OSD UpgradeType = "OSD"
	// ARO is for Azure Red Hat OpenShift.
	ARO UpgradeType = "ARO"
)

// UpgradeConfigSpec is the upgrade that is wanted.
type UpgradeConfigSpec struct {
	// desired is the release to upgrade to.
	// +required
	Desired Update `json:"desired"`

	// upgradeAt is the start of the upgrade, as of RFC 3339, e.g. 2026-11-24T22:00:00Z. A time before the creation of the object stands for now.
	// +required
	UpgradeAt string `json:"upgradeAt"`

	// PDBForceDrainTimeout is how long, in minutes, a node may drain before pods that a PodDisruptionBudget protects are deleted. 0: once the time is over that a drain
	// is expected to take. Pods are deleted if the operator has been given that permission.
	// +kubebuilder:validation:Minimum=0
	// +required
	PDBForceDrainTimeout int32 `json:"PDBForceDrainTimeout"`

	// type is the upgrader: OSD or ARO.
	// +required
	Type UpgradeType `json:"type"`

	// capacityReservation adds machines for the time of the upgrade.
	// +optional
	CapacityReservation bool `json:"capacityReservation,omitempty"`
}

// Update names a release: by image, or by channel and version.
type Update struct {
	// version of the release, e.g. 4.18.2.
	// +optional
	Version string `json:"version,omitempty"`

	// channel in which the release is found, e.g. stable-4.18. The cluster is set to it before the update.
	// +optional
	Channel string `json:"channel,omitempty"`

	// image is the pull spec of the release, by digest. If it is given it decides; version and channel are not needed.
	// +optional
	Image string `json:"image,omitempty"`
}

// UpgradePhase is where an upgrade stands.
// +kubebuilder:validation:Enum=New;Pending;Upgrading;Upgraded;Failed
type UpgradePhase string

const (
	// UpgradePhaseNew is an upgrade that is not waited for: it never began, and the object wants another one now.
	UpgradePhaseNew UpgradePhase = "New"
	// UpgradePhasePending is an upgrade that is waited for.
	UpgradePhasePending UpgradePhase = "Pending"
	// UpgradePhaseUpgrading is while the steps of the upgrade run.
	UpgradePhaseUpgrading UpgradePhase = "Upgrading"
	// UpgradePhaseUpgraded is final: the cluster runs the version.
	UpgradePhaseUpgraded UpgradePhase = "Upgraded"
	// UpgradePhaseFailed is final: the upgrade was given up.
	UpgradePhaseFailed UpgradePhase = "Failed"
)

// Finished tells whether the phase is an outcome.
func (p UpgradePhase) Finished() bool { return p == UpgradePhaseUpgraded || p == UpgradePhaseFailed }

// UpgradeConfigStatus tells how the upgrades went that the object asked for.
type UpgradeConfigStatus struct {
	// history has an entry for each desired version, that of the current spec first.
	// +listType=atomic
	// +optional
	History []UpgradeHistory `json:"history,omitempty"`
}

// UpgradeHistory is an upgrade.
type UpgradeHistory struct {
	// version that was desired; the image where the version is not known.
	// +optional
	Version string `json:"version,omitempty"`

	// precedingVersion is the version that the cluster ran when the upgrade started.
	// +optional
	PrecedingVersion string `json:"precedingVersion,omitempty"`

	// phase is where the upgrade stands.
	// +required
	Phase UpgradePhase `json:"phase"`

	// conditions: one for each step, the newest first; before them whether the upgrade is scheduled and the spec can be used.
	// +listType=atomic
	// +optional
	Conditions []UpgradeCondition `json:"conditions,omitempty"`

	// startTime is when the upgrade started.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completeTime is when the upgrade ended.
	// +optional
	CompleteTime *metav1.Time `json:"completeTime,omitempty"`

	// workerStartTime is when the upgrade of the machines other than those of the control plane started.
	// +optional
	WorkerStartTime *metav1.Time `json:"workerStartTime,omitempty"`

	// workerCompleteTime is when those machines were upgraded.
	// +optional
	WorkerCompleteTime *metav1.Time `json:"workerCompleteTime,omitempty"`

	// upgradeJob is the name of the UpgradeJob that does, or did, the upgrade. It is not made again.
	// +optional
	UpgradeJob string `json:"upgradeJob,omitempty"`
}

// UpgradeCondition is one part of an upgrade.
type UpgradeCondition struct {
	// type of the condition: UpgradeConfigValid, UpgradeScheduled, FailedUpgrade, or that of a step.
	// +required
	Type string `json:"type"`

	// status of the condition: True, False, Unknown.
	// +required
	Status metav1.ConditionStatus `json:"status"`

	// reason is a word for why.
	// +optional
	Reason string `json:"reason,omitempty"`

	// message is for people.
	// +optional
	Message string `json:"message,omitempty"`

	// startTime is when the step was started.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completeTime is when the step was done.
	// +optional
	CompleteTime *metav1.Time `json:"completeTime,omitempty"`

	// lastProbeTime is when the condition was last seen to have changed.
	// +optional
	LastProbeTime *metav1.Time `json:"lastProbeTime,omitempty"`

	// lastTransitionTime is when the status of the condition changed.
	// +optional
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`
}

// Types of the conditions that are not steps.
const (
	// ConditionValid tells whether the upgrade can be done as it is described.
	ConditionValid = "UpgradeConfigValid"
	// ConditionScheduled tells whether there is an UpgradeJob for the upgrade.
	ConditionScheduled = "UpgradeScheduled"
	// ConditionFailed is True once the upgrade was given up.
	ConditionFailed = "FailedUpgrade"
)

// UpgradeConfig is an upgrade of this cluster, as the Managed Upgrade Operator takes it. The one named managed-upgrade-config is carried out.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=upgrade
// +kubebuilder:printcolumn:name="desired_version",type=string,JSONPath=`.spec.desired.version`
// +kubebuilder:printcolumn:name="phase",type=string,JSONPath=`.status.history[0].phase`
// +kubebuilder:printcolumn:name="stage",type=string,JSONPath=`.status.history[0].conditions[0].type`
// +kubebuilder:printcolumn:name="status",type=string,JSONPath=`.status.history[0].conditions[0].status`
// +kubebuilder:printcolumn:name="reason",type=string,JSONPath=`.status.history[0].conditions[0].reason`
// +kubebuilder:printcolumn:name="message",type=string,JSONPath=`.status.history[0].conditions[0].message`
type UpgradeConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the upgrade that is wanted.
	// +optional
	Spec UpgradeConfigSpec `json:"spec,omitzero"`

	// status tells how it goes.
	// +optional
	Status UpgradeConfigStatus `json:"status,omitzero"`
}

// UpgradeConfigList is a list of UpgradeConfigs.
//
// +kubebuilder:object:root=true
type UpgradeConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []UpgradeConfig `json:"items"`
}
