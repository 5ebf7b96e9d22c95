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
	namespace, name, isJob := strings.Cut(holder, "/")
	if !isJob || (p.Namespace != "" && namespace != p.Namespace) {
		return fmt.Sprintf("%q, which this operator does not watch; if it is not in use any more, remove the annotation %s from ClusterVersion/%s",
			holder, v1beta1.UpgradeJobAnnotation, v1beta1.ClusterVersionName), nil
	}
	other := &v1beta1.UpgradeJob{}
	err := p.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, other)
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("get UpgradeJob %s, which holds the lock: %w", holder, err)
	case other.Status.Phase.Finished() && len(other.Finalizers) == 0:
		return "", nil
	}
	return "UpgradeJob " + holder, nil
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
