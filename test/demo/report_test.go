// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

var start = time.Date(2026, time.November, 20, 20, 31, 0, 0, time.UTC)

// newJob returns a job with conditions.
func newJob(conditions ...metav1.Condition) *v1beta1.UpgradeJob {
	return &v1beta1.UpgradeJob{
		ObjectMeta: metav1.ObjectMeta{Name: "job"},
		Spec: v1beta1.UpgradeJobSpec{
			StartAfter:     metav1.NewTime(start),
			StartBefore:    metav1.NewTime(start.Add(time.Hour)),
			DesiredVersion: &v1beta1.DesiredVersion{Version: "4.18.2"},
		},
		Status: v1beta1.UpgradeJobStatus{Conditions: conditions},
	}
}

func TestReport(t *testing.T) {
	var got []string
	r := newReporter(func(subject string, _ style, text string) { got = append(got, subject+": "+text) }, time.UTC)
	at := func(after time.Duration, s sight, want ...string) {
		t.Helper()
		got = nil
		r.report(s, start.Add(after))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s after the start (-want +got):\n%s", after, diff)
		}
	}
	config := &v1beta1.UpgradeConfig{Status: v1beta1.UpgradeConfigStatus{Conditions: []metav1.Condition{
		v1beta1.Ready(v1beta1.ReasonValid, "Valid."), v1beta1.Scheduling("Soon."),
	}}}
	at(-time.Minute, sight{})
	at(-50*time.Second, sight{config: config}, "config: Ready: Valid.", "config: Scheduling: Soon.")
	at(-20*time.Second, sight{config: config, job: newJob(v1beta1.NotStarted(v1beta1.ReasonWaitingForStart, "Not yet."))},
		"job: job created: version 4.18.2 pinned; it starts at 20:31:00 (in 20s), until 21:31:00 at the latest",
		"job: Started is False (WaitingForStart): Not yet.")

	started := []metav1.Condition{v1beta1.Started("Started."), v1beta1.StepDone("First", "Done."), v1beta1.StepNotDone("Second", "Working", "1 of 3.")}
	job := newJob(started...)
	at(0, sight{job: job}, "job: Started: Started.", "step: First: Done.", "step: Second is False (Working): 1 of 3.")

	job = newJob(started...)
	job.Status.Conditions[2].Message = "2 of 3."
	job.Status.Blockers = []v1beta1.Blocker{
		{Code: "ClusterOperatorUpdating", Object: "ClusterOperator/a"}, {Code: "ClusterOperatorDegraded", Object: "ClusterOperator/b"},
		{Code: "NodeUpdating", Object: "Node/c"}, {Code: "NodeUpdating", Object: "Node/d"},
	}
	at(time.Second, sight{job: job, progress: progress{operators: 3, operatorsUpdated: 1, nodes: 9, working: []string{"b"}}},
		"cluster: operators 1 of 3, nodes 0 of 9; in work: b",
		"job: waits for ClusterOperator/a, ClusterOperator/b (ClusterOperatorDegraded), Node/c and 1 more")
	further := sight{job: job, progress: progress{operators: 3, operatorsUpdated: 2, nodes: 9}}
	at(2*time.Second, further) // too soon for another line
	at(3*time.Second, further, "cluster: operators 2 of 3, nodes 0 of 9")
	at(9*time.Second, further)

	job = newJob(append(started[:2:2], v1beta1.StepDone("Second", "Done."), v1beta1.Succeeded(v1beta1.ReasonUpgraded, "Upgraded."))...)
	at(10*time.Second, sight{job: job, progress: further.progress}, "step: Second: Done.", "job: Succeeded (Upgraded): Upgraded.")
}

func TestFailure(t *testing.T) {
	if err := failure(newJob(v1beta1.Succeeded(v1beta1.ReasonUpgraded, "Upgraded."))); err != nil {
		t.Errorf("a job that succeeded: %v", err)
	}
	err := failure(newJob(v1beta1.Started("Started."), v1beta1.Skipped(v1beta1.ReasonUpgradeWithdrawn, "Gone.")))
	if err == nil || err.Error() != "UpgradeJob job is Skipped (UpgradeWithdrawn): Gone." {
		t.Errorf("a skipped job: %v", err)
	}
}

func TestPending(t *testing.T) {
	config := &v1beta1.UpgradeConfig{}
	scheduled := &v1beta1.UpgradeConfig{Status: v1beta1.UpgradeConfigStatus{Conditions: []metav1.Condition{
		v1beta1.NotScheduling(v1beta1.ReasonNoUpdateAvailable, "The cluster offers no update."),
	}}}
	blocked := newJob(v1beta1.Started("Started."))
	blocked.Status.Blockers = []v1beta1.Blocker{{Object: "Node/a", Message: "Node a is draining", ClearsWhen: "it is done"}}
	for _, test := range []struct {
		reason string
		sight  sight
		want   string
	}{
		{"nothing was created", sight{}, "there is no UpgradeConfig"},
		{"the operator sleeps", sight{config: config}, "the operator has not looked at the UpgradeConfig"},
		{"there is no update", sight{config: scheduled}, "no UpgradeJob was created: Scheduling is False (NoUpdateAvailable): The cluster offers no update."},
		{"the job waits for its start", sight{config: config, job: newJob(v1beta1.NotStarted(v1beta1.ReasonWaitingForStart, "Not yet."))},
			"Started is False (WaitingForStart): Not yet."},
		{"the job is blocked", sight{config: config, job: blocked}, "it waits for\n- Node/a: Node a is draining (clears when it is done)"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			if got := pending(test.sight); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestSummary(t *testing.T) {
	times := newTimes(start)
	job := newJob(v1beta1.NotStarted(v1beta1.ReasonWaitingForStart, "Not yet."))
	times.take(sight{job: job}, start.Add(-20*time.Second))
	job = newJob(v1beta1.Started("Started."), v1beta1.StepNotDone("First", "Working", ""))
	times.take(sight{job: job}, start.Add(10*time.Millisecond))
	for i, phase := range []v1beta1.Phase{v1beta1.PhaseActive, v1beta1.PhasePaused, v1beta1.PhasePaused, v1beta1.PhaseActive, v1beta1.PhaseActive} {
		job.Status.Phase = phase
		times.take(sight{job: job}, start.Add(time.Duration(i+1)*5*time.Second))
	}
	job = newJob(v1beta1.Started("Started."), v1beta1.StepDone("First", ""), v1beta1.Succeeded(v1beta1.ReasonUpgraded, ""))
	times.take(sight{job: job}, start.Add(30*time.Second))
	times.take(sight{job: job}, start.Add(40*time.Second))

	want := []string{
		"outcome Succeeded (Upgraded)", "job created before its start 20.00 s", "Started 0.01 s", "First 29.99 s",
		"of that in phase Paused 10.00 s", "from the start to the outcome 30.00 s",
	}
	var got []string
	for line := range strings.Lines(times.summary(job)) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
