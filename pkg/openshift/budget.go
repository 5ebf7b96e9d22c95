// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// BudgetState says what a PodDisruptionBudget does to the drain of a node. Its status alone does not tell whether there
// are pods at all.
type BudgetState int

const (
	// BudgetAllows means: a pod may be evicted, or the budget surely has none.
	BudgetAllows BudgetState = iota
	// BudgetNeverAllows means: no pod may be evicted even while every pod is healthy.
	BudgetNeverAllows
	// BudgetCountsNoPods means: no pod may be evicted, because the disruption controller counts none. Of pods without a
	// controller it cannot tell how many there should be, unless minAvailable is a number.
	BudgetCountsNoPods
	// BudgetExhausted means: no pod may be evicted at present, because pods are not healthy.
	BudgetExhausted
	// BudgetNotComputed means: no pod may be evicted, because the disruption controller has not looked at the budget yet,
	// or failed, e.g. for want of the scale of the pods' controller.
	BudgetNotComputed
)

// Budget is what is kept of a PodDisruptionBudget.
type Budget struct {
	Namespace, Name string
	State           BudgetState
	// Message explains the state to people.
	Message string
	// Required is how many pods have to be healthy; zero if that is not known.
	Required int32

	selector labels.Selector
	// asTheyWillBe is set if pods count that are not healthy at present: they would not be evicted once they are.
	asTheyWillBe bool
	// unhealthyGo is set if pods that are not healthy may be evicted all the same.
	unhealthyGo bool
}

// JudgeBudget tells what the budget does to a drain, and explains it to people. It follows what the API server does at an
// eviction: it does not look whether the budget is being deleted, and refuses while the status is not of the spec.
func JudgeBudget(pdb *policyv1.PodDisruptionBudget) (BudgetState, string) {
	spec, st := &pdb.Spec, &pdb.Status
	if spec.Selector == nil { // selects nothing
		return BudgetAllows, ""
	}
	if why := forbidden(spec); why != "" {
		return BudgetNeverAllows, why
	}
	c := meta.FindStatusCondition(st.Conditions, policyv1.DisruptionAllowedCondition)
	switch {
	case c != nil && c.Reason == policyv1.SyncFailedReason:
		return BudgetNotComputed, "the disruption controller cannot compute it"
	case !observed(pdb):
		return BudgetNotComputed, "the disruption controller has not looked at it yet"
	case st.ExpectedPods == 0 && spec.MinAvailable != nil && spec.MinAvailable.Type == intstr.Int:
		return BudgetAllows, "" // only then all pods are counted, and there are none
	case st.ExpectedPods == 0:
		return BudgetCountsNoPods, "pods without a controller count only if minAvailable is a number"
	case st.DesiredHealthy >= st.ExpectedPods:
		return BudgetNeverAllows, fmt.Sprintf("%d of %d pods have to be healthy", st.DesiredHealthy, st.ExpectedPods)
	case st.DisruptionsAllowed <= 0:
		return BudgetExhausted, fmt.Sprintf("%d of %d pods healthy, %d required", st.CurrentHealthy, st.ExpectedPods, st.DesiredHealthy)
	default:
		return BudgetAllows, ""
	}
}

// observed tells whether the budget's status is of its spec.
func observed(pdb *policyv1.PodDisruptionBudget) bool {
	return pdb.Status.ObservedGeneration > 0 && pdb.Status.ObservedGeneration >= pdb.Generation
}

// forbidden names the field of the spec that forbids every eviction, whatever the number of pods; empty if none does.
func forbidden(spec *policyv1.PodDisruptionBudgetSpec) string {
	const pods = 100 // percentages are taken of this number
	if v := spec.MaxUnavailable; v != nil {
		if n, err := intstr.GetScaledValueFromIntOrPercent(v, pods, true); err == nil && n <= 0 {
			return "maxUnavailable is " + v.String()
		}
	}
	if v := spec.MinAvailable; v != nil && v.Type == intstr.String {
		if n, err := intstr.GetScaledValueFromIntOrPercent(v, pods, true); err == nil && n >= pods {
			return "minAvailable is " + v.String()
		}
	}
	return ""
}

// newBudget returns the facts of the budget, or nil if it selects nothing.
func newBudget(pdb *policyv1.PodDisruptionBudget) *Budget {
	selector, err := metav1.LabelSelectorAsSelector(pdb.Spec.Selector)
	if err != nil || pdb.Spec.Selector == nil { // the API server takes what cannot be parsed to select nothing, too
		return nil
	}
	state, message := JudgeBudget(pdb)
	st, policy := &pdb.Status, pdb.Spec.UnhealthyPodEvictionPolicy
	return &Budget{
		Namespace: pdb.Namespace, Name: pdb.Name, State: state, Message: message, Required: st.DesiredHealthy, selector: selector,
		// Pods that are not counted are none that will be: they are the last ones, or nobody starts others.
		asTheyWillBe: state == BudgetNeverAllows && (st.ExpectedPods > 0 || !observed(pdb)),
		// As the API server decides on an eviction.
		unhealthyGo: (policy != nil && *policy == policyv1.AlwaysAllow) || (st.CurrentHealthy >= st.DesiredHealthy && st.DesiredHealthy > 0),
	}
}

// ofVirtualMachine tells whether KubeVirt keeps the budget for a virtual machine. It never allows an eviction, and does
// not hold up a drain: KubeVirt takes the eviction as the order to migrate the virtual machine.
func ofVirtualMachine(pdb *policyv1.PodDisruptionBudget) bool {
	owner := metav1.GetControllerOf(pdb)
	if owner == nil || owner.Kind != "VirtualMachineInstance" {
		return false
	}
	version, err := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && version.Group == "kubevirt.io"
}

// selects tells whether the budget is about the pod.
func (b *Budget) selects(pod *corev1.Pod) bool { return b.selector.Matches(labels.Set(pod.Labels)) }

// holds tells of a budget that allows no eviction whether it would keep this pod, one that it selects, from being
// evicted by a drain.
func (b *Budget) holds(pod *corev1.Pod) bool {
	switch {
	case b.asTheyWillBe:
		return true // a pod that starts will be healthy, and one that ends will have a successor
	case pod.Status.Phase == corev1.PodPending || !pod.DeletionTimestamp.IsZero():
		return false // no budget protects it
	default:
		return podReady(pod) || !b.unhealthyGo
	}
}

// drained tells whether a drain evicts the pod and a budget may protect it: not if it has finished, or if it belongs to
// its node.
func drained(pod *corev1.Pod) bool {
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return false
	}
	return !ofNode(pod)
}

// ofNode tells whether the pod belongs to its node, which cannot be drained of it.
func ofNode(pod *corev1.Pod) bool {
	if _, static := pod.Annotations[corev1.MirrorPodAnnotationKey]; static {
		return true
	}
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "DaemonSet"
}

func podReady(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
