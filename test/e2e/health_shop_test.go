// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deployShop deploys an application until the test ends: a pod on each of the nodes, and a budget by which all of them
// have to be available. It returns the namespace.
func (c *cluster) deployShop(nodes ...string) string {
	c.t.Helper()
	namespace := create(c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "shop-"}})
	c.atEnd = append(c.atEnd, func() { c.remove(namespace) })
	for i, node := range nodes {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: fmt.Sprintf("web-%d", i), Labels: map[string]string{"app": "web"}},
			Spec: corev1.PodSpec{
				NodeName:                     node, // there is no scheduler
				AutomountServiceAccountToken: new(false),
				Containers:                   []corev1.Container{{Name: "web", Image: "registry.example.com/shop/web"}},
			},
		}
		c.eventually("pod "+pod.Name, func() error { return env.Client.Create(c.ctx, pod) }) // once there is the service account
		c.atEnd = append(c.atEnd, func() {
			// There is no kubelet that would end it.
			if err := env.Client.Delete(c.ctx, pod, client.GracePeriodSeconds(0)); err != nil {
				c.t.Error(err)
			}
		})
		editStatus(c, pod, func(pod *corev1.Pod) {
			pod.Status.Phase = corev1.PodRunning
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		})
	}
	all := intstr.FromInt(len(nodes))
	budget := create(c, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "web"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &all,
			Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"web", "api"}},
			}},
		},
	})
	c.atEnd = append(c.atEnd, func() { c.remove(budget) })
	c.computed(budget)
	return namespace.Name
}

// requireAvailable changes the shop's budget, and returns when the disruption controller has seen it.
func (c *cluster) requireAvailable(namespace string, pods int) {
	c.t.Helper()
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	available := intstr.FromInt(pods)
	c.computed(edit(c, budget, func(budget *policyv1.PodDisruptionBudget) { budget.Spec.MinAvailable = &available }))
}

// computed waits until the disruption controller has computed a budget.
func (c *cluster) computed(budget *policyv1.PodDisruptionBudget) {
	c.t.Helper()
	c.eventually("PodDisruptionBudget "+budget.Name, func() error {
		c.get(budget)
		if budget.Status.ObservedGeneration != budget.Generation || budget.Status.CurrentHealthy == 0 {
			return fmt.Errorf("its status is %+v", budget.Status)
		}
		return nil
	})
}
