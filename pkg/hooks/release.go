// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"context"
	"errors"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// Release lets go of the Jobs whose results are recorded, by removing their finalizer, and of those of an UpgradeJob of
// the same name that is gone. It is called when the status is written.
func (p *Pass) Release(ctx context.Context) error {
	jobs, err := p.jobsOf(ctx, p.Client, client.ObjectKeyFromObject(p.Job))
	if err != nil {
		return err
	}
	recorded := map[string]bool{}
	for _, run := range p.Job.Status.HookTracker {
		recorded[run.Job] = run.Status.Finished()
	}
	var errs []error
	for i := range jobs {
		job := &jobs[i]
		if !metav1.IsControlledBy(job, p.Job) && !p.isCurrent(ctx) {
			continue
		}
		if recorded[job.Name] || !metav1.IsControlledBy(job, p.Job) {
			errs = append(errs, p.release(ctx, job))
		}
	}
	return errors.Join(errs...)
}

// isCurrent tells whether the UpgradeJob is still the one of its name: to one that was replaced the Jobs of its successor
// look like those of a predecessor.
func (p *Pass) isCurrent(ctx context.Context) bool {
	live := &v1beta1.UpgradeJob{}
	err := p.Live.Get(ctx, client.ObjectKeyFromObject(p.Job), live)
	return err == nil && live.UID == p.Job.UID
}

// jobsOf returns the Jobs of the hooks of an UpgradeJob. They are told by their annotation and not by their owner: who
// deletes an UpgradeJob and orphans its Jobs takes that away.
func (e *Engine) jobsOf(ctx context.Context, reader client.Reader, upgradeJob client.ObjectKey) ([]batchv1.Job, error) {
	jobs := &batchv1.JobList{}
	err := reader.List(ctx, jobs, client.InNamespace(upgradeJob.Namespace), client.MatchingLabels{v1beta1.HookUpgradeJobLabel: LabelValue(upgradeJob.Name)})
	if err != nil {
		return nil, fmt.Errorf("list the Jobs of the hooks of UpgradeJob %s: %w", upgradeJob.Name, err)
	}
	return slices.DeleteFunc(jobs.Items, func(job batchv1.Job) bool {
		return job.Annotations[v1beta1.HookUpgradeJobLabel] != upgradeJob.Name || !controllerutil.ContainsFinalizer(&job, v1beta1.HookJobFinalizer)
	}), nil
}

// ReleaseAll lets go of all Jobs of an UpgradeJob that goes, or is gone; the garbage collector deletes them.
func (e *Engine) ReleaseAll(ctx context.Context, upgradeJob client.ObjectKey) error {
	// The cache may not know of the last one yet, and who comes too late here leaves it for ever.
	jobs, err := e.jobsOf(ctx, e.Live, upgradeJob)
	if err != nil {
		return err
	}
	var errs []error
	for i := range jobs {
		errs = append(errs, e.release(ctx, &jobs[i]))
	}
	return errors.Join(errs...)
}

// ReleaseOrphans lets go of the Jobs of an UpgradeJob that is gone: somebody took its finalizer away.
func (e *Engine) ReleaseOrphans(ctx context.Context, upgradeJob client.ObjectKey) error {
	if jobs, err := e.jobsOf(ctx, e.Client, upgradeJob); err != nil || len(jobs) == 0 {
		return err
	}
	switch err := e.Live.Get(ctx, upgradeJob, &v1beta1.UpgradeJob{}); { // the cache may not know a new one yet
	case err == nil:
		return nil
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("get UpgradeJob %s, of which there are Jobs of hooks: %w", upgradeJob.Name, err)
	}
	return e.ReleaseAll(ctx, upgradeJob)
}

func (e *Engine) release(ctx context.Context, job *batchv1.Job) error {
	base := job.DeepCopy()
	if !controllerutil.RemoveFinalizer(job, v1beta1.HookJobFinalizer) {
		return nil
	}
	err := e.Client.Patch(ctx, job, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the finalizer of Job %s: %w", job.Name, err)
	}
	return nil
}
