// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"slices"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// ComputeCapacityGivenBack is cleanup: it deletes the machines that were added for the job, if any are left. It waits until they are being deleted, and not
// until they are gone: nobody takes that back, and drains may last.
func ComputeCapacityGivenBack() Step { return computeCapacityGivenBack{} }

type computeCapacityGivenBack struct{}

func (computeCapacityGivenBack) Condition() string { return "ComputeCapacityGivenBack" }

func (computeCapacityGivenBack) Run(ctx context.Context, u *Upgrade) (Verdict, error) {
	if !reservesCapacity(u.Job) { // the config never changes
		return Done(""), nil
	}
	left, err := removeExtraMachines(ctx, u)
	if apierrors.IsForbidden(err) && left.none() && u.Now.Sub(ended(u)) >= capacityTimeOut(u.Job) {
		// Without the permission to look for them none can have been made, unless it was taken away since. The job would be kept for ever.
		log.FromContext(ctx).Error(err, "Extra machines may be left: the operator may not look for them")
		countExtraMachines(u.Job, 0, 0)
		return Done(""), nil
	}
	if err != nil {
		return Verdict{}, err
	}
	waiting := slices.ContainsFunc(left.machines, func(m machinev1beta1.Machine) bool { return m.DeletionTimestamp.IsZero() })
	if len(left.sets) > 0 || waiting {
		countExtraMachines(u.Job, 0, left.count())
		return Wait(removalInterval, v1beta1.ReasonCapacityRemoving, "Extra machines are not being deleted yet."), nil
	}
	countExtraMachines(u.Job, 0, 0) // those that are left go by themselves
	return Done(""), nil
}

// ended is when the job ended, or was deleted.
func ended(u *Upgrade) time.Time {
	switch {
	case u.Job.DeletionTimestamp != nil:
		return u.Job.DeletionTimestamp.Time
	case u.Job.Status.CompletionTime != nil:
		return u.Job.Status.CompletionTime.Time
	}
	return u.Now
}
