// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/hooks"
	"github.com/appuio/managed-upgrade-operator/pkg/lifecycle"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// hooks returns the engine at work on the job. fence runs before Jobs are created.
func (p *pass) hooks(fence func(context.Context) error) *hooks.Pass {
	return &hooks.Pass{
		Engine: p.Hooks, Job: p.job, Now: p.now, Deadline: lifecycle.Deadline(p.job), Fence: fence, Tell: p.hookFinished,
	}
}

// createHooks runs the hooks of the event Create. created tells whether the operator sees the job for the first time:
// that is the event; from then on only what it set going is followed.
func (p *pass) createHooks(ctx context.Context, created bool) (hooks.Progress, error) {
	if lifecycle.Started(p.job) || (!created && !hooks.HasRun(p.job, v1beta1.HookEventCreate)) {
		return hooks.Progress{}, nil
	}
	progress, err := p.hooks(p.persist).Emit(ctx, hooks.Event{
		Name: v1beta1.HookEventCreate, Time: p.job.CreationTimestamp.Time, Reason: "Created", Message: "The UpgradeJob was created.",
	})
	switch {
	case apierrors.IsConflict(err):
	case err != nil:
		lifecycle.SetCreateHooksError(p.job, openshift.Describe(err), p.now)
	default:
		lifecycle.SetCreateHooks(p.job, progress, p.now)
		if created {
			p.announce(v1beta1.Notice{Type: v1beta1.NotificationJobCreated, Phase: v1beta1.PhasePending, Reason: "Created", Message: "The operator has taken the job up."})
		}
	}
	return progress, err
}

// end lets a finished job go: the hooks of its outcome are run, what it holds is given back without waiting for them, and
// when the result of every hook is known nothing is left to be done.
func (p *pass) end(ctx context.Context) (time.Duration, error) {
	if !controllerutil.ContainsFinalizer(p.job, v1beta1.UpgradeJobFinalizer) {
		p.progress.forget(p.job)
		// It was let go before, but a Job may have turned up since.
		return 0, errors.Join(p.hooks(p.persist).Release(ctx), p.forgetReleasedPools(ctx, p.job))
	}
	patience, hooksErr := p.outcomeHooks(ctx)
	wait, err := p.release(ctx, p.job, p.version, hooksErr != nil || patience > 0)
	if wait == 0 && err == nil { // it has been released from what it held, but for what it keeps
		err = p.forgetReleasedPools(ctx, p.job)
	}
	return soonest(wait, patience), errors.Join(err, hooksErr)
}

// outcomeHooks runs the hooks of the outcome, and records what became of all hooks since. It returns how long the first
// one is still waited for; zero if none is.
func (p *pass) outcomeHooks(ctx context.Context) (time.Duration, error) {
	engine := p.hooks(p.persist)
	engine.Deadline = p.now.Add(p.job.Spec.Config.UpgradeTimeout.Or(v1beta1.DefaultUpgradeTimeout))
	err := errors.Join(engine.Refresh(ctx), engine.Abandon(ctx))
	for _, e := range outcomeEvents(p.job) {
		_, emitErr := engine.Emit(ctx, e)
		err = errors.Join(err, emitErr)
	}
	if hooks.HasRun(p.job, v1beta1.HookEventCreate) && !lifecycle.Started(p.job) {
		lifecycle.SetCreateHooks(p.job, engine.Progress(hooks.Event{Name: v1beta1.HookEventCreate}), p.now)
	}
	_, writeErr := p.record(ctx)
	return engine.Patience(), errors.Join(err, writeErr)
}

// outcomeEvents are the events of a job that has ended.
func outcomeEvents(job *v1beta1.UpgradeJob) []hooks.Event {
	events := map[v1beta1.Phase]struct {
		name      v1beta1.HookEvent
		condition string
	}{
		v1beta1.PhaseSucceeded: {v1beta1.HookEventSuccess, v1beta1.ConditionSucceeded},
		v1beta1.PhaseFailed:    {v1beta1.HookEventFailure, v1beta1.ConditionFailed},
		v1beta1.PhaseSkipped:   {v1beta1.HookEventSkipped, v1beta1.ConditionSkipped},
	}
	outcome, ok := events[job.Status.Phase]
	c := meta.FindStatusCondition(job.Status.Conditions, outcome.condition)
	if !ok || c == nil || job.Status.CompletionTime == nil {
		return nil
	}
	e := hooks.Event{Name: outcome.name, Time: job.Status.CompletionTime.Time, Reason: c.Reason, Message: c.Message}
	finish := e
	finish.Name = v1beta1.HookEventFinish
	return []hooks.Event{e, finish}
}

// hookJobTurned passes what may end the run of a hook: its Job finished, is to be deleted, or is gone.
var hookJobTurned = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return true }, // of before this process was started
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*batchv1.Job), e.ObjectNew.(*batchv1.Job)
		return len(before.Status.Conditions) != len(after.Status.Conditions) ||
			before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero()
	},
}
