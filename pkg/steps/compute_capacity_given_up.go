// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"fmt"
	"slices"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// givenUpPatience is how long extra machines that did not come in time may take to go.
const givenUpPatience = 5 * time.Minute

// giveUp removes the extra machines that were told to be too late. One whose node has joined and is not ready would keep the machine-config operator from
// working on any other node of its pool. What does not go within its time is left to the checks of the cluster's health.
func giveUp(ctx context.Context, u *Upgrade) (Verdict, error) {
	const done = "The upgrade goes on without the extra machines that were not ready in time."
	if !u.scaling() { // they were removed; what is not ready for a moment now was ready
		return Done(done), nil
	}
	left, err := removeLate(ctx, u)
	patience := u.told(v1beta1.StageSkipped).Time.Add(givenUpPatience).Sub(u.Now)
	switch forbidden := apierrors.IsForbidden(err); {
	case forbidden && patience <= 0:
		return Done(fmt.Sprintf("%s They could not be removed: %s.", done, err)), nil
	case forbidden:
		object := "MachineSets of namespace " + openshift.MachineNamespace
		left = []v1beta1.Blocker{{Code: blockerMachineAPIRefused, Object: object, Message: err.Error(), ClearsWhen: "the API server accepts the request, or it takes too long"}}
	case err != nil:
		return Verdict{}, err
	case len(left) == 0 || patience <= 0:
		return Done(done), nil
	}
	message := fmt.Sprintf("Extra machines that were not ready in time are being removed: %d are left.", len(left))
	return u.awaitBeforeCommencing(min(removalInterval, patience), v1beta1.ReasonCapacityRemoving, message, left), nil
}

// removeLate deletes the job's MachineSets whose machine is not ready, and returns what is left of them.
func removeLate(ctx context.Context, u *Upgrade) ([]v1beta1.Blocker, error) {
	sets, err := u.Cluster.ExtraMachineSets(ctx, u.Job.UID)
	if apierrors.IsForbidden(err) { // who may not look for them has made none
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	machines, err := u.Cluster.ExtraMachines(ctx, u.Job.UID)
	if err != nil {
		return nil, err
	}
	var left []v1beta1.Blocker
	leaving := func(object string) {
		left = append(left, v1beta1.Blocker{
			Code: blockerMachineDeleting, Object: object, Message: object + ": it was not ready in time, and is being deleted", ClearsWhen: "it is gone, or takes too long",
		})
	}
	for i := range machines { // those whose MachineSet is gone are about to be deleted
		ofNone := !slices.ContainsFunc(sets, func(s machinev1beta1.MachineSet) bool { return s.Name == openshift.MachineSetOf(&machines[i]) })
		if ofNone || !machines[i].DeletionTimestamp.IsZero() {
			leaving("Machine/" + machines[i].Namespace + "/" + machines[i].Name)
		}
	}
	ready := 0
	for i := range sets {
		machine, err := u.Cluster.ExtraMachine(ctx, &sets[i], machines)
		if err != nil {
			return nil, err
		}
		if machine.Ready {
			ready++
			continue
		}
		if err := u.Lock(ctx); err != nil {
			return nil, err
		}
		if err := u.Cluster.DeleteMachineSet(ctx, &sets[i]); err != nil {
			return nil, err
		}
		leaving(machineSetObject(sets[i].Name))
	}
	countExtraMachines(u.Job, ready, ready)
	return left, nil
}
