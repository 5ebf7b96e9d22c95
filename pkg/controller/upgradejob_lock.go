// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// lockedBy says who but this job holds the cluster; empty if nobody does. The lock of a job that is gone, or that has
// finished and cleaned up, counts for nothing.
func (p *pass) lockedBy(ctx context.Context) (string, error) {
	holder := p.version.Annotations[v1beta1.UpgradeJobAnnotation]
	if holder == "" || holder == p.job.LockKey() {
		return "", nil
	}
	other, watched, err := p.jobNamed(ctx, holder)
	switch {
	case err != nil:
		return "", err
	case !watched:
		return fmt.Sprintf("%q, which this operator does not watch; if it is not in use any more, remove the annotation %s from ClusterVersion/%s",
			holder, v1beta1.UpgradeJobAnnotation, v1beta1.ClusterVersionName), nil
	case other == nil, other.Status.Phase.Finished() && len(other.Finalizers) == 0:
		return "", nil
	}
	return "UpgradeJob " + holder, nil
}

// over tells whether a job, as namespace/name, has ended or is gone. One that this operator does not watch is not known to.
func (r *UpgradeJobReconciler) over(ctx context.Context, holder string) (bool, error) {
	job, watched, err := r.jobNamed(ctx, holder)
	return watched && err == nil && (job == nil || job.Status.Phase.Finished()), err
}

func (r *UpgradeJobReconciler) jobNamed(ctx context.Context, holder string) (*v1beta1.UpgradeJob, bool, error) {
	return jobNamed(ctx, r.Client, r.Namespace, holder)
}

// jobNamed returns the job that an annotation names as namespace/name, nil if it is gone, and whether it stands in the namespace that is watched; empty
// stands for all.
func jobNamed(ctx context.Context, reader client.Reader, watched, holder string) (*v1beta1.UpgradeJob, bool, error) {
	namespace, name, isJob := strings.Cut(holder, "/")
	if !isJob || (watched != "" && namespace != watched) {
		return nil, false, nil
	}
	job := &v1beta1.UpgradeJob{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, job)
	switch {
	case apierrors.IsNotFound(err):
		return nil, true, nil
	case err != nil:
		return nil, true, fmt.Errorf("get UpgradeJob %s, which holds something: %w", holder, err)
	}
	return job, true, nil
}

// unlock releases the lock if this job has it. cv may come from the cache, which may not know of the lock yet: only an
// answer of the API server proves that there is none.
func (r *UpgradeJobReconciler) unlock(ctx context.Context, job *v1beta1.UpgradeJob, cv *configv1.ClusterVersion) error {
	if cv.Annotations[v1beta1.UpgradeJobAnnotation] != job.LockKey() {
		live, err := r.Cluster.LiveVersion(ctx)
		if err != nil {
			return err
		}
		if cv = live; cv.Annotations[v1beta1.UpgradeJobAnnotation] != job.LockKey() {
			return nil
		}
	}
	released, err := r.Cluster.SetLock(ctx, cv, "")
	if err != nil {
		return fmt.Errorf("release the lock of UpgradeJob %s: %w", job.Name, err)
	}
	r.freshness.wrote(released)
	return nil
}
