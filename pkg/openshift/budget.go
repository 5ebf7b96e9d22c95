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
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/appuio/managed-upgrade-operator/pkg/poll"
)

// BudgetState says what a PodDisruptionBudget does to the drain of a node.
type BudgetState int

const (
	// BudgetAllows means: a pod may be evicted, or the budget has none. Also of a budget that is being deleted, and of
	// one that the disruption controller has not looked at yet, unless its spec says enough.
	BudgetAllows BudgetState = iota
	// BudgetNeverAllows means: no pod may be evicted even while every pod is healthy.
	BudgetNeverAllows
	// BudgetExhausted means: no pod may be evicted at present, because pods are not healthy.
	BudgetExhausted
	// BudgetNotComputed means: no pod may be evicted, because the disruption controller cannot tell how many pods there
	// should be, e.g. for maxUnavailable over pods without a controller.
	BudgetNotComputed
)

// Budget is what is kept of a PodDisruptionBudget that allows no eviction.
type Budget struct {
	Namespace, Name string
	// State is any but BudgetAllows.
	State BudgetState
	// Message explains the state to people.
	Message string
	// Required is how many pods have to be healthy; zero if that is not known.
	Required int32

	selector labels.Selector
	// unhealthyGo is set if pods that are not healthy may be evicted all the same.
	unhealthyGo bool
	// held is asked at most once: the budget lives for as long as the answer of which it is a part.
	held poll.Question[HeldPods]
}

// JudgeBudget tells what the budget does to a drain, and explains it to people.
func JudgeBudget(pdb *policyv1.PodDisruptionBudget) (BudgetState, string) {
	st := &pdb.Status
	current := st.ObservedGeneration >= pdb.Generation && st.ObservedGeneration > 0
	// A nil selector selects nothing.
	if !pdb.DeletionTimestamp.IsZero() || pdb.Spec.Selector == nil || (current && st.ExpectedPods == 0) {
		return BudgetAllows, ""
	}
	if why := forbidden(&pdb.Spec); why != "" {
		return BudgetNeverAllows, why
	}
	c := meta.FindStatusCondition(st.Conditions, policyv1.DisruptionAllowedCondition)
	switch {
	case c != nil && c.Reason == policyv1.SyncFailedReason:
		return BudgetNotComputed, "the disruption controller cannot compute it"
	case !current:
		return BudgetAllows, ""
	case st.DesiredHealthy >= st.ExpectedPods:
		return BudgetNeverAllows, fmt.Sprintf("%d of %d pods have to be healthy", st.DesiredHealthy, st.ExpectedPods)
	case st.DisruptionsAllowed == 0:
		return BudgetExhausted, fmt.Sprintf("%d of %d pods healthy, %d required", st.CurrentHealthy, st.ExpectedPods, st.DesiredHealthy)
	default:
		return BudgetAllows, ""
	}
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

// newBudget returns the budget if it allows no eviction, or nil.
func newBudget(pdb *policyv1.PodDisruptionBudget) *Budget {
	state, message := JudgeBudget(pdb)
	selector, err := metav1.LabelSelectorAsSelector(pdb.Spec.Selector)
	// The API server takes a selector that cannot be parsed to select nothing, too.
	if state == BudgetAllows || err != nil {
		return nil
	}
	st, policy := &pdb.Status, pdb.Spec.UnhealthyPodEvictionPolicy
	return &Budget{
		Namespace: pdb.Namespace, Name: pdb.Name, State: state, Message: message, Required: st.DesiredHealthy, selector: selector,
		// As the API server decides on an eviction.
		unhealthyGo: (policy != nil && *policy == policyv1.AlwaysAllow) ||
			(state == BudgetExhausted && st.CurrentHealthy >= st.DesiredHealthy && st.DesiredHealthy > 0),
	}
}

// holds tells whether a drain would hang at the pod because of the budget.
func (b *Budget) holds(pod *corev1.Pod) bool {
	switch {
	case pod.Spec.NodeName == "" || !drained(pod):
		return false
	case b.State == BudgetNeverAllows:
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
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return false
	}
	if _, static := pod.Annotations[corev1.MirrorPodAnnotationKey]; static {
		return false
	}
	owner := metav1.GetControllerOf(pod)
	return owner == nil || owner.Kind != "DaemonSet"
}

func podReady(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
