// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Defaults of what the steps of the upgraders OSD and ARO look at. They are those that the Managed Upgrade Operator documents.
const (
	DefaultUpgradeWindow         = 2 * time.Hour
	DefaultDelayTrigger          = 30 * time.Minute
	DefaultControlPlaneTime      = 90 * time.Minute
	DefaultSilenceLease          = 25 * time.Minute
	DefaultMonitoringPatience    = 5 * time.Minute
	DefaultCapacityTimeout       = 30 * time.Minute
	DefaultDependencyTimeout     = 15 * time.Second
	DefaultNodeDrainTimeout      = 45 * time.Minute
	DefaultExpectedNodeDrainTime = 8 * time.Minute
	DefaultNotificationTimeout   = 5 * time.Minute
)

// UpgradeWindow says how long after its start an upgrade may take to commence. It is for upgraders that fail what has not commenced by
// then, such as OSD.
type UpgradeWindow struct {
	// timeOut is how long after the start of the job, or after its last resume, the upgrade has to have commenced. A job that has not fails. 0: there is no such limit.
	// +kubebuilder:default="2h"
	// +optional
	TimeOut *Duration `json:"timeOut,omitempty"`

	// delayTrigger is how long after the start of the job an upgrade that has not commenced counts as delayed. 0: never.
	// +kubebuilder:default="30m"
	// +optional
	DelayTrigger *Duration `json:"delayTrigger,omitempty"`
}

// Maintenance says which alerts are silenced while the upgrade goes on, and for how long.
type Maintenance struct {
	// controlPlaneTime is how long the silences of the control plane's window are kept at most.
	// +kubebuilder:default="90m"
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be longer than 0s"
	// +optional
	ControlPlaneTime *Duration `json:"controlPlaneTime,omitempty"`

	// controlPlaneCriticals are the names of critical alerts that are silenced too while the control plane is upgraded. Each is a regular expression (RE2) that has to
	// match the whole name.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	ControlPlaneCriticals []string `json:"controlPlaneCriticals,omitempty"`

	// silenceLease is how long a silence outlives the operator that made it. It is renewed while the operator is there and the window is not over.
	// +kubebuilder:default="25m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10s') && duration(self) <= duration('4h')",message="must be at least 10s and at most 4h"
	// +optional
	SilenceLease *Duration `json:"silenceLease,omitempty"`

	// patience is how long the upgrade waits for an Alertmanager that is away before it goes on without silences.
	// +kubebuilder:default="5m"
	// +optional
	Patience *Duration `json:"patience,omitempty"`
}

// CapacityReservation adds machines before an upgrade, so that workloads find room while nodes are drained.
type CapacityReservation struct {
	// enabled adds one MachineSet of one machine for each MachineSet of workers.
	// +optional
	Enabled bool `json:"enabled,omitempty"`

	// timeOut is how long after it was created an extra machine may take to become ready. Then the upgrade goes on without it.
	// +kubebuilder:default="30m"
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be longer than 0s"
	// +optional
	TimeOut *Duration `json:"timeOut,omitempty"`

	// extraMachinePools are further machine pools that get an extra machine: glob patterns, as of Go's path.Match, of the label
	// hive.openshift.io/machine-pool of MachineSets. Those of the pool worker get one anyway.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	ExtraMachinePools []string `json:"extraMachinePools,omitempty"`
}

// ExternalDependencies are what the cluster cannot be upgraded without and is not part of it.
type ExternalDependencies struct {
	// http are URLs that have to answer.
	// +optional
	HTTP *HTTPDependencies `json:"http,omitempty"`
}

// HTTPDependencies are URLs that have to answer with a status below 400. They are asked by GET, through the proxy of the environment.
type HTTPDependencies struct {
	// timeout of one attempt, of which there are three.
	// +kubebuilder:default="15s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('60s')",message="must be at least 1s and at most 60s"
	// +optional
	Timeout *Duration `json:"timeout,omitempty"`

	// urls to ask.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=2048
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^https?://[^/@?#]+([/?].*)?$') && isURL(self)",message="must be an http or https URL without user and password"
	// +listType=set
	// +optional
	URLs []string `json:"urls,omitempty"`
}

// NodeDrain says what becomes of pods that hold up the drain of a node.
type NodeDrain struct {
	// timeOut is how long a node may drain before those of its pods that no PodDisruptionBudget protects are deleted, and how long a pod may take to end before it
	// is deleted with a grace period of one second.
	// +kubebuilder:default="45m"
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be longer than 0s"
	// +optional
	TimeOut *Duration `json:"timeOut,omitempty"`

	// expectedNodeDrainTime is how long a drain takes where nothing holds it up. Pods that a PodDisruptionBudget protects have that long where
	// pdbForceDrainTimeout is 0, and the window of the workers' silences counts with it.
	// +kubebuilder:default="8m"
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be longer than 0s"
	// +optional
	ExpectedNodeDrainTime *Duration `json:"expectedNodeDrainTime,omitempty"`

	// disableDrainStrategies leaves all pods alone.
	// +optional
	DisableDrainStrategies bool `json:"disableDrainStrategies,omitempty"`

	// ignoredNamespacePatterns are regular expressions (RE2). Pods in namespaces of which one matches a part of the name are left alone.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	IgnoredNamespacePatterns []string `json:"ignoredNamespacePatterns,omitempty"`
}

// PostUpgradeTasks are done once the cluster is upgraded.
type PostUpgradeTasks struct {
	// reinitializeFileIntegrity has the file integrity operator take the upgraded machines as they are: it annotates FileIntegrity
	// openshift-file-integrity/osd-fileintegrity.
	// +optional
	ReinitializeFileIntegrity bool `json:"reinitializeFileIntegrity,omitempty"`
}

// MaintenanceWindowName tells the windows of an upgrade apart.
// +kubebuilder:validation:Enum=ControlPlane;Workers
type MaintenanceWindowName string

const (
	// ControlPlaneWindow is while the control plane is upgraded.
	ControlPlaneWindow MaintenanceWindowName = "ControlPlane"
	// WorkersWindow is while the other machines are.
	WorkersWindow MaintenanceWindowName = "Workers"
)

// MaintenanceWindowStatus is a window in which alerts are silenced.
type MaintenanceWindowStatus struct {
	// name of the window.
	// +required
	Name MaintenanceWindowName `json:"name"`

	// startTime is when the window was opened.
	// +required
	StartTime metav1.Time `json:"startTime"`

	// until is when the window is over: silences are not renewed beyond it.
	// +required
	Until metav1.Time `json:"until"`

	// remaining is how many machines were left when until was set.
	// +optional
	Remaining int32 `json:"remaining,omitempty"`

	// silences of the window in Alertmanager. None in a window that is closed, or that Alertmanager was away for.
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=id
	// +optional
	Silences []SilenceStatus `json:"silences,omitempty"`

	// warning says why there are no silences though there should be.
	// +optional
	Warning string `json:"warning,omitempty"`
}

// SilenceStatus is a silence in Alertmanager.
type SilenceStatus struct {
	// id that Alertmanager gave to the silence.
	// +required
	ID string `json:"id"`

	// critical tells whether it is that of critical alerts.
	// +optional
	Critical bool `json:"critical,omitempty"`

	// endTime is when the silence lapses unless it is renewed.
	// +required
	EndTime metav1.Time `json:"endTime"`
}

// UpgradeStage is a stage of an upgrade that is told of, in notifications and by an Event. They are the states of the Managed Upgrade Operator.
// +kubebuilder:validation:Enum=Started;Delayed;ScaleSkipped;Skipped;ControlPlaneStarted;ControlPlaneFinished;WorkersFinished;Completed;Failed
type UpgradeStage string

// The stages of an upgrade. docs/upgraders.md lists them too.
const (
	// StageStarted: the steps of the upgrade have begun.
	StageStarted UpgradeStage = "Started"
	// StageDelayed: the upgrade has not commenced within upgradeWindow.delayTrigger.
	StageDelayed UpgradeStage = "Delayed"
	// StageScaleSkipped: there is no MachineSet to add a machine to.
	StageScaleSkipped UpgradeStage = "ScaleSkipped"
	// StageSkipped: the extra machines did not become ready in time; the upgrade goes on without them.
	StageSkipped UpgradeStage = "Skipped"
	// StageControlPlaneStarted: the upgrade of the control plane is about to commence.
	StageControlPlaneStarted UpgradeStage = "ControlPlaneStarted"
	// StageControlPlaneFinished: the control plane is upgraded.
	StageControlPlaneFinished UpgradeStage = "ControlPlaneFinished"
	// StageWorkersFinished: the other machines are upgraded.
	StageWorkersFinished UpgradeStage = "WorkersFinished"
	// StageCompleted: the upgrade is done.
	StageCompleted UpgradeStage = "Completed"
	// StageFailed: the upgrade has failed.
	StageFailed UpgradeStage = "Failed"
)

// StageNotifications says which stages of an upgrade are told of.
type StageNotifications string

const (
	// StageNotificationsAll stands for all stages.
	StageNotificationsAll StageNotifications = "All"
	// StageNotificationsOutcome leaves out the stages of control plane and workers.
	StageNotificationsOutcome StageNotifications = "Outcome"
)

// Tells tells whether the stage is told of.
func (n StageNotifications) Tells(stage UpgradeStage) bool {
	ofMachines := stage == StageControlPlaneStarted || stage == StageControlPlaneFinished || stage == StageWorkersFinished
	return n != StageNotificationsOutcome || !ofMachines
}

// StageStatus is a stage that was told of.
type StageStatus struct {
	// stage of the upgrade.
	// +required
	Stage UpgradeStage `json:"stage"`

	// time at which it was told of.
	// +required
	Time metav1.Time `json:"time"`

	// sequence of the notice in status.notifications; 0 if no receiver wants it.
	// +optional
	Sequence int64 `json:"sequence,omitempty"`
}
