// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Package lifecycle decides what is to be done with an UpgradeJob at a point in
// time, and records the turns of its life in its status. It is pure: everything
// that it needs to know is given.
//
//	              startAfter, lock free            steps done
//	Pending ───────────────────────────▶ Active ─────────────▶ Succeeded
//	   │                                  │   ▲
//	   │ startBefore, suspended           │   │ resumeRequest
//	   ▼                                  ▼   │
//	Skipped ◀─── not commenced ───────────┴─▶ Failed
//
// An Active job is Paused while it waits for nothing but the time of pools that are delayed.
package lifecycle

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/hooks"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// Action is what is to be done with a job.
type Action int

const (
	// Wait means: the job cannot start yet.
	Wait Action = iota
	// Run means: start the job if it has not started, and run its steps.
	Run
	// Skip means: end the job as Skipped.
	Skip
	// Fail means: end the job as Failed.
	Fail
)

// Facts is what a decision needs to know beside the job.
type Facts struct {
	// Suspension is the window that keeps the job from starting at present, if there is one.
	Suspension *v1beta1.UpgradeSuspensionWindow
	// LockedBy says who else holds the cluster; empty if nobody does.
	LockedBy string
	// Commenced tells whether the upgrade has commenced: then no window holds it back any more.
	Commenced bool
	// CommenceBy is when the job fails if its upgrade has not commenced; the zero time if there is no such limit.
	CommenceBy time.Time
	// CreateHooks is how far the hooks of the event Create are.
	CreateHooks hooks.Progress
	// UpgraderError says why the job's upgrader cannot be used; nil if it can.
	UpgraderError error
}

// Decision is what is to be done with a job, and why.
type Decision struct {
	Action          Action
	Reason, Message string
	// After is when to decide anew at the latest; zero if the action ends the job.
	After time.Duration
}

// Decide tells what is to be done with a job that is not finished. A job that was resumed passes the same gates as at
// its start, but for the window: somebody asked for it now. So does one that lost the race for the lock.
func Decide(job *v1beta1.UpgradeJob, facts Facts, now time.Time) Decision {
	if Started(job) && (facts.LockedBy == "" || facts.Commenced) {
		return decideStarted(job, facts, now)
	}
	if run := facts.CreateHooks.Aborted; run != nil {
		return Decision{Action: Fail, Reason: v1beta1.ReasonHookFailed, Message: steps.HookAborted(*run)}
	}
	if job.LastResume() != nil {
		return decideResumed(job, facts, now)
	}
	return decideNew(job, facts, now)
}

// decideNew judges a job that has not started: it has a window to start in.
func decideNew(job *v1beta1.UpgradeJob, facts Facts, now time.Time) Decision {
	startAfter, latest, deadline := job.Spec.StartAfter.Time, job.Spec.StartBefore.Time, Deadline(job)
	if deadline.Before(latest) {
		latest = deadline
	}
	switch {
	case now.Before(startAfter):
		return Decision{Wait, v1beta1.ReasonWaitingForStart, "The job starts at " + stamp(startAfter) + ".", startAfter.Sub(now)}
	case now.After(latest) || !now.Before(deadline):
		return Decision{Action: Skip, Reason: v1beta1.ReasonExpired, Message: expired(job, latest)}
	case facts.Suspension != nil && !facts.Commenced:
		return Decision{Action: Skip, Reason: v1beta1.ReasonSuspended, Message: suspended(facts.Suspension)}
	}
	return decideFree(job, facts, latest, now)
}

// decideResumed judges a job that was resumed and has not started again: somebody asked for it now, not for a window.
func decideResumed(job *v1beta1.UpgradeJob, facts Facts, now time.Time) Decision {
	deadline := Deadline(job)
	switch {
	case facts.Suspension != nil && !facts.Commenced:
		return Decision{Action: Skip, Reason: v1beta1.ReasonSuspended, Message: suspended(facts.Suspension)}
	case !now.Before(deadline):
		return decideStarted(job, facts, now)
	}
	return decideFree(job, facts, deadline, now)
}

// decideFree judges a job whose time has come, until latest.
func decideFree(job *v1beta1.UpgradeJob, facts Facts, latest, now time.Time) Decision {
	switch {
	case len(facts.CreateHooks.Running) > 0:
		return Decision{Wait, v1beta1.ReasonHooksRunning, steps.HooksRunning(facts.CreateHooks), untilLatest(latest, now)}
	case facts.UpgraderError != nil:
		return Decision{Wait, v1beta1.ReasonUnknownUpgrader, facts.UpgraderError.Error() + ".", untilLatest(latest, now)}
	case facts.LockedBy != "":
		return Decision{Wait, v1beta1.ReasonClusterLocked, "The cluster is locked by " + facts.LockedBy + ".", untilLatest(latest, now)}
	}
	return decideStarted(job, facts, now)
}

// Started tells whether the job has started, and has not been resumed since.
func Started(job *v1beta1.UpgradeJob) bool {
	return meta.IsStatusConditionTrue(job.Status.Conditions, v1beta1.ConditionStarted)
}

// decideStarted judges a job that runs, or is free to.
func decideStarted(job *v1beta1.UpgradeJob, facts Facts, now time.Time) Decision {
	deadline := Deadline(job)
	left := deadline.Sub(now)
	if left <= 0 {
		return tooLate(job, v1beta1.ReasonTimedOut, fmt.Sprintf("The job did not end by %s.", stamp(deadline)))
	}
	if by := facts.CommenceBy; !by.IsZero() && !facts.Commenced {
		if !now.Before(by) {
			return tooLate(job, v1beta1.ReasonUpgradeWindowBreached, fmt.Sprintf("The upgrade did not commence by %s.", stamp(by)))
		}
		left = min(left, by.Sub(now))
	}
	return Decision{Action: Run, After: left}
}

// tooLate fails the job, and names what it waited for last.
func tooLate(job *v1beta1.UpgradeJob, reason, message string) Decision {
	if b := job.Status.Blockers; len(b) > 0 {
		message += " Last it waited for: " + b[0].Message
	}
	return Decision{Action: Fail, Reason: reason, Message: message}
}

// Deadline is when the job fails if it has not ended: upgradeTimeout after startAfter, or after the last resume.
func Deadline(job *v1beta1.UpgradeJob) time.Time {
	from := job.Spec.StartAfter.Time
	if r := job.LastResume(); r != nil {
		from = r.Time.Time
	}
	return from.Add(job.Spec.Config.UpgradeTimeout.Or(v1beta1.DefaultUpgradeTimeout))
}

// untilLatest is the time to the moment at which the job expires: just after its latest start.
func untilLatest(latest, now time.Time) time.Duration {
	return max(latest.Sub(now), 0) + time.Millisecond
}

func expired(job *v1beta1.UpgradeJob, latest time.Time) string {
	message := "The job could not start by " + stamp(latest) + "."
	started := meta.FindStatusCondition(job.Status.Conditions, v1beta1.ConditionStarted)
	if started != nil && started.Status == metav1.ConditionFalse && started.Reason != v1beta1.ReasonWaitingForStart {
		message += " " + started.Message
	}
	return message
}

func suspended(w *v1beta1.UpgradeSuspensionWindow) string {
	message := fmt.Sprintf("UpgradeSuspensionWindow %s suspends upgrades until %s", w.Name, stamp(w.Spec.End.Time))
	if w.Spec.Reason != "" {
		message += ": " + w.Spec.Reason
	}
	return v1beta1.Truncate(message, v1beta1.MaxMessageLength-1) + "."
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// SetWaiting records that the job waits for its start.
func SetWaiting(job *v1beta1.UpgradeJob, d Decision, now time.Time) {
	job.Status.Phase = v1beta1.PhasePending
	switch d.Reason {
	case v1beta1.ReasonUnknownUpgrader:
		SetBlocker(job, UnknownUpgrader(d.Message), now)
	case v1beta1.ReasonClusterLocked:
		SetBlocker(job, v1beta1.Blocker{
			Code:       v1beta1.ReasonClusterLocked,
			Object:     "ClusterVersion/" + v1beta1.ClusterVersionName,
			Message:    d.Message,
			ClearsWhen: "whoever holds the lock releases it",
		}, now)
	default: // the time alone is waited for
		job.Status.Blockers = nil
	}
	setCondition(job, v1beta1.NotStarted(d.Reason, d.Message), now)
}

// SetStarted records that the job runs, if that is not recorded yet. fromVersion is the version that the cluster runs.
func SetStarted(job *v1beta1.UpgradeJob, fromVersion string, now time.Time) {
	noteFirstRequest(job, now)
	if job.Status.StartTime == nil {
		job.Status.StartTime = &metav1.Time{Time: now}
		job.Status.FromVersion = fromVersion
	}
	if job.Status.Phase != v1beta1.PhasePaused {
		job.Status.Phase = v1beta1.PhaseActive
	}
	dropPreview(job)
	setCondition(job, v1beta1.Started("The job has started."), now)
}

// SetPaused records whether all that a running job waits for is a time that was agreed.
func SetPaused(job *v1beta1.UpgradeJob, paused bool) {
	job.Status.Phase = v1beta1.PhaseActive
	if paused {
		job.Status.Phase = v1beta1.PhasePaused
	}
}

// Finish records the outcome of a job: a condition made by v1beta1.Succeeded, Failed or Skipped.
func Finish(job *v1beta1.UpgradeJob, outcome metav1.Condition, now time.Time) {
	noteFirstRequest(job, now)
	dropPreview(job)
	switch outcome.Type {
	case v1beta1.ConditionSucceeded:
		job.Status.Phase = v1beta1.PhaseSucceeded
		job.Status.Blockers = nil
	case v1beta1.ConditionSkipped:
		job.Status.Phase = v1beta1.PhaseSkipped
	default:
		job.Status.Phase = v1beta1.PhaseFailed
	}
	job.Status.CompletionTime = &metav1.Time{Time: now}
	setCondition(job, outcome, now)
}

// Adopt recognizes a job that ended before this operator came to the cluster, by the conditions that the APPUiO upgrade controller left on it, and
// says whether it did. Such a job stays as it is but for its phase: it has no completion time, and so no hook runs for its outcome.
func Adopt(job *v1beta1.UpgradeJob) bool {
	if job.Status.Phase != "" {
		return false
	}
	switch {
	case meta.IsStatusConditionTrue(job.Status.Conditions, v1beta1.ConditionSucceeded):
		job.Status.Phase = v1beta1.PhaseSucceeded
	case meta.IsStatusConditionTrue(job.Status.Conditions, v1beta1.ConditionFailed):
		job.Status.Phase = v1beta1.PhaseFailed
	default:
		return false
	}
	return true
}

// ResumeRequested tells whether a finished job is to be reopened.
func ResumeRequested(job *v1beta1.UpgradeJob) bool {
	return (job.Status.Phase == v1beta1.PhaseFailed || job.Status.Phase == v1beta1.PhaseSkipped) &&
		job.Spec.ResumeRequest != "" && !used(job, job.Spec.ResumeRequest)
}

// Resume reopens a finished job with fresh timeouts. Where the job goes on is for the steps to find out.
func Resume(job *v1beta1.UpgradeJob, now time.Time) {
	outcome := v1beta1.ConditionFailed
	if job.Status.Phase == v1beta1.PhaseSkipped {
		outcome = v1beta1.ConditionSkipped
	}
	reopened := outcome
	if c := meta.FindStatusCondition(job.Status.Conditions, outcome); c != nil {
		reopened = fmt.Sprintf("%s(%s)", outcome, c.Reason)
	}
	addRequest(job, reopened, now)
	meta.RemoveStatusCondition(&job.Status.Conditions, outcome)
	job.Status.CompletionTime = nil
	job.Status.Blockers = nil
	job.Status.Phase = v1beta1.PhasePending
	setCondition(job, v1beta1.NotStarted(v1beta1.ReasonResumed, "The job is resumed."), now)
	if meta.FindStatusCondition(job.Status.Conditions, steps.ConditionUpgradeCommenced) != nil {
		// The update may have been taken back when the job ended. Whether it was is for the cluster to tell.
		setCondition(job, v1beta1.StepNotDone(steps.ConditionUpgradeCommenced, v1beta1.ReasonResumed, "The job is resumed."), now)
		for i := range job.Status.Steps {
			if job.Status.Steps[i].Condition == steps.ConditionUpgradeCommenced {
				job.Status.Steps[i].CompletionTime = nil
			}
		}
	}
}

// noteFirstRequest records a request that stood in the spec from the beginning: it asks for nothing, and must not
// reopen the job later.
func noteFirstRequest(job *v1beta1.UpgradeJob, now time.Time) {
	if job.Spec.ResumeRequest != "" && len(job.Status.ResumedRequests) == 0 && job.Status.StartTime == nil {
		addRequest(job, "", now)
	}
}

const maxRequests = 32

func addRequest(job *v1beta1.UpgradeJob, reopened string, now time.Time) {
	requests := append(job.Status.ResumedRequests, v1beta1.ResumedRequest{
		Request: job.Spec.ResumeRequest, Time: metav1.NewTime(now), Reopened: reopened,
	})
	job.Status.ResumedRequests = requests[max(0, len(requests)-maxRequests):]
}

func used(job *v1beta1.UpgradeJob, request string) bool {
	return slices.ContainsFunc(job.Status.ResumedRequests, func(r v1beta1.ResumedRequest) bool { return r.Request == request })
}

func setCondition(job *v1beta1.UpgradeJob, c metav1.Condition, now time.Time) {
	c.ObservedGeneration = job.Generation
	c.LastTransitionTime = metav1.NewTime(now)
	meta.SetStatusCondition(&job.Status.Conditions, c)
}

// OutcomeOf returns the condition with which a pass over the steps ends the job, and false if the job goes on.
func OutcomeOf(job *v1beta1.UpgradeJob, result steps.Result) (metav1.Condition, bool) {
	switch result.Outcome {
	case steps.Completed:
		if job.Spec.DesiredVersion == nil {
			return v1beta1.Succeeded(v1beta1.ReasonNothingToUpgrade, "The job had no version: nothing was upgraded."), true
		}
		return v1beta1.Succeeded(v1beta1.ReasonUpgraded, "The cluster runs the desired version."), true
	case steps.Skipped:
		return v1beta1.Skipped(result.Reason, result.Message), true
	case steps.Failed:
		return v1beta1.Failed(result.Reason, result.Message), true
	case steps.Running:
	}
	return metav1.Condition{}, false
}
