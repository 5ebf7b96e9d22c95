// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"context"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// shop is a namespace with applications on the nodes of a cluster.
type shop struct {
	*simulated
	namespace string
}

func startWithShop(t *testing.T, s sim.Scenario) *shop {
	t.Helper()
	c := &shop{simulated: start(t, s)}
	c.namespace = c.newNamespace("shop-")
	t.Cleanup(func() {
		// The pods would be on the nodes of the next test.
		if err := c.client.DeleteAllOf(context.Background(), &corev1.Pod{}, client.InNamespace(c.namespace), client.GracePeriodSeconds(0)); err != nil {
			t.Errorf("delete pods: %v", err)
		}
	})
	return c
}

// deploy creates a pod on a node, with the annotations key, value, ...
func (c *shop) deploy(node, name string, annotations ...string) *corev1.Pod {
	c.t.Helper()
	return c.create(c.describe(node, name, annotations...))
}

func (c *shop) describe(node, name string, annotations ...string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name, Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "example.com/image"}}},
	}
	for i := 0; i < len(annotations); i += 2 {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, annotations[i], annotations[i+1])
	}
	return pod
}

func (c *shop) create(pod *corev1.Pod) *corev1.Pod {
	c.t.Helper()
	if err := c.client.Create(c.t.Context(), pod); err != nil {
		c.t.Fatal(err)
	}
	return pod
}

// ready waits until the pod runs and is ready.
func (c *shop) ready(pod *corev1.Pod) *corev1.Pod {
	c.t.Helper()
	c.eventually("pod "+pod.Name+" ready", func() bool {
		c.get(pod)
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady {
				return pod.Status.Phase == corev1.PodRunning && condition.Status == corev1.ConditionTrue
			}
		}
		return false
	})
	return pod
}

// budget allows no disruption of the pods of an application, as soon as they are ready.
func (c *shop) budget(app string) *policyv1.PodDisruptionBudget {
	c.t.Helper()
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: app},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: new(intstr.FromInt32(0)),
			Selector:       &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		},
	}
	if err := c.client.Create(c.t.Context(), budget); err != nil {
		c.t.Fatal(err)
	}
	return budget
}

// node reads a node.
func (c *simulated) node(name string) *corev1.Node {
	c.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.get(node)
	return node
}

// told reports whether the simulator has told of something.
func (c *simulated) told(text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, line := range c.lines {
		if strings.Contains(line, text) {
			return true
		}
	}
	return false
}

func draining(node *corev1.Node) bool {
	desired := node.Annotations[annotations+"desiredDrain"]
	return node.Spec.Unschedulable && strings.HasPrefix(desired, "drain-") && desired != node.Annotations[annotations+"lastAppliedDrain"]
}

func TestDrainWaitsForTheBudget(t *testing.T) {
	c := startWithShop(t, quick())
	held := c.ready(c.deploy("worker-0", "held", sim.AnnotationRun, "true"))
	free := c.ready(c.deploy("worker-0", "free", sim.AnnotationRun, "true"))
	elsewhere := c.ready(c.deploy("worker-1", "elsewhere", sim.AnnotationRun, "true"))
	nobodys := c.deploy("worker-0", "nobodys")
	budget := c.budget("held")
	c.desire(&configv1.Update{Version: desiredVersion})
	c.eventually("the budget holds the drain", func() bool {
		return c.told("worker-0 waits for pod "+c.namespace+"/held: Cannot evict pod as it would violate the pod's disruption budget.") && !c.exists(free)
	})
	c.eventually("ClusterVersion completed", c.completed(desiredVersion))
	if node := c.node("worker-0"); !draining(node) {
		t.Errorf("worker-0 does not drain: %v", node.Annotations)
	}
	if c.get(held); held.DeletionTimestamp != nil {
		t.Error("the budget does not hold the pod")
	}
	if c.get(elsewhere); elsewhere.DeletionTimestamp != nil {
		t.Error("a pod of another node is evicted")
	}
	if err := c.client.Delete(t.Context(), budget); err != nil {
		t.Fatal(err)
	}
	c.eventually("pools updated", c.updated(desiredVersion))
	for _, pod := range []*corev1.Pod{held, elsewhere} {
		if c.exists(pod) {
			t.Errorf("pod %s has outlived the drain of its node", pod.Name)
		}
	}
	if c.get(nobodys); nobodys.DeletionTimestamp != nil {
		t.Error("a pod that nobody runs is evicted")
	}
}

func TestDrainLeavesStaticPodsAndTheEnded(t *testing.T) {
	c := startWithShop(t, quick())
	static := c.describe("worker-0", "static", sim.AnnotationRun, "true")
	static.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "worker-0", UID: c.node("worker-0").UID, Controller: new(true)}}
	c.ready(c.create(static))
	ended := c.ready(c.deploy("worker-0", "ended", sim.AnnotationRun, "true"))
	next := ended.DeepCopy()
	next.Status.Phase = corev1.PodSucceeded
	if err := c.client.Status().Patch(t.Context(), next, client.MergeFrom(ended)); err != nil {
		t.Fatal(err)
	}
	c.desire(&configv1.Update{Version: desiredVersion})
	c.eventually("pools updated", c.updated(desiredVersion))
	for _, pod := range []*corev1.Pod{static, ended} {
		if c.get(pod); pod.DeletionTimestamp != nil {
			t.Errorf("pod %s is evicted", pod.Name)
		}
	}
	// What is deleted by others is removed all the same.
	if err := c.client.Delete(t.Context(), static); err != nil {
		t.Fatal(err)
	}
	c.eventually("pod gone", func() bool { return !c.exists(static) })
}

func TestStuckPodHoldsTheDrainUntilItIsKilled(t *testing.T) {
	c := startWithShop(t, quick())
	stuck := c.describe("worker-0", "stuck", sim.AnnotationRun, "true", sim.AnnotationStuckTerminating, "true")
	stuck.Spec.TerminationGracePeriodSeconds = new(int64(2))
	c.ready(c.create(stuck))
	c.desire(&configv1.Update{Version: desiredVersion})
	c.eventually("ClusterVersion completed", c.completed(desiredVersion))
	c.eventually("it has outlived its grace", func() bool {
		c.get(stuck)
		return stuck.DeletionTimestamp != nil && time.Now().After(stuck.DeletionTimestamp.Add(time.Second))
	})
	if !draining(c.node("worker-0")) {
		t.Error("worker-0 does not drain")
	}
	if err := c.client.Delete(t.Context(), stuck, client.GracePeriodSeconds(1)); err != nil {
		t.Fatal(err)
	}
	c.eventually("pools updated", c.updated(desiredVersion))
	if c.exists(stuck) {
		t.Error("the pod is still there")
	}
}

func TestPodsEndAfterTheirDeletion(t *testing.T) {
	c := startWithShop(t, quick())
	byHand := c.deploy("worker-0", "by-hand")
	next := byHand.DeepCopy()
	next.Status.Phase = corev1.PodRunning
	if err := c.client.Status().Patch(t.Context(), next, client.MergeFrom(byHand)); err != nil {
		t.Fatal(err)
	}
	slow := c.ready(c.deploy("worker-1", "slow", sim.AnnotationRun, "true", sim.AnnotationTerminatesAfter, "700ms"))
	began := time.Now()
	for _, pod := range []*corev1.Pod{byHand, slow} {
		if err := c.client.Delete(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	c.eventually("pod by hand gone", func() bool { return !c.exists(byHand) })
	c.eventually("slow pod gone", func() bool { return !c.exists(slow) })
	if took := time.Since(began); took < 700*time.Millisecond || took > 20*time.Second {
		t.Errorf("the slow pod took %s to end, want 700 ms and less than its grace", took)
	}
}

func TestCordonByHandIsTainted(t *testing.T) {
	c := start(t, quick())
	c.cordon("worker-1", true)
	taints := func() []corev1.Taint { return c.node("worker-1").Spec.Taints }
	c.eventually("tainted", func() bool { return len(taints()) == 1 })
	if got := taints()[0]; got.Key != corev1.TaintNodeUnschedulable || got.Effect != corev1.TaintEffectNoSchedule || got.TimeAdded == nil {
		t.Errorf("taint %+v", got)
	}
	c.cordon("worker-1", false)
	c.eventually("taint gone", func() bool { return len(taints()) == 0 })
}
