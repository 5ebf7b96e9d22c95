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
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/pkg/poll"
)

const (
	budgetsPage = 250
	podsPage    = 250
)

// NamespaceBudgets are the PodDisruptionBudgets of a namespace at which a drain may hang.
type NamespaceBudgets struct {
	Namespace string
	// Refusing are those that allow no eviction, in order of name.
	Refusing []*Budget
	// OfVirtualMachines is how many more allow none, and are those of virtual machines: they hold up no drain.
	OfVirtualMachines int

	// overlapping are those that may select the same pods, in order of name; none if no two of them can.
	overlapping []*Budget
	// held is asked at most once: this lives for as long as the answer of which it is a part.
	held poll.Question[[]HeldPods]
}

// Budgets returns the PodDisruptionBudgets at which a drain may hang, in order of namespace, as of at most maxAge ago.
// They are shared and must not be changed.
func (c *Cluster) Budgets(ctx context.Context, now time.Time, maxAge time.Duration) ([]*NamespaceBudgets, error) {
	return c.budgets.Get(ctx, now, maxAge, func(ctx context.Context) ([]*NamespaceBudgets, error) {
		namespaces := map[string]*NamespaceBudgets{}
		_, err := listPages(ctx, c.live, budgetsPage, func(page *policyv1.PodDisruptionBudgetList) bool {
			for i := range page.Items {
				pdb := &page.Items[i]
				if namespaces[pdb.Namespace] == nil {
					namespaces[pdb.Namespace] = &NamespaceBudgets{Namespace: pdb.Namespace}
				}
				namespaces[pdb.Namespace].add(pdb)
			}
			return false
		})
		if err != nil {
			return nil, fmt.Errorf("list PodDisruptionBudgets: %w", err)
		}
		var all []*NamespaceBudgets
		for _, n := range namespaces {
			if n.complete(); n.OfVirtualMachines > 0 || n.MayHold() {
				all = append(all, n)
			}
		}
		slices.SortFunc(all, func(a, b *NamespaceBudgets) int { return cmp.Compare(a.Namespace, b.Namespace) })
		return all, nil
	})
}

func (n *NamespaceBudgets) add(pdb *policyv1.PodDisruptionBudget) {
	budget := newBudget(pdb)
	switch {
	case budget == nil:
	case ofVirtualMachine(pdb):
		if budget.State != BudgetAllows {
			n.OfVirtualMachines++
		}
	default:
		n.overlapping = append(n.overlapping, budget)
	}
}

// complete sorts the budgets when all of them are there.
func (n *NamespaceBudgets) complete() {
	slices.SortFunc(n.overlapping, func(a, b *Budget) int { return cmp.Compare(a.Name, b.Name) })
	for _, b := range n.overlapping {
		if b.State != BudgetAllows {
			n.Refusing = append(n.Refusing, b)
		}
	}
	if separate(n.overlapping) {
		n.overlapping = nil
	}
}

// MayHold tells whether it depends on the pods if a drain hangs; else it does not.
func (n *NamespaceBudgets) MayHold() bool { return len(n.Refusing) > 0 || len(n.overlapping) > 0 }

// separate tells whether no pod can be selected by two of the budgets, as far as that follows from a label that each
// of them requires with a value of its own. Mostly it does, and spares a request.
func separate(budgets []*Budget) bool {
	if len(budgets) < 2 {
		return true
	}
	required, _ := budgets[0].selector.Requirements()
	return slices.ContainsFunc(required, func(r labels.Requirement) bool {
		values := sets.New[string]()
		for _, b := range budgets {
			value, exact := b.selector.RequiresExactMatch(r.Key())
			if !exact || values.Has(value) {
				return false
			}
			values.Insert(value)
		}
		return true
	})
}

// HeldPods are pods at which a drain would hang because of a budget.
type HeldPods struct {
	Budget *Budget
	// With are the names of other budgets that select the pods, too: the API server evicts no pod that has several
	// budgets, whatever they say. None if it is the state of the budget that holds the pods.
	With []string
	// Pods in order of name.
	Pods []HeldPod
}

// HeldPod is a pod and the node that it runs on.
type HeldPod struct{ Name, Node string }

// HeldPods returns the pods of a namespace that budgets keep from being evicted, in order of the budgets' names. It
// costs a request, or several in a namespace of many pods.
func (c *Cluster) HeldPods(ctx context.Context, n *NamespaceBudgets, now time.Time, maxAge time.Duration) ([]HeldPods, error) {
	if !n.MayHold() { // spares the request
		return nil, nil
	}
	return n.held.Get(ctx, now, maxAge, func(ctx context.Context) ([]HeldPods, error) {
		f := heldFinder{budgets: n, byState: map[*Budget][]HeldPod{}, byOverlap: map[*Budget]*overlap{}}
		_, err := listPages(ctx, c.live, podsPage, func(page *corev1.PodList) bool {
			for i := range page.Items {
				f.see(&page.Items[i])
			}
			return false
		}, client.InNamespace(n.Namespace))
		if err != nil {
			return nil, fmt.Errorf("list Pods of namespace %s: %w", n.Namespace, err)
		}
		return f.found(), nil
	})
}

// heldFinder finds the held pods of a namespace, of which it sees one after the other.
type heldFinder struct {
	budgets   *NamespaceBudgets
	byState   map[*Budget][]HeldPod
	byOverlap map[*Budget]*overlap
}

// overlap is what a budget has in common with others.
type overlap struct {
	with sets.Set[string]
	pods []HeldPod
}

func (f heldFinder) see(pod *corev1.Pod) {
	if !drained(pod) {
		return
	}
	held := HeldPod{pod.Name, pod.Spec.NodeName}
	for _, b := range f.budgets.Refusing {
		if b.selects(pod) && b.holds(pod) {
			f.byState[b] = append(f.byState[b], held)
		}
	}
	// What several budgets select is held whether or not it is healthy at present: it will be. It is said of the first
	// budget only.
	var with []*Budget
	for _, b := range f.budgets.overlapping {
		if b.selects(pod) {
			with = append(with, b)
		}
	}
	if len(with) < 2 {
		return
	}
	o := f.byOverlap[with[0]]
	if o == nil {
		o = &overlap{with: sets.New[string]()}
		f.byOverlap[with[0]] = o
	}
	o.pods = append(o.pods, held)
	for _, b := range with[1:] {
		o.with.Insert(b.Name)
	}
}

func (f heldFinder) found() []HeldPods {
	var all []HeldPods
	for b, pods := range f.byState {
		all = append(all, HeldPods{Budget: b, Pods: pods})
	}
	for b, o := range f.byOverlap {
		all = append(all, HeldPods{Budget: b, With: sets.List(o.with), Pods: o.pods})
	}
	for _, held := range all {
		slices.SortFunc(held.Pods, func(a, b HeldPod) int { return cmp.Compare(a.Name, b.Name) })
	}
	slices.SortFunc(all, func(a, b HeldPods) int {
		return cmp.Or(cmp.Compare(a.Budget.Name, b.Budget.Name), cmp.Compare(len(a.With), len(b.With)))
	})
	return all
}
