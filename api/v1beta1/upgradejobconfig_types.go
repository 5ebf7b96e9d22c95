// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"time"
)

// Defaults of UpgradeJobConfig, which the CRD writes out too.
const (
	DefaultUpgrader             = "OpenShift"
	DefaultUpgradeTimeout       = 12 * time.Hour
	DefaultReleaseAcceptTimeout = 30 * time.Minute
	DefaultHealthCheckTimeout   = 30 * time.Minute
	DefaultHealthCheckInterval  = 30 * time.Second
)

// UpgradeJobConfig says how an upgrade is done.
//
// +kubebuilder:validation:XValidation:rule="!has(self.machineConfigPools) || size(self.machineConfigPools) == 0 || !has(self.upgrader) || !(self.upgrader in ['OSD', 'ARO'])",message="upgraders OSD and ARO delay no pools: leave machineConfigPools out, or choose upgrader OpenShift"
// +kubebuilder:validation:XValidation:rule="!has(self.machineConfigPools) || self.machineConfigPools.all(p, !has(p.delayUpgrade) || duration(has(p.delayUpgrade.delayMin) ? p.delayUpgrade.delayMin : has(p.delayUpgrade.startAfter) ? p.delayUpgrade.startAfter : '0s') < duration(has(self.upgradeTimeout) ? self.upgradeTimeout : '12h'))",message="delayMin of every delayUpgrade must be shorter than upgradeTimeout, or the job fails before its pools are released"
type UpgradeJobConfig struct {
	// upgrader is the variant that chooses the steps.
	// +kubebuilder:default=OpenShift
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Upgrader string `json:"upgrader,omitempty"`

	// upgradeTimeout is how long after startAfter (or after the last resume) the job fails if it has not ended.
	// +kubebuilder:default="12h"
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be longer than 0s"
	// +optional
	UpgradeTimeout *Duration `json:"upgradeTimeout,omitempty"`

	// releaseAcceptTimeout is how long the cluster-version operator may refuse or not yet accept the release before the job fails.
	// +kubebuilder:default="30m"
	// +optional
	ReleaseAcceptTimeout *Duration `json:"releaseAcceptTimeout,omitempty"`

	// preUpgradeHealthChecks must find the cluster healthy before the upgrade commences.
	// +kubebuilder:default={}
	// +optional
	PreUpgradeHealthChecks HealthChecks `json:"preUpgradeHealthChecks,omitzero"`

	// postUpgradeHealthChecks must find the cluster healthy for the upgrade to succeed.
	// +kubebuilder:default={}
	// +optional
	PostUpgradeHealthChecks HealthChecks `json:"postUpgradeHealthChecks,omitzero"`

	// machineConfigPools says how pools of machines other than the masters follow the control plane. Pools that no entry
	// selects follow at once.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	MachineConfigPools []MachineConfigPoolConfig `json:"machineConfigPools,omitempty"`

	// pauseMachineConfigPoolsOnFailure keeps machines that are not upgraded yet from following a job that has failed.
	// +optional
	PauseMachineConfigPoolsOnFailure *PauseMachineConfigPoolsOnFailure `json:"pauseMachineConfigPoolsOnFailure,omitempty"`

	// channel that ClusterVersion/version is set to just before the upgrade commences, if it does not have it by then. Empty: it is left as it is.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Channel string `json:"channel,omitempty"`

	// upgradeWindow says how long the upgrade may take to commence. Upgrader OSD looks at it.
	// +optional
	UpgradeWindow *UpgradeWindow `json:"upgradeWindow,omitempty"`

	// maintenance says which alerts are silenced. Upgraders OSD and ARO look at it.
	// +optional
	Maintenance *Maintenance `json:"maintenance,omitempty"`

	// capacityReservation adds machines for the time of the upgrade. Upgraders OSD and ARO look at it.
	// +optional
	CapacityReservation *CapacityReservation `json:"capacityReservation,omitempty"`

	// externalDependencies have to be available before the upgrade commences. Upgraders OSD and ARO look at it.
	// +optional
	ExternalDependencies *ExternalDependencies `json:"externalDependencies,omitempty"`

	// nodeDrain says what becomes of pods that hold up the drain of a node, together with pdbForceDrainTimeout. Upgraders OSD and ARO look at it.
	// It takes a permission that the operator does not have unless it is given: see docs/force-drain.md.
	// +optional
	NodeDrain *NodeDrain `json:"nodeDrain,omitempty"`

	// pdbForceDrainTimeout is how long a node may drain before pods that a PodDisruptionBudget protects are deleted. 0: after
	// nodeDrain.expectedNodeDrainTime. Absent: no pods are deleted, whatever nodeDrain says.
	// +optional
	PDBForceDrainTimeout *Duration `json:"pdbForceDrainTimeout,omitempty"`

	// postUpgradeTasks are done once the cluster is upgraded. Upgrader OSD looks at it.
	// +optional
	PostUpgradeTasks *PostUpgradeTasks `json:"postUpgradeTasks,omitempty"`

	// notificationTimeout is how long the steps StartedNotificationSent and CompletedNotificationSent wait until the receivers have got
	// their notification. Then the upgrade goes on; they are tried further.
	// +kubebuilder:default="5m"
	// +optional
	NotificationTimeout *Duration `json:"notificationTimeout,omitempty"`

	// stageNotifications says which stages of an upgrade are told of, by upgraders that do: All, or Outcome, which leaves out those of control plane and
	// workers.
	// +kubebuilder:validation:Enum=All;Outcome
	// +kubebuilder:default=All
	// +optional
	StageNotifications StageNotifications `json:"stageNotifications,omitempty"`

	// notifications are the webhooks that are told of each transition of a job.
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(a, !has(a.name) || self.exists_one(b, has(b.name) && b.name == a.name))",message="two receivers have the same name"
	// +listType=atomic
	// +optional
	Notifications []NotificationReceiver `json:"notifications,omitempty"`
}
