// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"errors"
	"testing"
	"time"

	"github.com/golang/mock/gomock"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/pkg/steps/mocks"
)

// The condition of a step that is done may tell something else than that it is: True and False both let the next run.
func TestAStepThatIsDoneMayHoldSomething(t *testing.T) {
	w := newWorld(t, newJob(), openshifttest.ClusterVersion())
	told := func(reason, message string) []steps.Transition {
		return []steps.Transition{{Step: "First", Kind: v1beta1.NotificationStepCompleted, Reason: reason, Message: message}}
	}
	for i, tc := range []struct {
		reason string
		answer steps.Verdict
		want   string
		turned []steps.Transition
		since  int // the minute of the last transition
	}{
		{"nothing yet", steps.Holding(false, 0, "Nothing", "It holds nothing."), "False Nothing: It holds nothing.", told("Nothing", "It holds nothing."), 0},
		{"something", steps.Holding(true, 0, "Held", "It holds 1."), "True Held: It holds 1.", told("Held", "It holds 1."), 1},
		{"more of it is no turn, and is said", steps.Holding(true, 0, "Held", "It holds 2."), "True Held: It holds 2.", nil, 1},
		{"for another reason", steps.Holding(true, 0, "Kept", "It holds 2."), "True Kept: It holds 2.", told("Kept", "It holds 2."), 1},
		{"nothing any more", steps.Holding(false, 0, "Released", "It holds nothing."), "False Released: It holds nothing.", told("Released", "It holds nothing."), 4},
		{"still nothing", steps.Holding(false, 0, "Released", "It holds nothing."), "False Released: It holds nothing.", nil, 4},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w.t, w.now = t, start.Add(time.Duration(i)*time.Minute)
			result := w.pass(answering(t, "First", tc.answer), answering(t, "Second", steps.Wait(time.Hour, "Waiting", "...")))
			if result.Outcome != steps.Running || result.Reason != "Waiting" {
				t.Errorf("got %+v, want the next step to run", result)
			}
			w.expectCondition("First", tc.want)
			var turned []steps.Transition
			for _, transition := range w.turned {
				if transition.Step == "First" {
					turned = append(turned, transition)
				}
			}
			if diff := cmp.Diff(tc.turned, turned); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
			c := meta.FindStatusCondition(w.job().Status.Conditions, "First")
			if at := start.Add(time.Duration(tc.since) * time.Minute); !c.LastTransitionTime.Time.Equal(at) || c.ObservedGeneration != 1 {
				t.Errorf("got %+v, want it to stand since %s, of this generation", c, at)
			}
			if s := w.job().Status.Steps[0]; s.CompletionTime == nil || !s.CompletionTime.Time.Equal(start) || s.Attempts != 1 {
				t.Errorf("got %+v, want the step done since the beginning", s)
			}
		})
	}
}

// A step that is done and watches the time has the pass come back, whatever the others say.
func TestAStepThatIsDoneHasThePassComeBack(t *testing.T) {
	holding := func(after time.Duration) steps.Verdict {
		return steps.Holding(true, after, "Held", "It holds something.")
	}
	for _, tc := range []struct {
		reason string
		list   func(*testing.T) []steps.Step
		want   time.Duration
	}{
		{"the next one leaves it to the watches", func(t *testing.T) []steps.Step {
			return []steps.Step{answering(t, "A", holding(time.Hour)), answering(t, "B", steps.Wait(0, "Waiting", "..."))}
		}, time.Hour},
		{"the next one waits longer", func(t *testing.T) []steps.Step {
			return []steps.Step{answering(t, "A", holding(time.Hour)), answering(t, "B", steps.Wait(2*time.Hour, "Waiting", "..."))}
		}, time.Hour},
		{"the next one waits shorter", func(t *testing.T) []steps.Step {
			return []steps.Step{answering(t, "A", holding(time.Hour)), answering(t, "B", steps.Wait(time.Minute, "Waiting", "..."))}
		}, time.Minute},
		{"two of them: the first", func(t *testing.T) []steps.Step {
			return []steps.Step{answering(t, "A", holding(time.Hour)), answering(t, "B", holding(time.Minute)), answering(t, "C", steps.Wait(0, "Waiting", "..."))}
		}, time.Minute},
		{"the next one breaks", func(t *testing.T) []steps.Step {
			return []steps.Step{answering(t, "A", holding(time.Hour)), failing(t, "B", errors.New("on fire"))}
		}, time.Hour},
		{"the next one meets a conflict", func(t *testing.T) []steps.Step {
			return []steps.Step{answering(t, "A", holding(time.Hour)), failing(t, "B", errConflict)}
		}, time.Hour},
		{"all are done", func(t *testing.T) []steps.Step { return []steps.Step{answering(t, "A", holding(time.Hour))} }, 0},
		{"the job ends", func(t *testing.T) []steps.Step {
			return []steps.Step{answering(t, "A", holding(time.Hour)), answering(t, "B", steps.Fail("Broken", "..."))}
		}, 0},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, newJob(), openshifttest.ClusterVersion())
			if got := w.pass(tc.list(t)...); got.After != tc.want {
				t.Errorf("got %+v, want it after %s", got, tc.want)
			}
		})
	}
	t.Run("a hook holds what comes next", func(t *testing.T) {
		w := newWorld(t, newJob(commenced), openshifttest.ClusterVersion(), hookOn("check", ignored, v1beta1.HookEventStepCompleted("A")))
		if got := w.pass(answering(t, "A", holding(time.Hour)), never(t, "B")); got.After != time.Hour || got.Reason != v1beta1.ReasonHooksRunning {
			t.Errorf("got %+v, want it after 1h", got)
		}
	})
}

func TestAPauseIsAWaitForAnAgreedTime(t *testing.T) {
	w := newWorld(t, newJob(), openshifttest.ClusterVersion())
	result := w.pass(answering(t, "First", steps.Pause(time.Hour, "Delayed", "It is paused.", blocker("Delayed", "MachineConfigPool/infra"))))
	want := steps.Result{Outcome: steps.Running, Reason: "Delayed", Message: "It is paused.", After: time.Hour, Paused: true}
	if diff := cmp.Diff(want, result); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	w.expectCondition("First", "False Delayed: It is paused.")
	if got := blockersOf(w.job()); len(got) != 1 {
		t.Errorf("got the blockers %q", got)
	}
	for reason, step := range map[string]steps.Step{
		"a plain wait": answering(t, "First", steps.Wait(time.Hour, "Delayed", "...")), "an error": failing(t, "First", errors.New("on fire")),
		"the end": answering(t, "First", steps.Done("...")), "a failure": answering(t, "First", steps.Fail("Broken", "...")),
	} {
		if got := w.pass(step); got.Paused {
			t.Errorf("%s: got %+v, want no pause", reason, got)
		}
	}
}

// The outcome of a job stands, but what it holds still is told.
func TestCleanUpRecordsWhatIsHeld(t *testing.T) {
	before := []jobOption{done("MachineConfigPoolsPaused", 0), done("Other", time.Minute), waitedFor("Pool infra is paused."), inPhase(v1beta1.PhaseFailed)}
	w := newWorld(t, newJob(before...), openshifttest.ClusterVersion())
	w.now = start.Add(time.Hour)
	u := w.upgrade()
	was := u.Job.DeepCopy()
	wait, err := steps.CleanUp(t.Context(), []steps.Step{
		answering(t, "Other", steps.Done("It is clean.")),
		answering(t, "MachineConfigPoolsPaused", steps.Holding(true, 0, "LeftPaused", "Left paused: infra.")),
	}, u)
	if wait != 0 || err != nil {
		t.Errorf("got %s, %v", wait, err)
	}
	want := was.DeepCopy()
	meta.SetStatusCondition(&want.Status.Conditions, metav1.Condition{
		Type: "MachineConfigPoolsPaused", Status: metav1.ConditionTrue, Reason: "LeftPaused", Message: "Left paused: infra.", ObservedGeneration: 1,
	})
	if diff := cmp.Diff(want.Status, u.Job.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if len(w.turned) != 1 || w.turned[0].Reason != "LeftPaused" {
		t.Errorf("told %+v", w.turned)
	}
}

func TestCleanUpRecordsNothingOfAStepThatBroke(t *testing.T) {
	w := newWorld(t, newJob(), openshifttest.ClusterVersion())
	u := w.upgrade()
	was := u.Job.DeepCopy()
	broken := errors.New("on fire")
	step := mocks.NewMockStep(gomock.NewController(t))
	step.EXPECT().Condition().Return("MachineConfigPoolsPaused").AnyTimes()
	step.EXPECT().Run(gomock.Any(), gomock.Any()).Return(steps.Holding(true, 0, "LeftPaused", "Left paused: infra."), broken)
	if _, err := steps.CleanUp(t.Context(), []steps.Step{step}, u); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff(was.Status, u.Job.Status); diff != "" {
		t.Errorf("something was recorded:\n%s", diff)
	}
}
