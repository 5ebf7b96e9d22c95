// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"errors"
	"testing"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

func TestMachineConfigPoolsUpgraded(t *testing.T) {
	pool := openshifttest.Pool
	node := func(name, role string, annotations map[string]string) client.Object {
		return openshifttest.Node(name, role, openshifttest.NodeAnnotations(annotations))
	}
	master := pool("master", openshifttest.PoolAt(target))
	waits := func(says string, blockers ...string) verdict {
		return verdict{outcome: steps.Running, reason: v1beta1.ReasonMachineConfigPoolsUpdating, after: openshift.NodesInterval, blockers: blockers, says: says}
	}

	for _, tc := range []stepCase{
		{
			reason:  "every machine of every pool runs the configuration of the release",
			objects: []client.Object{master, pool("worker", openshifttest.PoolAt(target)), pool("infra", openshifttest.PoolAt(target))},
			want:    verdict{outcome: steps.Completed, reason: "Completed", says: "All machines of 3 pools run the configuration of 4.18.2."},
		},
		{
			reason:  "the cluster-version operator is done, the workers are not",
			objects: []client.Object{master, pool("worker", openshifttest.PoolTowards(target, 2))},
			want:    waits("1 of 2 pools are updated; worker: 2 of 3 machines updated, 1 unavailable.", "MachineConfigPoolUpdating MachineConfigPool/worker"),
		},
		{
			reason:  "Updated on the configuration of the old release is not started",
			objects: []client.Object{master, pool("worker")},
			want:    waits("the configuration of the new release is not rendered yet", "MachineConfigPoolNotRendered MachineConfigPool/worker"),
		},
		{
			reason: "the new configuration is chosen, the status still is that of the old one",
			objects: []client.Object{master, pool("worker", func(p *mcfgv1.MachineConfigPool) {
				p.Spec.Configuration.Name = openshifttest.RenderedConfig("worker", target)
			})},
			want: waits("", "MachineConfigPoolUpdating MachineConfigPool/worker"),
		},
		{
			reason:  "a pool that somebody has paused, and how it goes on",
			objects: []client.Object{master, pool("worker", openshifttest.PoolTowards(target, 0), openshifttest.PoolPaused())},
			want:    waits("Pool worker: 0 of 3 machines updated, the pool is paused", "MachineConfigPoolPaused MachineConfigPool/worker"),
		},
		{
			reason:  "a paused pool that is up to date holds nothing up",
			objects: []client.Object{master, pool("worker", openshifttest.PoolAt(target), openshifttest.PoolPaused())},
			want:    verdict{outcome: steps.Completed, reason: "Completed"},
		},
		{
			reason: "a degraded pool and its node, with the words of the machine-config daemon",
			objects: []client.Object{
				master,
				pool("worker", openshifttest.PoolTowards(target, 1), openshifttest.PoolCondition(mcfgv1.MachineConfigPoolNodeDegraded, "Node worker-1 is reporting: disk full")),
				node("worker-1", "worker", map[string]string{"state": "Degraded", "reason": "disk full"}),
			},
			want: waits("Node worker-1 of pool worker is degraded: disk full", "NodeDegraded Node/worker-1", "MachineConfigPoolDegraded MachineConfigPool/worker"),
		},
		{
			reason: "the nodes in work, by name, after the pools",
			objects: []client.Object{
				master, pool("worker", openshifttest.PoolTowards(target, 1)), pool("infra", openshifttest.PoolTowards(target, 0)),
				node("worker-9", "worker", nil),
				node("worker-2", "worker", map[string]string{"state": "Rebooting"}),
				node("worker-1", "worker", map[string]string{"state": "Working"}),
				openshifttest.Node("infra-0", "infra", openshifttest.NodeRole("worker"), openshifttest.NodeAnnotations(map[string]string{"state": "Working"})),
			},
			want: waits("Node infra-0 of pool infra is updating",
				"MachineConfigPoolUpdating MachineConfigPool/infra", "MachineConfigPoolUpdating MachineConfigPool/worker",
				"NodeUpdating Node/infra-0", "NodeUpdating Node/worker-1", "NodeUpdating Node/worker-2"),
		},
		{
			reason: "nodes of pools that are updated, or of none, are not what it waits for",
			objects: []client.Object{
				master, pool("worker", openshifttest.PoolTowards(target, 1)), pool("infra", openshifttest.PoolAt(target)),
				node("alien", "gpu", map[string]string{"state": "Rebooting"}),
				node("master-0", "master", map[string]string{"state": "Rebooting"}),
				openshifttest.Node("infra-0", "infra", openshifttest.NodeRole("worker"), openshifttest.NodeAnnotations(map[string]string{"state": "Rebooting"})),
			},
			want: waits("", "MachineConfigPoolUpdating MachineConfigPool/worker"),
		},
		{
			reason: "a job without a version", job: []jobOption{withoutVersion}, objects: []client.Object{pool("worker")},
			want: verdict{outcome: steps.Completed, reason: "Completed", says: "no version"},
		},
		{
			reason: "a job that names an image alone", job: []jobOption{byImage}, objects: []client.Object{master, pool("worker")},
			want: waits("", "MachineConfigPoolNotRendered MachineConfigPool/worker"),
		},
		{
			reason: "a cluster without pools",
			want:   verdict{outcome: steps.Completed, reason: "Completed", says: "0 pools"},
		},
	} {
		tc.version = []versionOption{desired, completed}
		tc.job = append(tc.job, begun(steps.ConditionMachineConfigPoolsUpgraded, 0))
		for _, name := range []string{"master", "worker", "infra"} {
			tc.objects = append(tc.objects, openshifttest.MachineConfig(name, "4.18.1"), openshifttest.MachineConfig(name, target))
		}
		t.Run(tc.reason, func(t *testing.T) { tc.run(t, steps.MachineConfigPoolsUpgraded()) })
	}
}

func TestMachineConfigPoolsUpgradedHandsErrorsOn(t *testing.T) {
	broken := errors.New("on fire")
	for kind, funcs := range map[string]interceptor.Funcs{
		"MachineConfigPoolList": failingList(broken, "MachineConfigPoolList"),
		"MachineConfig":         failingGet(broken, "MachineConfig"),
	} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, newJob(begun(steps.ConditionMachineConfigPoolsUpgraded, 0)), openshifttest.ClusterVersion(completed), openshifttest.Pool("worker"), openshifttest.MachineConfig("worker", "4.18.1"))
			w.now = w.now.Add(openshift.NodesInterval)
			u := w.upgrade()
			w.api = interceptor.NewClient(w.api, funcs)
			u.Cluster = w.cluster()
			result := steps.Run(t.Context(), []steps.Step{steps.MachineConfigPoolsUpgraded()}, u)
			if !errors.Is(result.Err, broken) || result.Outcome != steps.Running {
				t.Errorf("got %+v", result)
			}
		})
	}
}

// Nodes only say more of what the pools say: that they cannot be listed, while a master reboots, changes no verdict.
func TestMachineConfigPoolsUpgradedGoesWithoutNodes(t *testing.T) {
	w := newWorld(t, newJob(begun(steps.ConditionMachineConfigPoolsUpgraded, 0)), openshifttest.ClusterVersion(completed),
		openshifttest.Pool("worker", openshifttest.PoolTowards(target, 1)), openshifttest.MachineConfig("worker", target))
	w.now = w.now.Add(openshift.NodesInterval)
	u := w.upgrade()
	w.api = interceptor.NewClient(w.api, failingList(errors.New("on fire"), "Node"))
	u.Cluster = w.cluster()
	result := steps.Run(t.Context(), []steps.Step{steps.MachineConfigPoolsUpgraded()}, u)
	if result.Err != nil || result.Reason != v1beta1.ReasonMachineConfigPoolsUpdating {
		t.Errorf("got %+v", result)
	}
	if b := u.Job.Status.Blockers; len(b) != 1 || b[0].Object != "MachineConfigPool/worker" {
		t.Errorf("the blockers are %+v, want the pool", b)
	}
}
