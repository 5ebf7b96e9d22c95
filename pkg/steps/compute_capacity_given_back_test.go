// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

// over is a job that failed at that time after the start.
func over(after time.Duration) jobOption {
	return func(job *v1beta1.UpgradeJob) {
		job.Status.Phase, job.Status.CompletionTime = v1beta1.PhaseFailed, new(metav1.NewTime(start.Add(after)))
	}
}

// Also of a job whose status knows nothing of machines: the process may have ended between their creation and the record of it.
func TestComputeCapacityGivenBack(t *testing.T) {
	w := newMachineWorld(t, newJob(capacity(), over(0)), append(others(),
		openshifttest.MachineSetOf(jobUID, extraA, start, true), openshifttest.MachineOf(jobUID, extraA, machinev1beta1.PhaseRunning, "new"))...)
	for i := range 2 { // first the MachineSet, then the Machine
		if wait, err := w.cleanUp(time.Minute); wait != 5*time.Second || err != nil {
			t.Fatalf("pass %d: got %s, %v", i, wait, err)
		}
	}
	if got, want := w.sets(), []string{"prod-a", "prod-a-upgrade-0"}; !slices.Equal(got, want) {
		t.Errorf("got the MachineSets %q, want %q", got, want)
	}
	for range 2 { // its drain is not waited for
		if wait, err := w.cleanUp(2 * time.Minute); wait != 0 || err != nil {
			t.Fatalf("got %s, %v", wait, err)
		}
	}
	if got, want := w.machines(), []string{"prod-a-upgrade-0-x7k2q", extraA + "-x7k2q!"}; !slices.Equal(got, want) {
		t.Errorf("got the Machines %q, want %q", got, want)
	}
}

func TestComputeCapacityGivenBackHasNothingToDo(t *testing.T) {
	t.Run("not enabled: nobody is asked", func(t *testing.T) {
		w := newMachineWorld(t, newJob(over(0)))
		w.faults = refusing("list", errors.New("asked"))
		if wait, err := w.cleanUp(0); wait != 0 || err != nil {
			t.Errorf("got %s, %v", wait, err)
		}
	})
	t.Run("nothing was made", func(t *testing.T) {
		w := newMachineWorld(t, newJob(capacity(), over(0)), others()...)
		if wait, err := w.cleanUp(0); wait != 0 || err != nil || len(w.sets()) != 2 || len(w.machines()) != 1 {
			t.Errorf("got %s, %v, %q, %q", wait, err, w.sets(), w.machines())
		}
	})
}

func TestComputeCapacityGivenBackMeetsAnError(t *testing.T) {
	broken := errors.New("etcd is away")
	for _, verb := range []string{"list", "delete"} {
		t.Run(verb, func(t *testing.T) {
			w := newMachineWorld(t, newJob(capacity(), over(0)), openshifttest.MachineSetOf(jobUID, extraA, start, true))
			w.faults = refusing(verb, broken)
			if _, err := w.cleanUp(48 * time.Hour); !errors.Is(err, broken) { // however long it takes
				t.Errorf("got %v", err)
			}
			w.faults = interceptor.Funcs{}
			if wait, err := w.cleanUp(49 * time.Hour); wait != 5*time.Second || err != nil || len(w.sets()) != 0 {
				t.Errorf("once it is back: got %s, %v, %q", wait, err, w.sets())
			}
		})
	}
}

// Without the permission the job is kept for a while, and not for ever.
func TestComputeCapacityGivenBackIsForbidden(t *testing.T) {
	deleted := func(job *v1beta1.UpgradeJob) {
		over(0)(job)
		job.DeletionTimestamp, job.Finalizers = new(metav1.NewTime(start.Add(time.Hour))), []string{v1beta1.UpgradeJobFinalizer}
	}
	for _, tc := range []struct {
		reason string
		job    jobOption
		after  time.Duration
	}{
		{"after the end", over(time.Hour), time.Hour + 20*time.Minute},
		{"after the deletion", deleted, time.Hour + 20*time.Minute},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newMachineWorld(t, newJob(capacity(within(20*time.Minute)), tc.job))
			w.faults = refusing("list", forbidden("no"))
			if _, err := w.cleanUp(tc.after - time.Second); err == nil {
				t.Error("it is let go before its time")
			}
			if wait, err := w.cleanUp(tc.after); wait != 0 || err != nil {
				t.Errorf("got %s, %v", wait, err)
			}
		})
	}
}
