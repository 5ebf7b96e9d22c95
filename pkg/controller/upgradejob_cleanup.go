// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/lifecycle"
	"github.com/appuio/managed-upgrade-operator/pkg/notify"
	"github.com/appuio/managed-upgrade-operator/pkg/pools"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/pkg/upgrader"
)

// cleanUp lets a deleted job go. Its hooks' Jobs go with it.
func (r *UpgradeJobReconciler) cleanUp(ctx context.Context, job *v1beta1.UpgradeJob) (time.Duration, error) {
	var err error
	if len(job.Status.HookTracker) > 0 {
		err = r.Hooks.ReleaseAll(ctx, client.ObjectKeyFromObject(job))
	}
	wait, releaseErr := r.release(ctx, job, nil, err != nil)
	return wait, errors.Join(releaseErr, err)
}

// release gives back everything that a finished or deleted job holds, the lock last, and then lets go of the job by
// removing the finalizer, unless it is kept. cv is ClusterVersion/version as the caller knows it, or nil.
func (r *UpgradeJobReconciler) release(ctx context.Context, job *v1beta1.UpgradeJob, cv *configv1.ClusterVersion, keep bool) (time.Duration, error) {
	r.progress.forget(job)
	if !controllerutil.ContainsFinalizer(job, v1beta1.UpgradeJobFinalizer) {
		return 0, nil // nothing is held: the finalizer is there before anything is taken
	}
	// Also a job that never started: the process may have ended between its lock and the record of its start.
	if !r.gaveBack[job.UID] {
		if wait, err := r.giveBack(ctx, job, cv); wait > 0 || err != nil {
			return wait, err
		}
	}
	if keep {
		r.gaveBack[job.UID] = true // whoever looks whether a hook has ended need not do it again
		return 0, nil
	}
	delete(r.gaveBack, job.UID)
	base := job.DeepCopy()
	controllerutil.RemoveFinalizer(job, v1beta1.UpgradeJobFinalizer)
	err := r.Client.Patch(ctx, job, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("remove the finalizer of UpgradeJob %s: %w", job.Name, err)
	}
	if job.DeletionTimestamp.IsZero() {
		r.freshness.wrote(job) // a deleted job is gone now
	}
	log.FromContext(ctx).Info("The job has given back what it held")
	return 0, nil
}

func (r *UpgradeJobReconciler) giveBack(ctx context.Context, job *v1beta1.UpgradeJob, cv *configv1.ClusterVersion) (time.Duration, error) {
	if cv == nil {
		var err error
		cv, err = r.Cluster.LiveVersion(ctx)
		if apierrors.IsNotFound(err) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
	}
	cleanup, err := r.Upgraders.Finally(ctx, lifecycle.UpgraderOf(&job.Spec.Config))
	if errors.Is(err, upgrader.ErrUnusable) {
		// Without its variant nobody knows what the job held, but nothing of it shall stay for ever.
		log.FromContext(ctx).Info("Whatever a step of the catalogue could hold for the job is given back", "because", err.Error())
	} else if err != nil {
		return 0, err
	}
	return r.finally(ctx, job, cv, cleanup)
}

func (r *UpgradeJobReconciler) finally(ctx context.Context, job *v1beta1.UpgradeJob, cv *configv1.ClusterVersion, cleanup []steps.Step) (time.Duration, error) {
	before := job.DeepCopy()
	upgrade := &steps.Upgrade{Job: job, Now: r.Clock.Now(), Cluster: r.Cluster, Monitoring: r.Monitoring, Version: cv, ForceDrains: r.forceDrains}
	if wait, err := steps.CleanUp(ctx, cleanup, upgrade); wait > 0 || err != nil {
		return wait, errors.Join(err, r.tellUnfinished(ctx, before, job, upgrade))
	}
	if meta.FindStatusCondition(job.Status.Conditions, v1beta1.ConditionGivenBack) != nil {
		c := v1beta1.StepHolds(v1beta1.ConditionGivenBack, true, v1beta1.ReasonReleased, "The job holds nothing any more.")
		setCondition(&job.Status.Conditions, c, job.Generation, r.Clock)
	}
	if err := r.tellWhatIsHeld(ctx, before, job); err != nil { // before the next job may change it
		return 0, err
	}
	return 0, r.unlock(ctx, job, upgrade.Version)
}

// cleanupPatience is how long a cleanup may take before it is told what it waits for.
const cleanupPatience = 10 * time.Second

// tellUnfinished records and publishes what a job that ended a while ago could not give back yet: the next job waits for its lock.
func (r *UpgradeJobReconciler) tellUnfinished(ctx context.Context, before, job *v1beta1.UpgradeJob, upgrade *steps.Upgrade) error {
	ended := job.Status.CompletionTime
	if job.DeletionTimestamp != nil {
		ended = job.DeletionTimestamp
	}
	if ended == nil || upgrade.Now.Sub(ended.Time) < cleanupPatience || len(upgrade.Unfinished) == 0 {
		return nil
	}
	c := v1beta1.StepHolds(v1beta1.ConditionGivenBack, false, v1beta1.ReasonGivingBack, strings.Join(upgrade.Unfinished, "; "))
	told := meta.FindStatusCondition(before.Status.Conditions, c.Type)
	setCondition(&job.Status.Conditions, c, job.Generation, r.Clock)
	wrote, err := writeStatus(ctx, r.Client, before, job, upgradeJobStatus)
	if !wrote || client.IgnoreNotFound(err) != nil {
		return client.IgnoreNotFound(err)
	}
	r.freshness.wrote(job)
	if told == nil || told.Message != c.Message {
		r.Events.Eventf(job, nil, corev1.EventTypeWarning, c.Reason, actionLifecycle, "%s", v1beta1.Truncate(c.Message, maxNote))
	}
	return nil
}

// tellWhatIsHeld records and publishes what the job keeps after its end: pools that stay paused.
func (r *UpgradeJobReconciler) tellWhatIsHeld(ctx context.Context, before, job *v1beta1.UpgradeJob) error {
	c := meta.FindStatusCondition(job.Status.Conditions, v1beta1.ConditionMachineConfigPoolsPaused)
	told := meta.FindStatusCondition(before.Status.Conditions, v1beta1.ConditionMachineConfigPoolsPaused)
	news := c != nil && c.Status == metav1.ConditionTrue && (told == nil || told.Reason != c.Reason)
	if news {
		notify.Append(job, v1beta1.Notice{Type: v1beta1.NotificationStepFailed, Condition: c.Type, Reason: c.Reason, Message: c.Message}, r.Clock.Now())
	}
	wrote, err := writeStatus(ctx, r.Client, before, job, upgradeJobStatus)
	if !wrote || client.IgnoreNotFound(err) != nil {
		return client.IgnoreNotFound(err)
	}
	r.freshness.wrote(job)
	if news {
		log.FromContext(ctx).Info("Pools stay paused", "reason", c.Reason, "message", c.Message)
		r.Events.Eventf(job, nil, corev1.EventTypeWarning, c.Reason, c.Type, "%s", v1beta1.Truncate(c.Message, maxNote))
	}
	return nil
}

// forgetReleasedPools takes back that a job which is over has left pools paused, once none is any more. A pool that somebody has unpaused
// by hand loses the name of the job: whoever pauses it next is somebody else.
func (r *UpgradeJobReconciler) forgetReleasedPools(ctx context.Context, job *v1beta1.UpgradeJob) error {
	if !meta.IsStatusConditionTrue(job.Status.Conditions, v1beta1.ConditionMachineConfigPoolsPaused) {
		return nil
	}
	all, err := r.Cluster.Pools(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		if !all[i].Spec.Paused && pools.Names(&all[i]) == job.LockKey() {
			if _, err := r.Cluster.ReleasePool(ctx, &all[i]); err != nil {
				return err
			}
		}
	}
	if len(pools.HeldBy(all, job.LockKey())) > 0 {
		return nil
	}
	before := job.DeepCopy()
	released := v1beta1.StepHolds(v1beta1.ConditionMachineConfigPoolsPaused, false, v1beta1.ReasonReleased, "The pools that the job left paused have been released since.")
	setCondition(&job.Status.Conditions, released, job.Generation, r.Clock)
	for i := range job.Status.Pools {
		if p := &job.Status.Pools[i]; p.PausedBy == job.LockKey() {
			p.Paused, p.PausedBy = false, ""
		}
	}
	if err := patchStatus(ctx, r.Client, before, job); err != nil {
		return err
	}
	r.freshness.wrote(job)
	return nil
}

func upgradeJobStatus(o client.Object) *v1beta1.UpgradeJobStatus {
	return &o.(*v1beta1.UpgradeJob).Status
}
