// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/lifecycle"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

func TestSetWaiting(t *testing.T) {
	job := newJob()
	locked := lifecycle.Decide(job, lifecycle.Facts{LockedBy: "UpgradeJob upgrades/other"}, startAfter)
	lifecycle.SetWaiting(job, locked, startAfter)

	if job.Status.Phase != v1beta1.PhasePending {
		t.Errorf("phase is %s, want Pending", job.Status.Phase)
	}
	c := expectCondition(t, job, v1beta1.ConditionStarted, metav1.ConditionFalse, v1beta1.ReasonClusterLocked)
	if c.ObservedGeneration != 3 || !c.LastTransitionTime.Time.Equal(startAfter) || c.Message != locked.Message {
		t.Errorf("got %+v, want it as of generation 3 and %s", c, startAfter)
	}

	recorded := job.DeepCopy()
	lifecycle.SetWaiting(job, lifecycle.Decide(job, lifecycle.Facts{LockedBy: "UpgradeJob upgrades/other"}, startAfter.Add(time.Minute)), startAfter.Add(time.Minute))
	if diff := cmp.Diff(recorded.Status, job.Status); diff != "" {
		t.Errorf("waiting for the same a minute later changed the status (-before +after):\n%s", diff)
	}
}

func TestSetStarted(t *testing.T) {
	for _, tc := range []struct {
		reason      string
		job         *v1beta1.UpgradeJob
		phase       v1beta1.Phase
		startTime   time.Time
		fromVersion string
		requests    []string
	}{
		{"a job that waited", newJob(), v1beta1.PhaseActive, startAfter.Add(time.Second), "4.18.7", nil},
		{"a job that has started keeps its start", newJob(started(startAfter)), v1beta1.PhaseActive, startAfter, "4.18.1", nil},
		{"a paused job stays paused", newJob(started(startAfter), func(j *v1beta1.UpgradeJob) { j.Status.Phase = v1beta1.PhasePaused }),
			v1beta1.PhasePaused, startAfter, "4.18.1", nil},
		{"a request from the beginning is used up", newJob(withRequest("from the beginning")), v1beta1.PhaseActive, startAfter.Add(time.Second), "4.18.7",
			[]string{"from the beginning"}},
		{"a request while the job runs is not: it may be wanted if the job fails", newJob(started(startAfter), withRequest("while it runs")),
			v1beta1.PhaseActive, startAfter, "4.18.1", nil},
		{"a resumed job keeps its start", newJob(started(startAfter), finished(v1beta1.Failed("Test", ""), startBefore), resumed("again", deadline)),
			v1beta1.PhaseActive, startAfter, "4.18.1", []string{"again"}},
		{"a job that is resumed before it ever started starts then, and records the request once",
			newJob(finished(v1beta1.Skipped("Test", ""), startBefore), resumed("again", deadline)),
			v1beta1.PhaseActive, startAfter.Add(time.Second), "4.18.7", []string{"again"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			lifecycle.SetStarted(tc.job, "4.18.7", startAfter.Add(time.Second))
			st := &tc.job.Status
			if st.Phase != tc.phase || !st.StartTime.Time.Equal(tc.startTime) || st.FromVersion != tc.fromVersion {
				t.Errorf("got %s from %s at %s, want %s from %s at %s", st.Phase, st.FromVersion, st.StartTime, tc.phase, tc.fromVersion, tc.startTime)
			}
			if diff := cmp.Diff(tc.requests, requests(tc.job)); diff != "" {
				t.Errorf("recorded requests (-want +got):\n%s", diff)
			}
			expectCondition(t, tc.job, v1beta1.ConditionStarted, metav1.ConditionTrue, v1beta1.ReasonStarted)

			recorded := tc.job.DeepCopy()
			lifecycle.SetStarted(tc.job, "4.19.0", deadline)
			if diff := cmp.Diff(recorded.Status, tc.job.Status); diff != "" {
				t.Errorf("starting it again changed the status (-before +after):\n%s", diff)
			}
		})
	}
}

// A job goes to and fro between Active and Paused, and ends from either. Nothing else of it turns by that.
func TestSetPaused(t *testing.T) {
	job := newJob(started(startAfter), withBlocker("Pool infra is paused."))
	before := job.DeepCopy()
	for i, paused := range []bool{true, true, false, false, true} {
		lifecycle.SetPaused(job, paused)
		lifecycle.SetStarted(job, "4.18.2", startAfter.Add(time.Hour)) // each pass begins with it
		want := before.DeepCopy()
		if want.Status.Phase = v1beta1.PhaseActive; paused {
			want.Status.Phase = v1beta1.PhasePaused
		}
		if diff := cmp.Diff(want, job); diff != "" {
			t.Errorf("pass %d (-want +got):\n%s", i, diff)
		}
	}
	if d := lifecycle.Decide(job, lifecycle.Facts{}, deadline.Add(-time.Second)); d.Action != lifecycle.Run || d.After != time.Second {
		t.Errorf("got %+v, want a paused job to go on to its deadline", d)
	}
	if d := lifecycle.Decide(job, lifecycle.Facts{}, deadline); d.Action != lifecycle.Fail || d.Reason != v1beta1.ReasonTimedOut {
		t.Errorf("got %+v, want a paused job to fail at its deadline", d)
	}
	lifecycle.Finish(job, v1beta1.Succeeded(v1beta1.ReasonUpgraded, "done"), deadline)
	if job.Status.Phase != v1beta1.PhaseSucceeded {
		t.Errorf("got phase %s", job.Status.Phase)
	}
}

func TestFinish(t *testing.T) {
	for _, tc := range []struct {
		outcome  metav1.Condition
		phase    v1beta1.Phase
		blockers int
	}{
		{v1beta1.Succeeded(v1beta1.ReasonUpgraded, "done"), v1beta1.PhaseSucceeded, 0},
		{v1beta1.Failed(v1beta1.ReasonTimedOut, "late"), v1beta1.PhaseFailed, 2},
		{v1beta1.Skipped(v1beta1.ReasonExpired, "late"), v1beta1.PhaseSkipped, 2},
	} {
		t.Run(tc.outcome.Type, func(t *testing.T) {
			job := newJob(started(startAfter), withBlocker("why it waits"))
			lifecycle.Finish(job, tc.outcome, deadline)

			if job.Status.Phase != tc.phase || !job.Status.Phase.Finished() {
				t.Errorf("phase is %s, want %s", job.Status.Phase, tc.phase)
			}
			if job.Status.CompletionTime == nil || !job.Status.CompletionTime.Time.Equal(deadline) {
				t.Errorf("completionTime is %s, want %s", job.Status.CompletionTime, deadline)
			}
			if len(job.Status.Blockers) != tc.blockers {
				t.Errorf("got blockers %v, want %d of them: only success clears them", job.Status.Blockers, tc.blockers)
			}
			c := expectCondition(t, job, tc.outcome.Type, metav1.ConditionTrue, tc.outcome.Reason)
			if c.Message != tc.outcome.Message || c.ObservedGeneration != 3 || !c.LastTransitionTime.Time.Equal(deadline) {
				t.Errorf("got %+v, want the message %q as of generation 3 and %s", c, tc.outcome.Message, deadline)
			}
			for _, other := range []string{v1beta1.ConditionSucceeded, v1beta1.ConditionFailed, v1beta1.ConditionSkipped} {
				if other != tc.outcome.Type && meta.FindStatusCondition(job.Status.Conditions, other) != nil {
					t.Errorf("there is a second terminal condition, %s", other)
				}
			}
		})
	}
}

func TestResumeRequested(t *testing.T) {
	var (
		failed    = finished(v1beta1.Failed(v1beta1.ReasonTimedOut, ""), deadline)
		skipped   = finished(v1beta1.Skipped(v1beta1.ReasonExpired, ""), startBefore)
		succeeded = finished(v1beta1.Succeeded(v1beta1.ReasonUpgraded, ""), deadline)
	)
	for _, tc := range []struct {
		reason string
		job    *v1beta1.UpgradeJob
		want   bool
	}{
		{"without a request", newJob(started(startAfter), failed), false},
		{"a failed job", newJob(started(startAfter), failed, withRequest("a")), true},
		{"a skipped job", newJob(skipped, withRequest("a")), true},
		{"a job that succeeded stays so", newJob(started(startAfter), succeeded, withRequest("a")), false},
		{"a running job", newJob(started(startAfter), withRequest("a")), false},
		{"a waiting job", newJob(withRequest("a")), false},
		{"a request that stood there when the job started", newJob(withRequest("a"), started(startAfter), failed), false},
		{"a request that stood there when the job was skipped without a start", newJob(withRequest("a"),
			func(j *v1beta1.UpgradeJob) {
				lifecycle.SetWaiting(j, lifecycle.Decide(j, lifecycle.Facts{}, startAfter.Add(-time.Hour)), startAfter.Add(-time.Hour))
			}, skipped), false},
		{"a request made while the job ran counts once it has failed", newJob(started(startAfter), withRequest("a"), failed), true},
		{"a request that was carried out", newJob(started(startAfter), failed, resumed("a", deadline), failed), false},
		{"another request", newJob(started(startAfter), failed, resumed("a", deadline), failed, withRequest("b")), true},
		{"back to a request that was carried out", newJob(started(startAfter), failed, resumed("a", deadline), failed, resumed("b", deadline), failed, withRequest("a")), false},
		{"the request is taken away", newJob(started(startAfter), failed, resumed("a", deadline), failed, withRequest("")), false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if got := lifecycle.ResumeRequested(tc.job); got != tc.want {
				t.Errorf("got %t, want %t; phase %s, request %q, carried out %v", got, tc.want, tc.job.Status.Phase, tc.job.Spec.ResumeRequest, requests(tc.job))
			}
		})
	}
}

func TestResume(t *testing.T) {
	nextDay := startAfter.Add(24 * time.Hour)
	for _, tc := range []struct {
		reason   string
		outcome  metav1.Condition
		reopened string
	}{
		{"a failed job", v1beta1.Failed(v1beta1.ReasonTimedOut, "late"), "Failed(TimedOut)"},
		{"a skipped job", v1beta1.Skipped(v1beta1.ReasonExpired, "late"), "Skipped(Expired)"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			job := newJob(started(startAfter), withCondition(v1beta1.StepDone(steps.ConditionUpgradeCommenced, "asked")),
				withCondition(v1beta1.StepDone("Other", "done")), withBlocker("why it waited"), finished(tc.outcome, deadline), resumed("again", nextDay))

			if job.Status.Phase != v1beta1.PhasePending || job.Status.CompletionTime != nil || len(job.Status.Blockers) != 0 {
				t.Errorf("got phase %s, completionTime %s, blockers %v, want it reopened", job.Status.Phase, job.Status.CompletionTime, job.Status.Blockers)
			}
			for _, gone := range []string{v1beta1.ConditionFailed, v1beta1.ConditionSkipped} {
				if meta.FindStatusCondition(job.Status.Conditions, gone) != nil {
					t.Errorf("condition %s is still there", gone)
				}
			}
			expectCondition(t, job, v1beta1.ConditionStarted, metav1.ConditionFalse, v1beta1.ReasonResumed)
			// The update may have been taken back when the job ended: the record of it proves nothing any more.
			expectCondition(t, job, steps.ConditionUpgradeCommenced, metav1.ConditionFalse, v1beta1.ReasonResumed)
			expectCondition(t, job, "Other", metav1.ConditionTrue, v1beta1.ReasonCompleted)
			want := []v1beta1.ResumedRequest{{Request: "again", Time: metav1.NewTime(nextDay), Reopened: tc.reopened}}
			if diff := cmp.Diff(want, job.Status.ResumedRequests); diff != "" {
				t.Errorf("resumedRequests (-want +got):\n%s", diff)
			}
			if lifecycle.ResumeRequested(job) {
				t.Error("the same request asks for another resume")
			}
		})
	}
}

func TestResumeKeepsTheNewestRequests(t *testing.T) {
	job := newJob(started(startAfter))
	for i := range 40 {
		lifecycle.Finish(job, v1beta1.Failed(v1beta1.ReasonTimedOut, ""), deadline)
		job.Spec.ResumeRequest = fmt.Sprint("request ", i)
		if !lifecycle.ResumeRequested(job) {
			t.Fatalf("request %d is not taken for a new one", i)
		}
		lifecycle.Resume(job, deadline)
	}
	got := requests(job)
	if len(got) != 32 || got[0] != "request 8" || got[31] != "request 39" {
		t.Errorf("got %d requests, from %q to %q, want the newest 32", len(got), got[0], got[len(got)-1])
	}
}

func TestResumeInventsNoStep(t *testing.T) {
	job := newJob(finished(v1beta1.Skipped(v1beta1.ReasonExpired, ""), startBefore), resumed("again", deadline))
	if c := meta.FindStatusCondition(job.Status.Conditions, steps.ConditionUpgradeCommenced); c != nil {
		t.Errorf("a step that never ran has the condition %v", c)
	}
}

func TestResumeOfAJobWithoutItsOutcome(t *testing.T) {
	// Somebody removed the condition by hand.
	job := newJob(func(j *v1beta1.UpgradeJob) { j.Status.Phase = v1beta1.PhaseFailed }, resumed("again", deadline))
	if got := job.Status.ResumedRequests[0].Reopened; got != "Failed" {
		t.Errorf("reopened is %q, want Failed", got)
	}
}

func TestOutcomeOf(t *testing.T) {
	for _, tc := range []struct {
		reason string
		job    *v1beta1.UpgradeJob
		result steps.Result
		want   metav1.Condition
		ended  bool
	}{
		{"all steps are done", newJob(), steps.Result{Outcome: steps.Completed},
			v1beta1.Succeeded(v1beta1.ReasonUpgraded, "The cluster runs the desired version."), true},
		{"all steps of a job without a version are done", newJob(func(j *v1beta1.UpgradeJob) { j.Spec.DesiredVersion = nil }), steps.Result{Outcome: steps.Completed},
			v1beta1.Succeeded(v1beta1.ReasonNothingToUpgrade, "The job had no version: nothing was upgraded."), true},
		{"a step skipped the job", newJob(), steps.Result{Outcome: steps.Skipped, Reason: "Why", Message: "because"}, v1beta1.Skipped("Why", "because"), true},
		{"a step failed the job", newJob(), steps.Result{Outcome: steps.Failed, Reason: "Why", Message: "because"}, v1beta1.Failed("Why", "because"), true},
		{"a step waits", newJob(), steps.Result{Outcome: steps.Running, Reason: "Why", Message: "because"}, metav1.Condition{}, false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got, ended := lifecycle.OutcomeOf(tc.job, tc.result)
			if diff := cmp.Diff(tc.want, got); diff != "" || ended != tc.ended {
				t.Errorf("ended is %t, want %t; outcome (-want +got):\n%s", ended, tc.ended, diff)
			}
		})
	}
}

func requests(job *v1beta1.UpgradeJob) []string {
	var list []string
	for _, r := range job.Status.ResumedRequests {
		list = append(list, r.Request)
	}
	return list
}
