// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// ConditionComputeCapacityRemoved is the condition of ComputeCapacityRemoved.
const ConditionComputeCapacityRemoved = "ComputeCapacityRemoved"

const (
	// removalInterval is how often extra machines are looked at while they go.
	removalInterval = 5 * time.Second

	blockerMachineDeleting = "MachineDeleting"
)

// ComputeCapacityRemoved deletes the machines that ComputeCapacityReserved added, and waits until they are gone. It is done for good once they are: wrap it in
// Once.
func ComputeCapacityRemoved() Step { return computeCapacityRemoved{} }

type computeCapacityRemoved struct{}

func (computeCapacityRemoved) Condition() string { return ConditionComputeCapacityRemoved }

func (s computeCapacityRemoved) Run(ctx context.Context, u *Upgrade) (Verdict, error) {
	if !reservesCapacity(u.Job) || !u.hasTarget() {
		return Done("No machines were added."), nil
	}
	if err := u.Lock(ctx); err != nil {
		return Verdict{}, err
	}
	left, err := removeExtraMachines(ctx, u)
	if apierrors.IsForbidden(err) && left.none() {
		return s.forbidden(u, err), nil
	}
	if err != nil {
		return Verdict{}, err
	}
	countExtraMachines(u.Job, 0, left.count())
	if left.none() {
		return Done("No extra machine is left."), nil
	}
	r := &removal{Upgrade: u, wake: removalInterval}
	for i := range left.machines {
		if err := r.look(ctx, &left.machines[i]); err != nil {
			return Verdict{}, err
		}
	}
	for i := range left.sets {
		object := machineSetObject(left.sets[i].Name)
		r.block(blockerMachineDeleting, object, "it is being deleted", "it is gone")
	}
	message := fmt.Sprintf("Extra machines are being removed: %d are left.", left.count())
	return Wait(r.wake, v1beta1.ReasonCapacityRemoving, strings.Join(append([]string{message}, r.notes...), " "), r.blockers...), nil
}

// forbidden waits for a permission, but not for ever: without it none of the machines can have been made, unless it was taken away since.
func (computeCapacityRemoved) forbidden(u *Upgrade, err error) Verdict {
	left := u.StepStarted(ConditionComputeCapacityRemoved).Add(capacityTimeOut(u.Job)).Sub(u.Now)
	if left <= 0 {
		countExtraMachines(u.Job, 0, 0)
		return Done(fmt.Sprintf("Extra machines may be left, if any were made: %s.", err))
	}
	return Wait(soonest(capacityInterval, left), v1beta1.ReasonCapacityRemoving, "Extra machines cannot be removed.", v1beta1.Blocker{
		Code: blockerMachineAPIRefused, Object: "MachineSets of namespace " + openshift.MachineNamespace, Message: err.Error(),
		ClearsWhen: clearsWhenRefusalIsMended,
	})
}

// extraMachines is what is left of the machines that were made for a job.
type extraMachines struct {
	sets     []machinev1beta1.MachineSet
	machines []machinev1beta1.Machine
}

func (e extraMachines) none() bool { return e.count() == 0 }

func (e extraMachines) count() int { return max(len(e.machines), len(e.sets)) }

// removeExtraMachines deletes the machines that were made for the job, and returns those that were left before.
func removeExtraMachines(ctx context.Context, u *Upgrade) (extraMachines, error) {
	var left extraMachines
	var err error
	if left.sets, err = u.Cluster.ExtraMachineSets(ctx, u.Job.UID); err != nil {
		return left, err
	}
	var errs []error
	for i := range left.sets {
		if left.sets[i].DeletionTimestamp.IsZero() {
			errs = append(errs, u.Cluster.DeleteMachineSet(ctx, &left.sets[i]))
		}
	}
	if left.machines, err = u.Cluster.ExtraMachines(ctx, u.Job.UID); err != nil {
		return left, errors.Join(append(errs, err)...)
	}
	if len(left.sets) > 0 {
		return left, errors.Join(errs...) // the garbage collector deletes the Machines; a MachineSet would replace those that are deleted before it
	}
	for i := range left.machines { // also those that somebody has orphaned
		if left.machines[i].DeletionTimestamp.IsZero() {
			errs = append(errs, u.Cluster.DeleteMachine(ctx, &left.machines[i]))
		}
	}
	return left, errors.Join(errs...)
}

// removal is one look at the extra machines of a job that go.
type removal struct {
	*Upgrade
	blockers []v1beta1.Blocker
	notes    []string // what is done about machines that do not go
	wake     time.Duration
}

func (r *removal) block(code, object, message, clearsWhen string) {
	r.blockers = append(r.blockers, v1beta1.Blocker{Code: code, Object: object, Message: object + ": " + message, ClearsWhen: clearsWhen})
}

// look says what the end of a Machine waits for, and ends it without a drain if that takes too long.
func (r *removal) look(ctx context.Context, m *machinev1beta1.Machine) error {
	object := "Machine/" + m.Namespace + "/" + m.Name
	if m.DeletionTimestamp.IsZero() {
		r.block(blockerMachineDeleting, object, "it is about to be deleted", "it is gone")
		return nil
	}
	end := openshift.JudgeMachineEnd(m)
	code, message := blockerMachineDeleting, []string{"it is being deleted"}
	held, known := r.held(ctx, m, end)
	if !end.Drained {
		message[0] += fmt.Sprintf(", and its Node %s is draining", end.Node)
	}
	if len(held) > 0 || end.Message != "" {
		code = blockerDrainBlocked
	}
	for _, h := range held {
		message = append(message, h.String())
	}
	if end.Message != "" {
		message = append(message, end.Message)
	}
	r.block(code, object, strings.Join(message, "; "), "the Machine is gone")
	return r.force(ctx, m, end, held, known)
}

// held returns the pods that hold up the drain of the Machine's node, and whether they are known.
func (r *removal) held(ctx context.Context, m *machinev1beta1.Machine, end openshift.MachineEnd) ([]openshift.HeldEviction, bool) {
	if end.Drained || r.Now.Sub(m.DeletionTimestamp.Time) < drainPatience {
		return nil, false
	}
	held, err := r.Cluster.HeldDrain(ctx, end.Node, r.Now)
	if err != nil {
		log.FromContext(ctx).V(1).Info("What holds the drain of a machine up is not known", "machine", m.Name, "cause", err.Error())
		return nil, false
	}
	return held, true
}

// force has the Machine API end a Machine without a drain when its pods could have been deleted, all of them, for long: the drain of an extra machine
// is not led by the machine-config operator, so no NodeForceDrain is about it. Pods that are to be left alone stand against it.
func (r *removal) force(ctx context.Context, m *machinev1beta1.Machine, end openshift.MachineEnd, held []openshift.HeldEviction, known bool) error {
	drain, wanted := ForcedDrain(&r.Job.Spec.Config)
	if openshift.ExcludedFromDraining(m) {
		r.notes = append(r.notes, fmt.Sprintf("Machine %s ends without a drain.", m.Name))
		return nil
	}
	if !wanted || end.Drained {
		return nil
	}
	patience := max(drain.NodeDrainGracePeriod.Or(0), drain.ProtectedPodGracePeriod.Or(0))
	if left := m.DeletionTimestamp.Add(patience).Sub(r.Now); left > 0 {
		r.wake = soonest(r.wake, left)
		return nil
	}
	if pod, alone := leftAlone(drain.IgnoredNamespacePatterns, held, known); alone {
		r.notes = append(r.notes, fmt.Sprintf("Machine %s is not ended without a drain: %s.", m.Name, pod))
		return nil
	}
	if err := r.Lock(ctx); err != nil {
		return err
	}
	if err := r.Cluster.ExcludeFromDraining(ctx, m); err != nil {
		return err
	}
	r.notes = append(r.notes, fmt.Sprintf("Machine %s ends without a drain, which has taken %s.", m.Name, patience))
	return nil
}

// leftAlone says which of the pods that hold up a drain stands in a namespace that is left alone. What is not known may do so.
func leftAlone(patterns []string, held []openshift.HeldEviction, known bool) (string, bool) {
	if len(patterns) == 0 {
		return "", false
	}
	if !known || len(held) >= openshift.MaxHeldEvictions {
		return "not all pods are known that hold it up", true
	}
	for _, pattern := range patterns {
		compiled, err := regexp.Compile(pattern)
		if err != nil {
			return fmt.Sprintf("%q in nodeDrain.ignoredNamespacePatterns is no regular expression", pattern), true
		}
		i := slices.IndexFunc(held, func(h openshift.HeldEviction) bool { return compiled.MatchString(h.Namespace) })
		if i >= 0 {
			return fmt.Sprintf("pod %s/%s is left alone by nodeDrain.ignoredNamespacePatterns", held[i].Namespace, held[i].Name), true
		}
	}
	return "", false
}
