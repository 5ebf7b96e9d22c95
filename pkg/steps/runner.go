// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/hooks"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// Outcome is what a pass over the steps came to.
type Outcome int

const (
	// Running means: a step waits or met an error.
	Running Outcome = iota
	// Completed means: every step is done.
	Completed
	// Skipped means: a preflight ended the job before the upgrade commenced.
	Skipped
	// Failed means: a step ended the job.
	Failed
)

// Result is what a pass over the steps came to, and why.
type Result struct {
	Outcome Outcome
	// Reason and Message of the step that ended the pass; empty when Completed.
	Reason, Message string
	// After is when the pass is to be repeated at the latest; zero leaves that to the watches.
	After time.Duration
	// Paused is set if the step waits for a time that was agreed, and for nothing else.
	Paused bool
	// Err is set when a step met something unexpected; the pass is then repeated with backoff.
	Err error
}

// Transition is a step whose condition changed its status or reason.
type Transition struct {
	// Step is the condition of the step.
	Step string
	// Kind tells what the change is.
	Kind v1beta1.NotificationType
	// Reason and Message of the condition.
	Reason, Message string
}

// Run goes through the steps from the first to the one that is not done, and records conditions, steps and blockers in
// the status of the job, in memory. It is the only place where a verdict becomes status.
func Run(ctx context.Context, list []Step, u *Upgrade) Result {
	u.machines = observe(ctx, u)
	r := &recorder{upgrade: u, before: u.Job.Status.Blockers, wake: u.machines.after}
	for i, step := range list {
		verdict, err := r.run(ctx, step)
		if err != nil {
			return r.broken(step, err)
		}
		switch verdict.kind {
		case kindDone:
			r.done(step, verdict)
			if result, held := r.holdNext(ctx, step, list[i+1:]); held {
				return result
			}
		case kindWait:
			r.notDone(step, verdict)
			return r.result(Running, verdict)
		case kindSkip:
			r.notDone(step, verdict)
			if u.Commenced() { // an upgrade that has commenced is never skipped, whatever a step says
				return r.result(Failed, verdict)
			}
			return r.result(Skipped, verdict)
		case kindFail:
			r.notDone(step, verdict)
			return r.result(Failed, verdict)
		}
	}
	u.Job.Status.Blockers = nil
	return r.result(Completed, Verdict{})
}

// CleanUp goes through all steps of a cleanup, whether they are done or not, and records nothing but what is held still: the outcome of
// the job stands. It returns how long to wait, zero when everything is clean, and the errors of the steps that met any; Upgrade.Unfinished says the same in words.
func CleanUp(ctx context.Context, list []Step, u *Upgrade) (time.Duration, error) {
	r := &recorder{upgrade: u}
	var wait time.Duration
	var errs []error
	for _, step := range list {
		verdict, err := step.Run(ctx, u)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", step.Condition(), err))
			u.Unfinished = append(u.Unfinished, step.Condition()+": "+openshift.Describe(err))
		}
		if err == nil && verdict.condition != nil {
			r.record(verdict.condition(step.Condition()), v1beta1.NotificationStepCompleted)
		}
		if err == nil && verdict.kind != kindDone {
			u.Unfinished = append(u.Unfinished, step.Condition()+": "+verdict.message)
		}
		if verdict.kind != kindDone && (wait == 0 || verdict.after < wait) {
			wait = max(verdict.after, time.Second)
		}
	}
	u.machines.correct(&u.Job.Status)
	return wait, errors.Join(errs...)
}

type recorder struct {
	upgrade  *Upgrade
	previous time.Time // when the step before the present one was done
	before   []v1beta1.Blocker
	wake     time.Duration // when the pass is to be repeated at the latest, whatever the present step says
	begun    bool          // the present step, in this pass, for the first time
}

// run runs a step, before it runs for the first time the hooks that hold it. The hooks of its completion are settled
// before that is recorded: it may be the last time that anybody asks for them.
func (r *recorder) run(ctx context.Context, step Step) (Verdict, error) {
	u, condition := r.upgrade, step.Condition()
	r.begun = false
	if !u.Attempted(condition) {
		held, err := hold(ctx, u, hooks.Event{
			Name: v1beta1.HookEventStepStarted(condition), Reason: "StepStarted", Message: "Step " + condition + " is about to run.",
		})
		if err != nil || held.kind != kindDone {
			return held, err
		}
	}
	r.begin(step)
	verdict, err := step.Run(ctx, u)
	if err != nil || verdict.kind != kindDone || stepStatus(u.Job, condition).CompletionTime != nil || u.Hooks == nil {
		return verdict, err
	}
	progress, err := u.Hooks.Plan(ctx, r.completion(step))
	if progress.Aborted != nil {
		return Fail(v1beta1.ReasonHookFailed, HookAborted(*progress.Aborted)), nil
	}
	return verdict, err
}

// holdNext runs the hooks of a step that is done, and tells whether they hold what comes next. The step itself is done:
// its own clock has stopped, and an upgrade that has commenced has.
func (r *recorder) holdNext(ctx context.Context, step Step, rest []Step) (Result, bool) {
	u := r.upgrade
	r.begun = false // the next one has not
	if !hooks.HasRun(u.Job, v1beta1.HookEventStepCompleted(step.Condition())) {
		return Result{}, false
	}
	if len(rest) > 0 && u.completed(rest[0].Condition()) {
		return Result{}, false // what was to be held has happened; a job that was resumed goes on behind it
	}
	verdict, err := hold(ctx, u, r.completion(step))
	switch {
	case err == nil && verdict.kind == kindDone:
		r.addNote(step, verdict.message)
		return Result{}, false
	case err != nil && len(rest) > 0:
		return r.broken(rest[0], err), true
	case err != nil: // no condition is left to tell it
		if !apierrors.IsConflict(err) {
			r.block(errorBlockers(openshift.Describe(err)))
		}
		return Result{Outcome: Running, After: r.wake, Err: err}, true
	case len(rest) > 0:
		r.notDone(rest[0], verdict)
	default:
		r.block(verdict.blockers)
	}
	outcomes := map[Kind]Outcome{kindWait: Running, kindSkip: Skipped, kindFail: Failed}
	return r.result(outcomes[verdict.kind], verdict), true
}

// completion is the event of a step that is done.
func (r *recorder) completion(step Step) hooks.Event {
	event := hooks.Event{Name: v1beta1.HookEventStepCompleted(step.Condition()), Time: r.upgrade.Now, Reason: v1beta1.ReasonCompleted}
	if c := meta.FindStatusCondition(r.upgrade.Job.Status.Conditions, step.Condition()); c != nil {
		event.Message = c.Message
	}
	return event
}

// addNote adds to what is said of a step that is done how its hooks fared, once they have.
func (r *recorder) addNote(step Step, note string) {
	c := meta.FindStatusCondition(r.upgrade.Job.Status.Conditions, step.Condition())
	if c != nil && !strings.Contains(c.Message, note) {
		c.Message = v1beta1.Truncate(strings.TrimSpace(c.Message+" "+note), v1beta1.MaxMessageLength)
	}
}

// begin records that the step runs: before it does, because it may persist the status itself.
func (r *recorder) begin(step Step) {
	status := &r.upgrade.Job.Status
	s := stepStatus(r.upgrade.Job, step.Condition())
	r.begun = s == nil
	switch now := metav1.NewTime(r.upgrade.Now); {
	case s == nil:
		status.Steps = append(status.Steps, v1beta1.StepStatus{Condition: step.Condition(), StartTime: now, Attempts: 1})
	case s.CompletionTime == nil && s.StartTime.Time.Before(resumed(r.upgrade.Job)):
		s.StartTime = now
		s.Attempts++
	case s.CompletionTime == nil && s.StartTime.Time.Before(r.previous):
		s.StartTime = now // an earlier step was un-done meanwhile; its time is not this one's
	}
}

func (r *recorder) done(step Step, v Verdict) {
	s := stepStatus(r.upgrade.Job, step.Condition())
	if s.CompletionTime == nil {
		s.CompletionTime = &metav1.Time{Time: r.upgrade.Now}
	}
	r.previous = s.CompletionTime.Time
	r.wake = soonest(r.wake, v.after)
	if v.condition != nil {
		r.record(v.condition(step.Condition()), v1beta1.NotificationStepCompleted)
		return
	}
	existing := meta.FindStatusCondition(r.upgrade.Job.Status.Conditions, step.Condition())
	if existing != nil && existing.Status == metav1.ConditionTrue {
		return // what was said when the step became done stays
	}
	if v.message == "" {
		v.message = "Not needed any more: the upgrade has commenced."
	}
	r.record(v1beta1.StepDone(step.Condition(), v.message), v1beta1.NotificationStepCompleted)
}

func (r *recorder) notDone(step Step, v Verdict) {
	r.undo(step)
	kind := v1beta1.NotificationStepFailed
	if v.kind == kindWait {
		kind = v1beta1.NotificationStepWaiting
	}
	r.block(v.blockers)
	r.record(v1beta1.StepNotDone(step.Condition(), v.reason, v.message), kind)
}

// undo notes that a step is not done. If it was, its clock starts anew.
func (r *recorder) undo(step Step) {
	s := stepStatus(r.upgrade.Job, step.Condition())
	if s != nil && s.CompletionTime != nil {
		s.StartTime, s.CompletionTime = metav1.NewTime(r.upgrade.Now), nil
	}
}

// broken records an error of a step. A conflict is no news: the cache lags behind a write, and the next pass, a moment
// later, sees it.
func (r *recorder) broken(step Step, err error) Result {
	err = fmt.Errorf("%s: %w", step.Condition(), err)
	if apierrors.IsConflict(err) {
		return Result{Outcome: Running, After: r.wake, Err: err}
	}
	message := openshift.Describe(err)
	r.undo(step)
	r.block(errorBlockers(message))
	r.record(v1beta1.StepNotDone(step.Condition(), v1beta1.ReasonError, message), v1beta1.NotificationStepFailed)
	return Result{Outcome: Running, Reason: v1beta1.ReasonError, Message: message, After: r.wake, Err: err}
}

func errorBlockers(message string) []v1beta1.Blocker {
	return []v1beta1.Blocker{{
		Code:       v1beta1.ReasonError,
		Message:    message,
		ClearsWhen: "the step runs without an error; it is tried again",
	}}
}

// record sets the condition of a step. A step that has begun and is not done at once has started.
func (r *recorder) record(c metav1.Condition, kind v1beta1.NotificationType) {
	status := &r.upgrade.Job.Status
	c.LastTransitionTime = metav1.NewTime(r.upgrade.Now)
	c.ObservedGeneration = r.upgrade.Job.Generation
	existing := meta.FindStatusCondition(status.Conditions, c.Type)
	turned := existing == nil || existing.Status != c.Status || existing.Reason != c.Reason
	if r.begun && kind == v1beta1.NotificationStepWaiting {
		kind = v1beta1.NotificationStepStarted
	}
	meta.SetStatusCondition(&status.Conditions, c)
	if turned && r.upgrade.Turned != nil {
		r.upgrade.Turned(Transition{Step: c.Type, Kind: kind, Reason: c.Reason, Message: c.Message})
	}
}

// Bounds of what is recorded, so that a sick cluster of thousands of nodes does not make an object that nobody reads.
const (
	// MaxBlockers is how many blockers a job has at most, as its CRD says.
	MaxBlockers             = 32
	maxBlockerMessageLength = 512
)

// block records blockers.
func (r *recorder) block(blockers []v1beta1.Blocker) {
	r.upgrade.Job.Status.Blockers = Bounded(blockers, r.before, r.upgrade.Now)
}

// Bounded cuts blockers to what can be recorded, and gives each the time since when it stands: that of before if it
// stood there.
func Bounded(blockers, before []v1beta1.Blocker, now time.Time) []v1beta1.Blocker {
	blockers = blockers[:min(len(blockers), MaxBlockers)]
	for i := range blockers {
		b := &blockers[i]
		b.Message = v1beta1.Truncate(b.Message, maxBlockerMessageLength)
		b.Since = metav1.NewTime(now)
		for j := range before {
			if before[j].Code == b.Code && before[j].Object == b.Object {
				b.Since = before[j].Since
			}
		}
	}
	return blockers
}

func (r *recorder) result(outcome Outcome, v Verdict) Result {
	result := Result{Outcome: outcome, Reason: v.reason, Message: v.message}
	if outcome == Running {
		result.After, result.Paused = soonest(v.after, r.wake), v.paused
	}
	return result
}
