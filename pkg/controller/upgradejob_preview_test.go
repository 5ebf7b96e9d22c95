// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/healthcheck"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// sickness is a check that finds whatever it holds.
type sickness struct{ report healthcheck.Report }

func (*sickness) Name() string { return "Sickness" }

func (s *sickness) Run(context.Context, healthcheck.Request) (healthcheck.Report, error) {
	return s.report, nil
}

// looking is an upgrade that begins with a look at the cluster's health.
func looking(check healthcheck.Check) variant {
	v := plain()
	v.steps = append([]steps.Step{steps.UntilCommenced(steps.ClusterHealthyBeforeUpgrade(check))}, v.steps[1:]...)
	return v
}

func TestAPendingJobTellsWhatWouldHoldItUp(t *testing.T) {
	check := &sickness{report: healthcheck.Report{Findings: []healthcheck.Finding{{
		Object: "Alert/EtcdDown", Reason: "CriticalAlertFiring", Message: "EtcdDown is firing", ClearsWhen: "it stops",
	}}}}
	job := newJob("weekly")
	w := newWorld(t, newClusterVersion(), job).register(looking(check))
	r := w.jobs()
	w.clock.SetTime(startAfter.Add(-4 * time.Hour))

	// Hours before its start: it is shown, and told once.
	w.reconcile(r, job)
	first := get(w, job)
	expectCondition(t, first.Status.Conditions, v1beta1.ConditionPreflightHealthy, metav1.ConditionFalse, v1beta1.ReasonUnhealthy, "EtcdDown is firing")
	expectCondition(t, first.Status.Conditions, v1beta1.ConditionStarted, metav1.ConditionFalse, v1beta1.ReasonWaitingForStart)
	if b := first.Status.Blockers; len(b) != 1 || b[0].Object != "Alert/EtcdDown" || !b[0].Since.Time.Equal(w.clock.Now()) {
		t.Errorf("blockers %+v, want the alert", b)
	}
	w.api.writes()
	w.elapse(steps.PreviewInterval)
	w.reconcile(r, job)
	if writes := w.api.writes(); len(writes) > 0 {
		t.Errorf("nothing is new, but it is written: %v", writes)
	}

	// It is mended: so is the condition.
	check.report = healthcheck.Report{}
	w.elapse(steps.PreviewInterval)
	w.reconcile(r, job)
	mended := get(w, job)
	expectCondition(t, mended.Status.Conditions, v1beta1.ConditionPreflightHealthy, metav1.ConditionTrue, v1beta1.ReasonHealthy, "The cluster is healthy.")
	if len(mended.Status.Blockers) > 0 || len(get(w, newClusterVersion()).Annotations) > 0 {
		t.Errorf("blockers %v, cluster locked %v, want neither", mended.Status.Blockers, get(w, newClusterVersion()).Annotations)
	}
	if diff := cmp.Diff([]string{"PreflightUnhealthy", "PreflightHealthy"}, reasons(w.events())); diff != "" {
		t.Errorf("reasons of the Events (-want +got):\n%s", diff)
	}

	// From the start on the step tells.
	w.clock.SetTime(startAfter)
	w.live(r, job)
	ended := get(w, job)
	expectCondition(t, ended.Status.Conditions, steps.ConditionClusterHealthyBeforeUpgrade, metav1.ConditionTrue, v1beta1.ReasonCompleted)
	if c := meta.FindStatusCondition(ended.Status.Conditions, v1beta1.ConditionPreflightHealthy); c != nil {
		t.Errorf("the job has ended, and still says %s=%s", c.Type, c.Status)
	}
}

func TestAHealthyPendingJobIsNoNews(t *testing.T) {
	job := newJob("weekly")
	w := newWorld(t, newClusterVersion(), job).register(looking(&sickness{}))
	r := w.jobs()
	w.clock.SetTime(startAfter.Add(-4 * time.Hour))
	w.reconcile(r, job)
	expectCondition(t, get(w, job).Status.Conditions, v1beta1.ConditionPreflightHealthy, metav1.ConditionTrue, v1beta1.ReasonHealthy)
	if events := w.events(); len(events) > 0 {
		t.Errorf("Events %v, want none", events)
	}
}

// What the job waits for comes first, what it would wait for then.
func TestALockedOutJobLooksAheadToo(t *testing.T) {
	check := &sickness{report: healthcheck.Report{Findings: []healthcheck.Finding{{Object: "Node/a", Reason: "NodeNotReady", Message: "Node a is not ready"}}}}
	job := newJob("weekly")
	w := newWorld(t, newClusterVersion(lockedBy("elsewhere/other")), job).register(looking(check))
	r := w.jobs()
	w.reconcile(r, job)
	var codes []string
	for _, b := range get(w, job).Status.Blockers {
		codes = append(codes, b.Code)
	}
	if diff := cmp.Diff([]string{v1beta1.ReasonClusterLocked, "NodeNotReady"}, codes); diff != "" {
		t.Errorf("blockers (-want +got):\n%s", diff)
	}
}

// What was shown hours before does not stay on a job that never started.
func TestAJobThatIsSkippedForgetsWhatItWouldHaveFound(t *testing.T) {
	sick := &sickness{report: healthcheck.Report{Findings: []healthcheck.Finding{{Object: "Node/a", Reason: "NodeNotReady", Message: "Node a is not ready"}}}}
	for _, tc := range []struct {
		reason   string
		objects  []client.Object
		blockers []string
	}{
		{v1beta1.ReasonSuspended, []client.Object{newClusterVersion(), aFreeze()}, nil},
		{v1beta1.ReasonExpired, []client.Object{newClusterVersion(lockedBy("elsewhere/other"))}, []string{v1beta1.ReasonClusterLocked}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			job := newJob("weekly")
			w := newWorld(t, append(tc.objects, job)...).register(looking(sick))
			r := w.jobs()
			for _, at := range []time.Duration{-time.Hour, 0, time.Hour + time.Second} {
				w.clock.SetTime(startAfter.Add(at))
				w.reconcile(r, job)
			}
			ended := get(w, job)
			expectCondition(t, ended.Status.Conditions, v1beta1.ConditionSkipped, metav1.ConditionTrue, tc.reason)
			if c := meta.FindStatusCondition(ended.Status.Conditions, v1beta1.ConditionPreflightHealthy); c != nil {
				t.Errorf("it still says %s=%s: %s", c.Type, c.Status, c.Message)
			}
			var codes []string
			for _, b := range ended.Status.Blockers {
				codes = append(codes, b.Code)
			}
			if diff := cmp.Diff(tc.blockers, codes); diff != "" {
				t.Errorf("blockers (-want +got):\n%s", diff)
			}
		})
	}
}

func aFreeze() client.Object {
	return &v1beta1.UpgradeSuspensionWindow{
		ObjectMeta: metav1.ObjectMeta{Name: "freeze", Namespace: namespace},
		Spec: v1beta1.UpgradeSuspensionWindowSpec{
			Start: metav1.NewTime(startAfter.Add(-time.Minute)), End: metav1.NewTime(startAfter.Add(2 * time.Hour)), JobSelector: &metav1.LabelSelector{},
		},
	}
}

// Hours before the start there is time to install the operator that knows the upgrader.
func TestAPendingJobOfAnUnknownUpgraderTells(t *testing.T) {
	job := newJob("weekly", withUpgrader("Custom"))
	w := newWorld(t, newClusterVersion(), job).register(plain())
	r := w.jobs()
	w.clock.SetTime(startAfter.Add(-4 * time.Hour))
	w.reconcile(r, job)
	expectCondition(t, get(w, job).Status.Conditions, v1beta1.ConditionPreflightHealthy, metav1.ConditionUnknown, v1beta1.ReasonUnknownUpgrader, `"Custom"`)
}

// A job of an upgrader that does not look ahead has no such condition.
func TestAnUpgraderNeedNotLookAhead(t *testing.T) {
	job := newJob("weekly")
	w := newWorld(t, newClusterVersion(), job).register(plain())
	r := w.jobs()
	w.clock.SetTime(startAfter.Add(-4 * time.Hour))
	if result := w.reconcile(r, job); result.RequeueAfter != maxSleep {
		t.Errorf("wakes after %s, want %s", result.RequeueAfter, maxSleep)
	}
	if c := meta.FindStatusCondition(get(w, job).Status.Conditions, v1beta1.ConditionPreflightHealthy); c != nil {
		t.Errorf("it says %s=%s", c.Type, c.Status)
	}
}
