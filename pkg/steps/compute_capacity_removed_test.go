// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

const removed = steps.ConditionComputeCapacityRemoved

// removing is the verdict while extra machines are left.
func removing(after time.Duration, says string, blockers ...string) verdict {
	return verdict{outcome: steps.Running, reason: v1beta1.ReasonCapacityRemoving, after: after, blockers: blockers, says: says}
}

var isRemoved = verdict{outcome: steps.Completed, reason: "Completed", says: "No extra machine is left"}

// others are MachineSets, and a Machine, that are no job's, or another's.
func others() []client.Object {
	machine := openshifttest.MachineOf("another", "prod-a-upgrade-0", machinev1beta1.PhaseRunning, "")
	return []client.Object{openshifttest.MachineSet("prod-a"), openshifttest.MachineSetOf("another", "prod-a-upgrade-0", start, true), machine}
}

// The MachineSet goes, the Machine follows, and the step is done when both are gone; others are left alone.
func TestComputeCapacityRemoved(t *testing.T) {
	w := newMachineWorld(t, newJob(capacity(), commenced), append(others(),
		openshifttest.MachineSetOf(jobUID, extraA, start, true), openshifttest.MachineOf(jobUID, extraA, machinev1beta1.PhaseRunning, "new"))...)
	step := steps.ComputeCapacityRemoved()

	w.expect(step, time.Hour, removing(5*time.Second, "1 are left", "MachineDeleting "+machineA, "MachineDeleting "+machineSetA))
	if got, want := w.sets(), []string{"prod-a", "prod-a-upgrade-0"}; !slices.Equal(got, want) {
		t.Fatalf("got the MachineSets %q, want %q", got, want)
	}
	// Here no garbage collector deletes the Machine: it is deleted all the same, but not before its MachineSet is gone.
	if got, want := w.machines(), []string{"prod-a-upgrade-0-x7k2q", extraA + "-x7k2q"}; !slices.Equal(got, want) {
		t.Fatalf("got the Machines %q, want %q", got, want)
	}
	for range 2 { // it is not deleted again
		w.expect(step, time.Hour+5*time.Second, removing(5*time.Second, "1 are left", "MachineDeleting "+machineA))
		if got, want := w.machines(), []string{"prod-a-upgrade-0-x7k2q", extraA + "-x7k2q!"}; !slices.Equal(got, want) {
			t.Fatalf("got the Machines %q, want %q", got, want)
		}
		w.faults = refusing("delete", errors.New("deleted again"))
	}
	w.gone(extraA)
	for range 2 {
		w.expect(step, time.Hour+time.Minute, isRemoved)
	}
	if len(w.sets()) != 2 || len(w.machines()) != 1 {
		t.Errorf("got the MachineSets %q and the Machines %q", w.sets(), w.machines())
	}
}

func TestComputeCapacityRemovedIsDoneAtOnce(t *testing.T) {
	for _, tc := range []struct {
		reason string
		job    []jobOption
	}{
		{"nobody wanted any", []jobOption{commenced}},
		{"not enabled", []jobOption{capacity(func(c *v1beta1.CapacityReservation) { c.Enabled = false }), commenced}},
		{"without a version none is made", []jobOption{capacity(), withoutVersion}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newMachineWorld(t, newJob(tc.job...))
			w.faults = refusing("list", errors.New("asked"))
			w.expect(steps.ComputeCapacityRemoved(), 0, verdict{outcome: steps.Completed, reason: "Completed", says: "No machines were added"})
		})
	}
}

// What holds the drain of the extra machine up is said.
func TestComputeCapacityRemovedSaysWhatItWaitsFor(t *testing.T) {
	node := openshifttest.Node("new", "worker", openshifttest.NodeCordoned())
	pod := openshifttest.Pod("shop", "cart", 0, "new")
	budget := openshifttest.Budget("shop", "cart", 1, 1, 1)
	for _, tc := range []struct {
		reason  string
		machine *machinev1beta1.Machine
		objects []client.Object
		code    string
		says    string
	}{
		{"a budget", openshifttest.MachineOf(jobUID, extraA, "", "new", openshifttest.MachineDeletedAt(start)), []client.Object{pod, budget}, "DrainBlocked", "pod shop/cart-0: PodDisruptionBudget shop/cart"},
		{"nothing in particular", openshifttest.MachineOf(jobUID, extraA, "", "new", openshifttest.MachineDeletedAt(start)), nil, "MachineDeleting", "its Node new is draining"},
		{
			"in its own words", openshifttest.MachineOf(jobUID, extraA, "", "new", openshifttest.MachineDeletedAt(start),
				openshifttest.MachineCondition(machinev1beta1.MachineDrainable, corev1.ConditionTrue, ""),
				openshifttest.MachineCondition(machinev1beta1.MachineDrained, corev1.ConditionFalse, "could not drain machine: error when evicting pods")),
			nil, "DrainBlocked", "could not drain machine",
		},
		{
			"a hook of its life", openshifttest.MachineOf(jobUID, extraA, "", "new", openshifttest.MachineDeletedAt(start),
				openshifttest.MachineCondition(machinev1beta1.MachineDrainable, corev1.ConditionFalse, "Drain operation currently blocked by: [{Name:backup}]")),
			nil, "DrainBlocked", "backup",
		},
		{
			"a hook of its end: the drain is over", openshifttest.MachineOf(jobUID, extraA, "", "new", openshifttest.MachineDeletedAt(start),
				openshifttest.MachineCondition(machinev1beta1.MachineDrained, corev1.ConditionTrue, "Drain finished successfully"),
				openshifttest.MachineCondition(machinev1beta1.MachineTerminable, corev1.ConditionFalse, "Terminate operation currently blocked by: [{Name:volumes}]")),
			[]client.Object{pod, budget}, "DrainBlocked", "volumes",
		},
		{
			"it never had a node", openshifttest.MachineOf(jobUID, extraA, "", "", openshifttest.MachineDeletedAt(start)),
			nil, "MachineDeleting", "it is being deleted",
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newMachineWorld(t, newJob(capacity(), commenced, begun(removed, 0)), append(tc.objects, tc.machine, node)...)
			w.expect(steps.ComputeCapacityRemoved(), time.Minute, removing(5*time.Second, tc.says, tc.code+" "+machineA))
		})
	}
}

// The drain of an extra machine is ended when its pods could have been deleted for so long, and not before. Others' pods are left alone.
func TestComputeCapacityRemovedForcesTheDrain(t *testing.T) {
	ignoring := func(patterns ...string) jobOption {
		return func(job *v1beta1.UpgradeJob) { job.Spec.Config.NodeDrain.IgnoredNamespacePatterns = patterns }
	}
	disabled := func(job *v1beta1.UpgradeJob) { job.Spec.Config.NodeDrain.DisableDrainStrategies = true }
	soon := func(job *v1beta1.UpgradeJob) { job.Spec.Config.PDBForceDrainTimeout = &v1beta1.Duration{} }
	drained := openshifttest.MachineCondition(machinev1beta1.MachineDrained, corev1.ConditionTrue, "")
	for _, tc := range []struct {
		reason  string
		job     []jobOption
		machine []func(*machinev1beta1.Machine)
		faults  interceptor.Funcs
		after   time.Duration
		wake    time.Duration
		forced  bool
		says    string
	}{
		{reason: "the time has not come", job: []jobOption{forced}, after: time.Hour - time.Second, wake: time.Second},
		{reason: "the time has come", job: []jobOption{forced}, after: time.Hour, wake: 5 * time.Second, forced: true, says: "ends without a drain, which has taken 1h0m0s"},
		{reason: "not before unprotected pods' time", job: []jobOption{forced, soon}, after: 45*time.Minute - time.Second, wake: time.Second},
		{reason: "at unprotected pods' time", job: []jobOption{forced, soon}, after: 45 * time.Minute, wake: 5 * time.Second, forced: true},
		{reason: "nobody said so", after: 48 * time.Hour, wake: 5 * time.Second},
		{reason: "drains are left alone", job: []jobOption{forced, disabled}, after: 48 * time.Hour, wake: 5 * time.Second},
		{reason: "drained already", job: []jobOption{forced}, machine: []func(*machinev1beta1.Machine){drained}, after: 48 * time.Hour, wake: 5 * time.Second},
		{reason: "the pod is to be left alone", job: []jobOption{forced, ignoring("^sho")}, after: 48 * time.Hour, wake: 5 * time.Second, says: "pod shop/cart-0 is left alone"},
		{reason: "other pods are", job: []jobOption{forced, ignoring("^cart")}, after: 48 * time.Hour, wake: 5 * time.Second, forced: true},
		{reason: "a pattern that is none", job: []jobOption{forced, ignoring("(")}, after: 48 * time.Hour, wake: 5 * time.Second, says: `"(" in nodeDrain.ignoredNamespacePatterns`},
		{
			reason: "the pods are not known", job: []jobOption{forced, ignoring("^cart")}, faults: failingList(errors.New("away"), "PodList"),
			after: 48 * time.Hour, wake: 5 * time.Second, says: "not all pods are known",
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			machine := openshifttest.MachineOf(jobUID, extraA, "", "new", append(tc.machine, openshifttest.MachineDeletedAt(start))...)
			job := newJob(append([]jobOption{capacity(), commenced, begun(removed, 0)}, tc.job...)...)
			w := newMachineWorld(t, job, machine, openshifttest.Pod("shop", "cart", 0, "new"), openshifttest.Budget("shop", "cart", 1, 1, 1))
			w.faults = tc.faults
			w.now = start.Add(tc.after)
			result := w.pass(steps.ComputeCapacityRemoved())
			if result.Err != nil || result.Reason != v1beta1.ReasonCapacityRemoving || result.After != tc.wake || !strings.Contains(result.Message, tc.says) {
				t.Errorf("got %+v", result)
			}
			if got := openshift.ExcludedFromDraining(w.machine(extraA)); got != tc.forced {
				t.Errorf("excluded from draining: %t, want %t: %s", got, tc.forced, result.Message)
			}
			if !tc.forced {
				return
			}
			w.faults = refusing("patch", errors.New("patched again"))
			if result := w.pass(steps.ComputeCapacityRemoved()); result.Err != nil || !strings.Contains(result.Message, "ends without a drain") {
				t.Errorf("again: got %+v", result)
			}
		})
	}
}

func TestComputeCapacityRemovedMeetsAnError(t *testing.T) {
	broken := errors.New("etcd is away")
	for _, tc := range []struct {
		reason  string
		verb    string
		objects []client.Object
	}{
		{"of the lists", "list", nil},
		{"of the deletion of a MachineSet", "delete", []client.Object{openshifttest.MachineSetOf(jobUID, extraA, start, true)}},
		{"of the deletion of a Machine", "delete", []client.Object{openshifttest.MachineOf(jobUID, extraA, machinev1beta1.PhaseRunning, "")}},
		{"of the end of a drain", "patch", []client.Object{openshifttest.MachineOf(jobUID, extraA, "", "new", openshifttest.MachineDeletedAt(start))}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newMachineWorld(t, newJob(capacity(), commenced, forced), tc.objects...)
			w.faults = refusing(tc.verb, broken)
			if err := w.expectError(steps.ComputeCapacityRemoved(), 2*time.Hour); !errors.Is(err, broken) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Without the permission the upgrade is held up for a while, and not for ever.
func TestComputeCapacityRemovedIsForbidden(t *testing.T) {
	w := newMachineWorld(t, newJob(capacity(within(20*time.Minute)), commenced), openshifttest.MachineSetOf(jobUID, extraA, start, true))
	w.faults = refusing("list", forbidden("no"))
	step := steps.ComputeCapacityRemoved()
	const blocker = "MachineAPIRefused MachineSets of namespace openshift-machine-api"
	w.expect(step, time.Hour, removing(10*time.Second, "forbidden", blocker))
	w.expect(step, time.Hour+20*time.Minute-time.Second, removing(time.Second, "forbidden", blocker))
	w.expect(step, time.Hour+20*time.Minute, verdict{outcome: steps.Completed, reason: "Completed", says: "may be left"})
}

// Machines that are known to be left are never given up.
func TestComputeCapacityRemovedIsForbiddenToDelete(t *testing.T) {
	w := newMachineWorld(t, newJob(capacity(within(20*time.Minute)), commenced), openshifttest.MachineSetOf(jobUID, extraA, start, true))
	w.faults = refusing("delete", forbidden("no"))
	for _, after := range []time.Duration{time.Hour, 3 * time.Hour} {
		if err := w.expectError(steps.ComputeCapacityRemoved(), after); !apierrors.IsForbidden(err) {
			t.Errorf("got %v", err)
		}
		if _, err := w.cleanUp(after); !apierrors.IsForbidden(err) {
			t.Errorf("cleanup: got %v", err)
		}
	}
}
