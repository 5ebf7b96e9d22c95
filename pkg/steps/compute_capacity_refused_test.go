// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// A request that the API server refuses holds the upgrade up as long as a machine would, and is tried again.
func TestComputeCapacityReservedIsRefused(t *testing.T) {
	const denied = "no more machines here"
	for _, tc := range []struct {
		reason, verb string
		err          error
		blocker      string
	}{
		{"creation, by admission", "create", forbidden(denied), "MachineSetRefused " + machineSetA},
		{"creation, as invalid", "create", apierrors.NewBadRequest(denied), "MachineSetRefused " + machineSetA},
		{"creation, by a webhook that is away", "create", apierrors.NewInternalError(errors.New("failed calling webhook: " + denied)), "MachineSetRefused " + machineSetA},
		{"even a look", "list", forbidden(denied), "MachineAPIRefused MachineSets of namespace openshift-machine-api"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newMachineWorld(t, newJob(capacity(within(20*time.Minute))), openshifttest.MachineSet("prod-a"))
			step := steps.ComputeCapacityReserved()
			w.faults = refusing(tc.verb, tc.err)
			for _, after := range []time.Duration{0, 19 * time.Minute} {
				w.expect(step, after, scaling(denied, tc.blocker))
			}
			w.faults = interceptor.Funcs{} // mended
			w.expect(step, 19*time.Minute+time.Second, scaling("made just now", "MachineNotReady "+machineSetA))
			// The machine has its own time.
			w.expect(step, 30*time.Minute, scaling("it has no Machine yet", "MachineNotReady "+machineSetA))
		})
		t.Run(tc.reason+", for good", func(t *testing.T) {
			w := newMachineWorld(t, newJob(capacity(within(20*time.Minute))), openshifttest.MachineSet("prod-a"))
			step := steps.ComputeCapacityReserved()
			w.faults = refusing(tc.verb, tc.err)
			w.expect(step, 0, scaling(denied, tc.blocker))
			w.expect(step, 20*time.Minute, isGivenUp)
			w.expect(step, 20*time.Minute, isRechecked)
			for _, after := range []time.Duration{20 * time.Minute, 21 * time.Minute, 45 * time.Minute} {
				w.expect(step, after, verdict{outcome: steps.Completed, reason: "Completed", says: goesOn})
			}
			if want := []string{"upgrade.skipped"}; !slices.Equal(w.told(), want) || !strings.Contains(w.stages[0].Message, denied) {
				t.Errorf("told of %+v, want %q", w.stages, want)
			}
		})
	}
}

// What goes wrong with one MachineSet does not keep the others from being made, and is made up for later.
func TestComputeCapacityReservedMendsAPartialFailure(t *testing.T) {
	broken := errors.New("etcd is away")
	w := newMachineWorld(t, newJob(capacity()), openshifttest.MachineSet("prod-a"), openshifttest.MachineSet("prod-b"), openshifttest.MachineSet("prod-c"))
	w.faults = interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
		if strings.HasPrefix(o.GetName(), "prod-b") {
			return broken
		}
		return c.Create(ctx, o, options...)
	}}
	step := steps.ComputeCapacityReserved()
	if err := w.expectError(step, 0); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if got := w.sets(); len(got) != 5 {
		t.Errorf("got the MachineSets %q, want all but one", got)
	}
	w.faults = interceptor.Funcs{}
	w.pass(step)
	if got := w.sets(); len(got) != 6 {
		t.Errorf("got the MachineSets %q, want all", got)
	}
}

// The answer to a creation is lost: it has happened all the same.
func TestComputeCapacityReservedFindsWhatIsThere(t *testing.T) {
	exists := apierrors.NewAlreadyExists(machineSets, extraA)
	hidden := true // a list that lags behind
	faults := func(w *machineWorld) interceptor.Funcs {
		return interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				err := c.List(ctx, list, options...)
				if all, ok := list.(*machinev1beta1.MachineSetList); ok && hidden {
					hidden = false
					all.Items = slices.DeleteFunc(all.Items, func(s machinev1beta1.MachineSet) bool { return s.Name == extraA })
				}
				return err
			},
			Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return exists },
		}
	}
	t.Run("the job's", func(t *testing.T) {
		w := newMachineWorld(t, newJob(capacity()), openshifttest.MachineSet("prod-a"), openshifttest.MachineSetOf(jobUID, extraA, start, false))
		w.faults = faults(w)
		w.expect(steps.ComputeCapacityReserved(), 0, scaling("made just now", "MachineNotReady "+machineSetA))
	})
	t.Run("somebody else's", func(t *testing.T) {
		w := newMachineWorld(t, newJob(capacity()), openshifttest.MachineSet("prod-a"), openshifttest.MachineSetOf("another", extraA, start, false))
		w.faults = faults(w)
		if err := w.expectError(steps.ComputeCapacityReserved(), 0); !strings.Contains(err.Error(), "was not made for the job") {
			t.Errorf("got %v", err)
		}
	})
}

func TestComputeCapacityReservedMeetsAnError(t *testing.T) {
	broken := errors.New("etcd is away")
	t.Run("of the list", func(t *testing.T) {
		w := newMachineWorld(t, newJob(capacity()), openshifttest.MachineSet("prod-a"))
		w.faults = refusing("list", broken)
		if err := w.expectError(steps.ComputeCapacityReserved(), time.Hour); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("of the Node", func(t *testing.T) {
		w := newMachineWorld(t, newJob(capacity()), openshifttest.MachineSet("prod-a"), openshifttest.MachineSetOf(jobUID, extraA, start, true),
			openshifttest.MachineOf(jobUID, extraA, machinev1beta1.PhaseRunning, "new"))
		w.faults = failingGet(broken, "Node")
		if err := w.expectError(steps.ComputeCapacityReserved(), 0); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("of the lock: nothing is made", func(t *testing.T) {
		w := newMachineWorld(t, newJob(capacity()), openshifttest.MachineSet("prod-a"))
		w.lockedBy = "ns/other"
		if err := w.expectError(steps.ComputeCapacityReserved(), 0); !strings.Contains(err.Error(), "ns/other") {
			t.Errorf("got %v", err)
		}
		if got := w.sets(); len(got) != 1 {
			t.Errorf("got the MachineSets %q", got)
		}
	})
}

// A pattern that is none holds the upgrade up until its window is over: nobody knows which machines were meant.
func TestComputeCapacityReservedWithABadPattern(t *testing.T) {
	w := newMachineWorld(t, newJob(capacity(extraPools("gpu-*", "db-["))), openshifttest.MachineSet("prod-a"))
	step := steps.ComputeCapacityReserved()
	want := verdict{outcome: steps.Running, reason: v1beta1.ReasonInvalidPattern, after: time.Hour + time.Millisecond, blockers: []string{"InvalidPattern UpgradeJob/job"}, says: `"db-["`}
	w.expect(step, 0, want)
	w.expect(step, time.Hour+time.Millisecond, verdict{outcome: steps.Skipped, reason: v1beta1.ReasonExpired, blockers: want.blockers, says: `"db-["`})
	if got := w.sets(); len(got) != 1 {
		t.Errorf("got the MachineSets %q", got)
	}
}

// A machine that was given up and may not be removed is told of, and holds the upgrade up for a while only.
func TestComputeCapacityReservedMayNotRemoveALateMachine(t *testing.T) {
	w := newMachineWorld(t, newJob(capacity(within(20*time.Minute))), openshifttest.MachineSet("prod-a"))
	step := steps.ComputeCapacityReserved()
	w.pass(step)
	w.expect(step, 20*time.Minute, isGivenUp)
	w.faults = refusing("delete", forbidden("denied"))
	for _, after := range []time.Duration{20 * time.Minute, 24 * time.Minute} {
		w.expect(step, after, verdict{
			outcome: steps.Running, reason: v1beta1.ReasonCapacityRemoving, after: min(5*time.Second, 25*time.Minute-after),
			blockers: []string{"MachineAPIRefused MachineSets of namespace openshift-machine-api"},
		})
	}
	w.expect(step, 25*time.Minute, isRechecked)
	w.expect(step, 25*time.Minute, verdict{outcome: steps.Completed, reason: "Completed", says: "The upgrade goes on without"})
}
