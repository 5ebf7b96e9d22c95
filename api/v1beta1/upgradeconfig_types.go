// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Defaults of UpgradeConfigSpec, which the CRD writes out too.
const (
	DefaultMaxSchedulingDelay   = time.Hour
	DefaultMaxUpgradeStartDelay = time.Hour
	DefaultJobsHistoryLimit     = int32(4)
)

// NoUpdatePolicy says what becomes of a start for which no update is available.
// +kubebuilder:validation:Enum=Skip;CreateJob
type NoUpdatePolicy string

const (
	// NoUpdatePolicySkip creates no job.
	NoUpdatePolicySkip NoUpdatePolicy = "Skip"
	// NoUpdatePolicyCreateJob creates a job without a version.
	NoUpdatePolicyCreateJob NoUpdatePolicy = "CreateJob"
)

// UpgradeConfigSpec says when the cluster is upgraded, and how each upgrade is done.
type UpgradeConfigSpec struct {
	// schedule of the upgrade starts.
	// +required
	Schedule UpgradeConfigSchedule `json:"schedule"`

	// pinVersionWindow is how long before its start a job is created. The version is chosen then.
	// Default: 0, at the start itself.
	// +optional
	PinVersionWindow *Duration `json:"pinVersionWindow,omitempty"`

	// maxSchedulingDelay is how late a job may still be created, for instance because the operator was not running.
	// A start missed by more is given up; the next one counts. Whoever wakes for a moment wakes behind it, so that 0s would create no job at all.
	// +kubebuilder:default="1h"
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be longer than 0s"
	// +optional
	MaxSchedulingDelay *Duration `json:"maxSchedulingDelay,omitempty"`

	// maxUpgradeStartDelay is how long after its start a job may still begin: the job's startBefore is startAfter plus this.
	// +kubebuilder:default="1h"
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be longer than 0s"
	// +optional
	MaxUpgradeStartDelay *Duration `json:"maxUpgradeStartDelay,omitempty"`

	// noUpdatePolicy says what happens when no update is available when a job is due:
	// Skip creates no job, CreateJob creates one without a version.
	// +kubebuilder:default=Skip
	// +optional
	NoUpdatePolicy NoUpdatePolicy `json:"noUpdatePolicy,omitempty"`

	// successfulJobsHistoryLimit is how many jobs that succeeded are kept. Zero or less keeps all; the newest finished job always stays.
	// +kubebuilder:default=4
	// +optional
	SuccessfulJobsHistoryLimit *int32 `json:"successfulJobsHistoryLimit,omitempty"`

	// failedJobsHistoryLimit is how many jobs that failed or were skipped are kept. Zero or less keeps all; the newest finished job always stays.
	// +kubebuilder:default=4
	// +optional
	FailedJobsHistoryLimit *int32 `json:"failedJobsHistoryLimit,omitempty"`

	// jobTemplate describes the jobs that are created.
	// +kubebuilder:default={}
	// +optional
	JobTemplate UpgradeJobTemplate `json:"jobTemplate,omitzero"`
}

// UpgradeConfigSchedule is a cron expression, filtered by ISO week, in a time zone.
type UpgradeConfigSchedule struct {
	// cron is the start of the upgrade: minute, hour, day of month, month, day of week, or one of
	// @yearly, @monthly, @weekly, @daily, @hourly. The time zone stands in location.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^\\\\s*(@(yearly|annually|monthly|weekly|daily|midnight|hourly)|([^\\\\s=]+\\\\s+){4}[^\\\\s=]+)\\\\s*$')",message="must have five fields (minute hour day-of-month month day-of-week), e.g. \"0 22 * * 2\", or be one of @yearly, @monthly, @weekly, @daily, @hourly; the time zone belongs into location"
	// +required
	Cron string `json:"cron"`

	// isoWeek keeps only starts in some ISO 8601 weeks: @odd, @even, or one week from 1 to 53.
	// Empty: every week. The week is judged at the local start time.
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:XValidation:rule="self.matches('^(@odd|@even|0?[1-9]|[1-4][0-9]|5[0-3])?$')",message="must be @odd, @even, a week from 1 to 53, or empty"
	// +optional
	ISOWeek string `json:"isoWeek,omitempty"`

	// location is the IANA time zone of cron and isoWeek, e.g. Europe/Zurich. Local is the operator's own time zone.
	// +kubebuilder:default=Local
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Location string `json:"location,omitempty"`

	// suspend stops the creation of jobs. Jobs that exist go on.
	// +kubebuilder:default=false
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// UpgradeJobTemplate describes the jobs that an UpgradeConfig creates.
type UpgradeJobTemplate struct {
	// metadata is copied to each job.
	// +kubebuilder:default={}
	// +optional
	Metadata TemplateMetadata `json:"metadata,omitzero"`

	// spec of each job, as far as the schedule does not determine it.
	// +kubebuilder:default={}
	// +optional
	Spec UpgradeJobTemplateSpec `json:"spec,omitzero"`
}

// TemplateMetadata holds the metadata that is copied to a created object.
type TemplateMetadata struct {
	// labels of the created object.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// annotations of the created object.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// UpgradeJobTemplateSpec is the part of a job's spec that its UpgradeConfig gives.
type UpgradeJobTemplateSpec struct {
	// config of each job.
	// +kubebuilder:default={}
	// +optional
	Config UpgradeJobConfig `json:"config,omitzero"`
}

// UpgradeConfigStatus tells what the schedule did and will do.
type UpgradeConfigStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// scheduleObservedTime is when the present spec was first seen. Starts before it do not count as missed.
	// +optional
	ScheduleObservedTime *metav1.Time `json:"scheduleObservedTime,omitempty"`

	// lastScheduledUpgrade is the latest start for which a job was created.
	// +optional
	LastScheduledUpgrade *metav1.Time `json:"lastScheduledUpgrade,omitempty"`

	// lastSkippedStart is the latest start for which no job was created, and why.
	// +optional
	LastSkippedStart *SkippedStart `json:"lastSkippedStart,omitempty"`

	// nextPossibleSchedules are the next ten starts.
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	// +optional
	NextPossibleSchedules []metav1.Time `json:"nextPossibleSchedules,omitempty"`

	// pausedMachineConfigPools are the pools that jobs of this namespace which are over have left paused, by name. The next
	// job that gets through the control plane releases them.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=name
	// +optional
	PausedMachineConfigPools []PausedMachineConfigPool `json:"pausedMachineConfigPools,omitempty"`

	// conditions: Ready tells whether the spec can be used, Scheduling whether jobs are being created, and MachineConfigPoolsPaused
	// is there, and True, while jobs that are over have left pools paused.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SkippedStart is a start of the schedule for which no job was created.
type SkippedStart struct {
	// startAfter is the start that was skipped.
	// +required
	StartAfter metav1.Time `json:"startAfter"`

	// reason is one of the reasons of the condition Scheduling, or Missed.
	// +required
	Reason string `json:"reason"`

	// message explains the reason to people.
	// +optional
	Message string `json:"message,omitempty"`
}

// UpgradeConfig schedules upgrades of this cluster: it creates an UpgradeJob for each maintenance window.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName={upgradeconf,upconf},categories=managedupgrade
// +kubebuilder:printcolumn:name="Cron",type=string,JSONPath=`.spec.schedule.cron`
// +kubebuilder:printcolumn:name="Week",type=string,JSONPath=`.spec.schedule.isoWeek`
// +kubebuilder:printcolumn:name="Location",type=string,JSONPath=`.spec.schedule.location`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Scheduling",type=string,JSONPath=`.status.conditions[?(@.type=="Scheduling")].reason`
// +kubebuilder:printcolumn:name="Next",type=string,JSONPath=`.status.nextPossibleSchedules[0]`
// +kubebuilder:printcolumn:name="Last",type=string,JSONPath=`.status.lastScheduledUpgrade`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Scheduling")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type UpgradeConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec says when and how the cluster is upgraded.
	// +required
	Spec UpgradeConfigSpec `json:"spec"`

	// status tells what the schedule did and will do.
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
