// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"errors"
	"testing"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

func TestWorkerNodesUpgraded(t *testing.T) {
	at, behindPool := openshifttest.PoolAt(target), openshifttest.PoolTowards(target, 1)
	required := func(p *mcfgv1.MachineConfigPool) {
		p.Labels["operator.machineconfiguration.openshift.io/required-for-upgrade"] = ""
	}
	const updating = "MachineConfigPoolUpdating MachineConfigPool/"
	for _, tc := range []poolCase{
		{
			reason: "every pool runs the release", objects: []client.Object{pool("master", at), pool("worker", at), pool("infra", at)},
			condition: "True Completed: All machines of 2 pools run the configuration of 4.18.2.", outcome: steps.Completed,
			pools: []string{"infra free", "master free", "worker free"},
		},
		{
			reason: "the pools of the control plane are not waited for", objects: []client.Object{pool("master", behindPool), pool("gateway", behindPool, required), pool("worker", at)},
			condition: "True Completed: All machines of 1 pools run the configuration of 4.18.2.", outcome: steps.Completed,
			pools: []string{"gateway free", "master free", "worker free"},
		},
		{
			reason: "all others are, not only one named worker", objects: []client.Object{pool("master", at), pool("worker", at), pool("infra", behindPool), pool("gpu", openshifttest.PoolTowards(target, 0))},
			condition: "False MachineConfigPoolsUpdating: 1 of 3 pools are updated; gpu: 0 of 3 machines updated, 1 unavailable; infra: 1 of 3 machines updated, 1 unavailable.",
			blockers:  []string{updating + "gpu", updating + "infra"}, wake: openshift.NodesInterval,
			pools: []string{"gpu free", "infra free", "master free", "worker free"},
		},
		{
			reason: "one whose configuration is not rendered yet", objects: []client.Object{pool("worker")},
			condition: "False MachineConfigPoolsUpdating: 0 of 1 pools are updated; worker: the configuration of the new release is not rendered yet.",
			blockers:  []string{"MachineConfigPoolNotRendered MachineConfigPool/worker"}, wake: openshift.NodesInterval, pools: []string{"worker free"},
		},
		{
			reason: "one that somebody has paused", objects: []client.Object{pool("worker", openshifttest.PoolTowards(target, 0), openshifttest.PoolPaused())},
			condition: "False MachineConfigPoolsUpdating: 0 of 1 pools are updated; worker: 0 of 3 machines updated, the pool is paused.",
			blockers:  []string{"MachineConfigPoolPaused MachineConfigPool/worker"}, wake: openshift.NodesInterval, pools: []string{"worker paused by hand"},
		},
		{
			reason: "one that is degraded", objects: []client.Object{pool("worker", behindPool, openshifttest.PoolCondition(mcfgv1.MachineConfigPoolDegraded, "disk full"))},
			condition: "False MachineConfigPoolsUpdating: 0 of 1 pools are updated; worker: 1 of 3 machines updated, Degraded: disk full.",
			blockers:  []string{"MachineConfigPoolDegraded MachineConfigPool/worker"}, wake: openshift.NodesInterval, pools: []string{"worker free"},
		},
		{
			reason: "a cluster without workers", objects: []client.Object{pool("master", at)},
			condition: "True Completed: All machines of 0 pools run the configuration of 4.18.2.", outcome: steps.Completed, pools: []string{"master free"},
		},
		{
			reason: "a job without a version", job: []jobOption{withoutVersion}, objects: []client.Object{pool("worker")},
			condition: "True Completed: The job has no version: nothing is upgraded.", outcome: steps.Completed, pools: []string{"worker free"},
		},
	} {
		tc.version = []versionOption{desired, completed}
		tc.job = append(tc.job, begun(steps.ConditionWorkerNodesUpgraded, 0))
		tc.objects = append(tc.objects, renderedConfigs("master", "worker", "infra", "gpu", "gateway")...)
		t.Run(tc.reason, func(t *testing.T) { tc.run(t, steps.WorkerNodesUpgraded()) })
	}
}

// A pool that a job before left paused is released, under the lock, and waited for.
func TestWorkerNodesUpgradedReleasesPools(t *testing.T) {
	w := newWorld(t, newJob(begun(steps.ConditionWorkerNodesUpgraded, 0)), openshifttest.ClusterVersion(desired, completed),
		pool("worker", openshifttest.PoolTowards(target, 0), openshifttest.PoolPausedBy("ns/before")), openshifttest.MachineConfig("worker", target))
	w.over = []string{"ns/before"}
	for pass := range 2 {
		if result := w.pass(steps.WorkerNodesUpgraded()); result.Err != nil || result.Outcome != steps.Running || result.After != openshift.NodesInterval {
			t.Errorf("pass %d: got %+v, want to wait for its machines", pass, result)
		}
		w.expectPools("worker free")
	}
	if holder := w.version().Annotations[v1beta1.UpgradeJobAnnotation]; holder != me {
		t.Errorf("the cluster is locked by %q", holder)
	}
	w.editPool("worker", openshifttest.PoolAt(target))
	if result := w.pass(steps.WorkerNodesUpgraded()); result.Outcome != steps.Completed {
		t.Errorf("got %+v", result)
	}
}

func TestWorkerNodesUpgradedHandsErrorsOn(t *testing.T) {
	broken := errors.New("on fire")
	for kind, funcs := range map[string]interceptor.Funcs{
		"MachineConfigPoolList": failingList(broken, "MachineConfigPoolList"), "MachineConfig": failingGet(broken, "MachineConfig"),
	} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, newJob(begun(steps.ConditionWorkerNodesUpgraded, 0)), openshifttest.ClusterVersion(completed), pool("worker"), openshifttest.MachineConfig("worker", "4.18.1"))
			u := w.upgrade()
			w.api = interceptor.NewClient(w.api, funcs)
			u.Cluster = w.cluster()
			result := steps.Run(t.Context(), []steps.Step{steps.WorkerNodesUpgraded()}, u)
			if !errors.Is(result.Err, broken) || result.Outcome != steps.Running || result.Reason != v1beta1.ReasonError {
				t.Errorf("got %+v", result)
			}
		})
	}
	t.Run("the release of a pool", func(t *testing.T) {
		w := newWorld(t, newJob(begun(steps.ConditionWorkerNodesUpgraded, 0)), openshifttest.ClusterVersion(desired, completed),
			pool("worker", openshifttest.PoolTowards(target, 0), openshifttest.PoolPausedBy("ns/before")), openshifttest.MachineConfig("worker", target))
		w.over = []string{"ns/before"}
		w.refusing(broken, "worker")
		if result := w.pass(steps.WorkerNodesUpgraded()); !errors.Is(result.Err, broken) || result.Outcome != steps.Running {
			t.Errorf("got %+v", result)
		}
		w.expectPools("worker paused by ns/before")
	})
}

// An extra machine that is drained makes its pool one that updates. The steps behind this one wait for that machine, and have to be reached.
func TestMachinesThatWereUpgradedStaySo(t *testing.T) {
	away := func(updated int32) []func(*mcfgv1.MachineConfigPool) {
		return []func(*mcfgv1.MachineConfigPool){openshifttest.PoolAt(target), openshifttest.PoolTowards(target, updated)}
	}
	for _, step := range []steps.Step{steps.WorkerNodesUpgraded(), steps.MachineConfigPoolsUpgraded()} {
		before := done(step.Condition(), 0)
		for _, tc := range []struct {
			reason string
			job    []jobOption
			pool   *mcfgv1.MachineConfigPool
			want   steps.Outcome
		}{
			{"a machine is away that was upgraded", []jobOption{before}, openshifttest.Pool("worker", away(3)...), steps.Completed},
			{"they have not all been upgraded yet", nil, openshifttest.Pool("worker", away(3)...), steps.Running},
			{"they were, before the job was resumed", []jobOption{before, resumed(time.Second)}, openshifttest.Pool("worker", away(3)...), steps.Running},
			{"one of them is not upgraded any more", []jobOption{before}, openshifttest.Pool("worker", away(2)...), steps.Running},
		} {
			t.Run(step.Condition()+": "+tc.reason, func(t *testing.T) {
				w := newWorld(t, newJob(tc.job...), openshifttest.ClusterVersion(upgraded()), tc.pool,
					openshifttest.MachineConfig("worker", target))
				if result := w.pass(step); result.Outcome != tc.want || result.Err != nil {
					t.Errorf("got %+v, want outcome %d", result, tc.want)
				}
			})
		}
	}
}
