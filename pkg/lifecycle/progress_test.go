// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/lifecycle"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// stepDone has the job complete a step at a time.
func stepDone(name string, at time.Time) func(*v1beta1.UpgradeJob) {
	return func(job *v1beta1.UpgradeJob) {
		withCondition(v1beta1.StepDone(name, "Done."))(job)
		job.Status.Steps = append(job.Status.Steps, v1beta1.StepStatus{Condition: name, StartTime: metav1.NewTime(at), CompletionTime: new(metav1.NewTime(at))})
	}
}

// stepWaits has the job begin a step at a time, and not complete it.
func stepWaits(name string, at time.Time) func(*v1beta1.UpgradeJob) {
	return func(job *v1beta1.UpgradeJob) {
		withCondition(v1beta1.StepNotDone(name, "Busy", "It takes long."))(job)
		job.Status.Steps = append(job.Status.Steps, v1beta1.StepStatus{Condition: name, StartTime: metav1.NewTime(at)})
	}
}

// undone has a step that was completed begin anew.
func undone(name string) func(*v1beta1.UpgradeJob) {
	return func(job *v1beta1.UpgradeJob) {
		withCondition(v1beta1.StepNotDone(name, "Busy", "It takes long."))(job)
		i := slices.IndexFunc(job.Status.Steps, func(s v1beta1.StepStatus) bool { return s.Condition == name })
		job.Status.Steps[i].CompletionTime = nil
	}
}

func TestSteps(t *testing.T) {
	const commenced = steps.ConditionUpgradeCommenced
	at := startAfter.Add(time.Minute)
	failed := finished(v1beta1.Failed(v1beta1.ReasonTimedOut, ""), deadline)
	for _, tc := range []struct {
		reason string
		job    *v1beta1.UpgradeJob
		want   string
	}{
		{"before the start", newJob(), "UpgradeCommenced pending, B pending, C pending"},
		{"one waits", newJob(started(at), stepDone(commenced, at), stepWaits("B", at)), "UpgradeCommenced completed (Completed), B waiting (Busy), C pending"},
		{"hooks hold one before it begins", newJob(started(at), stepDone(commenced, at), withCondition(v1beta1.StepNotDone("B", v1beta1.ReasonHooksRunning, ""))),
			"UpgradeCommenced completed (Completed), B waiting (HooksRunning), C pending"},
		{"of two that are not done only the first is waited for", newJob(started(at), stepDone(commenced, at), stepWaits("B", at), undone(commenced)),
			"UpgradeCommenced waiting (Busy), B pending (Busy), C pending"},
		{"one has ended the job", newJob(started(at), stepDone(commenced, at), stepWaits("B", at), failed), "UpgradeCommenced completed (Completed), B failed (Busy), C pending"},
		{"the job is resumed, and has not come here again", newJob(started(at), stepDone(commenced, at), failed, resumed("again", deadline.Add(time.Hour))),
			"UpgradeCommenced pending (Resumed), B pending, C pending"},
		{"the job is resumed, and has started again", newJob(started(at), stepDone(commenced, at), failed, resumed("again", deadline.Add(time.Hour)), started(deadline.Add(time.Hour))),
			"UpgradeCommenced waiting (Resumed), B pending, C pending"},
		{"others than those of the upgrader", newJob(started(at), stepDone("Z", at)), "UpgradeCommenced pending, B pending, C pending, Z completed (Completed)"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			names := append(make([]string, 0, 8), commenced, "B", "C")
			var got []string
			for _, s := range lifecycle.Steps(tc.job, names) {
				text := fmt.Sprintf("%s %s", s.Condition, s.State)
				if s.Reason != "" {
					text += " (" + s.Reason + ")"
				}
				got = append(got, text)
			}
			if text := strings.Join(got, ", "); text != tc.want {
				t.Errorf("got %s\nwant %s", text, tc.want)
			}
			if extra := names[:4][3]; extra != "" {
				t.Errorf("the names of the caller were changed: %q", extra)
			}
		})
	}
}

func TestWaitingSince(t *testing.T) {
	at := startAfter.Add(time.Minute)
	for _, tc := range []struct {
		reason string
		job    *v1beta1.UpgradeJob
		want   time.Time
	}{
		{"since it began", newJob(started(at), stepWaits("B", at)), at},
		{"since the job was resumed", newJob(started(at), stepWaits("B", at), finished(v1beta1.Failed("X", ""), deadline), resumed("again", deadline.Add(time.Hour))), deadline.Add(time.Hour)},
		{"since it began in a job that was resumed before", newJob(started(at), finished(v1beta1.Failed("X", ""), deadline), resumed("again", deadline.Add(time.Hour)),
			stepWaits("B", deadline.Add(2*time.Hour))), deadline.Add(2 * time.Hour)},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if got := lifecycle.WaitingSince(tc.job, &tc.job.Status.Steps[0]); !got.Equal(tc.want) {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestLastRun(t *testing.T) {
	at, again := startAfter.Add(time.Minute), deadline.Add(48*time.Hour)
	failed, skipped := finished(v1beta1.Failed("X", ""), deadline), finished(v1beta1.Skipped("X", ""), startAfter.Add(time.Hour))
	restarted := func(at time.Time) func(*v1beta1.UpgradeJob) {
		return func(job *v1beta1.UpgradeJob) { lifecycle.SetStarted(job, "4.18.1", at) }
	}
	for _, tc := range []struct {
		reason     string
		job        *v1beta1.UpgradeJob
		due, began time.Time
		ran        bool
	}{
		{"before the start", newJob(), time.Time{}, time.Time{}, false},
		{"never resumed", newJob(started(at), failed), startAfter, at, true},
		{"resumed, and started again", newJob(restarted(at), failed, resumed("again", again), restarted(again.Add(time.Hour))), again, again.Add(time.Hour), true},
		{"resumed, and not started again", newJob(restarted(at), failed, resumed("again", again)), time.Time{}, time.Time{}, false},
		{"it started first when it was resumed", newJob(skipped, resumed("again", again), restarted(again.Add(time.Minute))), again, again.Add(time.Minute), true},
		{"resumed before it had started", newJob(skipped, resumed("again", again)), time.Time{}, time.Time{}, false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			due, began, ran := lifecycle.LastRun(tc.job)
			if !due.Equal(tc.due) || !began.Equal(tc.began) || ran != tc.ran {
				t.Errorf("it was due at %s and began at %s (%t), want %s and %s (%t)", due, began, ran, tc.due, tc.began, tc.ran)
			}
		})
	}
}

func TestOriginOfAJob(t *testing.T) {
	ownedBy := func(kind string, controller bool) func(*v1beta1.UpgradeJob) {
		return func(job *v1beta1.UpgradeJob) {
			job.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: "weekly", Controller: &controller}}
		}
	}
	for _, tc := range []struct {
		reason string
		job    *v1beta1.UpgradeJob
		want   string
	}{
		{"a config", newJob(ownedBy("UpgradeConfig", true)), "weekly"},
		{"nobody", newJob(), ""},
		{"something else", newJob(ownedBy("ConfigMap", true)), ""},
		{"an owner that did not make it", newJob(ownedBy("UpgradeConfig", false)), ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if got := lifecycle.ConfigOf(tc.job); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestNewerFirst(t *testing.T) {
	job := func(name string, start, created time.Duration) *v1beta1.UpgradeJob {
		return newJob(func(job *v1beta1.UpgradeJob) {
			job.Name, job.Spec.StartAfter, job.CreationTimestamp = name, metav1.NewTime(startAfter.Add(start)), metav1.NewTime(startAfter.Add(created))
		})
	}
	jobs := []*v1beta1.UpgradeJob{job("b", 0, 0), job("old", -time.Hour, 2*time.Hour), job("a", 0, 0), job("made later", 0, time.Hour), job("new", time.Hour, -time.Hour)}
	slices.SortFunc(jobs, lifecycle.NewerFirst)
	var got []string
	for _, j := range jobs {
		got = append(got, j.Name)
	}
	if text := strings.Join(got, ", "); text != "new, made later, a, b, old" {
		t.Errorf("order: %s", text)
	}
}
