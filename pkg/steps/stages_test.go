// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

var (
	waiting = steps.Wait(time.Minute, "Busy", "It goes on.")
	isDone  = steps.Done("It is done.")
)

func outcomesOnly(job *v1beta1.UpgradeJob) {
	job.Spec.Config.StageNotifications = v1beta1.StageNotificationsOutcome
}

func TestBeginning(t *testing.T) {
	const begins = "upgrade.controlplanestarted: It begins."
	for _, tc := range []struct {
		reason     string
		job        []jobOption
		version    []versionOption
		after      time.Duration
		commenceBy time.Duration
		want       []string
	}{
		{reason: "before the step runs", want: []string{begins}},
		{reason: "to the end of the window", after: time.Hour, want: []string{begins}},
		{reason: "not after it: it will not commence", after: time.Hour + 1},
		{reason: "the upgrader has a window of its own", after: time.Hour + 1, commenceBy: 2 * time.Hour, want: []string{begins}},
		{reason: "which may be over", after: 30*time.Minute + 1, commenceBy: 30 * time.Minute},
		{reason: "the upgrade has commenced", job: []jobOption{commenced}},
		{reason: "the cluster runs the version", version: []versionOption{upgraded()}},
		{reason: "a job without a version", job: []jobOption{withoutVersion}},
		{reason: "it was told of before", job: []jobOption{toldAt(v1beta1.StageControlPlaneStarted, 0)}, after: time.Minute},
		{reason: "before the job was resumed", job: []jobOption{toldAt(v1beta1.StageControlPlaneStarted, 0), resumed(time.Minute)}, after: time.Minute, want: []string{begins}},
		{reason: "nobody is told of the stages of machines", job: []jobOption{outcomesOnly}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newStageWorld(t, newJob(append(tc.job, receiver("pager"))...), openshifttest.ClusterVersion(tc.version...))
			if tc.commenceBy > 0 {
				w.commenceBy = start.Add(tc.commenceBy)
			}
			step := steps.Beginning(v1beta1.StageControlPlaneStarted, "It begins.", answering(t, "Step", waiting, isDone))
			if result := w.pass(tc.after, step); result.Outcome != steps.Running || result.Reason != "Busy" {
				t.Errorf("got %+v, want the verdict of the step", result)
			}
			w.expectTold(tc.want...)
			if result := w.pass(tc.after, step); result.Outcome != steps.Completed {
				t.Errorf("got %+v, want the verdict of the step", result)
			}
			w.expectTold(tc.want...)
		})
	}
}

func TestFinishing(t *testing.T) {
	const finished = "upgrade.workersfinished: It is over."
	for _, tc := range []struct {
		reason string
		job    []jobOption
		want   []string
	}{
		{"once the step is done", nil, []string{finished}},
		{"a job without a version", []jobOption{withoutVersion}, nil},
		{"it was told of before", []jobOption{toldAt(v1beta1.StageWorkersFinished, 0)}, nil},
		{"before the job was resumed", []jobOption{toldAt(v1beta1.StageWorkersFinished, 0), resumed(time.Second)}, []string{finished}},
		{"nobody is told of the stages of machines", []jobOption{outcomesOnly}, nil},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newStageWorld(t, newJob(append(tc.job, receiver("pager"), begun(steps.ConditionUpgradeCommenced, 0))...), openshifttest.ClusterVersion(upgraded()))
			step := steps.Finishing(v1beta1.StageWorkersFinished, "It is over.", answering(t, "Step", waiting, isDone, isDone))
			for i, want := range [][]string{nil, tc.want, tc.want} {
				if result := w.pass(time.Minute+time.Duration(i), step); (result.Outcome == steps.Completed) != (i > 0) {
					t.Errorf("pass %d: got %+v, want the verdict of the step", i, result)
				}
				w.expectTold(want...)
			}
		})
	}
}

// A step that ends otherwise has not finished anything.
func TestFinishingOfAStepThatDoesNot(t *testing.T) {
	broken := errors.New("on fire")
	for reason, step := range map[string]steps.Step{
		"it fails": answering(t, "Step", steps.Fail("No", "It is broken.")), "it is skipped": answering(t, "Step", steps.Skip("No", "It is late.")), "it meets an error": failing(t, "Step", broken),
	} {
		w := newStageWorld(t, newJob(receiver("pager")), openshifttest.ClusterVersion())
		result := w.pass(0, steps.Finishing(v1beta1.StageWorkersFinished, "It is over.", step))
		if result.Outcome == steps.Completed || (result.Err != nil && !errors.Is(result.Err, broken)) {
			t.Errorf("%s: got %+v", reason, result)
		}
		w.expectTold()
	}
}

func TestBeginningHandsErrorsOn(t *testing.T) {
	broken := errors.New("on fire")
	w := newStageWorld(t, newJob(receiver("pager")), openshifttest.ClusterVersion())
	if result := w.pass(0, steps.Beginning(v1beta1.StageControlPlaneStarted, "It begins.", failing(t, "Step", broken))); !errors.Is(result.Err, broken) {
		t.Errorf("got %+v", result)
	}
}

// What was told of is recorded with the notice by which it was, once, also where it is told again.
func TestStagesAreRecorded(t *testing.T) {
	w := newStageWorld(t, newJob(receiver("pager", "upgrade.workersfinished"), begun(steps.ConditionUpgradeCommenced, 0)), openshifttest.ClusterVersion(upgraded()))
	workers := steps.Finishing(v1beta1.StageWorkersFinished, "It is over.", answering(t, "Workers", isDone, isDone))
	plane := steps.Finishing(v1beta1.StageControlPlaneFinished, "It is over.", answering(t, "Plane", isDone, isDone))
	w.pass(0, plane, workers)
	w.edit(resumed(time.Hour))
	w.pass(time.Hour, plane, workers)
	again := metav1.NewTime(start.Add(time.Hour))
	want := []v1beta1.StageStatus{{Stage: v1beta1.StageControlPlaneFinished, Time: again}, {Stage: v1beta1.StageWorkersFinished, Time: again, Sequence: 2}}
	if diff := cmp.Diff(want, w.job().Status.Stages); diff != "" {
		t.Errorf("stages (-want +got):\n%s", diff)
	}
	notice := w.job().Status.Notifications.Outbox[1]
	if notice.Condition != "WorkersFinished" || notice.Reason != "UpgradeWorkersFinished" || notice.Sequence != 2 {
		t.Errorf("the notice is %+v", notice)
	}
}
