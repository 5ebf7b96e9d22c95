// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/test/controlplane"
	"github.com/appuio/managed-upgrade-operator/test/environment"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// namespace creates a namespace for workloads, until the test ends.
func (c *cluster) namespace(labels map[string]string) string {
	c.t.Helper()
	namespace := create(c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "shop-", Labels: labels}})
	c.atEnd = append(c.atEnd, func() { c.remove(namespace) })
	return namespace.Name
}

// runs has a pod run on a node, until the test ends or somebody deletes it, and returns it when it is ready.
func (c *cluster) runs(namespace, name, node string, changes ...func(*corev1.Pod)) *corev1.Pod {
	c.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{"app": name}, Annotations: map[string]string{sim.AnnotationRun: "true"},
		},
		Spec: corev1.PodSpec{
			NodeName:                     node,
			AutomountServiceAccountToken: new(false),
			Containers:                   []corev1.Container{{Name: "main", Image: "registry.example.com/shop/" + name}},
		},
	}
	for _, change := range changes {
		change(pod)
	}
	c.eventually("pod "+name, func() error { return env.Client.Create(c.ctx, pod) }) // once there is the service account
	c.atEnd = append(c.atEnd, func() {
		if err := client.IgnoreNotFound(env.Client.Delete(c.ctx, pod, client.GracePeriodSeconds(0))); err != nil {
			c.t.Error(err)
		}
	})
	c.eventually("pod "+name, func() error {
		c.get(pod)
		if pod.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("its phase is %s", pod.Status.Phase)
		}
		return nil
	})
	return pod
}

// stuckTerminating has a pod outlive its deletion, until it is killed.
func stuckTerminating(pod *corev1.Pod) { pod.Annotations[sim.AnnotationStuckTerminating] = "true" }

func podLabelled(key, value string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Labels[key] = value }
}

// ownedBy gives a pod a controller.
func ownedBy(owner client.Object, apiVersion, kind string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: apiVersion, Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: new(true),
		}}
	}
}

// protect has a budget require that pods stay, all of them, and returns it when it counts.
func (c *cluster) protect(pods ...*corev1.Pod) *policyv1.PodDisruptionBudget {
	c.t.Helper()
	var apps []string
	for _, pod := range pods {
		apps = append(apps, pod.Labels["app"])
	}
	all := intstr.FromInt(len(pods))
	budget := create(c, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: pods[0].Namespace, Name: "always"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &all,
			Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: apps},
			}},
		},
	})
	c.atEnd = append(c.atEnd, func() {
		if err := client.IgnoreNotFound(env.Client.Delete(c.ctx, budget)); err != nil {
			c.t.Error(err)
		}
	})
	c.computed(budget)
	return budget
}

// allowing lets a job upgrade though there are budgets at which a drain will hang.
func allowing(checks *v1beta1.HealthChecks) { checks.CheckPodDisruptionBudgets = new(false) }

// aForceDrain deletes the pods of a node that drains for longer than that.
func aForceDrain(grace time.Duration, changes ...func(*v1beta1.NodeForceDrainSpec)) *v1beta1.NodeForceDrain {
	drain := &v1beta1.NodeForceDrain{
		ObjectMeta: metav1.ObjectMeta{Namespace: environment.Namespace, Name: "app-nodes"},
		Spec:       v1beta1.NodeForceDrainSpec{NodeDrainGracePeriod: duration(grace)},
	}
	for _, change := range changes {
		change(&drain.Spec)
	}
	return drain
}

// killingAfter ends pods that take longer than that to terminate.
func killingAfter(grace time.Duration) func(*v1beta1.NodeForceDrainSpec) {
	return func(spec *v1beta1.NodeForceDrainSpec) { spec.PodForceDeleteGracePeriod = duration(grace) }
}

// selectingPods limits a NodeForceDrain to some pods.
func selectingPods(expression string) func(*v1beta1.NodeForceDrainSpec) {
	return func(spec *v1beta1.NodeForceDrainSpec) { spec.PodJQSelector = expression }
}

// allowForceDrains grants the operator to delete pods, as the documentation says how, until the test ends.
func (c *cluster) allowForceDrains() {
	c.t.Helper()
	folder := filepath.Join(environment.Root(), "deploy", "rbac", "force-drain")
	c.kubectlAnywhere("apply", "--validate=strict", "-k", folder)
	c.atEnd = append(c.atEnd, func() {
		c.kubectlAnywhere("delete", "-k", folder)
		c.mayDeletePods(false)
	})
	c.mayDeletePods(true)
}

// mayDeletePods waits until the API server has learnt whether the operator may delete pods.
func (c *cluster) mayDeletePods(allowed bool) {
	c.t.Helper()
	c.eventually("the permission to delete pods", func() error {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               environment.OperatorUser,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "delete", Resource: "pods", Namespace: "default"},
		}}
		if err := env.Client.Create(c.ctx, review); err != nil {
			return err
		}
		if review.Status.Allowed != allowed {
			return fmt.Errorf("allowed is %t", review.Status.Allowed)
		}
		return nil
	})
}

// waitForceDrain waits until the condition Ready of a NodeForceDrain, of its present spec, is as expected.
func (c *cluster) waitForceDrain(drain *v1beta1.NodeForceDrain, status metav1.ConditionStatus, reason string, words ...string) {
	c.t.Helper()
	c.eventually("NodeForceDrain "+drain.Name, func() error {
		if err := env.Client.Get(c.ctx, client.ObjectKeyFromObject(drain), drain); err != nil {
			return err
		}
		if drain.Status.ObservedGeneration != drain.Generation {
			return errors.New("its status is not of its present spec")
		}
		return conditionIs(drain.Status.Conditions, v1beta1.ConditionReady, status, reason, words...)
	})
}

// drains waits until a node drains, and returns since when, by the journal, and by the NodeForceDrain that has seen it.
func (c *cluster) drains(node string, drain *v1beta1.NodeForceDrain) (began, observed time.Time) {
	c.t.Helper()
	c.eventually("the drain of node "+node, func() error {
		var draining bool
		if began, draining = c.drainOf(node, time.Now()); !draining {
			return errors.New("it does not drain")
		}
		if drain == nil {
			return nil
		}
		c.get(drain)
		for _, d := range drain.Status.LastObservedNodeDrain {
			if d.NodeName == node && !d.ObservedTime.Add(inFlight).Before(began) {
				observed = d.ObservedTime.Time
				return nil
			}
		}
		return fmt.Errorf("the NodeForceDrain has seen %+v", drain.Status.LastObservedNodeDrain)
	})
	return began, observed
}

// begunDrain is a drain that a node was asked for, and when the journal saw that.
type begunDrain struct {
	id string
	at time.Time
}

// drainsBegun returns the drains that a node was asked for, also those that were given up.
func (c *cluster) drainsBegun(node string) []begunDrain {
	var drains []begunDrain
	asked := ""
	for _, r := range past.nodesSince(c.began) {
		if r.object.Name != node {
			continue
		}
		if id := r.object.Annotations[desiredDrain]; id != asked {
			if asked = id; strings.HasPrefix(id, "drain-") {
				drains = append(drains, begunDrain{id, r.seen})
			}
		}
	}
	return drains
}

// deletionsOf returns the operator's deletions of a pod, in order.
func (c *cluster) deletionsOf(pod *corev1.Pod) []controlplane.AuditEvent {
	c.t.Helper()
	return slices.DeleteFunc(c.operatorRequests(), func(r controlplane.AuditEvent) bool {
		return r.Verb != "delete" || r.ObjectRef.Resource != "pods" || r.ObjectRef.Namespace != pod.Namespace || r.ObjectRef.Name != pod.Name
	})
}

// deletedAt expects that the operator deleted a pod once, at its time, and returns when.
func (c *cluster) deletedAt(pod *corev1.Pod, due time.Time) {
	c.t.Helper()
	got := c.deletionsOf(pod)
	if len(got) != 1 {
		c.t.Errorf("pod %s was deleted %d times, want once", pod.Name, len(got))
		return
	}
	c.promptly("the deletion of pod "+pod.Name, got[0].RequestReceivedTimestamp.Time, due)
}

// leftThere expects that nobody has deleted a pod.
func (c *cluster) leftThere(pods ...*corev1.Pod) {
	c.t.Helper()
	for _, pod := range pods {
		live := pod.DeepCopy()
		c.get(live)
		if live.UID != pod.UID || live.DeletionTimestamp != nil {
			c.t.Errorf("pod %s was deleted at %v", pod.Name, live.DeletionTimestamp)
		}
	}
}
