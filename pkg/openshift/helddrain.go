// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// HeldDrainInterval is how old what HeldDrain goes by is at most: the pods of the node, and the budgets.
	HeldDrainInterval = 5 * time.Second
	// StuckTerminatingAfter is how long a pod outlives its grace period before it counts as stuck. A kubelet kills what has
	// not ended by then, and takes a few seconds to clean up.
	StuckTerminatingAfter = 10 * time.Second
	// MaxHeldEvictions is how many pods HeldDrain tells of at most.
	MaxHeldEvictions = 20
	// maxNamed is how many of several budgets, or finalizers, are named at most.
	maxNamed = 5
	// podNodeField is the field by which the API server selects the pods of a node.
	podNodeField = "spec.nodeName"
)

// HeldReason says why a pod does not leave its node.
type HeldReason string

const (
	// BudgetRefuses means: PodDisruptionBudgets have the API server refuse to evict the pod at present.
	BudgetRefuses HeldReason = "BudgetRefuses"
	// StuckTerminating means: the pod was deleted, and is still there although its grace period is over.
	StuckTerminating HeldReason = "StuckTerminating"
)

// HeldEviction is a pod that a drain waits for in vain.
type HeldEviction struct {
	Namespace, Name string
	Reason          HeldReason
	// Budgets are the PodDisruptionBudgets that refuse, as namespace/name and in order; several, at most five of them, if
	// the API server refuses because there are several. None if no budget is the reason.
	Budgets []string
	// Message explains the reason to people. It does not name the pod, and is the same for as long as the reason is.
	Message string
}

// String names the pod and the reason, as in "pod shop/cart-0: PodDisruptionBudget shop/cart allows no disruption".
func (h HeldEviction) String() string {
	return fmt.Sprintf("pod %s/%s: %s", h.Namespace, h.Name, h.Message)
}

// HeldDrain returns the pods for which the drain of a node waits in vain, in order of namespace and name, and not more
// than MaxHeldEvictions of them; none if the drain goes on. Its answer is at most HeldDrainInterval old.
//
// It costs a request for the pods of the node, and the budgets of the cluster, in pages, if a budget could protect one of
// them; these are shared by all nodes that are asked for. Most pods have a namespace of their own: asking for the budgets
// of each would be more requests as soon as several nodes drain.
func (c *Cluster) HeldDrain(ctx context.Context, node string, now time.Time) ([]HeldEviction, error) {
	pods, err := c.drainedPods.get(ctx, node, now, HeldDrainInterval, func(ctx context.Context) ([]*corev1.Pod, error) {
		return c.podsToLeave(ctx, node)
	})
	if err != nil {
		return nil, err
	}
	var budgets *DrainBudgets
	if slices.ContainsFunc(pods, protectable) {
		if budgets, err = c.drainBudgets.Get(ctx, now, HeldDrainInterval, c.budgetsOfDrains); err != nil {
			return nil, err
		}
	}
	return JudgeHeldDrain(pods, budgets, now), nil
}

// podsToLeave lists the pods of a node at which a drain may hang, and keeps of them what JudgeHeldDrain reads.
func (c *Cluster) podsToLeave(ctx context.Context, node string) ([]*corev1.Pod, error) {
	var pods []*corev1.Pod
	_, err := listPages(ctx, c.live, podsPage, func(page *corev1.PodList) bool {
		for i := range page.Items {
			if pod := &page.Items[i]; protectable(pod) || terminating(pod) {
				pods = append(pods, trimPod(pod))
			}
		}
		return false
		// From its cache the API server picks the pods of a node by an index; in etcd it would have to go through all.
	}, client.MatchingFields{podNodeField: node}, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}})
	if err != nil {
		return nil, fmt.Errorf("list Pods of Node/%s: %w", node, err)
	}
	return pods, nil
}

func trimPod(pod *corev1.Pod) *corev1.Pod {
	trimmed := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: pod.Name, Labels: pod.Labels, DeletionTimestamp: pod.DeletionTimestamp,
		Finalizers: pod.Finalizers, OwnerReferences: pod.OwnerReferences,
	}}
	trimmed.Spec.NodeName = pod.Spec.NodeName
	trimmed.Status.Phase, trimmed.Status.Conditions = pod.Status.Phase, pod.Status.Conditions
	return trimmed
}

// budgetsOfDrains lists the budgets of the cluster and keeps those that can refuse something.
func (c *Cluster) budgetsOfDrains(ctx context.Context) (*DrainBudgets, error) {
	budgets := &DrainBudgets{}
	_, err := listPages(ctx, c.live, budgetsPage, func(page *policyv1.PodDisruptionBudgetList) bool {
		for i := range page.Items {
			budgets.Add(&page.Items[i])
		}
		return false
	})
	if err != nil {
		return nil, fmt.Errorf("list PodDisruptionBudgets: %w", err)
	}
	budgets.compact()
	return budgets, nil
}

// DrainBudgets are PodDisruptionBudgets as the API server goes by them at an eviction at present. The zero value has
// none.
type DrainBudgets struct{ namespaces map[string][]*Budget }

// Add adds a budget, unless it is one that holds up no drain.
func (d *DrainBudgets) Add(pdb *policyv1.PodDisruptionBudget) {
	budget := newBudget(pdb)
	if budget == nil || ofVirtualMachine(pdb) {
		return
	}
	budget.asTheyWillBe = false // the question is about the pods as they are
	switch {
	case observed(pdb) && pdb.Status.DisruptionsAllowed > 0:
		budget.State, budget.Message = BudgetAllows, "" // e.g. because there are more pods than there are to be
	case budget.State == BudgetExhausted: // the number of healthy pods would change all the time
		budget.Message = fmt.Sprintf("no more pods are healthy than the %d required", pdb.Status.DesiredHealthy)
	case budget.State == BudgetAllows:
		budget.State, budget.Message = BudgetNotComputed, "the disruption controller has not counted its pods yet"
	}
	if d.namespaces == nil {
		d.namespaces = map[string][]*Budget{}
	}
	d.namespaces[pdb.Namespace] = append(d.namespaces[pdb.Namespace], budget)
}

// compact forgets the namespaces of which no budget refuses anything, neither alone nor together with others.
func (d *DrainBudgets) compact() {
	for namespace, budgets := range d.namespaces {
		refuses := slices.ContainsFunc(budgets, func(b *Budget) bool { return b.State != BudgetAllows })
		if !refuses && separate(budgets) {
			delete(d.namespaces, namespace)
		}
	}
}

// selecting returns the budgets that are about the pod, in order of name.
func (d *DrainBudgets) selecting(pod *corev1.Pod) []*Budget {
	if d == nil {
		return nil
	}
	var found []*Budget
	for _, b := range d.namespaces[pod.Namespace] {
		if b.selects(pod) {
			found = append(found, b)
		}
	}
	slices.SortFunc(found, func(a, b *Budget) int { return cmp.Compare(a.Name, b.Name) })
	return found
}

// JudgeHeldDrain tells for which of the pods of a node a drain waits in vain, in order of namespace and name, and not
// more than MaxHeldEvictions of them.
func JudgeHeldDrain(pods []*corev1.Pod, budgets *DrainBudgets, now time.Time) []HeldEviction {
	var held []HeldEviction
	for _, pod := range pods {
		h := HeldEviction{Namespace: pod.Namespace, Name: pod.Name}
		switch {
		case terminating(pod) && now.Sub(pod.DeletionTimestamp.Time) > StuckTerminatingAfter: // it is the end of the grace period
			h.Reason, h.Message = StuckTerminating, describeStuck(pod)
		case protectable(pod) && refused(pod, budgets.selecting(pod), &h):
		default:
			continue
		}
		held = append(held, h)
	}
	slices.SortFunc(held, func(a, b HeldEviction) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return held[:min(len(held), MaxHeldEvictions)]
}

// refused tells whether the API server would refuse to evict the pod, which these budgets select, and says why.
func refused(pod *corev1.Pod, budgets []*Budget, h *HeldEviction) bool {
	switch {
	case len(budgets) > 1: // whatever they say
		for _, b := range budgets[:min(len(budgets), maxNamed)] {
			h.Budgets = append(h.Budgets, b.Namespace+"/"+b.Name)
		}
		h.Message = "a pod with several PodDisruptionBudgets is never evicted: " + listNames(h.Budgets, len(budgets))
	case len(budgets) == 1 && budgets[0].State != BudgetAllows && budgets[0].holds(pod):
		h.Budgets = []string{budgets[0].Namespace + "/" + budgets[0].Name}
		h.Message = fmt.Sprintf("PodDisruptionBudget %s allows no disruption: %s", h.Budgets[0], budgets[0].Message)
	default:
		return false
	}
	h.Reason = BudgetRefuses
	return true
}

func describeStuck(pod *corev1.Pod) string {
	const message = "it was deleted, and is still there after the end of its grace period"
	if len(pod.Finalizers) == 0 {
		return message
	}
	return message + "; it has finalizers: " + listNames(pod.Finalizers[:min(len(pod.Finalizers), maxNamed)], len(pod.Finalizers))
}

// listNames lists names, which are the first ones of so many.
func listNames(names []string, all int) string {
	list := strings.Join(names, ", ")
	if len(names) < all {
		list += " and others"
	}
	return list
}

// protectable tells whether a budget may keep the pod, as it is now, from being evicted by a drain.
func protectable(pod *corev1.Pod) bool {
	return drained(pod) && pod.Status.Phase != corev1.PodPending && !terminating(pod)
}

// terminating tells whether a drain waits for the pod to end. That of a DaemonSet, or of the node itself, it leaves
// alone.
func terminating(pod *corev1.Pod) bool { return !pod.DeletionTimestamp.IsZero() && !ofNode(pod) }
