// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

func TestDeletionOfAJobThatHoldsPools(t *testing.T) {
	for _, tc := range []struct {
		reason string
		// happens is what goes on in the cluster before the job is deleted.
		happens func(*world)
		update  string
		pools   []string
	}{
		{"before the release is accepted: nothing of it is left", func(*world) {}, "", []string{"infra", "worker"}},
		{"while the control plane updates: the machines would follow at any hour", (*world).acceptUpdate, "4.18.2", []string{"infra paused named upgrades/weekly", "worker"}},
		{"while it waits for the time of a pool", func(w *world) {
			w.acceptUpdate()
			w.completeUpdate()
			w.follow("worker")
		}, "4.18.2", []string{"infra paused named upgrades/weekly", "worker"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			job := newJob("weekly", configuredBy(delayingPool("infra", 2*time.Hour), pausing))
			w := newWorld(t, newClusterVersion(), job).register(withPools())
			w.add(newPool("infra"), newPool("worker"), openshifttest.MachineConfig("infra", "4.18.1"), openshifttest.MachineConfig("worker", "4.18.1"))
			r := w.jobs()
			w.reconcile(r, job)
			w.expectMCPs("before", "infra paused named upgrades/weekly", "worker")
			tc.happens(w)
			w.reconcile(r, job)
			w.remove(job)
			w.reconcile(r, job)
			if !w.gone(job) {
				t.Errorf("the job stays: %v", get(w, job).Finalizers)
			}
			w.expectMCPs("after", tc.pools...)
			cv := get(w, newClusterVersion())
			if w.lock() != "" || version(cv.Spec.DesiredUpdate) != tc.update {
				t.Errorf("got the lock %q, the update %q, want none, %q", w.lock(), version(cv.Spec.DesiredUpdate), tc.update)
			}
		})
	}
}

// What a job leaves paused is told by an Event also if it is deleted: nothing else of it is left.
func TestDeletionTellsWhatStaysPaused(t *testing.T) {
	job := newJob("weekly", configuredBy(delayingPool("infra", 2*time.Hour)))
	w, r := failedUpgrade(t, job, newPool("infra"))
	w.remove(job)
	w.reconcile(r, job)
	w.expectEvents("of the deletion", "Warning LeftPaused Left paused: infra.")
	if !w.gone(job) {
		t.Error("the job stays")
	}
}

// A deleted job holds its lock and its finalizer until its pools are given back, whatever befalls a call.
func TestDeletionOfAJobThatHoldsPoolsSurvivesFaults(t *testing.T) {
	const steady = 40 // more calls than a deletion has
	calls := steady
	for n := 0; n < calls; n++ {
		for _, after := range []bool{false, true} {
			job := newJob("weekly", configuredBy(delayingPool("infra", 2*time.Hour)))
			w := newWorld(t, newClusterVersion(), job, newPool("infra"), openshifttest.MachineConfig("infra", "4.18.1")).register(withPools())
			r := w.jobs()
			w.reconcile(r, job)
			w.remove(job)
			w.api.calls = nil
			w.api.fault = func(i int, call string) (error, error) {
				held := get(w, newPool("infra")).Spec.Paused
				if held && w.lock() == "" {
					t.Errorf("call %d, %s: the lock is gone before the pool is released", i, call)
				}
				switch {
				case i != n:
					return nil, nil
				case after:
					return nil, errBroken
				}
				return errBroken, nil
			}
			for i := 0; !w.gone(job); i++ {
				if i == 10 {
					t.Fatalf("a fault at call %d: the job stays", n)
				}
				w.reconcile(r, job)
			}
			if n == 0 && !after {
				calls = len(w.api.calls)
			}
			w.expectMCPs("in the end", "infra")
			if w.lock() != "" {
				t.Errorf("a fault at call %d: the lock stays", n)
			}
		}
	}
	if calls == steady || calls < 5 {
		t.Errorf("a deletion of %d calls: the test is blind", calls)
	}
}

// An operator that does not know the variant of a job any more does not know what it held either. It does not hang, and the config tells of
// the pools.
func TestDeletionOfAJobOfAnUnknownUpgraderLeavesItsPools(t *testing.T) {
	job := newJob("weekly", withUpgrader("Gone"), withPhase(v1beta1.PhaseActive))
	config := newConfig()
	w := newWorld(t, newClusterVersion(lockedBy("upgrades/weekly")), job, config, newPool("infra", heldFor("upgrades/weekly"))).register(plain())
	w.remove(job)
	w.reconcile(w.jobs(), job)
	if !w.gone(job) || w.lock() != "" {
		t.Errorf("the job stays, or its lock %q", w.lock())
	}
	w.reconcile(w.configs(), config)
	expectCondition(t, get(w, config).Status.Conditions, poolsPaused, metav1.ConditionTrue, v1beta1.ReasonLeftPaused, "infra by UpgradeJob weekly")
}

// A pool that a job of a namespace which is not watched has paused is not for this operator to judge.
func TestPoolsOfJobsElsewhereAreLeftAlone(t *testing.T) {
	for _, tc := range []struct {
		reason, holder string
		other          *v1beta1.UpgradeJob
		all            bool // all namespaces are watched
		released       bool
	}{
		{"a job that is gone", "upgrades/other", nil, false, true},
		{"a job that has ended", "upgrades/other", newJob("other", withPhase(v1beta1.PhaseFailed)), false, true},
		{"a job that has not", "upgrades/other", newJob("other", withPhase(v1beta1.PhasePending)), false, false},
		{"a job of a namespace that is not watched", "elsewhere/other", nil, false, false},
		{"a job of another namespace that is watched, and gone", "elsewhere/other", nil, true, true},
		{"words that no job wrote", "somebody", nil, true, false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			job := newJob("weekly")
			objects := []client.Object{
				job, newPool("infra", heldFor(tc.holder)), openshifttest.MachineConfig("infra", "4.18.1"),
				newClusterVersion(lockedBy("upgrades/weekly"), func(cv *configv1.ClusterVersion) {
					cv.Status.History[0].Version, cv.Status.History[0].Image = "4.18.2", "image:4.18.2" // nothing is left but the machines
				}),
			}
			if tc.other != nil {
				objects = append(objects, tc.other)
			}
			w := newWorld(t, objects...).register(withPools())
			r := w.jobs()
			if tc.all {
				r.Namespace = ""
			}
			w.reconcile(r, job)
			if got := !get(w, newPool("infra")).Spec.Paused; got != tc.released {
				t.Errorf("released: %t, want %t", got, tc.released)
			}
		})
	}
}
