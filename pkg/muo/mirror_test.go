// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package muo_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/muo"
)

// after is a time after the start.
func after(minutes int) *metav1.Time {
	return &metav1.Time{Time: start.Add(time.Duration(minutes) * time.Minute)}
}

// newJob returns a job for 4.18.2 in a phase, changed by the overrides.
func newJob(phase v1beta1.Phase, overrides ...func(*v1beta1.UpgradeJob)) *v1beta1.UpgradeJob {
	job := &v1beta1.UpgradeJob{
		ObjectMeta: metav1.ObjectMeta{Name: "the-job"},
		Spec:       v1beta1.UpgradeJobSpec{StartAfter: *after(0), DesiredVersion: &v1beta1.DesiredVersion{Version: "4.18.2"}},
		Status:     v1beta1.UpgradeJobStatus{Phase: phase},
	}
	for _, override := range overrides {
		override(job)
	}
	return job
}

// started adds what a job has that has started.
func started(job *v1beta1.UpgradeJob) {
	job.Status.FromVersion, job.Status.StartTime = "4.18.1", after(0)
	setOn(job, v1beta1.Started("The job has started."), 0)
}

func setOn(job *v1beta1.UpgradeJob, c metav1.Condition, minute int) {
	c.LastTransitionTime = *after(minute)
	meta.SetStatusCondition(&job.Status.Conditions, c)
}

// step adds a step that was started in one minute and done in another, or not yet if that is 0.
func step(name string, from, to int) func(*v1beta1.UpgradeJob) {
	return func(job *v1beta1.UpgradeJob) {
		status := v1beta1.StepStatus{Condition: name, StartTime: *after(from)}
		c := v1beta1.StepNotDone(name, "Waiting", "It is not done.")
		if to > 0 {
			status.CompletionTime = after(to)
			c = v1beta1.StepDone(name, "It is done.")
		}
		job.Status.Steps = append(job.Status.Steps, status)
		setOn(job, c, max(from, to))
	}
}

func TestMirrorOfARunningJob(t *testing.T) {
	job := newJob(v1beta1.PhaseActive, started, step("UpgradeCommenced", 1, 2), step("WorkersMaintenanceWindowCreated", 3, 4), step("WorkerNodesUpgraded", 5, 0))
	entry := &v1alpha1.UpgradeHistory{Version: "4.18.2", Phase: v1alpha1.UpgradePhasePending, UpgradeJob: "the-job"}
	muo.SetCondition(entry, metav1.Condition{Type: v1alpha1.ConditionValid, Status: metav1.ConditionTrue, Reason: muo.ReasonValid, Message: "Good."}, start)
	muo.Mirror(entry, job, after(6).Time)
	condition := func(name string, status metav1.ConditionStatus, reason, message string, from, to *metav1.Time, turned int) v1alpha1.UpgradeCondition {
		return v1alpha1.UpgradeCondition{
			Type: name, Status: status, Reason: reason, Message: message, StartTime: from, CompleteTime: to, LastTransitionTime: after(turned), LastProbeTime: after(6),
		}
	}
	valid := condition("UpgradeConfigValid", metav1.ConditionTrue, "Valid", "Good.", nil, nil, 0)
	valid.LastProbeTime = after(0)
	want := &v1alpha1.UpgradeHistory{
		Version: "4.18.2", PrecedingVersion: "4.18.1", Phase: v1alpha1.UpgradePhaseUpgrading, UpgradeJob: "the-job",
		StartTime: after(0), WorkerStartTime: after(3),
		Conditions: []v1alpha1.UpgradeCondition{
			condition("WorkerNodesUpgraded", metav1.ConditionFalse, "Waiting", "It is not done.", after(5), nil, 5),
			condition("WorkersMaintenanceWindowCreated", metav1.ConditionTrue, "Completed", "It is done.", after(3), after(4), 4),
			condition("UpgradeCommenced", metav1.ConditionTrue, "Completed", "It is done.", after(1), after(2), 2),
			valid,
		},
	}
	if diff := cmp.Diff(want, entry); diff != "" {
		t.Errorf("entry (-want +got):\n%s", diff)
	}

	muo.Mirror(entry, job, after(60).Time)
	if diff := cmp.Diff(want, entry); diff != "" {
		t.Errorf("the entry changed though the job did not (-want +got):\n%s", diff)
	}

	setOn(job, v1beta1.StepDone("WorkerNodesUpgraded", "It is done."), 61)
	job.Status.Steps[2].CompletionTime = after(61)
	job.Status.Phase, job.Status.CompletionTime = v1beta1.PhaseSucceeded, after(62)
	muo.Mirror(entry, job, after(63).Time)
	if entry.Phase != v1alpha1.UpgradePhaseUpgraded || !entry.CompleteTime.Equal(after(62)) || !entry.WorkerCompleteTime.Equal(after(61)) {
		t.Errorf("got phase %s, completed at %s, workers at %s", entry.Phase, entry.CompleteTime, entry.WorkerCompleteTime)
	}
	if first, second := entry.Conditions[0], entry.Conditions[1]; !first.LastProbeTime.Equal(after(63)) || !second.LastProbeTime.Equal(after(6)) {
		t.Errorf("probed at %s and %s, want when each changed", first.LastProbeTime, second.LastProbeTime)
	}
}

func TestPhases(t *testing.T) {
	for phase, want := range map[v1beta1.Phase]v1alpha1.UpgradePhase{
		"": v1alpha1.UpgradePhasePending, v1beta1.PhasePending: v1alpha1.UpgradePhasePending, v1beta1.PhaseActive: v1alpha1.UpgradePhaseUpgrading,
		v1beta1.PhasePaused: v1alpha1.UpgradePhaseUpgrading, v1beta1.PhaseSucceeded: v1alpha1.UpgradePhaseUpgraded, v1beta1.PhaseFailed: v1alpha1.UpgradePhaseFailed,
		v1beta1.PhaseSkipped: v1alpha1.UpgradePhaseFailed,
	} {
		entry := &v1alpha1.UpgradeHistory{}
		if muo.Mirror(entry, newJob(phase), start); entry.Phase != want {
			t.Errorf("%q becomes %q, want %q", phase, entry.Phase, want)
		}
	}
}

func TestOutcomeStandsFirst(t *testing.T) {
	for _, tc := range []struct {
		phase   v1beta1.Phase
		outcome metav1.Condition
	}{
		{v1beta1.PhaseFailed, v1beta1.Failed("UpgradeWindowBreached", "Too late.")},
		{v1beta1.PhaseSkipped, v1beta1.Skipped("Expired", "Too late.")},
	} {
		job := newJob(tc.phase, started, step("UpgradeCommenced", 1, 0))
		setOn(job, tc.outcome, 9)
		job.Status.CompletionTime = after(9)
		entry := &v1alpha1.UpgradeHistory{}
		muo.Mirror(entry, job, after(9).Time)
		c := entry.Conditions[0]
		if c.Type != v1alpha1.ConditionFailed || c.Status != metav1.ConditionTrue || c.Reason != tc.outcome.Reason || c.Message != "Too late." || !c.CompleteTime.Equal(after(9)) {
			t.Errorf("%s: got %+v first", tc.phase, c)
		}
	}
}

func TestScheduledSaysWhatItWaitsFor(t *testing.T) {
	waiting := func(reason string) *v1beta1.UpgradeJob {
		return newJob(v1beta1.PhasePending, func(job *v1beta1.UpgradeJob) {
			setOn(job, v1beta1.NotStarted(reason, "The cluster is locked by x."), 0)
		})
	}
	const plain = "UpgradeJob the-job, start at 2026-11-24T22:00:00Z."
	for want, job := range map[string]*v1beta1.UpgradeJob{
		plain: waiting(v1beta1.ReasonWaitingForStart),
		plain + " It waits: The cluster is locked by x.": waiting(v1beta1.ReasonClusterLocked),
	} {
		if got := muo.Scheduled(job); got.Message != want || got.Status != metav1.ConditionTrue || got.Type != v1alpha1.ConditionScheduled {
			t.Errorf("got %+v, want %q", got, want)
		}
	}
	over := waiting(v1beta1.ReasonClusterLocked)
	over.Status.Phase = v1beta1.PhaseSkipped
	if got := muo.Scheduled(over); got.Message != plain {
		t.Errorf("a job that is over says %q", got.Message)
	}
}

func TestOrderOfConditions(t *testing.T) {
	entry := &v1alpha1.UpgradeHistory{}
	set := func(name string, status metav1.ConditionStatus, minute int) {
		muo.SetCondition(entry, metav1.Condition{Type: name, Status: status, Reason: "R"}, after(minute).Time)
	}
	expect := func(when string, want ...string) {
		t.Helper()
		var got []string
		for _, c := range entry.Conditions {
			got = append(got, fmt.Sprintf("%s=%s %d/%d", c.Type, c.Status, int(c.LastTransitionTime.Sub(start).Minutes()), int(c.LastProbeTime.Sub(start).Minutes())))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: conditions, with when they turned and were probed (-want +got):\n%s", when, diff)
		}
	}
	muo.Mirror(entry, newJob(v1beta1.PhaseActive, step("A", 1, 1), step("B", 1, 1)), after(1).Time)
	set(v1alpha1.ConditionValid, metav1.ConditionTrue, 1)
	set(v1alpha1.ConditionScheduled, metav1.ConditionTrue, 2)
	expect("all is well", "B=True 1/1", "A=True 1/1", "UpgradeScheduled=True 2/2", "UpgradeConfigValid=True 1/1")
	set(v1alpha1.ConditionValid, metav1.ConditionFalse, 3)
	expect("not valid", "UpgradeConfigValid=False 3/3", "B=True 1/1", "A=True 1/1", "UpgradeScheduled=True 2/2")
	set(v1alpha1.ConditionValid, metav1.ConditionFalse, 4)
	expect("still not", "UpgradeConfigValid=False 3/3", "B=True 1/1", "A=True 1/1", "UpgradeScheduled=True 2/2")
	set(v1alpha1.ConditionValid, metav1.ConditionTrue, 5)
	set(v1alpha1.ConditionScheduled, metav1.ConditionFalse, 6)
	expect("not scheduled", "UpgradeScheduled=False 6/6", "B=True 1/1", "A=True 1/1", "UpgradeConfigValid=True 5/5")
	muo.RemoveCondition(entry, v1alpha1.ConditionScheduled)
	expect("removed", "B=True 1/1", "A=True 1/1", "UpgradeConfigValid=True 5/5")
}

func TestGiveUp(t *testing.T) {
	entry := &v1alpha1.UpgradeHistory{Version: "4.18.2", UpgradeJob: "the-job"}
	muo.Mirror(entry, newJob(v1beta1.PhaseActive, started, step("A", 1, 0)), after(1).Time)
	muo.GiveUp(entry, after(2).Time)
	first := entry.Conditions[0]
	if entry.Phase != v1alpha1.UpgradePhaseFailed || !entry.CompleteTime.Equal(after(2)) || !entry.StartTime.Equal(after(0)) ||
		first.Type != v1alpha1.ConditionFailed || first.Reason != muo.ReasonJobDeleted || len(entry.Conditions) != 2 {
		t.Errorf("got %+v", entry)
	}
}

func TestBeginForgetsTheJobBefore(t *testing.T) {
	entry := &v1alpha1.UpgradeHistory{Version: "4.18.2", UpgradeJob: "before"}
	muo.Mirror(entry, newJob(v1beta1.PhaseFailed, started, step("A", 1, 0)), after(1).Time)
	muo.SetCondition(entry, metav1.Condition{Type: v1alpha1.ConditionValid, Status: metav1.ConditionTrue}, start)
	muo.Begin(entry, newJob(""))
	if entry.UpgradeJob != "the-job" || entry.Phase != v1alpha1.UpgradePhasePending || entry.StartTime != nil || entry.PrecedingVersion != "" ||
		len(entry.Conditions) != 1 || entry.Conditions[0].Type != v1alpha1.ConditionValid {
		t.Errorf("got %+v", entry)
	}
	entry.StartTime = after(3)
	if muo.Begin(entry, newJob("")); entry.StartTime == nil {
		t.Error("an entry that is the job's was begun again")
	}
}
