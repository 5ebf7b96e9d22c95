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
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

func TestMachineConfigPoolsPaused(t *testing.T) {
	infra, gpu := delays("infra", 2*time.Hour, 5*time.Hour), delays("gpu", 3*time.Hour, 0)
	byMe, byOther := openshifttest.PoolPausedBy(me), openshifttest.PoolPausedBy("ns/other")
	byHand := openshifttest.PoolPaused()
	const (
		nothing  = "False NoManagedPools: The job pauses no pool."
		released = "False Released: Free to follow the control plane: infra."
		both     = "True DelaySet: Paused: gpu until 2026-11-25T01:00:00Z, infra until 2026-11-25T00:00:00Z."
		one      = "True DelaySet: Paused: infra until 2026-11-25T00:00:00Z."
		foreign  = " Paused by somebody else, and left alone: infra."
	)
	for _, tc := range []poolCase{
		{
			reason: "nothing is set", objects: []client.Object{pool("infra"), pool("worker")},
			outcome: steps.Completed, condition: nothing, pools: []string{"infra free", "worker free"},
		},
		{
			reason: "pools that are delayed are paused, each until its time; the others are not",
			job:    []jobOption{infra, gpu}, objects: []client.Object{pool("master"), pool("infra"), pool("gpu"), pool("worker")},
			outcome: steps.Completed, condition: both, locked: true,
			pools: []string{"gpu paused by ns/job", "infra paused by ns/job", "master free", "worker free"},
		},
		{
			reason: "those that are paused already stay so", job: []jobOption{infra, gpu, commenced},
			objects: []client.Object{pool("infra", byMe), pool("gpu", byMe)}, after: time.Hour,
			outcome: steps.Completed, condition: both, pools: []string{"gpu paused by ns/job", "infra paused by ns/job"},
		},
		{
			reason: "the process ended between two pools", job: []jobOption{infra, gpu}, objects: []client.Object{pool("infra", byMe), pool("gpu")},
			outcome: steps.Completed, condition: both, locked: true,
			pools: []string{"gpu paused by ns/job", "infra paused by ns/job"},
		},
		{
			reason: "a pool that somebody else has paused is left alone", job: []jobOption{infra}, objects: []client.Object{pool("infra", byHand)},
			outcome: steps.Completed, condition: nothing + foreign, pools: []string{"infra paused by hand"},
		},
		{
			reason: "so is that of a job that is not over", job: []jobOption{infra}, objects: []client.Object{pool("infra", byOther)},
			outcome: steps.Completed, condition: nothing + foreign, pools: []string{"infra paused by ns/other"},
		},
		{
			reason: "beside one that is paused", job: []jobOption{infra, gpu}, objects: []client.Object{pool("infra", byHand), pool("gpu")}, locked: true,
			outcome: steps.Completed, condition: "True DelaySet: Paused: gpu until 2026-11-25T01:00:00Z." + foreign,
			pools: []string{"gpu paused by ns/job", "infra paused by hand"},
		},
		{
			reason: "nobody misses a pool that is not delayed and paused by hand", job: []jobOption{infra}, locked: true,
			objects: []client.Object{pool("infra"), pool("worker", byHand)},
			outcome: steps.Completed, condition: one, pools: []string{"infra paused by ns/job", "worker paused by hand"},
		},
		{
			reason: "a pool that a job which is over has left paused", job: []jobOption{infra}, over: []string{"ns/other"}, objects: []client.Object{pool("infra", byOther)},
			outcome: steps.Completed, condition: one, pools: []string{"infra paused by ns/other"},
		},
		{
			reason: "one that is not delayed", over: []string{"ns/other"}, objects: []client.Object{pool("infra", byOther)},
			outcome: steps.Completed, condition: "True DelaySet: Paused: infra until the control plane is upgraded.", pools: []string{"infra paused by ns/other"},
		},
		{
			reason: "once the upgrade has commenced they are this job's to answer for", job: []jobOption{infra, commenced}, over: []string{"ns/other"}, locked: true,
			objects: []client.Object{pool("infra", byOther), pool("worker", byOther), pool("storage", openshifttest.PoolPausedBy("ns/third"))}, outcome: steps.Completed,
			condition: "True DelaySet: Paused: infra until 2026-11-25T00:00:00Z, worker until the control plane is upgraded.",
			pools:     []string{"infra paused by ns/job", "storage paused by ns/third", "worker paused by ns/job"},
		},
		{
			reason: "one that is delayed, and that somebody has unpaused", job: []jobOption{infra}, over: []string{"ns/other"}, locked: true,
			objects: []client.Object{pool("infra", named("ns/other"))},
			outcome: steps.Completed, condition: one, pools: []string{"infra paused by ns/job"},
		},
		{
			reason: "a degraded pool is paused too: it has enough to do", job: []jobOption{infra}, locked: true,
			objects: []client.Object{pool("infra", openshifttest.PoolCondition(mcfgv1.MachineConfigPoolNodeDegraded, "disk full"))},
			outcome: steps.Completed, condition: one, pools: []string{"infra paused by ns/job"},
		},
		{
			reason: "the time of a pool has come before it was paused", job: []jobOption{infra}, objects: []client.Object{pool("infra")}, after: 2 * time.Hour,
			outcome: steps.Completed, condition: released, pools: []string{"infra free"},
		},
		{
			reason: "a moment before", job: []jobOption{infra}, objects: []client.Object{pool("infra")}, after: 2*time.Hour - time.Nanosecond, locked: true,
			outcome: steps.Completed, condition: one, pools: []string{"infra paused by ns/job"},
		},
		{
			reason: "a pool that somebody has unpaused after the upgrade commenced", job: []jobOption{infra, commenced}, objects: []client.Object{pool("infra", named(me))},
			outcome: steps.Completed, condition: released, pools: []string{"infra free, but for ns/job"},
		},
		{
			reason: "the pool of the masters cannot be delayed", job: []jobOption{infra, delays("master", time.Hour, 0)}, objects: []client.Object{pool("infra"), pool("master")},
			outcome: steps.Skipped, pools: []string{"infra free", "master free"},
			condition: "False PoolCannotBeDelayed: machineConfigPools[1] delays pool master, which cannot be: OpenShift needs it for the upgrade of the control plane. " +
				"The machine-config operator does not sync a required pool while it is paused, and is degraded by it, and the cluster-version operator waits for both.",
		},
		{
			reason: "nor does it end an upgrade that has commenced", job: []jobOption{infra, delays("master", time.Hour, 0), commenced},
			objects: []client.Object{pool("infra", byMe), pool("master")},
			outcome: steps.Completed, condition: one, pools: []string{"infra paused by ns/job", "master free"},
		},
		{
			reason: "a selector that is none", job: []jobOption{infra, func(job *v1beta1.UpgradeJob) {
				job.Spec.Config.MachineConfigPools[0].MatchLabels.Malformed = map[string]string{"size": "5"}
			}}, objects: []client.Object{pool("infra")},
			outcome: steps.Skipped, pools: []string{"infra free"},
			condition: "False InvalidSelector: machineConfigPools[0].matchLabels: the value of label size is not a string but 5; put it in quotes",
		},
	} {
		t.Run(tc.reason, func(t *testing.T) { tc.run(t, steps.MachineConfigPoolsPaused()) })
	}
}

// Paused in the middle a pool would have machines of two configurations until its time.
func TestPoolsThatRollArePausedAfterwards(t *testing.T) {
	infra, gpu := delays("infra", 2*time.Hour, 0), delays("gpu", 3*time.Hour, 0)
	rolling := pool("infra", openshifttest.PoolTowards("4.18.1", 1))
	const waits = "False MachineConfigPoolsUpdating: Pools that are to be paused are still being updated; infra: 1 of 3 machines updated, 1 unavailable."
	untouched := []string{"gpu free", "infra free"}
	for _, tc := range []poolCase{
		{
			reason: "it is waited for, and nothing is paused meanwhile", job: []jobOption{infra, gpu}, objects: []client.Object{rolling, pool("gpu")},
			outcome: steps.Running, condition: waits, wake: openshift.NodesInterval, blockers: []string{"MachineConfigPoolUpdating MachineConfigPool/infra"}, pools: untouched,
		},
		{
			reason: "to the end of the window", job: []jobOption{infra, gpu}, objects: []client.Object{rolling, pool("gpu")}, after: time.Hour - 3*time.Second,
			outcome: steps.Running, condition: waits, wake: 3*time.Second + time.Millisecond, blockers: []string{"MachineConfigPoolUpdating MachineConfigPool/infra"}, pools: untouched,
		},
		{
			reason: "and not beyond", job: []jobOption{infra, gpu}, objects: []client.Object{rolling, pool("gpu")}, after: time.Hour + time.Millisecond,
			outcome: steps.Skipped, blockers: []string{"MachineConfigPoolUpdating MachineConfigPool/infra"}, pools: untouched,
			condition: "False Expired: The upgrade could not commence by 2026-11-24T23:00:00Z. Pools that are to be paused are still being updated; infra: 1 of 3 machines updated, 1 unavailable.",
		},
		{
			reason: "a job without a version has no window", job: []jobOption{infra, gpu, withoutVersion}, objects: []client.Object{rolling, pool("gpu")}, after: 90 * time.Minute,
			outcome: steps.Running, condition: waits, wake: openshift.NodesInterval, blockers: []string{"MachineConfigPoolUpdating MachineConfigPool/infra"}, pools: untouched,
		},
		{
			reason: "one that is not delayed is not waited for", job: []jobOption{gpu}, objects: []client.Object{rolling, pool("gpu")}, locked: true,
			outcome: steps.Completed, condition: "True DelaySet: Paused: gpu until 2026-11-25T01:00:00Z.", pools: []string{"gpu paused by ns/job", "infra free"},
		},
		{
			reason: "nor one whose upgrade this is", job: []jobOption{infra, commenced}, objects: []client.Object{rolling, pool("gpu")},
			outcome: steps.Completed, condition: "False Released: Free to follow the control plane: infra.", pools: untouched,
		},
	} {
		t.Run(tc.reason, func(t *testing.T) { tc.run(t, steps.MachineConfigPoolsPaused()) })
	}
}

func TestPoolsThatCannotBeReleasedInTimeEndTheJob(t *testing.T) {
	infra, gpu := delays("infra", time.Hour, 3*time.Hour), delays("gpu", 2*time.Hour, 4*time.Hour)
	both := []client.Object{pool("infra", openshifttest.PoolPausedBy(me)), pool("gpu", openshifttest.PoolPausedBy(me))}
	held := []string{"gpu paused by ns/job", "infra paused by ns/job"}
	const (
		goesOn  = "True DelaySet: Paused: gpu until 2026-11-25T00:00:00Z, infra until 2026-11-24T23:00:00Z."
		expired = "False UnpausingPoolsExpired: Delayed pools could not be released in their time: infra by 2026-11-25T01:00:00Z."
	)
	for _, tc := range []poolCase{
		{
			reason: "it goes on until then", job: []jobOption{infra, gpu, commenced}, objects: both, after: 3*time.Hour - time.Nanosecond,
			outcome: steps.Completed, condition: goesOn, pools: held,
		},
		{
			reason: "an upgrade that has commenced fails", job: []jobOption{infra, gpu, commenced, waitedFor("Operator dns is degraded.")}, objects: both, after: 3 * time.Hour,
			outcome: steps.Failed, condition: expired + " Last the job waited for: Operator dns is degraded.", pools: held,
		},
		{
			reason: "one that has not is skipped", job: []jobOption{infra, gpu}, objects: both, after: 3 * time.Hour,
			outcome: steps.Skipped, condition: expired, pools: held,
		},
		{
			reason: "a job without a version fails", job: []jobOption{infra, gpu, withoutVersion}, objects: both, after: 3 * time.Hour,
			outcome: steps.Failed, condition: expired, pools: held,
		},
		{
			reason: "all of them are named", job: []jobOption{infra, gpu, commenced}, objects: both, after: 5 * time.Hour, outcome: steps.Failed, pools: held,
			condition: "False UnpausingPoolsExpired: Delayed pools could not be released in their time: gpu by 2026-11-25T02:00:00Z, infra by 2026-11-25T01:00:00Z.",
		},
		{
			reason: "a job that was resumed has as long again", job: []jobOption{infra, gpu, commenced, resumed(3 * time.Hour)}, objects: both, after: 6*time.Hour - time.Nanosecond,
			outcome: steps.Completed, condition: goesOn, pools: held,
		},
		{
			reason: "and no longer", job: []jobOption{infra, gpu, commenced, resumed(3 * time.Hour)}, objects: both, after: 6 * time.Hour,
			outcome: steps.Failed, condition: "False UnpausingPoolsExpired: Delayed pools could not be released in their time: infra by 2026-11-25T04:00:00Z.", pools: held,
		},
		{
			reason: "pools that are released do not expire", job: []jobOption{infra, gpu, commenced}, objects: []client.Object{pool("infra"), pool("gpu")}, after: 5 * time.Hour,
			outcome: steps.Completed, condition: "False Released: Free to follow the control plane: gpu, infra.", pools: []string{"gpu free", "infra free"},
		},
		{
			reason: "nor do those of somebody else", job: []jobOption{infra, commenced}, objects: []client.Object{pool("infra", openshifttest.PoolPaused())}, after: 5 * time.Hour,
			outcome: steps.Completed, condition: "False NoManagedPools: The job pauses no pool. Paused by somebody else, and left alone: infra.", pools: []string{"infra paused by hand"},
		},
		{
			reason: "a pool that an earlier job left does", job: []jobOption{infra, commenced}, over: []string{"ns/other"}, after: 3 * time.Hour,
			objects: []client.Object{pool("infra", openshifttest.PoolPausedBy("ns/other"))}, outcome: steps.Failed, condition: expired, pools: []string{"infra paused by ns/other"},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) { tc.run(t, steps.MachineConfigPoolsPaused()) })
	}
}

// Behind the step that keeps the time others wait: the pass must come back in time all the same.
func TestThePassComesBackWhenAPoolExpires(t *testing.T) {
	w := newWorld(t, newJob(delays("infra", time.Hour, 3*time.Hour), delays("gpu", time.Hour, 2*time.Hour), delays("worker", time.Hour, 0), commenced), openshifttest.ClusterVersion(),
		pool("infra", openshifttest.PoolPausedBy(me)), pool("gpu", openshifttest.PoolPausedBy(me)), pool("worker", openshifttest.PoolPausedBy(me)))
	for _, tc := range []struct{ wait, want time.Duration }{{0, 2 * time.Hour}, {time.Minute, time.Minute}, {5 * time.Hour, 2 * time.Hour}} {
		if got := w.pass(steps.MachineConfigPoolsPaused(), answering(t, "Next", steps.Wait(tc.wait, "Waiting", "..."))); got.After != tc.want {
			t.Errorf("a step waits for %s: the pass comes back after %s, want %s", tc.wait, got.After, tc.want)
		}
	}
	if got := w.pass(steps.MachineConfigPoolsPaused(), failing(t, "Next", errors.New("on fire"))); got.After != 2*time.Hour || got.Err == nil {
		t.Errorf("a step breaks: got %+v, want it to come back after 2h, and the error", got)
	}
}

func TestPoolsArePausedWithTheLockOnly(t *testing.T) {
	job := newJob(delays("infra", time.Hour, 0), delays("gpu", time.Hour, 0))
	t.Run("somebody else has it", func(t *testing.T) {
		w := newWorld(t, job.DeepCopy(), openshifttest.ClusterVersion(), pool("infra"), pool("gpu"))
		w.lockedBy = "UpgradeJob ns/other"
		if got := w.pass(steps.MachineConfigPoolsPaused()); got.Err == nil {
			t.Errorf("got %+v, want an error", got)
		}
		w.expectPools("gpu free", "infra free")
		w.expectCondition("MachineConfigPoolsPaused", "False Error: MachineConfigPoolsPaused: lock the cluster: it is locked by UpgradeJob ns/other")
	})
	t.Run("the cache does not know yet that somebody else has it", func(t *testing.T) {
		w := newWorld(t, job.DeepCopy(), openshifttest.ClusterVersion(), pool("infra"), pool("gpu"))
		w.cached = w.version()
		w.update(openshifttest.Desired("4.18.9"))
		if got := w.pass(steps.MachineConfigPoolsPaused()); !apierrors.IsConflict(got.Err) {
			t.Errorf("got %+v, want a conflict", got)
		}
		w.expectPools("gpu free", "infra free")
	})
	t.Run("it comes first, and each pool says at once who has paused it", func(t *testing.T) {
		w := newWorld(t, job.DeepCopy(), openshifttest.ClusterVersion(), pool("infra"), pool("gpu"))
		var seen [][]string
		store := w.api
		w.api = interceptor.NewClient(store, interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
				err := c.Patch(ctx, o, patch, options...)
				held := append([]string{w.version().Annotations[v1beta1.UpgradeJobAnnotation]}, w.poolsNow()...)
				seen = append(seen, held)
				return err
			},
		})
		w.pass(steps.MachineConfigPoolsPaused())
		for i, want := range [][]string{{me, "gpu free", "infra free"}, {me, "gpu paused by ns/job", "infra free"}, {me, "gpu paused by ns/job", "infra paused by ns/job"}} {
			if len(seen) <= i || !slices.Equal(seen[i], want) {
				t.Errorf("after write %d: got %v, want %v", i, seen, want)
			}
		}
		if len(seen) != 3 {
			t.Errorf("got %d writes, want 3", len(seen))
		}
	})
}

func TestAPoolThatWasChangedMeanwhileIsNotPaused(t *testing.T) {
	w := newWorld(t, newJob(delays("infra", time.Hour, 0)), openshifttest.ClusterVersion(), pool("infra"))
	before, err := w.cluster().LivePools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.cachedPools = before
	w.editPool("infra", openshifttest.PoolTowards(target, 1)) // it has begun to roll
	if got := w.pass(steps.MachineConfigPoolsPaused()); !apierrors.IsConflict(got.Err) {
		t.Errorf("got %+v, want a conflict", got)
	}
	w.expectPools("infra free")
	w.cachedPools = nil
	if got := w.pass(steps.MachineConfigPoolsPaused()); got.Reason != v1beta1.ReasonMachineConfigPoolsUpdating {
		t.Errorf("got %+v, want it to wait for the pool", got)
	}
	w.expectPools("infra free")
}

func TestMachineConfigPoolsPausedHandsErrorsOn(t *testing.T) {
	broken := errors.New("on fire")
	for name, breaks := range map[string]func(*world){
		"the pools cannot be listed": func(w *world) { w.api = interceptor.NewClient(w.api, failingList(broken, "MachineConfigPoolList")) },
		"a pool cannot be written":   func(w *world) { w.refusing(broken, "infra") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newJob(delays("infra", time.Hour, 0)), openshifttest.ClusterVersion(), pool("infra"))
			breaks(w)
			if got := w.pass(steps.MachineConfigPoolsPaused()); !errors.Is(got.Err, broken) || got.Outcome != steps.Running {
				t.Errorf("got %+v", got)
			}
		})
	}
	t.Run("whether a job is over is not known", func(t *testing.T) {
		w := newWorld(t, newJob(), openshifttest.ClusterVersion(), pool("infra", openshifttest.PoolPausedBy("ns/other")))
		u := w.upgrade()
		u.Over = func(context.Context, string) (bool, error) { return false, broken }
		if got := steps.Run(t.Context(), []steps.Step{steps.MachineConfigPoolsPaused()}, u); !errors.Is(got.Err, broken) {
			t.Errorf("got %+v", got)
		}
	})
}
