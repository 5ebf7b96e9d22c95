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
// will be. DisruptionNotAllowed is one that forbids every eviction at present, because pods are not healthy, or because
// it cannot be computed. There the pods are taken as they are: those count that the API server would refuse to evict
// now. These are the ready ones, and the others too, unless unhealthyPodEvictionPolicy AlwaysAllow or enough healthy
// pods let them go; pods that are starting or ending are never refused.
//
// Either is a finding only if it protects a pod that a drain evicts: not one that has finished, and none of a DaemonSet
// or of the node itself. Budgets of excludeNamespaces are left out, and all budgets of a cluster with a single node,
// which the machine-config operator does not drain.
func PodDisruptionBudgets() Check { return podDisruptionBudgets{} }

type podDisruptionBudgets struct{}

// budgetsLookedInto is of how many budgets the pods are looked up: each costs a request.
const budgetsLookedInto = 10

func (podDisruptionBudgets) Name() string { return "PodDisruptionBudgets" }

func (p podDisruptionBudgets) Run(ctx context.Context, request Request) (Report, error) {
	if !enabled(request.Config.CheckPodDisruptionBudgets) {
		return Report{}, nil
	}
	all, err := request.Cluster.Budgets(ctx, request.Now, request.MaxAge)
	if err != nil {
		return Report{}, err
	}
	report := Report{Recheck: request.MaxAge}
	budgets := make([]*openshift.Budget, 0, len(all)) // all is shared
	for _, b := range all {
		if !slices.Contains(request.Config.ExcludeNamespaces, b.Namespace) {
			budgets = append(budgets, b)
		}
	}
	if excluded := len(all) - len(budgets); excluded > 0 {
		report.Notes = []string{fmt.Sprintf("PodDisruptionBudgets that allow no disruption left out: %d by excludeNamespaces", excluded)}
	}
	if len(budgets) == 0 {
		return report, nil
	}
	nodes, err := request.Cluster.Nodes(ctx, request.Now, request.MaxAge)
	if err != nil {
		return report, err
	}
	if len(nodes) == 1 {
		report.Notes = append(report.Notes, "PodDisruptionBudgets do not matter: a single node is not drained")
		return report, nil
	}
	for i, b := range budgets {
		hangs := "..."
		if i < budgetsLookedInto {
			held, err := request.Cluster.HeldPods(ctx, b, request.Now, request.MaxAge)
			if err != nil {
				return report, err
			}
			if len(held.Pods) == 0 {
				continue
			}
			hangs = describeHeld(held)
		}
		report.Findings = append(report.Findings, p.finding(b, hangs))
	}
	return report, nil
}

// describeHeld names the first pods and nodes that are held, and counts the others as far as they are known.
func describeHeld(held openshift.HeldPods) string {
	return fmt.Sprintf("%s on %s would hold up a drain", nameThem("pod", held.Pods, held.More), nameThem("node", held.Nodes, held.More))
}

func nameThem(kind string, names []string, more bool) string {
	switch {
	case more: // what is not known is not counted
		return fmt.Sprintf("%ss %s and more", kind, list(names[:min(3, len(names))]))
	case len(names) == 1:
		return kind + " " + names[0]
	default:
		return kind + "s " + list(names)
	}
}

func (podDisruptionBudgets) finding(b *openshift.Budget, hangs string) Finding {
	name := b.Namespace + "/" + b.Name
	f := Finding{Object: "PodDisruptionBudget/" + name}
	what := ""
	switch b.State {
	case openshift.BudgetNeverAllows:
		f.Reason, what = "DisruptionNeverAllowed", "can never allow a disruption"
		f.ClearsWhen = fmt.Sprintf("PodDisruptionBudget %s lets a pod be unavailable, by its spec or by more pods", name)
	case openshift.BudgetExhausted:
		f.Reason, what = "DisruptionNotAllowed", "allows no disruption at present"
		f.ClearsWhen = fmt.Sprintf("more than %d pods of PodDisruptionBudget %s are healthy", b.Required, name)
	case openshift.BudgetNotComputed, openshift.BudgetAllows:
		f.Reason, what = "DisruptionNotAllowed", "allows no disruption at present"
		f.ClearsWhen = fmt.Sprintf("the disruption controller can compute PodDisruptionBudget %s", name)
	}
	f.Message = fmt.Sprintf("PodDisruptionBudget %s %s: %s; %s", name, what, b.Message, hangs)
	return f
}
