// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

const unpause = v1beta1.HookEventMachineConfigPoolUnpause

// runs lists the runs of hooks, each with its key and how it fares, in their order.
func (w *world) runs() []string {
	var all []string
	for _, run := range w.job().Status.HookTracker {
		all = append(all, fmt.Sprintf("%s for %s: %s", run.UpgradeJobHook, run.TrackingKey, run.Status))
	}
	return all
}

// reasonOf returns what the hook that runs for a key is told as the reason.
func (w *world) reasonOf(key string) string {
	w.t.Helper()
	jobs := &batchv1.JobList{}
	if err := w.api.List(w.t.Context(), jobs); err != nil {
		w.t.Fatal(err)
	}
	for _, run := range w.job().Status.HookTracker {
		for i := range jobs.Items {
			if run.TrackingKey == key && jobs.Items[i].Name == run.Job {
				for _, env := range jobs.Items[i].Spec.Template.Spec.Containers[0].Env {
					if env.Name == "EVENT_REASON" {
						return strings.Trim(env.Value, `"`)
					}
				}
			}
		}
	}
	return "no Job"
}

// endFor lets the hooks that run for a key finish.
func (w *world) endFor(key string, status v1beta1.HookRunStatus) {
	w.t.Helper()
	job := w.job()
	for i := range job.Status.HookTracker {
		if run := &job.Status.HookTracker[i]; run.TrackingKey == key && !run.Status.Finished() {
			run.Status, run.Message = status, "as told"
		}
	}
	if err := w.api.Status().Update(w.t.Context(), job); err != nil {
		w.t.Fatal(err)
	}
}

// Each pool has its own runs of a hook, which hold this pool and no other.
func TestHooksOfPoolsHoldTheirPool(t *testing.T) {
	byMe := openshifttest.PoolPausedBy(me)
	w := newRelease(t, newJob(delays("infra", 2*time.Hour, 0), delays("gpu", 2*time.Hour, 0), delays("worker", 3*time.Hour, 0)),
		behind("infra", byMe), behind("gpu", byMe), behind("worker", byMe), hookOn("approve", aborts, unpause))
	list := []steps.Step{steps.DelayedPoolsUpgraded()}

	w.now = start.Add(2*time.Hour - time.Second)
	w.pass(list...)
	if got := w.runs(); len(got) > 0 {
		t.Fatalf("got the runs %v before the time of a pool", got)
	}
	w.now = start.Add(2 * time.Hour)
	w.pass(list...)
	w.expectPools("gpu paused by ns/job", "infra paused by ns/job", "worker paused by ns/job")
	if diff := cmp.Diff([]string{"approve for gpu: Active", "approve for infra: Active"}, w.runs()); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	if got := w.reasonOf("gpu"); got != "DelayReached" {
		t.Errorf("the hook is told the reason %q", got)
	}
	w.expectCondition("DelayedPoolsUpgraded", "False HooksRunning: 0 of 3 delayed pools are upgraded; worker: paused until 2026-11-25T01:00:00Z; "+
		"gpu: its hooks are waited for; infra: its hooks are waited for.")
	want := []string{"HookRunning UpgradeJobHook/approve", "HookRunning UpgradeJobHook/approve", "MachineConfigPoolDelayed MachineConfigPool/worker"}
	if diff := cmp.Diff(want, blockersOf(w.job())); diff != "" {
		t.Errorf("blockers (-want +got):\n%s", diff)
	}

	w.endFor("infra", v1beta1.HookRunSucceeded)
	w.pass(list...)
	w.expectPools("gpu paused by ns/job", "infra free", "worker paused by ns/job")

	w.now = start.Add(3 * time.Hour)
	result := w.pass(list...)
	if got := w.runs(); !slices.Contains(got, "approve for worker: Active") || result.Paused {
		t.Errorf("got the runs %v, and %+v, want the third pool to have its own", got, result)
	}
	w.endFor("gpu", v1beta1.HookRunSucceeded)
	w.endFor("worker", v1beta1.HookRunSucceeded)
	for range 2 {
		w.pass(list...)
		w.expectPools("gpu free", "infra free", "worker free")
	}
	if got := w.runs(); len(got) != 3 {
		t.Errorf("got the runs %v, want one a pool", got)
	}
}

// A job that only waits for hooks is not paused: somebody may be waiting for it to go on.
func TestAHookOfAPoolIsNoPause(t *testing.T) {
	w := newRelease(t, newJob(delays("infra", time.Hour, 0)), behind("infra", openshifttest.PoolPausedBy(me)), hookOn("approve", ignored, unpause))
	w.now = start.Add(time.Hour)
	if got := w.pass(steps.DelayedPoolsUpgraded()); got.Paused || got.Reason != v1beta1.ReasonHooksRunning {
		t.Errorf("got %+v", got)
	}
	w.endFor("infra", v1beta1.HookRunFailed) // and is ignored
	w.pass(steps.DelayedPoolsUpgraded())
	w.expectPools("infra free")
}

func TestAHookOfAPoolAborts(t *testing.T) {
	w := newRelease(t, newJob(delays("infra", time.Hour, 0), delays("gpu", 2*time.Hour, 0)),
		behind("infra", openshifttest.PoolPausedBy(me)), behind("gpu", openshifttest.PoolPausedBy(me)), hookOn("approve", aborts, unpause))
	w.now = start.Add(time.Hour)
	w.pass(steps.DelayedPoolsUpgraded())
	w.endFor("infra", v1beta1.HookRunFailed)
	result := w.pass(steps.DelayedPoolsUpgraded())
	want := steps.Result{Outcome: steps.Failed, Reason: "HookFailed", Message: "UpgradeJobHook approve failed at MachineConfigPoolUnpause: as told"}
	if diff := cmp.Diff(want, result); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	w.expectPools("gpu paused by ns/job", "infra paused by ns/job")
}

// A hook that hangs does not hold the time of its pool.
func TestAHookOfAPoolDoesNotOutlastItsTime(t *testing.T) {
	w := newRelease(t, newJob(delays("infra", time.Hour, 2*time.Hour), commenced), behind("infra", openshifttest.PoolPausedBy(me)), hookOn("approve", ignored, unpause))
	list := []steps.Step{steps.MachineConfigPoolsPaused(), steps.DelayedPoolsUpgraded()}
	w.now = start.Add(time.Hour)
	if got := w.pass(list...); got.After != 10*time.Second {
		t.Errorf("got %+v, want it to look again in 10s", got)
	}
	w.now = start.Add(2*time.Hour - time.Second)
	if got := w.pass(list...); got.After != time.Second {
		t.Errorf("got %+v, want it to come back when the time of the pool is over", got)
	}
	w.now = start.Add(2 * time.Hour)
	result := w.pass(list...)
	if result.Outcome != steps.Failed || result.Reason != v1beta1.ReasonUnpausingPoolsExpired {
		t.Errorf("got %+v, want it to fail", result)
	}
	w.expectPools("infra paused by ns/job")
}

// A job that an earlier one has left pools to releases them as soon as the control plane is upgraded, those that are
// delayed at their time.
func TestPoolsOfJobsThatAreOverAreReleased(t *testing.T) {
	byOther := openshifttest.PoolPausedBy("ns/other")
	w := newRelease(t, newJob(delays("gpu", 2*time.Hour, 0)), behind("infra", byOther), behind("gpu", byOther), behind("worker", openshifttest.PoolPausedBy("ns/third")),
		hookOn("approve", ignored, unpause))
	w.over, w.now = []string{"ns/other"}, start.Add(time.Hour)
	list := []steps.Step{steps.MachineConfigPoolsUpgraded()}

	w.pass(list...)
	w.expectPools("gpu paused by ns/other", "infra paused by ns/other", "worker paused by ns/third")
	if got := w.reasonOf("infra"); got != "Completed" {
		t.Errorf("the hook is told the reason %q", got)
	}
	w.expectCondition("MachineConfigPoolsUpgraded",
		"False HooksRunning: 0 of 2 pools are updated; infra: its hooks are waited for; worker: 0 of 3 machines updated, the pool is paused.")
	if diff := cmp.Diff([]string{"HookRunning UpgradeJobHook/approve", "MachineConfigPoolPaused MachineConfigPool/worker"}, blockersOf(w.job())); diff != "" {
		t.Errorf("blockers (-want +got):\n%s", diff)
	}
	w.endFor("infra", v1beta1.HookRunSucceeded)
	w.pass(list...)
	w.expectPools("gpu paused by ns/other", "infra free", "worker paused by ns/third")

	list = []steps.Step{steps.DelayedPoolsUpgraded()}
	w.pass(list...)
	w.expectPools("gpu paused by ns/job", "infra free", "worker paused by ns/third")
	w.now = start.Add(2 * time.Hour)
	w.pass(list...)
	w.endFor("gpu", v1beta1.HookRunSucceeded)
	w.pass(list...)
	w.expectPools("gpu free", "infra free", "worker paused by ns/third")
	if diff := cmp.Diff([]string{"approve for infra: Succeeded", "approve for gpu: Succeeded"}, w.runs()); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
}

// A pool that is left by a job which is over is released by a job without a version too.
func TestAJobWithoutAVersionReleasesWhatOthersLeft(t *testing.T) {
	w := newRelease(t, newJob(withoutVersion), behind("infra", openshifttest.PoolPausedBy("ns/other")))
	w.over = []string{"ns/other"}
	if got := w.pass(steps.MachineConfigPoolsUpgraded()); got.Outcome != steps.Running {
		t.Errorf("got %+v, want the machines waited for", got)
	}
	w.expectPools("infra free")
	w.editPool("infra", openshifttest.PoolTowards(target, 1))
	if got := w.pass(steps.MachineConfigPoolsUpgraded()); got.Outcome != steps.Running {
		t.Errorf("got %+v, want the machines waited for", got)
	}
	w.editPool("infra", openshifttest.PoolAt(target))
	if got := w.pass(steps.MachineConfigPoolsUpgraded()); got.Outcome != steps.Completed {
		t.Errorf("got %+v, want the end", got)
	}
}

func TestAPoolOfAnotherJobThatWasChangedMeanwhileIsNotReleased(t *testing.T) {
	w := newRelease(t, newJob(), behind("infra", openshifttest.PoolPausedBy("ns/other")))
	before, err := w.cluster().LivePools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.over, w.cachedPools = []string{"ns/other"}, before
	w.editPool("infra", openshifttest.PoolPausedBy("ns/third")) // which is not over
	if got := w.pass(steps.MachineConfigPoolsUpgraded()); !apierrors.IsConflict(got.Err) {
		t.Errorf("got %+v, want a conflict", got)
	}
	w.expectPools("infra paused by ns/third")
}

func TestNothingIsReleasedInThePassInWhichAHookEndsTheJob(t *testing.T) {
	byMe := openshifttest.PoolPausedBy(me)
	w := newRelease(t, newJob(delays("infra", time.Hour, 0), delays("gpu", time.Hour, 0)), behind("infra", byMe), behind("gpu", byMe), hookOn("approve", aborts, unpause))
	w.now = start.Add(time.Hour)
	w.pass(steps.DelayedPoolsUpgraded())
	w.endFor("gpu", v1beta1.HookRunFailed)
	w.endFor("infra", v1beta1.HookRunSucceeded)
	if got := w.pass(steps.DelayedPoolsUpgraded()); got.Outcome != steps.Failed {
		t.Errorf("got %+v", got)
	}
	w.expectPools("gpu paused by ns/job", "infra paused by ns/job")
}
