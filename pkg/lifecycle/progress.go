// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// StepState is how far a step of a job is.
type StepState string

const (
	// StepPending means: its turn has not come, or has not come again.
	StepPending StepState = "pending"
	// StepWaiting means: it is its turn, and it is not done.
	StepWaiting StepState = "waiting"
	// StepCompleted means: it is done.
	StepCompleted StepState = "completed"
	// StepFailed means: it ended the job, or had begun and was not done when the job ended.
	StepFailed StepState = "failed"
)

// Step is where a step of a job stands.
type Step struct {
	// Condition names the step.
	Condition string
	State     StepState
	// Reason and Message of the condition; empty if there is none yet.
	Reason, Message string
	// Begun is the record of the step in the job's status; nil if it has not begun.
	Begun *v1beta1.StepStatus
}

// Steps tells where the steps of the job stand: those of its upgrader, which are named in their order, and behind them any other that its
// status has.
func Steps(job *v1beta1.UpgradeJob, names []string) []Step {
	names = slices.Clone(names)
	for i := range job.Status.Steps {
		if name := job.Status.Steps[i].Condition; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	judged := make([]Step, 0, len(names))
	reached := true // until a step that is not completed
	for _, name := range names {
		s := stepOf(job, name)
		if !reached && s.State == StepWaiting { // it waits for its turn again, after an earlier one was undone
			s.State = StepPending
		}
		reached = reached && s.State == StepCompleted
		judged = append(judged, s)
	}
	return judged
}

// stepOf judges a step by itself.
func stepOf(job *v1beta1.UpgradeJob, name string) Step {
	s := Step{Condition: name, State: StepPending}
	condition := meta.FindStatusCondition(job.Status.Conditions, name)
	if condition != nil {
		s.Reason, s.Message = condition.Reason, condition.Message
	}
	if i := slices.IndexFunc(job.Status.Steps, func(r v1beta1.StepStatus) bool { return r.Condition == name }); i >= 0 {
		s.Begun = &job.Status.Steps[i]
	}
	switch {
	case s.Begun != nil && s.Begun.CompletionTime != nil:
		s.State = StepCompleted
	case s.Begun == nil && condition == nil: // hooks that hold a step before it begins have its condition say so
	case s.Reason == v1beta1.ReasonResumed && !InWork(job): // the job was resumed, and has not started again
	case job.Status.Phase.Finished():
		s.State = StepFailed
	default:
		s.State = StepWaiting
	}
	return s
}

// InWork tells whether the job has started, and has neither ended nor been resumed since.
func InWork(job *v1beta1.UpgradeJob) bool {
	return job.Status.Phase == v1beta1.PhaseActive || job.Status.Phase == v1beta1.PhasePaused
}

// WaitingSince is when the step began, or when the job was resumed after that: from then on its timeouts count. The step must not be completed.
func WaitingSince(job *v1beta1.UpgradeJob, step *v1beta1.StepStatus) time.Time {
	if resume := job.LastResume(); resume != nil && resume.Time.After(step.StartTime.Time) {
		return resume.Time.Time
	}
	return step.StartTime.Time
}

// LastRun tells of the run that the job is in, or has ended with, when it was to begin and when it began: at its startAfter and its start, or when it was resumed
// last and when it started again after that. False if it has not started, or not since it was resumed.
func LastRun(job *v1beta1.UpgradeJob) (due, began time.Time, ran bool) {
	if job.Status.StartTime == nil {
		return time.Time{}, time.Time{}, false
	}
	due, began = job.Spec.StartAfter.Time, job.Status.StartTime.Time
	resume := job.LastResume()
	if resume == nil {
		return due, began, true
	}
	due = resume.Time.Time
	if !began.Before(due) { // it had not started before
		return due, began, true
	}
	started := meta.FindStatusCondition(job.Status.Conditions, v1beta1.ConditionStarted)
	if started == nil || started.Status != metav1.ConditionTrue {
		return time.Time{}, time.Time{}, false
	}
	if began = started.LastTransitionTime.Time; began.Before(due) {
		began = due
	}
	return due, began, true
}

// ConfigOf names the UpgradeConfig that made the job, of our kind or of the Managed Upgrade Operator's; empty if none did.
func ConfigOf(job *v1beta1.UpgradeJob) string {
	if owner := metav1.GetControllerOfNoCopy(job); owner != nil && owner.Kind == "UpgradeConfig" {
		return owner.Name
	}
	return ""
}

// UpgraderOf names the upgrader that the config of a job chooses.
func UpgraderOf(config *v1beta1.UpgradeJobConfig) string {
	return cmp.Or(config.Upgrader, v1beta1.DefaultUpgrader)
}

// NewerFirst orders jobs by their starts, the latest first. Those of the same start are ordered by their creation, and then by name.
func NewerFirst(a, b *v1beta1.UpgradeJob) int {
	return cmp.Or(
		b.Spec.StartAfter.Compare(a.Spec.StartAfter.Time),
		b.CreationTimestamp.Compare(a.CreationTimestamp.Time),
		cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name),
	)
}
