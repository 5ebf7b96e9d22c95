// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package forcedrain

import (
	"slices"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Protection says whether a PodDisruptionBudget protects a pod.
type Protection int

const (
	// ProtectionUnknown means: nobody has looked.
	ProtectionUnknown Protection = iota
	// Unprotected means: no budget selects the pod.
	Unprotected
	// Protected means: a budget of the pod's namespace selects it, whatever it allows at present.
	Protected
)

// Budgets are what the PodDisruptionBudgets of a cluster select, by namespace.
type Budgets map[string][]labels.Selector

// Add notes a budget. As with the API server, when it is asked for an eviction, one without a selector protects nothing, one with an empty
// selector protects every pod of its namespace, and one with a selector that cannot be parsed protects nothing.
func (b Budgets) Add(budget *policyv1.PodDisruptionBudget) {
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	if err == nil { // of no selector it makes one that selects nothing
		b[budget.Namespace] = append(b[budget.Namespace], selector)
	}
}

// Judge returns the pods with what is known of their protection when these are all budgets that there are.
func (b Budgets) Judge(pods []Pod) []Pod {
	judged := slices.Clone(pods)
	for i := range judged {
		pod := &judged[i]
		pod.Protection = Unprotected
		if slices.ContainsFunc(b[pod.Namespace], func(s labels.Selector) bool { return s.Matches(pod.Labels) }) {
			pod.Protection = Protected
		}
	}
	return judged
}
