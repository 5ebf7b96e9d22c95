// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	budgetsPage = 250
	podsPage    = 50
)

// Budgets returns the PodDisruptionBudgets of all namespaces that allow no eviction, in order of namespace and name, as
// of at most maxAge ago. They are shared and must not be changed.
func (c *Cluster) Budgets(ctx context.Context, now time.Time, maxAge time.Duration) ([]*Budget, error) {
	return c.budgets.Get(ctx, now, maxAge, func(ctx context.Context) ([]*Budget, error) {
		var all []*Budget
		_, err := listPages(ctx, c.live, budgetsPage, func(page *policyv1.PodDisruptionBudgetList) bool {
			for i := range page.Items {
				if budget := newBudget(&page.Items[i]); budget != nil {
					all = append(all, budget)
				}
			}
			return false
		})
		if err != nil {
			return nil, fmt.Errorf("list PodDisruptionBudgets: %w", err)
		}
		slices.SortFunc(all, func(a, b *Budget) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
		return all, nil
	})
}

// HeldPods are the pods at which a drain would hang because of a budget, and the nodes that they run on.
type HeldPods struct {
	// Pods and Nodes are names, in order, each one once.
	Pods, Nodes []string
	// More is set if there may be more of both: the budget has more pods than are looked at.
	More bool
}

// HeldPods returns the pods that the budget keeps from being evicted. It costs a request for each budget, or several as
// long as the pods that come first are not held.
func (c *Cluster) HeldPods(ctx context.Context, b *Budget, now time.Time, maxAge time.Duration) (HeldPods, error) {
	return b.held.Get(ctx, now, maxAge, func(ctx context.Context) (HeldPods, error) {
		var held HeldPods
		left, err := listPages(ctx, c.live, podsPage, func(page *corev1.PodList) bool {
			for i := range page.Items {
				if pod := &page.Items[i]; b.holds(pod) {
					held.Pods = append(held.Pods, pod.Name)
					held.Nodes = append(held.Nodes, pod.Spec.NodeName)
				}
			}
			return len(held.Pods) > 0
		}, client.InNamespace(b.Namespace), client.MatchingLabelsSelector{Selector: b.selector})
		if err != nil {
			return HeldPods{}, fmt.Errorf("list Pods of PodDisruptionBudget/%s/%s: %w", b.Namespace, b.Name, err)
		}
		slices.Sort(held.Pods)
		slices.Sort(held.Nodes)
		held.Nodes = slices.Compact(held.Nodes)
		held.More = left
		return held, nil
	})
}
