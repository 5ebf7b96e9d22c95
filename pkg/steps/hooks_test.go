// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/hooks"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// hookOn returns a hook that runs at these events.
func hookOn(name string, policy v1beta1.HookFailurePolicy, events ...v1beta1.HookEvent) *v1beta1.UpgradeJobHook {
	hook := &v1beta1.UpgradeJobHook{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	hook.Spec = v1beta1.UpgradeJobHookSpec{Events: events, Run: v1beta1.HookRunAll, FailurePolicy: policy}
	hook.Spec.Template.Spec.Template.Spec.Containers = []corev1.Container{{Name: "hook", Image: "example.com/hook"}}
	return hook
}

// ranAt records a run of a hook.
func ranAt(event v1beta1.HookEvent, hook string, policy v1beta1.HookFailurePolicy, status v1beta1.HookRunStatus, message string) jobOption {
	return func(job *v1beta1.UpgradeJob) {
		job.Status.HookTracker = append(job.Status.HookTracker, v1beta1.HookRun{
			HookEvent: event, UpgradeJobHook: hook, FailurePolicy: policy, Job: hook + "-job", Status: status, Message: message,
			StartTime: metav1.NewTime(start),
		})
	}
}

const (
	ignored = v1beta1.HookFailureIgnore
	aborts  = v1beta1.HookFailureAbort
)

func TestStartHooksCompleted(t *testing.T) {
	const event = v1beta1.HookEventStart
	var many []jobOption
	for i := range 5 {
		many = append(many, ranAt(event, fmt.Sprintf("h%d", i), ignored, v1beta1.HookRunFailed, "no"))
	}
	for _, tc := range []stepCase{
		{reason: "there are no hooks", want: verdict{outcome: steps.Completed, reason: "Completed", says: "There are no hooks of Start."}},
		{
			reason: "a hook is run and waited for, as long as the window is open", objects: []client.Object{hookOn("backup", ignored, event)},
			want: verdict{
				outcome: steps.Running, reason: "HooksRunning", after: time.Hour + time.Millisecond,
				blockers: []string{"HookRunning UpgradeJobHook/backup"}, says: "Waiting for the hooks of Start: backup.",
			},
		},
		{
			reason: "it still runs when the window closes", job: []jobOption{ranAt(event, "backup", ignored, v1beta1.HookRunActive, "")}, after: time.Hour + time.Second,
			objects: []client.Object{&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "backup-job"}}},
			want: verdict{
				outcome: steps.Skipped, reason: "Expired", blockers: []string{"HookRunning UpgradeJobHook/backup"},
				says: "could not commence by 2026-11-24T23:00:00Z. Waiting for the hooks of Start: backup.",
			},
		},
		{
			reason: "a job without a version has no window to commence in",
			job:    []jobOption{withoutVersion, ranAt(event, "backup", ignored, v1beta1.HookRunActive, "")}, after: 2 * time.Hour,
			want: verdict{outcome: steps.Running, reason: "HooksRunning", blockers: []string{"HookRunning UpgradeJobHook/backup"}},
		},
		{
			reason: "it succeeded", job: []jobOption{ranAt(event, "backup", aborts, v1beta1.HookRunSucceeded, "")},
			want: verdict{outcome: steps.Completed, reason: "Completed", says: "Hooks of Start: 1 of 1 succeeded."},
		},
		{
			reason: "it failed and is ignored", job: []jobOption{ranAt(event, "backup", ignored, v1beta1.HookRunFailed, "no space")},
			want: verdict{outcome: steps.Completed, reason: "Completed", says: "UpgradeJobHook backup failed and is ignored: no space"},
		},
		{reason: "many failed and are ignored", job: many, want: verdict{outcome: steps.Completed, reason: "Completed", says: "2 more failed and are ignored."}},
		{
			reason: "it failed and ends the job, whatever else still runs",
			job:    []jobOption{ranAt(event, "a", ignored, v1beta1.HookRunActive, ""), ranAt(event, "backup", aborts, v1beta1.HookRunFailed, "no space")},
			want:   verdict{outcome: steps.Failed, reason: "HookFailed", says: "UpgradeJobHook backup failed at Start: no space"},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) { tc.run(t, steps.StartHooksCompleted()) })
	}
}

func TestCompletionHooksCompleted(t *testing.T) {
	for _, tc := range []stepCase{
		{reason: "there are no hooks", want: verdict{outcome: steps.Completed, reason: "Completed", says: "There are no hooks of UpgradeComplete."}},
		{
			reason: "a hook is waited for, window or not", objects: []client.Object{hookOn("test", aborts, v1beta1.HookEventUpgradeComplete)},
			job: []jobOption{commenced}, after: 5 * time.Hour,
			want: verdict{outcome: steps.Running, reason: "HooksRunning", blockers: []string{"HookRunning UpgradeJobHook/test"}},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) { tc.run(t, steps.CompletionHooksCompleted()) })
	}
}

// end lets the hook that runs finish.
func (w *world) end(status v1beta1.HookRunStatus) {
	w.t.Helper()
	job := w.job()
	for i := range job.Status.HookTracker {
		if run := &job.Status.HookTracker[i]; !run.Status.Finished() {
			run.Status, run.Message = status, "as told"
		}
	}
	if err := w.api.Status().Update(w.t.Context(), job); err != nil {
		w.t.Fatal(err)
	}
}

func TestHooksOfStepsHoldThem(t *testing.T) {
	started, completed := v1beta1.HookEventStepStarted("First"), v1beta1.HookEventStepCompleted("First")
	hook := func() *v1beta1.UpgradeJobHook { return hookOn("check", aborts, started, completed) }
	first := func(t *testing.T) steps.Step { return answering(t, "First", steps.Done("First said.")) }

	w := newWorld(t, newJob(), openshifttest.ClusterVersion(), hook())
	w.pass(never(t, "First"), never(t, "Second"))
	w.now = start.Add(time.Minute)
	w.pass(never(t, "First"), never(t, "Second"))
	if diff := cmp.Diff([]string{"First=False HooksRunning: Waiting for the hooks of StepStarted/First: check."}, conditionsOf(w.job())); diff != "" {
		t.Fatal(diff)
	}
	w.end(v1beta1.HookRunSucceeded)
	w.now = start.Add(2 * time.Minute)
	w.pass(first(t), never(t, "Second"))
	if diff := cmp.Diff([]string{
		"First=True Completed: First said.", "Second=False HooksRunning: Waiting for the hooks of StepCompleted/First: check.",
	}, conditionsOf(w.job())); diff != "" {
		t.Fatal(diff)
	}
	if s := w.job().Status.Steps[0]; !s.StartTime.Time.Equal(w.now) || s.CompletionTime == nil {
		t.Errorf("got %+v, want the step's own clock to start behind its first hooks, and to stop before the last", s)
	}
	w.end(v1beta1.HookRunSucceeded)
	w.pass(first(t), answering(t, "Second", steps.Done("Second said.")))
	if diff := cmp.Diff([]string{
		"First=True Completed: First said. Hooks of StepCompleted/First: 1 of 1 succeeded.", "Second=True Completed: Second said.",
	}, conditionsOf(w.job())); diff != "" {
		t.Error(diff)
	}
	w.pass(first(t), answering(t, "Second", steps.Done("Second said.")))
	if got := len(w.job().Status.HookTracker); got != 2 {
		t.Errorf("got %d runs of the hook, want one for each event", got)
	}
}

func TestHooksOfStepsAbort(t *testing.T) {
	for _, event := range []v1beta1.HookEvent{v1beta1.HookEventStepStarted("First"), v1beta1.HookEventStepCompleted("First")} {
		w := newWorld(t, newJob(), openshifttest.ClusterVersion(), hookOn("check", aborts, event))
		list := func() []steps.Step {
			if strings.HasPrefix(string(event), "StepStarted") {
				return []steps.Step{never(t, "First"), never(t, "Second")}
			}
			return []steps.Step{answering(t, "First", steps.Done("First said.")), never(t, "Second")}
		}
		w.pass(list()...)
		w.end(v1beta1.HookRunFailed)
		result := w.pass(list()...)
		want := steps.Result{Outcome: steps.Failed, Reason: "HookFailed", Message: "UpgradeJobHook check failed at " + string(event) + ": as told"}
		if diff := cmp.Diff(want, result); diff != "" {
			t.Errorf("%s (-want +got):\n%s", event, diff)
		}
	}
}

// The step that commences tells by the record that it was run whether an update is this job's: its hooks must not make
// it look run.
func TestAHookBeforeTheUpgradeCommencesIsNoAttempt(t *testing.T) {
	event := v1beta1.HookEventStepStarted(steps.ConditionUpgradeCommenced)
	w := newWorld(t, newJob(), openshifttest.ClusterVersion(openshifttest.Available(target)), hookOn("check", aborts, event))
	w.pass(steps.UpgradeCommenced())
	w.update(openshifttest.Desired(target)) // by somebody else
	if u := w.upgrade(); u.Job.Status.CommenceTime != nil || u.Commenced() {
		t.Errorf("commenceTime %v, commenced %v", u.Job.Status.CommenceTime, u.Commenced())
	}
}

func TestHooksWithoutALockOrAStatusAreNotRun(t *testing.T) {
	w := newWorld(t, newJob(), openshifttest.ClusterVersion(), hookOn("backup", ignored, v1beta1.HookEventStart))
	u := w.upgrade()
	locked := errors.New("locked by somebody else")
	u.Hooks.Fence = func(context.Context) error { return locked }
	result := steps.Run(t.Context(), []steps.Step{steps.StartHooksCompleted()}, u)
	jobs := &batchv1.JobList{}
	if err := w.api.List(t.Context(), jobs); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(result.Err, locked) || len(jobs.Items) > 0 {
		t.Errorf("got %+v, and %d Jobs", result, len(jobs.Items))
	}
}

func TestOnce(t *testing.T) {
	earlier := func(after time.Duration) jobOption { return done("Earlier", after) }
	for _, tc := range []struct {
		reason string
		job    []jobOption
		again  bool
	}{
		{"it was never run", nil, true},
		{"it has begun", []jobOption{begun("Step", 0)}, true},
		{"it was done", []jobOption{earlier(0), done("Step", time.Minute)}, false},
		{"it was done before the job was resumed", []jobOption{done("Step", time.Minute), resumed(time.Hour)}, true},
		{"it was done after the job was resumed", []jobOption{resumed(time.Hour), done("Step", 2*time.Hour)}, false},
		{"a step before it was done again later", []jobOption{earlier(time.Hour), done("Step", time.Minute)}, true},
		{"a step before it is not done any more", []jobOption{begun("Earlier", time.Hour), done("Step", time.Minute)}, true},
		{"a step behind it was done later", []jobOption{done("Step", time.Minute), done("Later", time.Hour)}, false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, newJob(tc.job...), openshifttest.ClusterVersion())
			w.now = start.Add(3 * time.Hour)
			step := never(t, "Step")
			if tc.again {
				step = answering(t, "Step", steps.Wait(0, "Waiting", "..."))
			}
			want := steps.Completed
			if tc.again {
				want = steps.Running
			}
			if result := w.pass(steps.Once(step)); result.Outcome != want {
				t.Errorf("got %+v", result)
			}
		})
	}
}

func TestHookMessagesAreBounded(t *testing.T) {
	p := hooks.Progress{Event: v1beta1.HookEventStart}
	for i := range 50 {
		p.Running = append(p.Running, v1beta1.HookRun{UpgradeJobHook: fmt.Sprintf("%d-%s", i, strings.Repeat("x", 250)), HookEvent: v1beta1.HookEventStart})
	}
	if message := steps.HooksRunning(p); len(message) > 400 || !strings.HasSuffix(message, "and 47 more.") {
		t.Errorf("got %q", message)
	}
	if got := steps.Bounded(steps.HookBlockers(p), nil, start); len(got) != steps.MaxBlockers || slices.ContainsFunc(got, func(b v1beta1.Blocker) bool { return b.ClearsWhen == "" }) {
		t.Errorf("got %+v", got)
	}
}

// An upgrade that has commenced has, though a hook holds what comes next: the update is not asked for again, over what
// somebody else has decided since.
func TestAHookAfterTheUpgradeCommencedDoesNotCommenceItAgain(t *testing.T) {
	event := v1beta1.HookEventStepCompleted(steps.ConditionUpgradeCommenced)
	w := newWorld(t, newJob(), openshifttest.ClusterVersion(openshifttest.Available(target)), hookOn("check", ignored, event))
	list := []steps.Step{steps.UpgradeCommenced(), steps.ControlPlaneUpgraded()}
	w.pass(list...)
	if got := w.version().Spec.DesiredUpdate; got == nil || got.Version != target {
		t.Fatalf("got the desired update %v", got)
	}
	if !w.upgrade().Commenced() {
		t.Error("it does not know that it has commenced")
	}
	w.update(openshifttest.Desired("4.18.9"))
	w.now = start.Add(5 * time.Hour) // long after the window
	if result := w.pass(list...); result.Outcome != steps.Running || result.Reason != "HooksRunning" {
		t.Errorf("got %+v, want it to wait for the hook", result)
	}
	w.end(v1beta1.HookRunSucceeded)
	if result := w.pass(list...); result.Outcome != steps.Failed || result.Reason != v1beta1.ReasonUpgradeSuperseded {
		t.Errorf("got %+v, want it superseded", result)
	}
	if got := w.version().Spec.DesiredUpdate; got.Version != "4.18.9" {
		t.Errorf("the desired update became %v", got)
	}
}

func TestAHookBehindTheLastStepHoldsTheEnd(t *testing.T) {
	w := newWorld(t, newJob(), openshifttest.ClusterVersion(), hookOn("check", ignored, v1beta1.HookEventStepCompleted("Last")))
	last := func() steps.Step { return answering(t, "Last", steps.Done("It is done.")) }
	for range 2 {
		if result := w.pass(last()); result.Outcome != steps.Running || result.Reason != "HooksRunning" || len(w.job().Status.Blockers) != 1 {
			t.Errorf("got %+v, blockers %+v", result, w.job().Status.Blockers)
		}
	}
	w.end(v1beta1.HookRunFailed)
	for range 2 {
		if result := w.pass(last()); result.Outcome != steps.Completed {
			t.Errorf("got %+v", result)
		}
	}
	if diff := cmp.Diff([]string{
		"Last=True Completed: It is done. Hooks of StepCompleted/Last: 0 of 1 succeeded. UpgradeJobHook check failed and is ignored: as told",
	}, conditionsOf(w.job())); diff != "" {
		t.Error(diff)
	}
}

func TestAHookThatAbortsIsHeardWhateverTheOthersDo(t *testing.T) {
	w := newWorld(t, newJob(
		ranAt(v1beta1.HookEventStart, "a", aborts, v1beta1.HookRunFailed, "no space"),
		ranAt(v1beta1.HookEventStart, "b", ignored, v1beta1.HookRunPending, ""),
	), openshifttest.ClusterVersion(), hookOn("b", ignored, v1beta1.HookEventStart))
	u := w.upgrade()
	u.Hooks.Fence = func(context.Context) error { return errors.New("on fire") }
	if result := steps.Run(t.Context(), []steps.Step{steps.StartHooksCompleted()}, u); result.Outcome != steps.Failed || result.Reason != v1beta1.ReasonHookFailed {
		t.Errorf("got %+v", result)
	}
}

// A hook that could not run is given another chance by a resume, but not behind what it was to come before.
func TestAHookOfAPreflightDoesNotRunAfterAResumeBehindIt(t *testing.T) {
	event := v1beta1.HookEventStepCompleted("Preflight")
	w := newWorld(t, newJob(
		done("Preflight", 0), commenced, ranAt(event, "backup", ignored, v1beta1.HookRunFailed, "refused"), resumed(time.Hour),
		func(job *v1beta1.UpgradeJob) { job.Status.HookTracker[0].Job = "" },
	), openshifttest.ClusterVersion(openshifttest.Desired(target)), hookOn("backup", ignored, event))
	w.now = start.Add(time.Hour)
	w.pass(steps.UntilCommenced(never(t, "Preflight")), steps.UpgradeCommenced(), answering(t, "Later", steps.Wait(0, "Waiting", "...")))
	if got := w.job().Status.HookTracker; len(got) != 1 {
		t.Errorf("got the runs %+v", got)
	}
	if !w.upgrade().Commenced() {
		t.Error("it is not known any more that the upgrade has commenced")
	}
}
