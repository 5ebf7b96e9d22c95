// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// What stands on the batch Job of a hook.
const (
	// HookJobFinalizer keeps the batch Job of a hook until its result is recorded in status.hookTracker of the
	// UpgradeJob: a Job that its ttlSecondsAfterFinished deletes while the operator is away still counts.
	HookJobFinalizer = "managedupgrade.appuio.io/hook-job-tracker"

	// HookLabel, HookEventLabel, HookKeyLabel and HookUpgradeJobLabel tell which run of which hook a batch Job is.
	// What is no label value is cut, and ends in a hash; the annotations of the same names have it in full.
	HookLabel           = "upgradejobs.managedupgrade.appuio.io/upgradejobhook"
	HookEventLabel      = "upgradejobs.managedupgrade.appuio.io/event"
	HookKeyLabel        = "upgradejobs.managedupgrade.appuio.io/tracking-key"
	HookUpgradeJobLabel = "upgradejobs.managedupgrade.appuio.io/upgradejob"
)

// HookEvent is a moment in the life of an UpgradeJob.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=96
// +kubebuilder:validation:XValidation:rule="self.matches('^(Create|Start|UpgradeComplete|MachineConfigPoolUnpause|Finish|Success|Failure|Skipped|Step(Started|Completed)/[A-Z][A-Za-z0-9]*)$')",message="must be Create, Start, UpgradeComplete, MachineConfigPoolUnpause, Finish, Success, Failure, Skipped, StepStarted/<Condition> or StepCompleted/<Condition>"
type HookEvent string

// Events of hooks. The first four, and those of steps, hold the upgrade until the hooks have finished; the others
// inform only.
const (
	// HookEventCreate is when the operator first sees the job, maybe days before its start.
	HookEventCreate HookEvent = "Create"
	// HookEventStart is when the job starts: it has the cluster's lock, and nothing is touched yet.
	HookEventStart HookEvent = "Start"
	// HookEventUpgradeComplete is when the control plane and all pools that are not delayed are upgraded, and the cluster is healthy.
	HookEventUpgradeComplete HookEvent = "UpgradeComplete"
	// HookEventMachineConfigPoolUnpause is before a delayed pool is unpaused. Its key is the name of the pool.
	HookEventMachineConfigPoolUnpause HookEvent = "MachineConfigPoolUnpause"
	// HookEventFinish is when the job has ended, whatever the outcome.
	HookEventFinish HookEvent = "Finish"
	// HookEventSuccess is when the job has succeeded.
	HookEventSuccess HookEvent = "Success"
	// HookEventFailure is when the job has failed.
	HookEventFailure HookEvent = "Failure"
	// HookEventSkipped is when the job was skipped.
	HookEventSkipped HookEvent = "Skipped"
)

const (
	stepStartedPrefix   = "StepStarted/"
	stepCompletedPrefix = "StepCompleted/"
)

// HookEventStepStarted is the event before a step runs for the first time.
func HookEventStepStarted(condition string) HookEvent {
	return HookEvent(stepStartedPrefix + condition)
}

// HookEventStepCompleted is the event after a step is done, before the next one runs.
func HookEventStepCompleted(condition string) HookEvent {
	return HookEvent(stepCompletedPrefix + condition)
}

// Step returns the condition of the step that the event is about; empty if it is not about a step.
func (e HookEvent) Step() string {
	for _, prefix := range []string{stepStartedPrefix, stepCompletedPrefix} {
		if condition, ok := strings.CutPrefix(string(e), prefix); ok {
			return condition
		}
	}
	return ""
}

// Holds tells whether the upgrade waits for the hooks of the event.
func (e HookEvent) Holds() bool {
	switch e {
	case HookEventFinish, HookEventSuccess, HookEventFailure, HookEventSkipped:
		return false
	case HookEventCreate, HookEventStart, HookEventUpgradeComplete, HookEventMachineConfigPoolUnpause:
	}
	return true
}

// HookRunPolicy says for how many UpgradeJobs a hook runs.
// +kubebuilder:validation:Enum=Next;All
type HookRunPolicy string

const (
	// HookRunNext lets a hook run for one job: the first that reaches one of its events and is not skipped.
	HookRunNext HookRunPolicy = "Next"
	// HookRunAll lets a hook run for every job that it selects.
	HookRunAll HookRunPolicy = "All"
)

// HookFailurePolicy says what becomes of an UpgradeJob when a hook fails.
// +kubebuilder:validation:Enum=Ignore;Abort
type HookFailurePolicy string

const (
	// HookFailureIgnore lets the job go on.
	HookFailureIgnore HookFailurePolicy = "Ignore"
	// HookFailureAbort fails the job with reason HookFailed, unless the event only informs.
	HookFailureAbort HookFailurePolicy = "Abort"
)

// UpgradeJobHookSpec says which Job runs at which events of which UpgradeJobs.
type UpgradeJobHookSpec struct {
	// events at which the hook runs, once for each of them.
	// Create, Start, UpgradeComplete, MachineConfigPoolUnpause, StepStarted/<Condition> and StepCompleted/<Condition> hold the upgrade until the hook has finished.
	// Finish, Success, Failure and Skipped inform only.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=set
	// +required
	Events []HookEvent `json:"events"`

	// run says for how many UpgradeJobs the hook runs: All that it selects, or the Next one only, which status.claimedBy names.
	// +kubebuilder:default=All
	// +optional
	Run HookRunPolicy `json:"run,omitempty"`

	// failurePolicy says what becomes of the UpgradeJob when the hook fails: Ignore goes on, Abort fails the job with reason HookFailed.
	// +kubebuilder:default=Ignore
	// +optional
	FailurePolicy HookFailurePolicy `json:"failurePolicy,omitempty"`

	// disruptive tells that the hook disrupts the cluster's users. All hooks of a job learn by META.matchesDisruptiveHooks that there is such a hook.
	// +optional
	Disruptive bool `json:"disruptive,omitempty"`

	// selector selects the UpgradeJobs in the hook's namespace, by their labels. Absent or empty: all.
	// +optional
	Selector metav1.LabelSelector `json:"selector,omitzero"`

	// template of the batch/v1 Job. Its containers get EVENT, JOB and META, and the fields of these, as environment variables.
	// Without activeDeadlineSeconds the Job may run until the UpgradeJob times out.
	// +required
	Template batchv1.JobTemplateSpec `json:"template"`
}

// UpgradeJobHookStatus tells for whom the hook ran, and with what result.
type UpgradeJobHookStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// claimedBy is the UpgradeJob for which a hook with run Next runs. It is given free if that job is skipped, or deleted before the hook ran for it (at more than its creation, unless the hook is for nothing else).
	// +optional
	ClaimedBy *HookClaim `json:"claimedBy,omitempty"`

	// lastResults are the newest result of each event.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=event
	// +optional
	LastResults []HookResult `json:"lastResults,omitempty"`

	// conditions: Ready tells whether the spec can be used.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// HookClaim names the one UpgradeJob that a hook runs for.
type HookClaim struct {
	// name of the UpgradeJob.
	// +required
	Name string `json:"name"`

	// uid of the UpgradeJob.
	// +required
	UID types.UID `json:"uid"`
}

// HookResult is how a hook fared at an event.
type HookResult struct {
	// event at which the hook ran.
	// +required
	Event HookEvent `json:"event"`

	// key tells apart runs for one event, e.g. the name of the machine config pool.
	// +optional
	Key string `json:"key,omitempty"`

	// upgradeJob for which the hook ran.
	// +required
	UpgradeJob string `json:"upgradeJob"`

	// job is the batch Job of the run. Empty if it could not be created.
	// +optional
	Job string `json:"job,omitempty"`

	// status of the run.
	// +required
	Status HookRunStatus `json:"status"`

	// message tells why the run failed.
	// +optional
	Message string `json:"message,omitempty"`

	// time at which the run took this status.
	// +required
	Time metav1.Time `json:"time"`
}

// HookRunStatus is where a run of a hook stands.
// +kubebuilder:validation:Enum=Pending;Active;Succeeded;Failed
type HookRunStatus string

const (
	// HookRunPending is before the batch Job is known to exist.
	HookRunPending HookRunStatus = "Pending"
	// HookRunActive is while the batch Job runs.
	HookRunActive HookRunStatus = "Active"
	// HookRunSucceeded is final: the batch Job completed.
	HookRunSucceeded HookRunStatus = "Succeeded"
	// HookRunFailed is final: the batch Job failed, was deleted before it finished, or could not be created.
	HookRunFailed HookRunStatus = "Failed"
)

// Finished tells whether the run is over.
func (s HookRunStatus) Finished() bool { return s == HookRunSucceeded || s == HookRunFailed }

// MaxHookRuns is how many runs of hooks an UpgradeJob has at most, as its CRD says.
const MaxHookRuns = 512

// HookRun records the one run of a hook for an event and a key.
type HookRun struct {
	// hookEvent at which the hook runs.
	// +required
	HookEvent HookEvent `json:"hookEvent"`

	// trackingKey tells apart runs for one event: the name of the machine config pool, and the resume request if the job was resumed.
	// +optional
	TrackingKey string `json:"trackingKey,omitempty"`

	// upgradeJobHook is the name of the hook.
	// +required
	UpgradeJobHook string `json:"upgradeJobHook"`

	// failurePolicy of the hook when the event came. Ignore once the job was resumed and the hook does not want the event any more, or is gone.
	// +optional
	FailurePolicy HookFailurePolicy `json:"failurePolicy,omitempty"`

	// job is the batch Job of the run.
	// +optional
	Job string `json:"job,omitempty"`

	// status of the run.
	// +required
	Status HookRunStatus `json:"status"`

	// message tells why the run failed.
	// +optional
	Message string `json:"message,omitempty"`

	// startTime is when the operator took the run up.
	// +required
	StartTime metav1.Time `json:"startTime"`

	// completionTime is when the run was over.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
}

// UpgradeJobHook runs a Job at events of UpgradeJobs, e.g. to back a database up before an upgrade.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName={upgradehook,uphook},categories=managedupgrade
// +kubebuilder:printcolumn:name="Events",type=string,JSONPath=`.spec.events`
// +kubebuilder:printcolumn:name="Run",type=string,JSONPath=`.spec.run`
// +kubebuilder:printcolumn:name="On Failure",type=string,JSONPath=`.spec.failurePolicy`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Claimed By",type=string,JSONPath=`.status.claimedBy.name`,priority=1
// +kubebuilder:printcolumn:name="Disruptive",type=boolean,JSONPath=`.spec.disruptive`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type UpgradeJobHook struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec says which Job runs at which events of which UpgradeJobs.
	// +required
	Spec UpgradeJobHookSpec `json:"spec"`

	// status tells for whom the hook ran, and with what result.
	// +optional
	Status UpgradeJobHookStatus `json:"status,omitzero"`
}

// UpgradeJobHookList is a list of UpgradeJobHooks.
//
// +kubebuilder:object:root=true
type UpgradeJobHookList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []UpgradeJobHook `json:"items"`
}
