// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// forceDrains keeps the NodeForceDrain of a job. It has the job's name and stands beside it: what is long enough for the one is for the other. Where
// NodeForceDrains of that namespace have no effect, the object itself says so.
type forceDrains struct {
	client client.Client
	live   client.Reader
}

var _ steps.ForceDrains = (*forceDrains)(nil)

// newForceDrains returns the keeper of the NodeForceDrains of jobs. The client may read from a cache; live does not, and is asked where the
// cache cannot be trusted.
func newForceDrains(c client.Client, live client.Reader) *forceDrains {
	return &forceDrains{client: c, live: live}
}

// Ensure creates the NodeForceDrain of the job, unless it is there: then it is left as it is, because somebody may have changed it for good
// reasons. It is an error if somebody else's has its name.
func (d *forceDrains) Ensure(ctx context.Context, job *v1beta1.UpgradeJob, spec v1beta1.NodeForceDrainSpec) error {
	if known, err := d.find(ctx, d.client, job); err != nil || (known != nil && metav1.IsControlledBy(known, job)) {
		return err
	}
	nfd := drainOf(job)
	nfd.Labels = map[string]string{v1beta1.UpgradeJobAnnotation: string(job.UID)}
	nfd.Spec = spec
	if err := controllerutil.SetControllerReference(job, nfd, d.client.Scheme()); err != nil {
		return fmt.Errorf("name UpgradeJob %s as the owner of its NodeForceDrain: %w", job.Name, err)
	}
	err := d.client.Create(ctx, nfd)
	if !apierrors.IsAlreadyExists(err) {
		if err != nil {
			return fmt.Errorf("create NodeForceDrain %s: %w", nfd.Name, err)
		}
		return nil
	}
	// The cache does not know yet what a pass before this one has created, or there is one of somebody else.
	known, err := d.find(ctx, d.live, job)
	switch {
	case err != nil:
		return err
	case known == nil:
		return fmt.Errorf("create NodeForceDrain %s: another one went just now", nfd.Name)
	case !metav1.IsControlledBy(known, job):
		return fmt.Errorf("create NodeForceDrain %s: there is one already, which does not belong to UpgradeJob %s", nfd.Name, job.Name)
	}
	return nil
}

// Remove deletes the NodeForceDrain of the job, and only that. It asks the API server whether it is there: the cache may not know yet of one
// that was created just before a crash.
func (d *forceDrains) Remove(ctx context.Context, job *v1beta1.UpgradeJob) error {
	known, err := d.find(ctx, d.live, job)
	if err != nil || known == nil || !metav1.IsControlledBy(known, job) {
		return err
	}
	err = d.client.Delete(ctx, known, client.Preconditions{UID: &known.UID})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it is gone, or another one has its name
	}
	if err != nil {
		return fmt.Errorf("delete NodeForceDrain %s: %w", known.Name, err)
	}
	return nil
}

// find returns the NodeForceDrain of that name, nil if there is none.
func (d *forceDrains) find(ctx context.Context, reader client.Reader, job *v1beta1.UpgradeJob) (*v1beta1.NodeForceDrain, error) {
	nfd := drainOf(job)
	err := reader.Get(ctx, client.ObjectKeyFromObject(nfd), nfd)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get NodeForceDrain %s: %w", job.Name, err)
	}
	return nfd, nil
}

func drainOf(job *v1beta1.UpgradeJob) *v1beta1.NodeForceDrain {
	return &v1beta1.NodeForceDrain{ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name}}
}
