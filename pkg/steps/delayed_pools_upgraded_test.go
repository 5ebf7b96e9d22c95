// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// behind returns a pool that has the configuration of the release to come to.
func behind(name string, options ...poolOption) *mcfgv1.MachineConfigPool {
	return pool(name, append([]poolOption{openshifttest.PoolTowards(target, 0)}, options...)...)
}

func TestDelayedPoolsUpgraded(t *testing.T) {
	infra, gpu := delays("infra", 2*time.Hour, 0), delays("gpu", 3*time.Hour, 0)
	byMe, byOther, byHand := openshifttest.PoolPausedBy(me), openshifttest.PoolPausedBy("ns/other"), openshifttest.PoolPaused()
	upgraded, rolling := openshifttest.PoolAt(target), openshifttest.PoolTowards(target, 2)
	const (
		updating    = "False MachineConfigPoolsUpdating: "
		delayed     = "False MachineConfigPoolsDelayed: "
		infraUntil  = "infra: paused until 2026-11-25T00:00:00Z"
		gpuUntil    = "gpu: paused until 2026-11-25T01:00:00Z"
		infraWaits  = "MachineConfigPoolDelayed MachineConfigPool/infra"
		gpuWaits    = "MachineConfigPoolDelayed MachineConfigPool/gpu"
		infraPaused = "MachineConfigPoolPaused MachineConfigPool/infra"
		infraRolls  = "MachineConfigPoolUpdating MachineConfigPool/infra"
		gpuRolls    = "MachineConfigPoolUpdating MachineConfigPool/gpu"
	)
	for _, tc := range []poolCase{
		{
			reason: "no pool is delayed", objects: []client.Object{behind("worker")},
			outcome: steps.Completed, condition: "True Completed: No pool is delayed.", pools: []string{"worker free"},
		},
		{
			reason: "all run the configuration of the release", job: []jobOption{infra, gpu}, after: 4 * time.Hour,
			objects: []client.Object{pool("infra", upgraded), pool("gpu", upgraded), behind("worker")},
			outcome: steps.Completed, condition: "True Completed: All machines of 2 delayed pools run the configuration of 4.18.2.",
			pools: []string{"gpu free", "infra free", "worker free"},
		},
		{
			reason: "nothing is left but to wait for the time of each", job: []jobOption{gpu, infra}, after: time.Hour,
			objects: []client.Object{behind("infra", byMe), behind("gpu", byMe)},
			outcome: steps.Running, paused: true, wake: time.Hour, condition: delayed + infraUntil + "; " + gpuUntil + ".",
			blockers: []string{infraWaits, gpuWaits}, pools: []string{"gpu paused by ns/job", "infra paused by ns/job"},
		},
		{
			reason: "a moment before the time of one", job: []jobOption{infra, gpu}, after: 2*time.Hour - time.Nanosecond,
			objects: []client.Object{behind("infra", byMe), behind("gpu", byMe)},
			outcome: steps.Running, paused: true, wake: time.Nanosecond, condition: delayed + infraUntil + "; " + gpuUntil + ".",
			blockers: []string{infraWaits, gpuWaits}, pools: []string{"gpu paused by ns/job", "infra paused by ns/job"},
		},
		{
			reason: "one rolls, and the other waits for its time: that is no pause", job: []jobOption{infra, gpu}, after: 2*time.Hour + time.Minute,
			objects: []client.Object{pool("infra", rolling), behind("gpu", byMe)},
			outcome: steps.Running, wake: openshift.NodesInterval,
			condition: updating + "0 of 2 delayed pools are upgraded; " + gpuUntil + "; infra: 2 of 3 machines updated, 1 unavailable.",
			blockers:  []string{infraRolls, gpuWaits}, pools: []string{"gpu paused by ns/job", "infra free"},
		},
		{
			reason: "which comes sooner than the next look", job: []jobOption{infra, gpu}, after: 3*time.Hour - 4*time.Second,
			objects: []client.Object{pool("infra", rolling), behind("gpu", byMe)},
			outcome: steps.Running, wake: 4 * time.Second,
			condition: updating + "0 of 2 delayed pools are upgraded; " + gpuUntil + "; infra: 2 of 3 machines updated, 1 unavailable.",
			blockers:  []string{infraRolls, gpuWaits}, pools: []string{"gpu paused by ns/job", "infra free"},
		},
		{
			reason: "one is done, and the other waits for its time", job: []jobOption{infra, gpu}, after: 150 * time.Minute,
			objects: []client.Object{pool("infra", upgraded), behind("gpu", byMe)},
			outcome: steps.Running, paused: true, wake: 30 * time.Minute, condition: delayed + gpuUntil + ".",
			blockers: []string{gpuWaits}, pools: []string{"gpu paused by ns/job", "infra free"},
		},
		{
			reason: "a pool that has nothing to do waits for its time as well", job: []jobOption{infra}, after: time.Hour, objects: []client.Object{pool("infra", upgraded, byMe)},
			outcome: steps.Running, paused: true, wake: time.Hour, condition: delayed + infraUntil + ".", blockers: []string{infraWaits},
			pools: []string{"infra paused by ns/job"},
		},
		{
			reason: "a pool that somebody else has paused is waited for, and left alone", job: []jobOption{infra, gpu}, after: 150 * time.Minute,
			objects: []client.Object{behind("infra", byHand), behind("gpu", byMe)},
			outcome: steps.Running, wake: openshift.NodesInterval,
			condition: updating + "0 of 2 delayed pools are upgraded; " + gpuUntil + "; infra: 0 of 3 machines updated, the pool is paused.",
			blockers:  []string{infraPaused, gpuWaits}, pools: []string{"gpu paused by ns/job", "infra paused by hand"},
		},
		{
			reason: "so is that of a job that is not over", job: []jobOption{infra}, after: 3 * time.Hour, objects: []client.Object{behind("infra", byOther)},
			outcome: steps.Running, wake: openshift.NodesInterval,
			condition: updating + "0 of 1 delayed pools are upgraded; infra: 0 of 3 machines updated, the pool is paused.",
			blockers:  []string{infraPaused}, pools: []string{"infra paused by ns/other"},
		},
		{
			reason: "that of a job that is over waits for its time, and is this one's now", job: []jobOption{infra}, over: []string{"ns/other"}, after: time.Hour,
			objects: []client.Object{behind("infra", byOther)},
			outcome: steps.Running, paused: true, wake: time.Hour, condition: delayed + infraUntil + ".", blockers: []string{infraWaits}, pools: []string{"infra paused by ns/job"},
		},
		{
			reason: "a job without a version waits for the time of its pools too", job: []jobOption{infra, withoutVersion}, after: time.Hour, objects: []client.Object{behind("infra", byMe)},
			outcome: steps.Running, paused: true, wake: time.Hour, condition: delayed + infraUntil + ".", blockers: []string{infraWaits}, pools: []string{"infra paused by ns/job"},
		},
		{
			reason: "and for those that roll", job: []jobOption{infra, withoutVersion}, after: 3 * time.Hour, objects: []client.Object{pool("infra", rolling)},
			outcome: steps.Running, wake: openshift.NodesInterval, condition: updating + "0 of 1 delayed pools are upgraded; infra: 2 of 3 machines updated, 1 unavailable.",
			blockers: []string{infraRolls}, pools: []string{"infra free"},
		},
		{
			reason: "but not for what somebody else has paused", job: []jobOption{infra, withoutVersion}, after: 3 * time.Hour, objects: []client.Object{behind("infra", byHand)},
			outcome: steps.Completed, pools: []string{"infra paused by hand"},
			condition: "True Completed: All machines of 0 delayed pools run the configuration of 4.18.2. Paused by somebody else, and left alone: infra.",
		},
	} {
		tc.version = []versionOption{desired, completed}
		tc.job = append(tc.job, begun(steps.ConditionDelayedPoolsUpgraded, 0))
		tc.objects = append(tc.objects, renderedConfigs("infra", "gpu", "worker")...)
		t.Run(tc.reason, func(t *testing.T) { tc.run(t, steps.DelayedPoolsUpgraded()) })
	}
}

// newRelease returns a world in which the control plane is upgraded, and these pools follow.
func newRelease(t *testing.T, job *v1beta1.UpgradeJob, objects ...client.Object) *world {
	return newWorld(t, append(append(objects, job, openshifttest.ClusterVersion(desired, completed)), renderedConfigs("infra", "gpu", "worker")...)...)
}

// Each pool is released at its time, the first one first, and the job comes back just then.
func TestDelayedPoolsAreReleasedAtTheirTimes(t *testing.T) {
	byMe := openshifttest.PoolPausedBy(me)
	w := newRelease(t, newJob(delays("gpu", 3*time.Hour, 0), delays("infra", 2*time.Hour, 0)), behind("infra", byMe), behind("gpu", byMe))
	list := []steps.Step{steps.DelayedPoolsUpgraded()}

	result := w.pass(list...)
	w.expectPools("gpu paused by ns/job", "infra paused by ns/job")
	w.now = w.now.Add(result.After)
	result = w.pass(list...)
	w.expectPools("gpu paused by ns/job", "infra free")
	w.expectCondition("DelayedPoolsUpgraded", "False MachineConfigPoolsUpdating: 0 of 2 delayed pools are upgraded; gpu: paused until 2026-11-25T01:00:00Z; infra: released.")
	if !w.now.Equal(start.Add(2*time.Hour)) || result.Paused {
		t.Errorf("it is %s, and got %+v, want the time of the first pool and no pause", w.now, result)
	}
	if got := w.version().Annotations[v1beta1.UpgradeJobAnnotation]; got != me {
		t.Errorf("the lock is %q, want it taken before the first pool is released", got)
	}

	w.editPool("infra", openshifttest.PoolAt(target))
	result = w.pass(list...)
	if !result.Paused || result.After != time.Hour {
		t.Errorf("got %+v, want a pause to the time of the second pool", result)
	}
	w.now = w.now.Add(result.After)
	w.pass(list...)
	w.expectPools("gpu free", "infra free")
	w.editPool("gpu", openshifttest.PoolAt(target))
	if result = w.pass(list...); result.Outcome != steps.Completed || result.Paused {
		t.Errorf("got %+v, want the end", result)
	}
}

// Several pools whose time has come are released at once, whatever order they stand in.
func TestDelayedPoolsThatAreDueAreReleasedTogether(t *testing.T) {
	byMe := openshifttest.PoolPausedBy(me)
	w := newRelease(t, newJob(delays("gpu", 3*time.Hour, 0), delays("infra", 2*time.Hour, 0), delays("worker", 2*time.Hour, 0)),
		behind("infra", byMe), behind("gpu", byMe), behind("worker", byMe))
	w.now = start.Add(4 * time.Hour) // health was waited for
	w.pass(steps.DelayedPoolsUpgraded())
	w.expectPools("gpu free", "infra free", "worker free")
	w.expectCondition("DelayedPoolsUpgraded", "False MachineConfigPoolsUpdating: 0 of 3 delayed pools are upgraded; infra: released; worker: released; gpu: released.")
}

func TestWhatIsWrongWithOnePoolHoldsNoOther(t *testing.T) {
	broken := errors.New("on fire")
	for name, options := range map[string][]poolOption{
		"a pool that cannot be released":                      {openshifttest.PoolPausedBy(me)},
		"a pool of which the name of the job cannot be taken": {named(me)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRelease(t, newJob(delays("gpu", time.Hour, 0), delays("infra", 2*time.Hour, 0)),
				behind("gpu", options...), behind("infra", openshifttest.PoolPausedBy(me)))
			before := w.poolsNow()[0]
			w.now = start.Add(3 * time.Hour)
			w.refusing(broken, "gpu")
			if got := w.pass(steps.DelayedPoolsUpgraded()); !errors.Is(got.Err, broken) {
				t.Errorf("got %+v, want the error", got)
			}
			w.expectPools(before, "infra free")
			w.expectCondition("DelayedPoolsUpgraded", "False Error: DelayedPoolsUpgraded: release pool: patch MachineConfigPool/gpu: on fire")
		})
	}
}

func TestAPoolThatWasChangedMeanwhileIsNotReleased(t *testing.T) {
	w := newRelease(t, newJob(delays("infra", time.Hour, 0)), behind("infra", openshifttest.PoolPausedBy(me)))
	before, err := w.cluster().LivePools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.now, w.cachedPools = start.Add(2*time.Hour), before
	w.editPool("infra", func(p *mcfgv1.MachineConfigPool) { delete(p.Annotations, v1beta1.UpgradeJobAnnotation) }) // somebody takes it over
	if got := w.pass(steps.DelayedPoolsUpgraded()); !apierrors.IsConflict(got.Err) {
		t.Errorf("got %+v, want a conflict", got)
	}
	w.expectPools("infra paused by hand")
	w.cachedPools = nil
	w.pass(steps.DelayedPoolsUpgraded())
	w.expectPools("infra paused by hand")
}

func TestPoolsAreReleasedWithTheLockOnly(t *testing.T) {
	for condition, step := range map[string]steps.Step{"DelayedPoolsUpgraded": steps.DelayedPoolsUpgraded(), "MachineConfigPoolsUpgraded": steps.MachineConfigPoolsUpgraded()} {
		job := newJob()
		if condition == "DelayedPoolsUpgraded" {
			delays("infra", time.Hour, 0)(job)
		}
		w := newRelease(t, job, behind("infra", openshifttest.PoolPausedBy(me)))
		w.now, w.lockedBy = start.Add(2*time.Hour), "UpgradeJob ns/other"
		if got := w.pass(step); got.Err == nil {
			t.Errorf("%s: got %+v, want an error", condition, got)
		}
		w.expectPools("infra paused by ns/job")
		w.expectCondition(condition, "False Error: "+condition+": release pool: lock the cluster: it is locked by UpgradeJob ns/other")
	}
}

// Who unpauses a pool by hand takes it over: the job takes its name off, so that nobody is taken for it later, and
// waits for the machines.
func TestAPoolThatSomebodyHasUnpaused(t *testing.T) {
	for _, tc := range []struct {
		reason string
		job    []jobOption
		name   string
		step   steps.Step
	}{
		{"a delayed pool, before its time", []jobOption{delays("infra", 9*time.Hour, 0)}, me, steps.DelayedPoolsUpgraded()},
		{"one that a job which is over had paused", []jobOption{delays("infra", 9*time.Hour, 0)}, "ns/other", steps.DelayedPoolsUpgraded()},
		{"one that is not delayed", nil, "ns/other", steps.MachineConfigPoolsUpgraded()},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newRelease(t, newJob(tc.job...), behind("infra", named(tc.name)))
			w.over = []string{"ns/other"}
			for range 2 {
				if got := w.pass(tc.step); got.Outcome != steps.Running || got.Paused || got.After != openshift.NodesInterval {
					t.Errorf("got %+v, want the pool waited for", got)
				}
				w.expectPools("infra free")
			}
			w.editPool("infra", openshifttest.PoolAt(target))
			if got := w.pass(tc.step); got.Outcome != steps.Completed {
				t.Errorf("got %+v, want the end", got)
			}
		})
	}
	t.Run("the name of a job that is not over stays", func(t *testing.T) {
		w := newRelease(t, newJob(), behind("infra", named("ns/other")))
		w.pass(steps.MachineConfigPoolsUpgraded())
		w.expectPools("infra free, but for ns/other")
	})
}

// Blockers are read from the top: what somebody has to mend, what moves, and last what waits for a time that was agreed.
func TestBlockersOfDelayedPoolsAreInOrder(t *testing.T) {
	byMe := openshifttest.PoolPausedBy(me)
	w := newRelease(t, newJob(delays("gpu", time.Hour, 0), delays("infra", 2*time.Hour, 0), delays("worker", 9*time.Hour, 0), begun(steps.ConditionDelayedPoolsUpgraded, 0)),
		behind("gpu", byMe), pool("infra", openshifttest.PoolTowards(target, 1)), behind("worker", byMe), hookOn("approve", ignored, v1beta1.HookEventMachineConfigPoolUnpause),
		openshifttest.Node("infra-0", "infra", openshifttest.NodeRebooting("x")),
		openshifttest.Node("infra-1", "infra", openshifttest.NodeAnnotations(map[string]string{"state": "Degraded", "reason": "disk full"})),
		openshifttest.Node("gpu-0", "gpu", openshifttest.NodeRebooting("x")))
	w.now = start.Add(3 * time.Hour)
	w.pass(steps.DelayedPoolsUpgraded())
	want := []string{
		"HookRunning UpgradeJobHook/approve", "NodeDegraded Node/infra-1", "MachineConfigPoolUpdating MachineConfigPool/infra",
		"NodeUpdating Node/infra-0", "MachineConfigPoolDelayed MachineConfigPool/worker",
	}
	if got := blockersOf(w.job()); !slices.Equal(got, want) {
		t.Errorf("got the blockers %q, want %q", got, want)
	}
	for _, b := range w.job().Status.Blockers {
		if b.Message == "" || b.ClearsWhen == "" {
			t.Errorf("blocker %s does not say what it is, or what clears it", b.Code)
		}
	}
}

func TestDelayedPoolsUpgradedHandsErrorsOn(t *testing.T) {
	broken := errors.New("on fire")
	for name, change := range map[string]func(*world, *steps.Upgrade){
		"the pools cannot be listed": func(w *world, u *steps.Upgrade) { w.breakList(u, broken, "MachineConfigPoolList") },
		"what they run is not known": func(w *world, u *steps.Upgrade) { w.breakGet(u, broken, "MachineConfig") },
		"whether a job is over is not known": func(_ *world, u *steps.Upgrade) {
			u.Over = func(context.Context, string) (bool, error) { return false, broken }
		},
	} {
		for _, step := range []steps.Step{steps.DelayedPoolsUpgraded(), steps.MachineConfigPoolsUpgraded()} {
			job := newJob()
			if step.Condition() == steps.ConditionDelayedPoolsUpgraded {
				delays("infra", time.Hour, 0)(job)
			}
			w := newRelease(t, job, behind("infra", openshifttest.PoolPausedBy("ns/other")))
			u := w.upgrade()
			change(w, u)
			if got := steps.Run(t.Context(), []steps.Step{step}, u); !errors.Is(got.Err, broken) || got.Outcome != steps.Running {
				t.Errorf("%s, %s: got %+v", step.Condition(), name, got)
			}
			w.expectPools("infra paused by ns/other")
		}
	}
}
