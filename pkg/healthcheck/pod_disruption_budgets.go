// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"context"
	"fmt"
	"slices"

	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// PodDisruptionBudgets finds every PodDisruptionBudget at which the drain of a node would hang.
//
// DisruptionNeverAllowed is a budget that forbids every eviction, by its spec or by its number of pods: even while all
// pods are healthy. That some of them are not at present, and might be evicted, does not help: they are taken as they
// will be. The same reason is given for pods that several budgets select: the API server does not evict such pods,
// whatever the budgets say. DisruptionNotAllowed is a budget that forbids every eviction at present, because pods are not
// healthy, or because it cannot be computed. There the pods are taken as they are: those count that the API server would
// refuse to evict now. These are the ready ones, and the others too, unless unhealthyPodEvictionPolicy AlwaysAllow or
// enough healthy pods let them go; pods that are starting or ending are never refused.
//
// Either is a finding only if it protects a pod that a drain evicts: not one that has finished, and none of a DaemonSet
// or of the node itself. Budgets of excludeNamespaces are left out, those of KubeVirt's virtual machines, which are
// migrated, and pods on nodes that the machine-config operator does not drain: all those of a cluster with a single
// control plane node.
func PodDisruptionBudgets() Check { return podDisruptionBudgets{} }

type podDisruptionBudgets struct{}

func (podDisruptionBudgets) Name() string { return "PodDisruptionBudgets" }

func (p podDisruptionBudgets) Run(ctx context.Context, request Request) (Report, error) {
	if !enabled(request.Config.CheckPodDisruptionBudgets) {
		return Report{Skipped: skippedOff}, nil
	}
	all, err := request.Cluster.Budgets(ctx, request.Now, request.MaxAge)
	if err != nil {
		return Report{}, err
	}
	namespaces, notes := withoutExcluded(all, request.Config.ExcludeNamespaces)
	report := Report{Notes: notes, Recheck: request.MaxAge}
	if len(namespaces) == 0 {
		return report, nil
	}
	nodes, err := request.Cluster.Nodes(ctx, request.Now, request.MaxAge)
	if err != nil {
		return report, err
	}
	notDrained := map[string]bool{}
	for i := range nodes {
		if nodes[i].NotDrained || len(nodes) == 1 {
			notDrained[nodes[i].Name] = true
		}
	}
	if len(nodes) > 0 && len(notDrained) == len(nodes) {
		report.Notes = append(report.Notes, "PodDisruptionBudgets do not matter: with a single control plane node no node is drained")
		return report, nil
	}
	for _, n := range namespaces {
		held, err := request.Cluster.HeldPods(ctx, n, request.Now, request.MaxAge)
		if err != nil {
			return report, err
		}
		for _, h := range held {
			if pods, nodes := named(h.Pods, notDrained); len(pods) > 0 {
				report.Findings = append(report.Findings, p.finding(h, pods, nodes))
			}
		}
	}
	return report, nil
}

// withoutExcluded returns the namespaces that are left to be looked into, and notes on what is not.
func withoutExcluded(all []*openshift.NamespaceBudgets, excludeNamespaces []string) (left []*openshift.NamespaceBudgets, notes []string) {
	excluded, ofVirtualMachines := 0, 0
	for _, n := range all {
		if slices.Contains(excludeNamespaces, n.Namespace) {
			excluded += len(n.Refusing)
			continue
		}
		ofVirtualMachines += n.OfVirtualMachines
		if n.MayHold() {
			left = append(left, n)
		}
	}
	if excluded > 0 {
		notes = append(notes, fmt.Sprintf("PodDisruptionBudgets that allow no disruption left out: %d by excludeNamespaces", excluded))
	}
	if ofVirtualMachines > 0 {
		notes = append(notes, fmt.Sprintf("%s of virtual machines left out: they are migrated", count(ofVirtualMachines, "PodDisruptionBudget")))
	}
	return left, notes
}

// named returns the names of the pods that are on nodes that are drained, and of these nodes, in order.
func named(held []openshift.HeldPod, notDrained map[string]bool) (pods, nodes []string) {
	for _, pod := range held {
		if !notDrained[pod.Node] {
			pods, nodes = append(pods, pod.Name), append(nodes, pod.Node)
		}
	}
	slices.Sort(nodes)
	return pods, slices.Compact(nodes)
}

func (podDisruptionBudgets) finding(held openshift.HeldPods, pods, nodes []string) Finding {
	b, where := held.Budget, fmt.Sprintf("%s on %s", nameThem("pod", pods), nameThem("node", nodes))
	name := b.Namespace + "/" + b.Name
	f := Finding{Object: "PodDisruptionBudget/" + name, Reason: "DisruptionNeverAllowed"}
	if len(held.With) > 0 {
		are := "is"
		if len(pods) > 1 {
			are = "are"
		}
		f.Message = fmt.Sprintf("PodDisruptionBudget %s: its %s %s selected by %s too, and so cannot be evicted",
			name, where, are, nameThem("PodDisruptionBudget", held.With))
		f.ClearsWhen = fmt.Sprintf("no pod of PodDisruptionBudget %s is selected by another one", name)
		return f
	}
	what := "can never allow a disruption"
	switch b.State {
	case openshift.BudgetNeverAllows:
		f.ClearsWhen = fmt.Sprintf("PodDisruptionBudget %s lets a pod be unavailable, by its spec or by more pods", name)
	case openshift.BudgetCountsNoPods:
		f.ClearsWhen = fmt.Sprintf("PodDisruptionBudget %s has a number in minAvailable, or its pods have a controller", name)
	case openshift.BudgetExhausted:
		f.Reason, what = "DisruptionNotAllowed", "allows no disruption at present"
		f.ClearsWhen = fmt.Sprintf("more than %d pods of PodDisruptionBudget %s are healthy", b.Required, name)
	case openshift.BudgetNotComputed, openshift.BudgetAllows:
		f.Reason, what = "DisruptionNotAllowed", "allows no disruption at present"
		f.ClearsWhen = fmt.Sprintf("the disruption controller can compute PodDisruptionBudget %s", name)
	}
	f.Message = fmt.Sprintf("PodDisruptionBudget %s %s: %s; %s would hold up a drain", name, what, b.Message, where)
	return f
}

func nameThem(kind string, names []string) string {
	if len(names) == 1 {
		return kind + " " + names[0]
	}
	return kind + "s " + list(names)
}

// count is a number of things in words.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
