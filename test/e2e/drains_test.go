// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// attention that an administrator gets within seconds.
const alarm = 5 * time.Second

// Nobody deletes the pod: it is said what holds the node up, until the budget gives way.
func TestDrainThatHangsOnABudgetIsNamed(t *testing.T) {
	for _, detailed := range []bool{false, true} {
		t.Run(fmt.Sprintf("MachineConfigNodes %t", detailed), func(t *testing.T) {
			c := newCluster(t, withFewNodes, func(s *sim.Scenario) { s.MachineConfigNodes = detailed })
			pod := c.runs(c.namespace(nil), "cart-0", "worker-0")
			budget := c.protect(pod)
			c.startOperator()
			job := create(c, aJob(attentive(allowing)))
			began, _ := c.drains("worker-0", nil)
			held := blockedBy("DrainBlocked", "Pod/"+pod.Namespace+"/cart-0", "Node worker-0 of pool worker", "PodDisruptionBudget "+pod.Namespace+"/always")
			c.wait(job, held, waitingIn(steps.ConditionMachineConfigPoolsUpgraded, v1beta1.ReasonMachineConfigPoolsUpdating),
				poolSaid("worker", working("worker-0", v1beta1.NodePhaseDraining, "cart-0", "always")))
			c.notLaterThan("the blocker", c.when(job, held), began, alarm)
			c.leftThere(pod)
			available := intstr.FromInt(0)
			edit(c, budget, func(budget *policyv1.PodDisruptionBudget) { budget.Spec.MinAvailable = &available })
			c.wait(job, succeeded(), blockers(0))
			c.gone(pod)
			c.upgradedOnce(job)
			c.inTheOrderOfPhases(job, "worker-0")
		})
	}
}

// working expects that a node of the pool is in a phase, with words about it.
func working(node string, phase v1beta1.NodePhase, words ...string) func(v1beta1.MachineConfigPoolStatus) error {
	return func(pool v1beta1.MachineConfigPoolStatus) error {
		i := slices.IndexFunc(pool.Nodes, func(n v1beta1.NodeStatus) bool { return n.Name == node })
		if i < 0 || pool.Nodes[i].Phase != phase || pool.Nodes[i].Since.IsZero() {
			return fmt.Errorf("want node %s to be %s", node, phase)
		}
		return mentions(pool.Nodes[i].Message, words...)
	}
}

// phasesInOrder are the phases of a node whose update goes well.
var phasesInOrder = []v1beta1.NodePhase{
	v1beta1.NodePhasePending, v1beta1.NodePhaseDraining, v1beta1.NodePhaseUpdating, v1beta1.NodePhaseRebooting, v1beta1.NodePhaseDone,
}

// inTheOrderOfPhases expects that what the job said of a node went forward only, and that it was said to drain.
func (c *cluster) inTheOrderOfPhases(job *v1beta1.UpgradeJob, node string) {
	c.t.Helper()
	var seen []v1beta1.NodePhase
	for _, r := range past.jobsSince(c.began) {
		for _, pool := range r.object.Status.Pools {
			for _, n := range pool.Nodes {
				if r.object.UID == job.UID && n.Name == node {
					seen = append(seen, n.Phase)
				}
			}
		}
	}
	seen = slices.Compact(seen)
	inOrder := slices.IsSortedFunc(seen, func(a, b v1beta1.NodePhase) int {
		return slices.Index(phasesInOrder, a) - slices.Index(phasesInOrder, b)
	})
	if !inOrder || !slices.Contains(seen, v1beta1.NodePhaseDraining) {
		c.t.Errorf("the phases of node %s are %v, want them in the order %v", node, seen, phasesInOrder)
	}
}

// The words of the machine-config daemon tell what to mend; the job does not wait for that longer than it may.
func TestDegradedNodeHoldsTheJobUntilItsTimeout(t *testing.T) {
	const reason = "unexpected on-disk state validating against the new configuration"
	c := newCluster(t, withFewNodes, func(s *sim.Scenario) { s.Nodes = []sim.NodeFault{{Name: "worker-0", Degraded: reason}} })
	c.startOperator()
	const limit = 8 * time.Second
	start := soon(0)
	job := create(c, aJob(startingAt(start), timingOutAfter(limit)))
	held := blockedBy("NodeDegraded", "Node/worker-0", "worker", reason)
	c.wait(job, held, poolSaid("worker", working("worker-0", v1beta1.NodePhaseDegraded, reason)))
	c.notLaterThan("the blocker", c.when(job, held), c.degradedSince("worker-0"), alarm)
	c.wait(job, failedFor(v1beta1.ReasonTimedOut), saying(v1beta1.ConditionFailed, "worker-0"), held, withoutFinalizers())
	c.promptly("the end of the job", c.when(job, inPhase(v1beta1.PhaseFailed)), start.Add(limit))

	c.change(func(s *sim.Scenario) { s.Nodes = nil })
	c.resume(job, "the disk is mended")
	c.wait(job, succeeded(), withoutFinalizers())
	c.upgradedOnce(job)
}

// degradedSince returns when a node said that it is degraded.
func (c *cluster) degradedSince(node string) time.Time {
	c.t.Helper()
	i := slices.IndexFunc(c.nodeHistory(poolOfNode(node)), func(r revision[*corev1.Node]) bool {
		return r.object.Name == node && r.object.Annotations[stateOfNode] == "Degraded"
	})
	if i < 0 {
		c.t.Fatalf("node %s was never degraded", node)
	}
	return c.nodeHistory(poolOfNode(node))[i].seen
}

// A drain that takes an hour degrades its node; then there are two things to tell.
func TestDrainThatFailsDegradesItsNode(t *testing.T) {
	c := newCluster(t, withFewNodes, func(s *sim.Scenario) {
		s.MachineConfigNodes = true
		s.Timings.DrainFails = sim.Duration(4 * time.Second)
	})
	pod := c.runs(c.namespace(nil), "cart-0", "worker-0")
	budget := c.protect(pod)
	c.startOperator()
	job := create(c, aJob(attentive(allowing)))
	c.wait(job, blockedBy("NodeDegraded", "Node/worker-0", "failed to drain node: worker-0 after 1 hour"))
	c.remove(budget)
	c.wait(job, succeeded())
	c.gone(pod)
	c.upgradedOnce(job)
}

// The status has a bounded list of the nodes in work, those that are longest where they are, by name.
func TestNodesInWorkAreABoundedList(t *testing.T) {
	const nodes = v1beta1.MaxNodeStatuses + 3
	c := newCluster(t, withFewNodes, withPool("app", nodes), func(s *sim.Scenario) {
		all := intstr.FromString("100%")
		s.CustomPools[0].MaxUnavailable = &all
		for i := range nodes {
			s.Nodes = append(s.Nodes, sim.NodeFault{Name: fmt.Sprintf("app-%d", i), StaysDown: true})
		}
	})
	c.startOperator()
	job := create(c, aJob())
	c.wait(job, poolSaid("app", func(pool v1beta1.MachineConfigPoolStatus) error {
		if pool.NodesInWork != nodes || len(pool.Nodes) != v1beta1.MaxNodeStatuses || pool.Machines != nodes || pool.State != v1beta1.PoolStateUpdating {
			return fmt.Errorf("%d of %d nodes are in work, %d listed", pool.NodesInWork, pool.Machines, len(pool.Nodes))
		}
		return nil
	}))
	c.change(func(s *sim.Scenario) { s.Nodes = nil })
	c.wait(job, succeeded())
	for _, pool := range []string{"app", "master", "worker"} {
		if err := check(job, poolSaid(pool, func(pool v1beta1.MachineConfigPoolStatus) error {
			if pool.State != v1beta1.PoolStateUpdated || pool.Updated != pool.Machines || pool.CurrentConfig != pool.TargetConfig || len(pool.Nodes) > 0 {
				return fmt.Errorf("want it to be updated")
			}
			return nil
		})); err != nil {
			t.Error(err)
		}
	}
}
