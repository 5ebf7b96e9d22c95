// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

func extraMachines(wanted, ready int32) *v1beta1.ExtraMachinesStatus {
	return &v1beta1.ExtraMachinesStatus{Wanted: wanted, Ready: ready}
}

// expectExtra runs the step after that time since the start, and fails unless the job says so of its extra machines.
func (w *machineWorld) expectExtra(step steps.Step, after time.Duration, want *v1beta1.ExtraMachinesStatus) {
	w.t.Helper()
	w.now = start.Add(after)
	w.pass(step)
	if diff := cmp.Diff(want, w.job().Status.ExtraMachines); diff != "" {
		w.t.Errorf("after %s (-want +got):\n%s", after, diff)
	}
}

// extraOf returns the name of the MachineSet that was made for the original.
func (w *machineWorld) extraOf(original string) string {
	w.t.Helper()
	for _, name := range w.sets() {
		if len(name) > len(original) && name[:len(original)+1] == original+"-" {
			return name
		}
	}
	w.t.Fatalf("no MachineSet was made for %s", original)
	return ""
}

// The job counts its extra machines from the first to the last of them.
func TestExtraMachinesAreCounted(t *testing.T) {
	w := newMachineWorld(t, newJob(capacity()), openshifttest.MachineSet("prod-a"), openshifttest.MachineSet("prod-b"))
	w.expectExtra(steps.ComputeCapacityReserved(), 0, extraMachines(2, 0))
	w.comes(extraA)
	w.expectExtra(steps.ComputeCapacityReserved(), time.Minute, extraMachines(2, 1))
	b := w.extraOf("prod-b")
	w.put(openshifttest.MachineOf(jobUID, b, "Running", b+"-node"), openshifttest.Node(b+"-node", "worker"))
	s := w.set(b)
	s.Status.ObservedGeneration, s.Status.ReadyReplicas = s.Generation, 1
	if err := w.api.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	w.expectExtra(steps.ComputeCapacityReserved(), 2*time.Minute, extraMachines(2, 2))

	w.expectExtra(steps.ComputeCapacityRemoved(), time.Hour, extraMachines(0, 2))
	w.expectExtra(steps.ComputeCapacityRemoved(), time.Hour+time.Minute, extraMachines(0, 2))
	w.gone(extraA)
	w.expectExtra(steps.ComputeCapacityRemoved(), time.Hour+2*time.Minute, extraMachines(0, 1))
	w.gone(b)
	w.expectExtra(steps.ComputeCapacityRemoved(), time.Hour+3*time.Minute, nil)
}

func TestExtraMachinesThatAreGivenUpDoNotCount(t *testing.T) {
	w := newMachineWorld(t, newJob(capacity(within(time.Minute))), openshifttest.MachineSet("prod-a"), openshifttest.MachineSet("prod-b"))
	w.expectExtra(steps.ComputeCapacityReserved(), 0, extraMachines(2, 0))
	w.comes(extraA)
	w.expectExtra(steps.ComputeCapacityReserved(), time.Minute, extraMachines(2, 1))
	w.expectExtra(steps.ComputeCapacityReserved(), time.Minute+time.Second, extraMachines(1, 1))
	w.expectExtra(steps.ComputeCapacityReserved(), 2*time.Minute, extraMachines(1, 1))
}

func TestNoExtraMachinesAreNotCounted(t *testing.T) {
	w := newMachineWorld(t, newJob(capacity()), openshifttest.MachineSet("infra", openshifttest.MachinePool("infra")))
	w.expectExtra(steps.ComputeCapacityReserved(), 0, nil)
}

// A job that ended says what is left of its machines, until they are about to go by themselves.
func TestExtraMachinesOfAJobThatEnded(t *testing.T) {
	w := newMachineWorld(t, newJob(capacity(), over(0)),
		openshifttest.MachineSetOf(jobUID, extraA, start, true), openshifttest.MachineOf(jobUID, extraA, "Running", "new"))
	for _, want := range []*v1beta1.ExtraMachinesStatus{extraMachines(0, 1), extraMachines(0, 1), nil} {
		u := w.upgrade()
		u.Job.Status.ExtraMachines = extraMachines(1, 1)
		if _, err := steps.CleanUp(t.Context(), []steps.Step{steps.ComputeCapacityGivenBack()}, u); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, u.Job.Status.ExtraMachines); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
