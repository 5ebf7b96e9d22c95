// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// newPool returns a pool that is paused in the name of a job; empty for nobody.
func newPool(name string, paused bool, holder string) mcfgv1.MachineConfigPool {
	pool := mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: mcfgv1.MachineConfigPoolSpec{Paused: paused}}
	if holder != "" {
		pool.Annotations = map[string]string{v1beta1.UpgradeJobAnnotation: holder}
	}
	return pool
}

func TestReportDelayedPools(t *testing.T) {
	var got []string
	r := newReporter(func(subject string, _ style, text string) { got = append(got, subject+": "+text) }, time.UTC)
	r.seenJob = "job"
	at := func(phase v1beta1.Phase, pools []mcfgv1.MachineConfigPool, want ...string) {
		t.Helper()
		got = nil
		job := newJob()
		job.Namespace, job.Status.Phase = "upgrades", phase
		for range 2 {
			r.report(sight{job: job, pools: pools}, start)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("in phase %s (-want +got):\n%s", phase, diff)
		}
	}
	night, held := newPool("night", false, ""), newPool("night", true, "upgrades/job")
	at(v1beta1.PhasePending, []mcfgv1.MachineConfigPool{night})
	at(v1beta1.PhaseActive, []mcfgv1.MachineConfigPool{newPool("a", true, "upgrades/other"), newPool("b", true, ""), held},
		"pool: a is paused by UpgradeJob upgrades/other", "pool: b is paused by somebody else", "pool: night is paused by the job")
	at(v1beta1.PhasePaused, []mcfgv1.MachineConfigPool{held}, "job: phase Paused instead of Active")
	at(v1beta1.PhaseActive, []mcfgv1.MachineConfigPool{night}, "job: phase Active instead of Paused", "pool: night is released")
	at(v1beta1.PhaseSucceeded, []mcfgv1.MachineConfigPool{night})
}

func TestReportDrainThatHangs(t *testing.T) {
	var got []string
	r := newReporter(func(subject string, _ style, text string) { got = append(got, subject+": "+text) }, time.UTC)
	r.seenJob = "job"
	at := func(s sight, want ...string) {
		t.Helper()
		got = nil
		for range 2 {
			r.report(s, start)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	drain := v1beta1.NodeForceDrain{ObjectMeta: metav1.ObjectMeta{Name: "night"}}
	drain.Status.Conditions = []metav1.Condition{v1beta1.Ready(v1beta1.ReasonValid, "It can be used.")}
	at(sight{drains: []v1beta1.NodeForceDrain{drain}}, "drain: night: Ready: It can be used.")

	job := newJob()
	job.Status.Blockers = []v1beta1.Blocker{
		{Code: "DrainBlocked", Object: "Pod/shop/cart-0", Message: "Node night-0 cannot be drained."},
		{Code: "NodeUpdating", Object: "Node/night-0", Message: "Node night-0 is draining."},
	}
	s := sight{job: job, drains: []v1beta1.NodeForceDrain{drain}}
	at(s, "job: waits for Pod/shop/cart-0 (DrainBlocked), Node/night-0", "job: Node night-0 cannot be drained.")

	pod := v1beta1.DeletedPod{Namespace: "shop", Name: "cart-0", UID: "1", NodeName: "night-0"}
	forced, next := pod, pod
	forced.Forced, next.Name, next.UID = true, "cart-1", "2"
	s.drains[0].Status.LastDeletedPods = []v1beta1.DeletedPod{pod}
	at(s, "drain: night deleted pod shop/cart-0 of night-0")
	s.drains[0].Status.LastDeletedPods = []v1beta1.DeletedPod{next, forced, pod}
	at(s, "drain: night deleted pod shop/cart-0 of night-0 again, with a grace period of one second", "drain: night deleted pod shop/cart-1 of night-0")

	s.drains[0].Status.Conditions = []metav1.Condition{v1beta1.NotReady(v1beta1.ReasonForbidden, "It may not.")}
	at(s, "drain: night: Ready is False (Forbidden): It may not.")
}
