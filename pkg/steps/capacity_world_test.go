// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"context"
	"slices"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

const (
	jobUID = types.UID("0c2b5d6e-8f5a-4a53-9d43-7b1f3f2f6a11")
	// extraA is the name of the MachineSet that such a job makes for the original prod-a. It never changes: a later version of the operator has to find it.
	extraA = "prod-a-upgrade-9e38eb8f"
)

func capacity(options ...func(*v1beta1.CapacityReservation)) jobOption {
	return func(job *v1beta1.UpgradeJob) {
		job.UID = jobUID
		job.Spec.Config.CapacityReservation = &v1beta1.CapacityReservation{Enabled: true}
		for _, option := range options {
			option(job.Spec.Config.CapacityReservation)
		}
	}
}

func within(d time.Duration) func(*v1beta1.CapacityReservation) {
	return func(c *v1beta1.CapacityReservation) { c.TimeOut = &v1beta1.Duration{Duration: d} }
}

func extraPools(patterns ...string) func(*v1beta1.CapacityReservation) {
	return func(c *v1beta1.CapacityReservation) { c.ExtraMachinePools = patterns }
}

// forced is what jobs of the Managed Upgrade Operator have: pods that hold up drains are deleted.
func forced(job *v1beta1.UpgradeJob) {
	job.Spec.Config.PDBForceDrainTimeout = &v1beta1.Duration{Duration: time.Hour}
	job.Spec.Config.NodeDrain = &v1beta1.NodeDrain{TimeOut: &v1beta1.Duration{Duration: 45 * time.Minute}}
}

// machineWorld is a world in which the API server does for MachineSets what a fake one does not: it says when they were made.
type machineWorld struct {
	*world
	// faults come before the API server.
	faults interceptor.Funcs
	// stages are those that were told of.
	stages []v1beta1.Notice
}

func newMachineWorld(t *testing.T, job *v1beta1.UpgradeJob, objects ...client.Object) *machineWorld {
	t.Helper()
	w := &machineWorld{world: newWorld(t, append([]client.Object{job, openshifttest.ClusterVersion()}, objects...)...)}
	w.api = interceptor.NewClient(w.api, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if _, ok := o.(*machinev1beta1.MachineSet); ok {
				o.SetCreationTimestamp(metav1.NewTime(w.now))
				o.SetUID(types.UID(o.GetName()))
			}
			return c.Create(ctx, o, options...)
		},
	})
	return w
}

// upgrade is what a pass begins with, with the faults before the API server.
func (w *machineWorld) upgrade() *steps.Upgrade {
	u := w.world.upgrade()
	broken := interceptor.NewClient(w.api, w.faults)
	u.Cluster = openshift.NewCluster(broken, broken)
	u.Announce = func(n v1beta1.Notice) int64 {
		w.stages = append(w.stages, n)
		return int64(len(w.stages))
	}
	return u
}

// pass runs the step and records what comes of it.
func (w *machineWorld) pass(step steps.Step) steps.Result {
	w.t.Helper()
	u := w.upgrade()
	result := steps.Run(w.t.Context(), []steps.Step{step}, u)
	if err := u.Persist(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return result
}

// expect runs the step after that time since the start and checks its verdict.
func (w *machineWorld) expect(step steps.Step, after time.Duration, want verdict) {
	w.t.Helper()
	w.now = start.Add(after)
	result := w.pass(step)
	if result.Err != nil {
		w.t.Fatalf("after %s: got the error %v", after, result.Err)
	}
	want.check(w.t, step, result, w.job())
}

// expectError runs the step, which meets an error.
func (w *machineWorld) expectError(step steps.Step, after time.Duration) error {
	w.t.Helper()
	w.now = start.Add(after)
	result := w.pass(step)
	if result.Err == nil || result.Outcome != steps.Running {
		w.t.Fatalf("after %s: got %+v, want an error", after, result)
	}
	return result.Err
}

// cleanUp runs the cleanup after that time since the start.
func (w *machineWorld) cleanUp(after time.Duration) (time.Duration, error) {
	w.t.Helper()
	w.now = start.Add(after)
	return steps.CleanUp(w.t.Context(), []steps.Step{steps.ComputeCapacityGivenBack()}, w.upgrade())
}

func (w *machineWorld) told() []string {
	var types []string
	for _, n := range w.stages {
		types = append(types, string(n.Type))
	}
	return types
}

// sets returns the names of the MachineSets, in order; machines those of the Machines, with an exclamation mark if they are being deleted.
func (w *machineWorld) sets() []string {
	w.t.Helper()
	return w.names(&machinev1beta1.MachineSetList{})
}

func (w *machineWorld) machines() []string {
	w.t.Helper()
	return w.names(&machinev1beta1.MachineList{})
}

func (w *machineWorld) names(list client.ObjectList) []string {
	w.t.Helper()
	if err := w.api.List(w.t.Context(), list); err != nil {
		w.t.Fatal(err)
	}
	names := []string{}
	err := meta.EachListItem(list, func(o runtime.Object) error {
		item := o.(client.Object)
		name := item.GetName()
		if item.GetDeletionTimestamp() != nil {
			name += "!"
		}
		names = append(names, name)
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

func (w *machineWorld) set(name string) *machinev1beta1.MachineSet {
	w.t.Helper()
	set := &machinev1beta1.MachineSet{}
	if err := w.api.Get(w.t.Context(), client.ObjectKey{Namespace: openshift.MachineNamespace, Name: name}, set); err != nil {
		w.t.Fatal(err)
	}
	return set
}

func (w *machineWorld) machine(set string) *machinev1beta1.Machine {
	w.t.Helper()
	m := &machinev1beta1.Machine{}
	if err := w.api.Get(w.t.Context(), client.ObjectKey{Namespace: openshift.MachineNamespace, Name: set + "-x7k2q"}, m); err != nil {
		w.t.Fatal(err)
	}
	return m
}

// gone lets the Machine of a MachineSet go, as the Machine API does when its instance has ended.
func (w *machineWorld) gone(set string) {
	w.t.Helper()
	m := w.machine(set)
	m.Finalizers = nil
	if err := w.api.Update(w.t.Context(), m); err != nil {
		w.t.Fatal(err)
	}
	if err := client.IgnoreNotFound(w.api.Delete(w.t.Context(), m)); err != nil {
		w.t.Fatal(err)
	}
}

// comes lets the machine of a MachineSet come: Machine, Node and the count of the MachineSet.
func (w *machineWorld) comes(set string) {
	w.t.Helper()
	node := set + "-node"
	if len(w.machines()) > 0 {
		w.gone(set)
	}
	w.put(openshifttest.MachineOf(jobUID, set, machinev1beta1.PhaseRunning, node), openshifttest.Node(node, "worker"))
	s := w.set(set)
	s.Status.ObservedGeneration, s.Status.ReadyReplicas = s.Generation, 1
	if err := w.api.Update(w.t.Context(), s); err != nil {
		w.t.Fatal(err)
	}
}

// refusing refuses that verb for MachineSets and Machines, with that error.
func refusing(verb string, err error) interceptor.Funcs {
	ours := func(o any) bool {
		switch o.(type) {
		case *machinev1beta1.MachineSet, *machinev1beta1.MachineSetList, *machinev1beta1.Machine, *machinev1beta1.MachineList:
			return true
		}
		return false
	}
	return interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if verb == "list" && ours(list) {
				return err
			}
			return c.List(ctx, list, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if verb == "create" && ours(o) {
				return err
			}
			return c.Create(ctx, o, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			if verb == "delete" && ours(o) {
				return err
			}
			return c.Delete(ctx, o, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			if verb == "patch" && ours(o) {
				return err
			}
			return c.Patch(ctx, o, patch, options...)
		},
	}
}
