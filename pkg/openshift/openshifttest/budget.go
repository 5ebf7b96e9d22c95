// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshifttest

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Budget returns a PodDisruptionBudget over the pods of the app of its name that requires so many of its pods, as the
// disruption controller leaves it while so many are healthy.
func Budget(namespace, name string, required, healthy, pods int32, options ...func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
	pdb := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 1}}
	pdb.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	pdb.Spec.MinAvailable = new(intstr.FromInt32(required))
	pdb.Status = policyv1.PodDisruptionBudgetStatus{
		ObservedGeneration: 1, DesiredHealthy: required, CurrentHealthy: healthy, ExpectedPods: pods,
	}
	if pods > 0 {
		pdb.Status.DisruptionsAllowed = max(0, healthy-required)
	}
	BudgetCondition(policyv1.SufficientPodsReason)(pdb)
	if pdb.Status.DisruptionsAllowed == 0 {
		BudgetCondition(policyv1.InsufficientPodsReason)(pdb)
	}
	for _, option := range options {
		option(pdb)
	}
	return pdb
}

// MinAvailable replaces what the spec requires, as a number or a percentage. The status stays.
func MinAvailable(value string) func(*policyv1.PodDisruptionBudget) {
	return func(pdb *policyv1.PodDisruptionBudget) {
		pdb.Spec.MinAvailable, pdb.Spec.MaxUnavailable = new(intstr.Parse(value)), nil
	}
}

// MaxUnavailable replaces what the spec requires, as a number or a percentage. The status stays.
func MaxUnavailable(value string) func(*policyv1.PodDisruptionBudget) {
	return func(pdb *policyv1.PodDisruptionBudget) {
		pdb.Spec.MinAvailable, pdb.Spec.MaxUnavailable = nil, new(intstr.Parse(value))
	}
}

// BudgetSelector replaces the selector.
func BudgetSelector(selector *metav1.LabelSelector) func(*policyv1.PodDisruptionBudget) {
	return func(pdb *policyv1.PodDisruptionBudget) { pdb.Spec.Selector = selector }
}

// BudgetNotObserved makes the budget one that the disruption controller has not looked at yet.
func BudgetNotObserved() func(*policyv1.PodDisruptionBudget) {
	return func(pdb *policyv1.PodDisruptionBudget) { pdb.Status = policyv1.PodDisruptionBudgetStatus{} }
}

// BudgetCondition sets the condition DisruptionAllowed, which is True for SufficientPods.
func BudgetCondition(reason string) func(*policyv1.PodDisruptionBudget) {
	return func(pdb *policyv1.PodDisruptionBudget) {
		c := metav1.Condition{Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: reason, LastTransitionTime: installed}
		if reason == policyv1.SufficientPodsReason {
			c.Status = metav1.ConditionTrue
		}
		pdb.Status.Conditions = []metav1.Condition{c}
	}
}

// AlwaysEvictUnhealthy lets pods that are not ready be evicted whatever the budget says.
func AlwaysEvictUnhealthy() func(*policyv1.PodDisruptionBudget) {
	return func(pdb *policyv1.PodDisruptionBudget) {
		pdb.Spec.UnhealthyPodEvictionPolicy = new(policyv1.AlwaysAllow)
	}
}

// BudgetOwner sets the controller of the budget.
func BudgetOwner(apiVersion, kind, name string) func(*policyv1.PodDisruptionBudget) {
	return func(pdb *policyv1.PodDisruptionBudget) {
		pdb.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, Controller: new(true)}}
	}
}

// Pod returns a pod of an app that is ready on a node.
func Pod(namespace, app string, index int, node string, options ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: fmt.Sprintf("%s-%d", app, index), Labels: map[string]string{"app": app},
	}}
	PodOwner("ReplicaSet", app)(pod)
	pod.Spec.NodeName = node
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	for _, option := range options {
		option(pod)
	}
	return pod
}

// PodOwner sets the controller of the pod, of group apps.
func PodOwner(kind, name string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, Controller: new(true)}}
	}
}

// PodWithoutController makes the pod one that nobody starts anew.
func PodWithoutController() func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.OwnerReferences = nil }
}

// PodLabel adds a label to the pod.
func PodLabel(key, value string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Labels[key] = value }
}

// PodPhase sets the phase of the pod, in which it is not ready unless it runs.
func PodPhase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Phase = phase
		if phase != corev1.PodRunning {
			PodNotReady()(pod)
		}
	}
}

// PodNotReady makes the pod not ready.
func PodNotReady() func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.Conditions[0].Status = corev1.ConditionFalse }
}

// PodTerminating makes the pod one that has been deleted and has not ended yet.
func PodTerminating() func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.DeletionTimestamp, pod.Finalizers = &installed, []string{"example.com/slow"}
	}
}

// PodTerminatingSince makes the pod one that has been deleted, and that still runs, with a grace period that ends then.
// Finalizers keep it; without any it is one that its node does not get rid of, which a fake API refuses to store.
func PodTerminatingSince(end time.Time, finalizers ...string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds, pod.Finalizers = new(metav1.NewTime(end)), new(int64(30)), finalizers
	}
}

// PodStatic makes the pod the image of one that its node runs by itself.
func PodStatic() func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "0123"}
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: pod.Spec.NodeName, Controller: new(true)}}
	}
}
