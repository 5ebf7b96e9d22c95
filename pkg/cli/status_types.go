// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/lifecycle"
)

// statusReport is what `status` tells. It is the output of -o json and yaml: its field names stay.
type statusReport struct {
	// Time at which the cluster was looked at.
	Time    metav1.Time   `json:"time"`
	Cluster clusterReport `json:"cluster"`
	// Job is the one asked for; else the one in work, else the next one, else the last one.
	Job *jobReport `json:"job,omitempty"`
	// Next and Last are the next job that waits for its start, and the newest that has ended, unless Job is that.
	Next *jobSummary `json:"nextJob,omitempty"`
	Last *jobSummary `json:"lastJob,omitempty"`
	// Operators is how far the ClusterOperators are; absent where they may not be read.
	Operators *operatorsReport `json:"operators,omitempty"`
	Pools     []poolReport     `json:"pools,omitempty"`
	// Nodes in work.
	Nodes   []nodeReport   `json:"nodes,omitempty"`
	Configs []configReport `json:"configs,omitempty"`
	// Managed are the objects of the Managed Upgrade Operator's kind UpgradeConfig.
	Managed []managedReport          `json:"managedUpgradeConfigs,omitempty"`
	Windows []suspensionWindowReport `json:"suspensionWindows,omitempty"`
	// NotShown says what could not be read, and why.
	NotShown []string `json:"notShown,omitempty"`
}

// clusterReport is what ClusterVersion/version tells.
type clusterReport struct {
	ID      string `json:"id,omitempty"`
	Version string `json:"version"`
	// Desired is the version that the cluster is on its way to; empty between updates.
	Desired string `json:"desired,omitempty"`
	Channel string `json:"channel,omitempty"`
	// LockedBy is the job that holds the cluster, as namespace/name.
	LockedBy string `json:"lockedBy,omitempty"`
	// Progress of the cluster-version operator in steps of its release; absent between updates, and where it does not tell.
	Progress *progressReport `json:"progress,omitempty"`
	// Message of the cluster-version operator while it works.
	Message string `json:"message,omitempty"`
	// Failing is what the cluster-version operator cannot do.
	Failing string `json:"failing,omitempty"`
	// Available is the highest update that is offered.
	Available string `json:"available,omitempty"`
}

// progressReport counts what is done of something.
type progressReport struct {
	Done  int `json:"done"`
	Total int `json:"total"`
}

// jobSummary is a job in one line.
type jobSummary struct {
	Namespace      string       `json:"namespace"`
	Name           string       `json:"name"`
	Config         string       `json:"upgradeConfig,omitempty"`
	Upgrader       string       `json:"upgrader"`
	Phase          string       `json:"phase"`
	Reason         string       `json:"reason,omitempty"`
	Message        string       `json:"message,omitempty"`
	FromVersion    string       `json:"fromVersion,omitempty"`
	DesiredVersion string       `json:"desiredVersion,omitempty"`
	StartAfter     metav1.Time  `json:"startAfter"`
	StartBefore    metav1.Time  `json:"startBefore"`
	StartTime      *metav1.Time `json:"startTime,omitempty"`
	CommenceTime   *metav1.Time `json:"commenceTime,omitempty"`
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
}

// jobReport is a job with all that is to be known of it.
type jobReport struct {
	jobSummary `json:",inline"`

	// Step is the number of the step that the job is at, from 1; 0 before the first and after the last.
	Step  int          `json:"step,omitempty"`
	Steps []stepReport `json:"steps,omitempty"`
	// Preflight tells before the start whether the cluster is fit for it.
	Preflight *conditionReport `json:"preflight,omitempty"`
	// Conditions that tell of the job as a whole and are out of order: hooks of its creation, what it has not given back.
	Conditions []conditionReport `json:"conditions,omitempty"`
	Blockers   []blockerReport   `json:"blockers,omitempty"`
	// Deadlines that are yet to come, by time.
	Deadlines     []deadlineReport     `json:"deadlines,omitempty"`
	Hooks         []hookReport         `json:"hooks,omitempty"`
	Notifications []notificationReport `json:"notifications,omitempty"`
	// Silences are the maintenance windows in which alerts are silenced.
	Silences []silenceReport `json:"silences,omitempty"`
	// SuspendedBy is the UpgradeSuspensionWindow that keeps the job from starting.
	SuspendedBy string         `json:"suspendedBy,omitempty"`
	Resumes     []resumeReport `json:"resumes,omitempty"`
	// ExtraMachines that the job has added for the time of the upgrade.
	ExtraMachines *v1beta1.ExtraMachinesStatus `json:"extraMachines,omitempty"`
}

// States of a step.
const (
	stepPending   = string(lifecycle.StepPending)
	stepWaiting   = string(lifecycle.StepWaiting)
	stepCompleted = string(lifecycle.StepCompleted)
	stepFailed    = string(lifecycle.StepFailed)
)

// stepReport is a step of a job.
type stepReport struct {
	Name string `json:"name"`
	// State is pending, waiting, completed, or failed: it ended the job, or had not ended when the job did.
	State          string       `json:"state"`
	Reason         string       `json:"reason,omitempty"`
	Message        string       `json:"message,omitempty"`
	StartTime      *metav1.Time `json:"startTime,omitempty"`
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// DurationSeconds is how long the step took, or has been running since it was started or the job was resumed.
	DurationSeconds *int64 `json:"durationSeconds,omitempty"`
	Attempts        int32  `json:"attempts,omitempty"`
}

// conditionReport is a condition of a job.
type conditionReport struct {
	Type    string      `json:"type"`
	Status  string      `json:"status"`
	Reason  string      `json:"reason"`
	Message string      `json:"message,omitempty"`
	Since   metav1.Time `json:"since"`
}

// blockerReport is one thing that the job waits for.
type blockerReport struct {
	Code string `json:"code"`
	// Check is the health check that found it; empty if none did.
	Check      string      `json:"check,omitempty"`
	Object     string      `json:"object,omitempty"`
	Since      metav1.Time `json:"since"`
	Message    string      `json:"message,omitempty"`
	ClearsWhen string      `json:"clearsWhen,omitempty"`
}

// deadlineReport is a moment at which something happens by itself.
type deadlineReport struct {
	Time metav1.Time `json:"time"`
	// Name is a stable word for it, such as startBefore.
	Name string `json:"name"`
	// Object that it is about, such as a machine config pool.
	Object string `json:"object,omitempty"`
	// Effect says what happens then.
	Effect string `json:"effect"`
}

// hookReport is a run of a hook.
type hookReport struct {
	Hook           string       `json:"upgradeJobHook"`
	Event          string       `json:"event"`
	Key            string       `json:"key,omitempty"`
	Status         string       `json:"status"`
	FailurePolicy  string       `json:"failurePolicy,omitempty"`
	Job            string       `json:"job,omitempty"`
	Message        string       `json:"message,omitempty"`
	StartTime      metav1.Time  `json:"startTime"`
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
}

// notificationReport is how delivery to one receiver fares.
type notificationReport struct {
	Receiver  string       `json:"receiver"`
	Delivered int64        `json:"delivered"`
	Pending   int64        `json:"pending"`
	Lost      int64        `json:"lost,omitempty"`
	LastError string       `json:"lastError,omitempty"`
	Last      *metav1.Time `json:"lastDeliveryTime,omitempty"`
}

// silenceReport is a maintenance window in which alerts are silenced.
type silenceReport struct {
	Name      string      `json:"name"`
	StartTime metav1.Time `json:"startTime"`
	Until     metav1.Time `json:"until"`
	// Silences that are held now.
	Silences int    `json:"silences"`
	Warning  string `json:"warning,omitempty"`
}

// resumeReport is a resume of a job.
type resumeReport struct {
	Request  string      `json:"request"`
	Time     metav1.Time `json:"time"`
	Reopened string      `json:"reopened"`
}

// operatorsReport is how far the ClusterOperators are.
type operatorsReport struct {
	Version string `json:"version"`
	Updated int    `json:"updated"`
	Total   int    `json:"total"`
	// Updating are those that work on the release at present, by name.
	Updating []string `json:"updating,omitempty"`
	// Sick are those that are degraded or not available.
	Sick []sickOperator `json:"sick,omitempty"`
}

// sickOperator is a ClusterOperator that is degraded or not available.
type sickOperator struct {
	Name    string      `json:"name"`
	Type    string      `json:"type"`
	Status  string      `json:"status,omitempty"`
	Reason  string      `json:"reason,omitempty"`
	Message string      `json:"message,omitempty"`
	Since   metav1.Time `json:"since"`
}

// poolReport is how far a MachineConfigPool is.
type poolReport struct {
	Name     string `json:"name"`
	State    string `json:"state"`
	Message  string `json:"message,omitempty"`
	Machines int32  `json:"machines"`
	// Updated are those that have the pool's configuration, as the machine-config operator counts them: before the configuration of the release is rendered,
	// these are machines of the old release.
	Updated int32 `json:"updated"`
	// OnRelease are those that run the release that the cluster runs or is on its way to.
	OnRelease   int32 `json:"onRelease"`
	Unavailable int32 `json:"unavailable"`
	Degraded    int32 `json:"degraded"`
	Paused      bool  `json:"paused"`
	// PausedBy is the job that paused the pool, as namespace/name; empty if it is not paused, or by somebody else.
	PausedBy string `json:"pausedBy,omitempty"`
	// LeftPaused is set if that job is over: nothing releases the pool before the next job that gets there, or a person does.
	LeftPaused    bool         `json:"leftPaused,omitempty"`
	UnpauseAfter  *metav1.Time `json:"unpauseAfter,omitempty"`
	UnpauseBefore *metav1.Time `json:"unpauseBefore,omitempty"`
}

// nodeReport is a node in work.
type nodeReport struct {
	Name    string       `json:"name"`
	Pool    string       `json:"pool,omitempty"`
	Phase   string       `json:"phase"`
	Since   *metav1.Time `json:"since,omitempty"`
	Message string       `json:"message,omitempty"`
	// HeldBy are the pods that the drain waits for in vain.
	HeldBy []heldPodReport `json:"heldBy,omitempty"`
}

// heldPodReport is a pod that a drain waits for in vain.
type heldPodReport struct {
	Pod     string   `json:"pod"`
	Reason  string   `json:"reason"`
	Budgets []string `json:"podDisruptionBudgets,omitempty"`
	Message string   `json:"message"`
}

// configReport is when an UpgradeConfig upgrades next, and if not, why.
type configReport struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Cron      string `json:"cron"`
	ISOWeek   string `json:"isoWeek,omitempty"`
	Location  string `json:"location,omitempty"`
	Upgrader  string `json:"upgrader"`
	// NextStart is when the next upgrade begins that is to be expected, of the starts that are known: one that gets, or has, a job which no suspension window takes out.
	NextStart *metav1.Time `json:"nextStart,omitempty"`
	// NextStarts are the next starts of the schedule.
	NextStarts []metav1.Time `json:"nextStarts,omitempty"`
	// Suspended are what keeps it from creating jobs now.
	Suspended []string `json:"suspended,omitempty"`
	// Problem says why no job would be created now, or that the spec cannot be used.
	Problem string `json:"problem,omitempty"`
	// LastSkipped is the latest start for which no job was created.
	LastSkipped *skippedReport `json:"lastSkippedStart,omitempty"`
}

// managedReport is an upgrade that an object of the Managed Upgrade Operator's kind asks for.
type managedReport struct {
	Namespace      string `json:"namespace"`
	Name           string `json:"name"`
	Upgrader       string `json:"upgrader"`
	DesiredVersion string `json:"desiredVersion"`
	// UpgradeAt as it stands there.
	UpgradeAt string `json:"upgradeAt"`
	// Phase of the entry of its history for that version; empty if there is none.
	Phase string `json:"phase,omitempty"`
}

// skippedReport is a start for which no job was created.
type skippedReport struct {
	StartAfter metav1.Time `json:"startAfter"`
	Reason     string      `json:"reason"`
	Message    string      `json:"message,omitempty"`
}

// suspensionWindowReport is an UpgradeSuspensionWindow that is not over.
type suspensionWindowReport struct {
	Namespace string      `json:"namespace"`
	Name      string      `json:"name"`
	Start     metav1.Time `json:"start"`
	End       metav1.Time `json:"end"`
	Reason    string      `json:"reason,omitempty"`
	Active    bool        `json:"active"`
	Configs   []string    `json:"upgradeConfigs,omitempty"`
	Jobs      []string    `json:"upgradeJobs,omitempty"`
}
