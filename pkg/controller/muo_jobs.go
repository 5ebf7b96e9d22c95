// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/muo"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/planner"
)

// create creates the job, if it is true that there is none that would be in its way: a cache that lags behind must not make two of one.
func (p *muoPass) create(ctx context.Context, job *v1beta1.UpgradeJob) (time.Duration, error) {
	live, err := p.liveJobs(ctx)
	if err != nil {
		return 0, err
	}
	unknown := func(job v1beta1.UpgradeJob) bool { return muo.FindJob(p.jobs, job.Name) == nil }
	if slices.ContainsFunc(live, unknown) {
		return 0, apierrors.NewConflict(v1beta1.GroupVersion.WithResource("upgradejobs").GroupResource(), job.Name, errors.New("the cache does not have all jobs yet"))
	}
	err = p.Client.Create(ctx, job)
	switch {
	case apierrors.IsAlreadyExists(err):
		return 0, p.taken(ctx, job, err)
	case apierrors.IsInvalid(err): // the ConfigMap asks for something that a job does not allow; its change wakes us
		p.notScheduled(muo.ReasonCreateFailed, "The UpgradeJob is refused: %s", openshift.Describe(err))
		return muoRecheck, nil
	case err != nil:
		p.notScheduled(muo.ReasonCreateFailed, "%s", openshift.Describe(err))
		return 0, fmt.Errorf("create UpgradeJob %s: %w", job.Name, err)
	}
	p.jobs = append(p.jobs, *job)
	p.adopt(job)
	release := openshift.Release{Version: job.Spec.DesiredVersion.Version, Image: job.Spec.DesiredVersion.Image}
	start := job.Spec.StartAfter.UTC().Format(time.RFC3339)
	log.FromContext(ctx).Info("Created UpgradeJob", "job", job.Name, "startAfter", start, "release", release.String())
	p.Events.Eventf(p.config, job, corev1.EventTypeNormal, muo.ReasonJobCreated, actionSchedule, "Created UpgradeJob %s, version %s, start at %s", job.Name, release, start)
	return 0, nil
}

// taken finds out whose the job is that has the name of the one to create.
func (p *muoPass) taken(ctx context.Context, job *v1beta1.UpgradeJob, cause error) error {
	existing := &v1beta1.UpgradeJob{}
	if err := p.Live.Get(ctx, client.ObjectKeyFromObject(job), existing); err != nil {
		return fmt.Errorf("get UpgradeJob %s: %w", job.Name, err)
	}
	owner, wanted := metav1.GetControllerOf(existing), metav1.GetControllerOf(job)
	if owner != nil && owner.Kind == wanted.Kind && owner.APIVersion == wanted.APIVersion && owner.Name == wanted.Name {
		p.notScheduled(muo.ReasonJobReplaced, "UpgradeJob %s is that of a former object of this name, and is being deleted.", job.Name)
		return nil // the garbage collector deletes it, which wakes us
	}
	p.notScheduled(muo.ReasonCreateFailed, "Somebody else created UpgradeJob %s.", job.Name)
	return fmt.Errorf("create UpgradeJob %s: somebody else created one of this name: %w", job.Name, cause)
}

// dropFormer deletes the jobs that are not what the spec asks for, if they have not started.
func (p *muoPass) dropFormer(ctx context.Context) error {
	for i := range p.jobs {
		if job := &p.jobs[i]; job.Name != p.name && !muo.Began(job) {
			if err := p.drop(ctx, job, "The object asks for another upgrade."); err != nil {
				return err
			}
		}
	}
	return nil
}

// drop deletes a job that has not started. It fails with a conflict if the job is not as it was judged any more: it may have started.
func (p *muoPass) drop(ctx context.Context, job *v1beta1.UpgradeJob, why string) error {
	if !job.DeletionTimestamp.IsZero() {
		return nil
	}
	err := p.Client.Delete(ctx, job, client.Preconditions{UID: &job.UID, ResourceVersion: &job.ResourceVersion})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete UpgradeJob %s: %w", job.Name, err)
	}
	log.FromContext(ctx).Info("Deleted an UpgradeJob that had not started", "job", job.Name, "why", why)
	p.Events.Eventf(p.config, job, corev1.EventTypeNormal, muo.ReasonJobReplaced, actionSchedule, "%s",
		v1beta1.Truncate(fmt.Sprintf("Deleted UpgradeJob %s, which had not started: %s", job.Name, why), maxNote))
	return nil
}

// prune deletes old jobs. Their upgrades stay in the history.
func (p *muoPass) prune(ctx context.Context) error {
	for _, job := range planner.Superfluous(&v1beta1.UpgradeConfig{}, p.jobs) {
		if job.Name == p.name {
			continue
		}
		if err := p.Client.Delete(ctx, &job, client.Preconditions{UID: &job.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete UpgradeJob %s: %w", job.Name, err)
		}
		log.FromContext(ctx).Info("Deleted an UpgradeJob beyond the history limit", "job", job.Name)
	}
	return nil
}
