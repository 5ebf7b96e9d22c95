// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/names"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// ConditionComputeCapacityReserved is the condition of ComputeCapacityReserved.
const ConditionComputeCapacityReserved = "ComputeCapacityReserved"

const (
	// capacityInterval is how often extra machines are looked at while they are waited for. They are not watched.
	capacityInterval = 10 * time.Second
	// extraMachineHash is how many bytes of a hash tell the extra MachineSets of different jobs and originals apart.
	extraMachineHash = 4

	blockerMachineNotReady    = "MachineNotReady"
	blockerMachineSetRefused  = "MachineSetRefused"
	blockerMachineAPIRefused  = "MachineAPIRefused"
	clearsWhenMachineIsReady  = "the Node of the machine is ready and schedulable, or capacityReservation.timeOut is over"
	clearsWhenRefusalIsMended = "the API server accepts the request, which is tried again, or capacityReservation.timeOut is over"
)

// ComputeCapacityReserved adds a machine for each MachineSet of workers, and of further machine pools, if capacityReservation says so, and waits until its
// Node is ready. What is not ready within capacityReservation.timeOut is told of, and done without. It is a preflight: after the upgrade the machines are removed.
func ComputeCapacityReserved() Step { return thenHealthAgain{computeCapacityReserved{}} }

type computeCapacityReserved struct{}

func (computeCapacityReserved) Condition() string { return ConditionComputeCapacityReserved }

func (computeCapacityReserved) Run(ctx context.Context, u *Upgrade) (Verdict, error) {
	switch {
	case !reservesCapacity(u.Job):
		return Done("No machines are added: capacityReservation.enabled is not set."), nil
	case !u.Needed():
		return Done(nothingToUpgrade(u)), nil
	case u.told(v1beta1.StageSkipped) != nil: // given up for good
		return giveUp(ctx, u)
	}
	pools, err := openshift.ParseMachinePools(u.Job.Spec.Config.CapacityReservation.ExtraMachinePools)
	if err != nil {
		message := fmt.Sprintf("No machines can be added: %s.", err)
		return u.awaitBeforeCommencing(0, v1beta1.ReasonInvalidPattern, message, []v1beta1.Blocker{{
			Code: v1beta1.ReasonInvalidPattern, Object: "UpgradeJob/" + u.Job.Name, Message: message,
			ClearsWhen: "a job is made whose capacityReservation.extraMachinePools are glob patterns",
		}}), nil
	}
	r := &reservation{Upgrade: u, pools: pools, now: u.Now}
	if err := r.reserve(ctx); err != nil {
		return Verdict{}, err
	}
	if r.known {
		countExtraMachines(u.Job, r.wanted, len(r.ready))
	}
	return r.verdict(), nil
}

// reservesCapacity tells whether the job may ever have added machines.
func reservesCapacity(job *v1beta1.UpgradeJob) bool {
	capacity := job.Spec.Config.CapacityReservation
	return capacity != nil && capacity.Enabled
}

// countExtraMachines records how many machines were added for the job; nothing if none are, or are left.
func countExtraMachines(job *v1beta1.UpgradeJob, wanted, ready int) {
	job.Status.ExtraMachines = nil
	if wanted > 0 || ready > 0 {
		job.Status.ExtraMachines = &v1beta1.ExtraMachinesStatus{Wanted: int32(wanted), Ready: int32(ready)} //nolint:gosec // there are not that many
	}
}

// capacityTimeOut is how long an extra machine may take to become ready.
func capacityTimeOut(job *v1beta1.UpgradeJob) time.Duration {
	if capacity := job.Spec.Config.CapacityReservation; capacity != nil {
		return capacity.TimeOut.Or(v1beta1.DefaultCapacityTimeout)
	}
	return v1beta1.DefaultCapacityTimeout
}

// reservation is one look at the extra machines of a job.
type reservation struct {
	*Upgrade
	pools openshift.MachinePools
	now   time.Time

	known    bool     // whether the MachineSets of the cluster are
	wanted   int      // MachineSets that there shall be for the job
	ready    []string // names of MachineSets
	late     []string // what did not come in time, and why
	blockers []v1beta1.Blocker
	wake     time.Duration
}

// reserve makes the MachineSets that are missing and looks at those that are there.
func (r *reservation) reserve(ctx context.Context) error {
	all, err := r.Cluster.MachineSets(ctx)
	if err != nil {
		return r.refused(err, blockerMachineAPIRefused, "MachineSets of namespace "+openshift.MachineNamespace)
	}
	own := map[string]*machinev1beta1.MachineSet{}
	for i := range all {
		if all[i].Labels[openshift.UpgradeJobLabel] == string(r.Job.UID) {
			own[all[i].Name] = &all[i]
		}
	}
	var errs []error
	r.known, r.wanted = true, len(own)
	for i := range all { // all of them, whatever becomes of one
		name := extraMachineSetName(r.Job, all[i].Name)
		if r.pools.Select(&all[i]) && own[name] == nil {
			r.wanted++
			errs = append(errs, r.create(ctx, &all[i], name))
		}
	}
	if err := errors.Join(errs...); err != nil || len(own) == 0 {
		return err
	}
	return r.look(ctx, all, own)
}

// extraMachineSetName is the name of the MachineSet that is made for an original. It is the same whenever it is asked for.
func extraMachineSetName(job *v1beta1.UpgradeJob, original string) string {
	sum := sha256.Sum256([]byte(string(job.UID) + "/" + original))
	return names.WithSuffix(original, "-upgrade-"+hex.EncodeToString(sum[:extraMachineHash]), openshift.MaxMachineSetNameLength)
}

// create makes the MachineSet of that name.
func (r *reservation) create(ctx context.Context, original *machinev1beta1.MachineSet, name string) error {
	if err := r.Lock(ctx); err != nil {
		return err
	}
	set := openshift.ExtraMachineSet(original, name, r.Job.UID, r.Job.LockKey())
	if err := r.Cluster.CreateExtraMachineSet(ctx, set); err != nil {
		return r.refused(err, blockerMachineSetRefused, machineSetObject(name))
	}
	r.await(machineSetObject(name), "it was made just now", blockerMachineNotReady, clearsWhenMachineIsReady, r.now)
	return nil
}

// look looks at the machines of the MachineSets that were there.
func (r *reservation) look(ctx context.Context, all []machinev1beta1.MachineSet, own map[string]*machinev1beta1.MachineSet) error {
	machines, err := r.Cluster.ExtraMachines(ctx, r.Job.UID)
	if err != nil {
		return r.refused(err, blockerMachineAPIRefused, "Machines of namespace "+openshift.MachineNamespace)
	}
	for i := range all { // in order of name
		set := own[all[i].Name]
		if set == nil {
			continue
		}
		machine, err := r.Cluster.ExtraMachine(ctx, set, machines)
		switch {
		case err != nil:
			return err
		case machine.Ready:
			r.ready = append(r.ready, set.Name)
		default:
			r.await(machine.Object, machine.Message, blockerMachineNotReady, clearsWhenMachineIsReady, r.timeSince(set.CreationTimestamp.Time))
		}
	}
	return nil
}

// timeSince is from when the time of a machine counts: a job that was resumed may find what it had made before.
func (r *reservation) timeSince(creation time.Time) time.Time {
	if since := r.RunningSince(); since.After(creation) {
		return since
	}
	return creation
}

// refused makes a blocker of a request that the API server does not want to carry out, now or ever. Other errors it returns.
func (r *reservation) refused(err error, code, object string) error {
	if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) && !apierrors.IsInternalError(err) {
		return err
	}
	r.await(object, err.Error(), code, clearsWhenRefusalIsMended, r.StepStarted(ConditionComputeCapacityReserved))
	return nil
}

// await notes what is waited for, or that it did not come within its time since then.
func (r *reservation) await(object, message, code, clearsWhen string, since time.Time) {
	message = object + ": " + message
	left := since.Add(capacityTimeOut(r.Job)).Sub(r.now)
	if left <= 0 {
		r.late = append(r.late, message)
		return
	}
	r.wake = soonest(r.wake, left)
	r.blockers = append(r.blockers, v1beta1.Blocker{Code: code, Object: object, Message: message, ClearsWhen: clearsWhen})
}

func (r *reservation) verdict() Verdict {
	switch timeOut := capacityTimeOut(r.Job); {
	case len(r.blockers) > 0:
		message := fmt.Sprintf("Extra machines are ready: %d of %d.", len(r.ready), len(r.ready)+len(r.late)+len(r.blockers))
		return r.awaitBeforeCommencing(soonest(capacityInterval, r.wake), v1beta1.ReasonCapacityScaling, message, r.blockers)
	case len(r.late) > 0:
		message := fmt.Sprintf("The upgrade goes on without extra machines that were not ready within %s: %s.", timeOut, strings.Join(r.late, "; "))
		r.Tell(v1beta1.StageSkipped, message)
		// Recorded first: a MachineSet that is gone would be made again by who does not know that it was given up.
		return Wait(time.Millisecond, v1beta1.ReasonCapacityScaling, message)
	case len(r.ready) == 0:
		const message = "The upgrade goes on without extra machines: there is no MachineSet to add one to."
		r.Tell(v1beta1.StageScaleSkipped, message)
		return Done(message)
	}
	return Done(fmt.Sprintf("Extra machines are ready, of MachineSets: %s.", strings.Join(r.ready, ", ")))
}

func machineSetObject(name string) string {
	return "MachineSet/" + openshift.MachineNamespace + "/" + name
}
