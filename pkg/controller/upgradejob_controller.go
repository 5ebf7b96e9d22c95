// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/dependency"
	"github.com/appuio/managed-upgrade-operator/pkg/hooks"
	"github.com/appuio/managed-upgrade-operator/pkg/lifecycle"
	"github.com/appuio/managed-upgrade-operator/pkg/monitoring"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/pkg/suspension"
	"github.com/appuio/managed-upgrade-operator/pkg/upgrader"
)

// UpgradeJobReconciler leads UpgradeJobs through their life.
type UpgradeJobReconciler struct {
	Client client.Client
	// Live reads past the cache.
	Live    client.Reader
	Cluster *openshift.Cluster
	// Monitoring asks Prometheus and Alertmanager.
	Monitoring *monitoring.Client
	// Dependencies asks what upgrades need outside of the cluster.
	Dependencies *dependency.Prober
	// Hooks runs UpgradeJobHooks.
	Hooks *hooks.Engine
	// Upgraders finds the variant of a job.
	Upgraders *upgrader.Finder
	Clock     clock.PassiveClock
	Events    events.EventRecorder
	// StepCompleted is told of each step that is done, once that is recorded: of which upgrader, and how long it took. Nil if nobody wants to know.
	StepCompleted func(upgrader, step string, took time.Duration)
	// Namespace that the operator watches; empty for all. The lock of a job elsewhere cannot be judged.
	Namespace string

	retry     *retrier
	progress  *progress
	freshness *freshness
	// forceDrains keeps the NodeForceDrains of jobs.
	forceDrains steps.ForceDrains
	// gaveBack has the jobs that have ended and given back what they held, and are kept for their hooks. It is used by
	// one worker.
	gaveBack map[types.UID]bool
}

// Reconcile does one pass over an UpgradeJob.
func (r *UpgradeJobReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	job := &v1beta1.UpgradeJob{}
	if err := r.Client.Get(ctx, req.NamespacedName, job); apierrors.IsNotFound(err) {
		return r.retry.after(ctx, req, 0, r.Hooks.ReleaseOrphans(ctx, req.NamespacedName)), nil
	} else if err != nil {
		return ctrl.Result{}, err
	}
	if wait := r.freshness.wait(job); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	began := r.Clock.Now()
	after, err := r.pass(ctx, job)
	if after > 0 { // it counts from the beginning of the pass, which may have taken long
		after = max(after-r.Clock.Now().Sub(began), time.Millisecond)
	}
	return r.retry.after(ctx, req, after, err), nil
}

func (r *UpgradeJobReconciler) pass(ctx context.Context, job *v1beta1.UpgradeJob) (time.Duration, error) {
	if !job.DeletionTimestamp.IsZero() {
		return r.cleanUp(ctx, job)
	}
	if job.Status.Phase.Finished() && !lifecycle.ResumeRequested(job) {
		return r.begin(job).end(ctx)
	}
	if p := r.begin(job); lifecycle.Adopt(p.job) {
		return p.record(ctx)
	}
	if err := r.ensureFinalizer(ctx, job); err != nil {
		return 0, err
	}
	p := r.begin(job)
	delete(r.gaveBack, job.UID) // it may be resumed
	r.progress.restore(job)
	after, err := p.advance(ctx)
	wait, writeErr := p.record(ctx)
	if err = errors.Join(err, writeErr); err != nil || !job.Status.Phase.Finished() {
		return soonest(after, wait), err
	}
	return p.end(ctx)
}

// ensureFinalizer is for jobs made by hand: the others have it from birth.
func (r *UpgradeJobReconciler) ensureFinalizer(ctx context.Context, job *v1beta1.UpgradeJob) error {
	base := job.DeepCopy()
	if !controllerutil.AddFinalizer(job, v1beta1.UpgradeJobFinalizer) {
		return nil
	}
	if err := r.Client.Patch(ctx, job, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("add the finalizer of UpgradeJob %s: %w", job.Name, err)
	}
	r.freshness.wrote(job)
	return nil
}

// pass is one look at an unfinished job: what it began with, and what it came to.
type pass struct {
	*UpgradeJobReconciler
	job     *v1beta1.UpgradeJob
	base    *v1beta1.UpgradeJob
	version *configv1.ClusterVersion
	now     time.Time
	news    []announcement
}

func (r *UpgradeJobReconciler) begin(job *v1beta1.UpgradeJob) *pass {
	return &pass{UpgradeJobReconciler: r, job: job, base: job.DeepCopy(), now: r.Clock.Now()}
}

// advance decides what is to be done and does it. The job changes in memory only.
func (p *pass) advance(ctx context.Context) (time.Duration, error) {
	created, before := p.job.Status.Phase == "", p.job.Status.Blockers
	p.job.Status.ObservedGeneration = p.job.Generation
	if lifecycle.ResumeRequested(p.job) {
		lifecycle.Resume(p.job, p.now)
		p.announce(v1beta1.Notice{Type: v1beta1.NotificationJobResumed, Reason: v1beta1.ReasonResumed, Message: "The job is resumed: " + p.job.Spec.ResumeRequest})
	}
	refreshErr := p.hooks(p.persist).Refresh(ctx)
	after, err := p.carryOut(ctx, created, before)
	return after, errors.Join(refreshErr, err)
}

// carryOut decides what is to be done and does it.
func (p *pass) carryOut(ctx context.Context, created bool, before []v1beta1.Blocker) (time.Duration, error) {
	var err error
	if p.version, err = p.Cluster.Version(ctx); err != nil {
		return 0, err
	}
	if wait := p.freshness.wait(p.version); wait > 0 {
		return wait, nil // another job may have just taken the lock
	}
	variant, upgraderErr := p.variant(ctx)
	if upgraderErr != nil && !errors.Is(upgraderErr, upgrader.ErrUnusable) {
		return 0, upgraderErr
	}
	facts, err := p.gather(ctx, variant, upgraderErr)
	if err != nil {
		return 0, err
	}
	var hooksErr error
	facts.CreateHooks, hooksErr = p.createHooks(ctx, created)
	decision := lifecycle.Decide(p.job, facts, p.now)
	if hooksErr != nil {
		if decision.Action == lifecycle.Run || decision.Action == lifecycle.Wait {
			return decision.After, hooksErr // no step is done before the hooks are known to run
		}
		lifecycle.SetCreateHooks(p.job, hooks.Progress{}, p.now) // it ends without them
	}
	switch decision.Action {
	case lifecycle.Skip:
		p.finish(v1beta1.Skipped(decision.Reason, decision.Message))
		return 0, nil
	case lifecycle.Fail:
		p.finish(v1beta1.Failed(decision.Reason, decision.Message))
		return 0, nil
	case lifecycle.Run:
		after, err := p.run(ctx, variant, facts)
		return soonest(after, decision.After), err
	case lifecycle.Wait:
		p.wait(decision)
		lifecycle.AddBlockers(p.job, steps.Bounded(steps.HookBlockers(facts.CreateHooks), before, p.now))
		return soonest(decision.After, p.lookAhead(ctx, variant, facts.UpgraderError, before)), nil
	}
	return decision.After, nil
}

// lookAhead shows hours before the start what would hold the job up, so that people can mend it by day. It returns when
// to look again.
func (p *pass) lookAhead(ctx context.Context, variant upgrader.Upgrader, upgraderErr error, before []v1beta1.Blocker) time.Duration {
	if variant == nil {
		unknown := lifecycle.UnknownUpgrader(upgraderErr.Error() + ".")
		lifecycle.SetPreview(p.job, steps.Preview{Condition: v1beta1.PreflightUnknown(unknown.Code, unknown.Message)}, p.now)
		return 0
	}
	upgrade := &steps.Upgrade{Job: p.job, Now: p.now, Cluster: p.Cluster, Monitoring: p.Monitoring, Version: p.version}
	preview, ok := steps.LookAhead(ctx, variant.Steps(), upgrade, before)
	if !ok {
		return 0
	}
	lifecycle.SetPreview(p.job, preview, p.now)
	told := meta.FindStatusCondition(p.base.Status.Conditions, preview.Condition.Type)
	switch healthy := preview.Condition.Status == metav1.ConditionTrue; {
	case told != nil && told.Status == preview.Condition.Status:
	case !healthy:
		p.announce(v1beta1.Notice{
			Type: v1beta1.NotificationJobPreflightUnhealthy, Condition: preview.Condition.Type,
			Reason: "PreflightUnhealthy", Message: preview.Condition.Message, Blockers: p.job.Status.Blockers,
		})
	case told != nil: // what was never sick is no news
		p.announce(v1beta1.Notice{
			Type: v1beta1.NotificationJobPreflightHealthy, Condition: preview.Condition.Type,
			Reason: "PreflightHealthy", Message: preview.Condition.Message,
		})
	}
	return preview.After
}

// run starts the job and runs its steps. From the first pass on the job holds the cluster's lock: a step takes it before
// it changes anything, and if none had to, it is taken here.
func (p *pass) run(ctx context.Context, variant upgrader.Upgrader, facts lifecycle.Facts) (time.Duration, error) {
	lockedBy := facts.LockedBy
	if variant == nil { // a job that has started, of an operator that knew other variants, or of an Upgrader that is gone
		lifecycle.SetBlocker(p.job, lifecycle.UnknownUpgrader(facts.UpgraderError.Error()+"."), p.now)
		return 0, nil
	}
	starts := p.job.Status.StartTime == nil
	lifecycle.SetStarted(p.job, openshift.RunningVersion(p.version), p.now)
	if starts {
		p.announce(v1beta1.Notice{Type: v1beta1.NotificationJobStarted, Reason: v1beta1.ReasonStarted, Message: "The job has started."})
	}

	upgrade := &steps.Upgrade{
		Job: p.job, Now: p.now, Cluster: p.Cluster, Monitoring: p.Monitoring, Version: p.version,
		LockedBy: lockedBy, Over: p.over, Persist: p.persist, Turned: p.stepTurned, Announce: p.announce,
		Dependencies: p.Dependencies, ForceDrains: p.forceDrains, CommenceBy: facts.CommenceBy,
	}
	upgrade.Hooks = p.hooks(func(ctx context.Context) error { // a hook is the first that changes something
		if lockedBy == "" { // else it has commenced, and somebody took the lock meanwhile
			if err := upgrade.Lock(ctx); err != nil {
				return err
			}
		}
		return p.persist(ctx)
	})
	result := steps.Run(ctx, variant.Steps(), upgrade)
	outcome, ended := lifecycle.OutcomeOf(p.job, result)
	if !ended && lockedBy == "" {
		result.Err = errors.Join(result.Err, upgrade.Lock(ctx))
	}
	if upgrade.Version != p.version {
		p.version = upgrade.Version
		p.freshness.wrote(p.version)
	}
	switch {
	case ended:
		p.finish(outcome)
	case result.Err == nil:
		lifecycle.SetPaused(p.job, result.Paused)
	}
	return result.After, result.Err
}

func (p *pass) finish(outcome metav1.Condition) {
	lifecycle.Finish(p.job, outcome, p.now)
	p.Monitoring.Forget()
	p.tellFailure(outcome)
	p.announce(v1beta1.Notice{
		Type: outcomeNotices[outcome.Type], Condition: outcome.Type, Reason: outcome.Reason, Message: outcome.Message, Blockers: p.job.Status.Blockers,
	})
}

// gather reads what a decision needs to know, all of it from the cache.
func (p *pass) gather(ctx context.Context, variant upgrader.Upgrader, upgraderErr error) (lifecycle.Facts, error) {
	windows := &v1beta1.UpgradeSuspensionWindowList{}
	if !lifecycle.Started(p.job) { // no window stops a job that runs
		if err := p.Client.List(ctx, windows, client.InNamespace(p.job.Namespace)); err != nil {
			return lifecycle.Facts{}, fmt.Errorf("list UpgradeSuspensionWindows: %w", err)
		}
	}
	lockedBy, err := p.lockedBy(ctx)
	if err != nil {
		return lifecycle.Facts{}, err
	}
	upgrade := &steps.Upgrade{Job: p.job, Now: p.now, Version: p.version}
	if upgrade, err = p.upToDate(ctx, variant, upgrade); err != nil {
		return lifecycle.Facts{}, err
	}
	return lifecycle.Facts{
		// The desired update may be that of whoever holds the lock. Then only this job's own record counts, which is
		// no loss: one write sets both the desired update and the lock.
		Commenced: upgrade.Commenced() &&
			(lockedBy == "" || meta.IsStatusConditionTrue(p.job.Status.Conditions, steps.ConditionUpgradeCommenced)),
		Suspension:    suspension.Active(windows.Items, suspension.ForJobs, p.job, p.now),
		LockedBy:      lockedBy,
		CommenceBy:    commenceBy(variant, upgrade),
		UpgraderError: upgraderErr,
	}, nil
}

// persist writes the status in the middle of a pass, before something that cannot be undone. Unlike the write at the
// end it is never left out, because it is the proof that nobody else has worked on the job since the pass began.
func (p *pass) persist(ctx context.Context) error {
	if err := p.patchStatus(ctx); err != nil {
		return err
	}
	p.countSteps()
	p.base = p.job.DeepCopy()
	p.publish(ctx) // whatever becomes of the rest of the pass, no later one would tell of it
	return nil
}

// record writes the status, and then tells of what happened and lets go of the hooks' Jobs that are accounted for.
func (p *pass) record(ctx context.Context) (time.Duration, error) {
	changed := !apiequality.Semantic.DeepEqual(&p.base.Status, &p.job.Status)
	if wait := p.progress.hold(changed, p.base, p.job, p.now); wait > 0 {
		return wait, nil
	}
	if changed {
		if err := p.persist(ctx); err != nil {
			return 0, err
		}
	}
	p.publish(ctx)
	return 0, p.hooks(p.persist).Release(ctx)
}

func (p *pass) patchStatus(ctx context.Context) error {
	if err := patchStatus(ctx, p.Client, p.base, p.job); err != nil {
		return err
	}
	p.freshness.wrote(p.job)
	return nil
}
