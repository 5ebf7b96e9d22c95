// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"testing"
	"time"

	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// lagging makes the cache of the pools one that sees nothing new, for one process.
func (w *world) lagging() {
	w.t.Helper()
	before, err := w.cluster().LivePools(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	w.cachedPools = before
	w.same = nil
	w.same = w.cluster()
}

// A job that pauses a pool and goes on to its last step in the same pass must not take it for one that is not paused.
func TestAPoolThatWasPausedAMomentAgoIsWaitedFor(t *testing.T) {
	w := newRelease(t, newJob(withoutVersion, delays("infra", 12*time.Hour, 0)), pool("infra", openshifttest.PoolAt(target)))
	w.lagging()
	for range 3 {
		got := w.pass(steps.MachineConfigPoolsPaused(), steps.UpgradeCommenced(), steps.ControlPlaneUpgraded(), steps.MachineConfigPoolsUpgraded(), steps.DelayedPoolsUpgraded())
		if got.Outcome != steps.Running || !got.Paused || got.After != 12*time.Hour {
			t.Errorf("got %+v, want it to wait for the time of the pool", got)
		}
		w.expectPools("infra paused by ns/job")
		w.expectCondition("MachineConfigPoolsPaused", "True DelaySet: Paused: infra until 2026-11-25T10:00:00Z.")
	}
}

// The pass after is woken by what the job has written too, and the cache has still not seen it.
func TestWhatIsSaidOfPoolsDoesNotFlap(t *testing.T) {
	w := newWorld(t, append(renderedConfigs("infra"), newJob(delays("infra", 2*time.Hour, 5*time.Hour)), openshifttest.ClusterVersion(), pool("infra"))...)
	w.lagging()
	list := []steps.Step{steps.MachineConfigPoolsPaused(), steps.UpgradeCommenced(), answering(t, "Next", steps.Wait(0, "Waiting", "..."), steps.Wait(0, "Waiting", "..."))}
	w.pass(list...)
	if got := w.pass(list...); got.After != 5*time.Hour || len(w.turned) > 0 {
		t.Errorf("got %+v, turned %+v, want the time of the pool still watched, and no news", got, w.turned)
	}
	w.expectCondition("MachineConfigPoolsPaused", "True DelaySet: Paused: infra until 2026-11-25T00:00:00Z.")
}

// A pool that was released a moment ago is not released, nor waited for, as one that is held.
func TestAPoolThatWasReleasedAMomentAgo(t *testing.T) {
	w := newRelease(t, newJob(delays("infra", time.Hour, 0), commenced), behind("infra", openshifttest.PoolPausedBy(me)))
	w.now = start.Add(time.Hour)
	w.lagging()
	list := []steps.Step{steps.MachineConfigPoolsPaused(), steps.DelayedPoolsUpgraded()}
	w.pass(list...)
	if got := w.pass(list...); got.Err != nil || got.Outcome != steps.Running {
		t.Errorf("got %+v", got)
	}
	w.expectCondition("MachineConfigPoolsPaused", "False Released: Free to follow the control plane: infra.")
	w.expectPools("infra free")
}
