// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"testing"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

func TestSickNodesHoldTheUpgradeUntilTheLastOneIsWell(t *testing.T) {
	c := newCluster(t)
	c.cordon("worker-0", true)
	c.nodeSays("worker-1", corev1.NodeMemoryPressure, corev1.ConditionTrue, "KubeletHasInsufficientMemory")
	c.nodeSays("worker-2", corev1.NodeReady, corev1.ConditionFalse, "KubeletNotReady")
	c.poolIs("worker", mcfgv1.MachineConfigPoolUpdating)
	c.startOperator()
	job := create(c, aJob(attentive()))
	c.wait(job, unhealthy(), blockers(4),
		blockedBy("NodeCordoned", "Node/worker-0", "not by the machine-config operator"),
		blockedBy("NodeMemoryPressure", "Node/worker-1", "short of memory", "KubeletHasInsufficientMemory"),
		blockedBy("NodeNotReady", "Node/worker-2", "not ready", "KubeletNotReady"),
		// A node that takes no pods, or is not ready, holds up its pool too.
		blockedBy("MachineConfigPoolUpdating", "MachineConfigPool/worker"))
	c.cordon("worker-0", false)
	c.nodeSays("worker-2", corev1.NodeReady, corev1.ConditionTrue, "KubeletReady")
	c.poolIs("worker", mcfgv1.MachineConfigPoolUpdated)
	c.leftAlone(job) // nodes are not watched, but looked at as often as Prometheus is asked
	c.nodeSays("worker-1", corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory")
	c.goesOn(job, time.Now())
}

func TestDegradedPoolHoldsTheUpgrade(t *testing.T) {
	const reason = "unexpected on-disk state validating against the configuration"
	c := newCluster(t, func(s *sim.Scenario) { s.Nodes = []sim.NodeFault{{Name: "worker-1", Degraded: reason}} })
	// The machine-config daemon finds what is wrong when it looks at its node anew.
	edit(c, node("worker-1"), func(node *corev1.Node) { node.Annotations["machineconfiguration.openshift.io/state"] = "Working" })
	c.poolIs("worker", mcfgv1.MachineConfigPoolNodeDegraded)
	c.startOperator()
	job := create(c, aJob(attentive()))
	// The machine-config operator has cordoned the node, and nobody else.
	c.wait(job, unhealthy(), blockers(1), blockedBy("MachineConfigPoolDegraded", "MachineConfigPool/worker", "worker-1", reason))
	// Pools are watched: without news nobody looks again.
	asked := c.queries()
	c.flap("storage", 2*lookInterval)
	if c.queries() == asked {
		t.Error("the operator does not look at the job when there is news")
	}
	c.notUpgraded(job)
	c.change(func(s *sim.Scenario) { s.Nodes = nil })
	c.wait(job, succeeded())
	c.upgradedOnce(job)
}

func TestBudgetAtWhichADrainWouldHangHoldsTheUpgrade(t *testing.T) {
	c := newCluster(t)
	shop := c.deployShop("worker-0", "worker-2")
	c.startOperator()
	job := create(c, aJob(attentive()))
	budget := "PodDisruptionBudget/" + shop + "/web"
	c.wait(job, unhealthy(), blockers(1), blockedBy("DisruptionNeverAllowed", budget,
		"2 of 2 pods have to be healthy", "web-0", "web-1", "worker-0", "worker-2"))
	c.leftAlone(job)
	c.requireAvailable(shop, 1)
	c.goesOn(job, time.Now())

	c.thenOffers(job, "4.18.3")
	c.requireAvailable(shop, 2)
	job = create(c, aJob(named("that-leaves-the-shop-out"), to("4.18.3"), attentive(excludingNamespace(shop))))
	c.wait(job, succeeded(), saying(steps.ConditionClusterHealthyBeforeUpgrade,
		"PodDisruptionBudgets that allow no disruption left out: 1 by excludeNamespaces"))
	c.upgradedOnce(job)
}

func node(name string) *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }

// cordon does by hand what oc adm cordon does, or takes it back.
func (c *cluster) cordon(name string, cordoned bool) {
	c.t.Helper()
	edit(c, node(name), func(node *corev1.Node) { node.Spec.Unschedulable = cordoned })
}

// nodeSays has a node report a condition.
func (c *cluster) nodeSays(name string, condition corev1.NodeConditionType, status corev1.ConditionStatus, reason string) {
	c.t.Helper()
	editStatus(c, node(name), func(node *corev1.Node) {
		i := slices.IndexFunc(node.Status.Conditions, func(found corev1.NodeCondition) bool { return found.Type == condition })
		node.Status.Conditions[i] = corev1.NodeCondition{
			Type: condition, Status: status, Reason: reason, Message: "the kubelet says so", LastTransitionTime: metav1.Now(),
		}
	})
}

// editStatus changes the status of an object and returns it.
func editStatus[T client.Object](c *cluster, object T, change func(T)) T {
	c.t.Helper()
	c.get(object)
	base := object.DeepCopyObject().(client.Object)
	change(object)
	if err := env.Client.Status().Patch(c.ctx, object, client.MergeFrom(base)); err != nil {
		c.t.Fatal(err)
	}
	return object
}
