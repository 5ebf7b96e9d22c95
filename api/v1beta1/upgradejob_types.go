// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// UpgradeJobFinalizer stays on a job until everything that the job holds is given back.
	UpgradeJobFinalizer = "managedupgrade.appuio.io/upgrade-job"

	// UpgradeJobAnnotation names, as namespace/name, the job that holds an object: the lock on
	// ClusterVersion/version, and each MachineConfigPool that the job paused.
	UpgradeJobAnnotation = "managedupgrade.appuio.io/upgrade-job"
)

// Phase is where an UpgradeJob stands.
// +kubebuilder:validation:Enum=Pending;Active;Paused;Succeeded;Failed;Skipped
type Phase string

const (
	// PhasePending is before the start.
	PhasePending Phase = "Pending"
	// PhaseActive is while the upgrader's steps run.
	PhaseActive Phase = "Active"
	// PhasePaused is while only machine config pools are left that wait for their time.
	PhasePaused Phase = "Paused"
	// PhaseSucceeded is final: the cluster runs the desired version on every machine and is healthy.
	PhaseSucceeded Phase = "Succeeded"
	// PhaseFailed is final, but for a resume request.
	PhaseFailed Phase = "Failed"
	// PhaseSkipped is final, but for a resume request: the upgrade never commenced.
	PhaseSkipped Phase = "Skipped"
)

// Finished tells whether the phase is an outcome.
func (p Phase) Finished() bool {
	return p == PhaseSucceeded || p == PhaseFailed || p == PhaseSkipped
}

// UpgradeJobSpec is one upgrade: its window, its target, its settings.
//
// +kubebuilder:validation:XValidation:rule="self.startBefore > self.startAfter",message="startBefore must be after startAfter"
// +kubebuilder:validation:XValidation:rule="has(self.desiredVersion) == has(oldSelf.desiredVersion) && (!has(self.desiredVersion) || self.desiredVersion == oldSelf.desiredVersion)",message="desiredVersion is immutable; create another UpgradeJob"
// +kubebuilder:validation:XValidation:rule="self.desiredVersionCheckAvailability == oldSelf.desiredVersionCheckAvailability",message="desiredVersionCheckAvailability is immutable; create another UpgradeJob"
// +kubebuilder:validation:XValidation:rule="self.config == oldSelf.config",message="config is immutable; create another UpgradeJob"
type UpgradeJobSpec struct {
	// startAfter is the earliest start. Immutable once the job has started.
	// +required
	StartAfter metav1.Time `json:"startAfter"`

	// startBefore is the latest start: a job that could not start by then is skipped. Immutable once the job has started.
	// +required
	StartBefore metav1.Time `json:"startBefore"`

	// desiredVersion is the release to upgrade to. Without it the job upgrades nothing.
	// +optional
	DesiredVersion *DesiredVersion `json:"desiredVersion,omitempty"`

	// desiredVersionCheckAvailability requires desiredVersion to be among the cluster's available updates when the upgrade commences.
	// +kubebuilder:default=true
	// +optional
	DesiredVersionCheckAvailability *bool `json:"desiredVersionCheckAvailability,omitempty"`

	// resumeRequest reopens a failed or skipped job when it is set to a value that was not used before.
	// The steps go on from where the cluster stands, with fresh timeouts.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	ResumeRequest string `json:"resumeRequest,omitempty"`

	// config says how the upgrade is done.
	// +kubebuilder:default={}
	// +optional
	Config UpgradeJobConfig `json:"config,omitzero"`
}

// DesiredVersion names a release by version, image, or both.
//
// +kubebuilder:validation:XValidation:rule="(has(self.version) && size(self.version) > 0) || (has(self.image) && size(self.image) > 0)",message="version or image must be set"
type DesiredVersion struct {
	// version of the release, e.g. 4.18.2.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^[0-9]+[.][0-9]+[.][0-9]+([-+][0-9A-Za-z.+-]+)?$')",message="must be a version such as 4.18.2"
	// +optional
	Version string `json:"version,omitempty"`

	// image is the pull spec of the release, by digest.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Image string `json:"image,omitempty"`
}

// UpgradeJobStatus tells where the job stands and what it waits for.
type UpgradeJobStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase is where the job stands.
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// fromVersion is the version that the cluster ran when the job started.
	// +optional
	FromVersion string `json:"fromVersion,omitempty"`

	// startTime is when the job started. Not set for a job that never did.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// commenceTime is when the job was about to ask the cluster for the desired version, for the first time. It is recorded before that is done.
	// +optional
	CommenceTime *metav1.Time `json:"commenceTime,omitempty"`

	// completionTime is when the job ended.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// conditions: PreflightHealthy until the start, CreateHooksCompleted, Started, one for each step in step order, and at the end one of Succeeded, Failed, Skipped.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// steps records when each step ran.
	// +listType=map
	// +listMapKey=condition
	// +optional
	Steps []StepStatus `json:"steps,omitempty"`

	// blockers is what holds the job up at present, or would if it started now.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Blockers []Blocker `json:"blockers,omitempty"`

	// pools is how far the machine config pools have come, by name.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=name
	// +optional
	Pools []MachineConfigPoolStatus `json:"pools,omitempty"`

	// hookTracker records each run of a hook for this job.
	// +kubebuilder:validation:MaxItems=512
	// +listType=atomic
	// +optional
	HookTracker []HookRun `json:"hookTracker,omitempty"`

	// notifications tells what was notified to whom.
	// +optional
	Notifications *NotificationsStatus `json:"notifications,omitempty"`

	// maintenanceWindows are the windows in which alerts are silenced.
	// +kubebuilder:validation:MaxItems=2
	// +listType=map
	// +listMapKey=name
	// +optional
	MaintenanceWindows []MaintenanceWindowStatus `json:"maintenanceWindows,omitempty"`

	// extraMachines counts the machines that the job has added for the time of the upgrade. Absent while there are none. Upgraders OSD and ARO add them.
	// +optional
	ExtraMachines *ExtraMachinesStatus `json:"extraMachines,omitempty"`

	// stages of the upgrade that were told of. Upgraders OSD and ARO tell of them.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=stage
	// +optional
	Stages []StageStatus `json:"stages,omitempty"`

	// resumedRequests are the values of spec.resumeRequest that were carried out, oldest first. The newest 32 are kept.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	ResumedRequests []ResumedRequest `json:"resumedRequests,omitempty"`
}

// StepStatus records when a step ran.
type StepStatus struct {
	// condition is the condition of the step.
	// +required
	Condition string `json:"condition"`

	// startTime is when the step was started last.
	// +required
	StartTime metav1.Time `json:"startTime"`

	// completionTime is when the step was done.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// attempts counts how often the step was started: once, and once more for each resume that it had to run in.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`
}

// ExtraMachinesStatus counts machines that were added for the time of an upgrade.
type ExtraMachinesStatus struct {
	// wanted is how many machines there shall be. 0 while they are being removed.
	// +required
	Wanted int32 `json:"wanted"`

	// ready is how many of them are ready; while they are being removed, how many are left.
	// +required
	Ready int32 `json:"ready"`
}

// Blocker is one thing that holds an upgrade up.
type Blocker struct {
	// code is a stable word for the kind of blocker, e.g. ClusterOperatorDegraded.
	// +required
	Code string `json:"code"`

	// check is the health check that found it, e.g. CriticalAlerts. Empty if none did.
	// +optional
	Check string `json:"check,omitempty"`

	// object is what holds the upgrade up, as Kind/name.
	// +optional
	Object string `json:"object,omitempty"`

	// since is when this blocker was first seen.
	// +required
	Since metav1.Time `json:"since"`

	// message explains the blocker to people.
	// +optional
	Message string `json:"message,omitempty"`

	// clearsWhen says what has to happen for the blocker to go.
	// +optional
	ClearsWhen string `json:"clearsWhen,omitempty"`
}

// ResumedRequest is a resume request that was carried out.
type ResumedRequest struct {
	// request is the value of spec.resumeRequest.
	// +required
	Request string `json:"request"`

	// time is when the job was reopened.
	// +required
	Time metav1.Time `json:"time"`

	// reopened is the outcome that the request took back, e.g. Failed(TimedOut). Empty for a request that stood in
	// the spec when the job was created: it asked for nothing.
	// +optional
	Reopened string `json:"reopened,omitempty"`
}

// UpgradeJob is one upgrade of this cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName={upgradejob,upjob},categories=managedupgrade
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="From",type=string,JSONPath=`.status.fromVersion`
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.spec.desiredVersion.version`
// +kubebuilder:printcolumn:name="Start After",type=string,JSONPath=`.spec.startAfter`
// +kubebuilder:printcolumn:name="Waiting For",type=string,JSONPath=`.status.blockers[0].object`
// +kubebuilder:printcolumn:name="Start Before",type=string,JSONPath=`.spec.startBefore`,priority=1
// +kubebuilder:printcolumn:name="Blocker",type=string,JSONPath=`.status.blockers[0].message`,priority=1
// +kubebuilder:printcolumn:name="Completed",type=date,JSONPath=`.status.completionTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.phase) || oldSelf.status.phase == 'Pending' || (self.spec.startAfter == oldSelf.spec.startAfter && self.spec.startBefore == oldSelf.spec.startBefore)",message="spec.startAfter and spec.startBefore are immutable once the job has started"
type UpgradeJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the window, the target and the settings of the upgrade.
	// +required
	Spec UpgradeJobSpec `json:"spec"`

	// status tells where the job stands and what it waits for.
	// +optional
	Status UpgradeJobStatus `json:"status,omitzero"`
}

// LockKey is how the job stands in the annotation UpgradeJobAnnotation of what it holds.
func (j *UpgradeJob) LockKey() string { return j.Namespace + "/" + j.Name }

// LastResume returns the request that reopened the job last, or nil if none did.
func (j *UpgradeJob) LastResume() *ResumedRequest {
	for i := len(j.Status.ResumedRequests) - 1; i >= 0; i-- {
		if r := &j.Status.ResumedRequests[i]; r.Reopened != "" {
			return r
		}
	}
	return nil
}

// UpgradeJobList is a list of UpgradeJobs.
//
// +kubebuilder:object:root=true
type UpgradeJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []UpgradeJob `json:"items"`
}
