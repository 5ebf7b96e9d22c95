// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/forcedrain"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

const (
	// actionForceDrain is the action of the Events of a NodeForceDrain.
	actionForceDrain = "ForceDrain"
	// reasonPodDeleted and reasonPodForceDeleted are reasons of Events.
	reasonPodDeleted      = "PodDeleted"
	reasonPodForceDeleted = "PodForceDeleted"
	// forcedGrace is the grace period of a deletion by force, in seconds.
	forcedGrace = 1
	// namespacesAge is how old the labels of namespaces may be.
	namespacesAge = 10 * time.Second
	// namespacesPage is how many Namespaces are read at once.
	namespacesPage = 500
	// budgetsPage is how many PodDisruptionBudgets are read at once.
	budgetsPage = 250
)

// decide decides what is to be done, and reads for it what is needed of the nodes whose time has come: first the pods, then
// the budgets, if a pod's time depends on them, then, only if one of the pods is to be deleted, the node. Where reading fails nothing is
// deleted, and it is tried again.
func (p *drainPass) decide(ctx context.Context) (forcedrain.Decision, error) {
	g := &gathering{
		drainPass: p, evaluation: p.memory.selection.Evaluate(), failed: map[string]bool{},
		budgets: sync.OnceValues(func() (forcedrain.Budgets, error) { return p.readBudgets(ctx) }),
		facts: &forcedrain.Facts{
			Graces: forcedrain.GracesOf(&p.nfd.Spec), Recorded: p.memory.recorded(&p.base.Status), Nodes: p.draining.selected(p.memory.selection),
			Views: map[string]forcedrain.View{}, Now: p.now,
		},
	}
	decision := forcedrain.Decide(g.facts)
	for g.gather(ctx, &decision) {
		decision = forcedrain.Decide(g.facts)
	}
	for node := range g.failed {
		if p.memory.refused[node] != "" {
			decision.LookAt(node, p.now.Add(forcedrain.LookInterval))
		}
	}
	return decision, errors.Join(g.errs...)
}

// gathering is how the facts of a decision are read, and only those that are asked for.
type gathering struct {
	*drainPass
	facts      *forcedrain.Facts
	evaluation *forcedrain.Evaluation
	// budgets of the cluster, which are read once in a pass.
	budgets func() (forcedrain.Budgets, error)
	// failed are the nodes of which something could not be read.
	failed map[string]bool
	errs   []error
}

// gather reads what the decision asks for, and tells whether there is news. Each node can ask once for each of its facts.
func (g *gathering) gather(ctx context.Context, decision *forcedrain.Decision) bool {
	news := false
	for _, question := range []struct {
		nodes []string
		ask   func(ctx context.Context, node string, view forcedrain.View) (forcedrain.View, error)
	}{{decision.Read, g.look}, {decision.Judge, g.judge}, {decision.Confirm, g.confirm}} {
		for _, node := range question.nodes {
			if g.failed[node] {
				continue
			}
			view, err := question.ask(ctx, node, g.facts.Views[node])
			if err != nil {
				g.failed[node] = true
				g.errs = append(g.errs, g.unlessRefused(node, err))
				continue
			}
			g.facts.Views[node], news = view, true
		}
	}
	return news
}

// look reads the pods of a node.
func (g *gathering) look(ctx context.Context, node string, view forcedrain.View) (forcedrain.View, error) {
	delete(g.memory.refused, node)
	var err error
	view.Pods, err = g.pods(ctx, node, g.evaluation)
	return view, err
}

// judge finds out which pods of a node are protected.
func (g *gathering) judge(_ context.Context, _ string, view forcedrain.View) (forcedrain.View, error) {
	budgets, err := g.budgets()
	if err == nil {
		view.Pods = budgets.Judge(view.Pods)
	}
	return view, err
}

// readBudgets reads all PodDisruptionBudgets as they are now: one that is younger than what is known would protect nothing.
func (r *NodeForceDrainReconciler) readBudgets(ctx context.Context) (forcedrain.Budgets, error) {
	budgets := forcedrain.Budgets{}
	next := ""
	for {
		page := &policyv1.PodDisruptionBudgetList{}
		if err := r.Live.List(ctx, page, client.Limit(budgetsPage), client.Continue(next)); err != nil {
			return nil, fmt.Errorf("list PodDisruptionBudgets: %w", err)
		}
		for i := range page.Items {
			budgets.Add(&page.Items[i])
		}
		if next = page.Continue; next == "" {
			return budgets, nil
		}
	}
}

// unlessRefused notes what the API server refused, which is tried again later, and returns any other error.
func (p *drainPass) unlessRefused(node string, err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	if p.memory.refused[node] == "" {
		p.memory.refused[node] = err.Error()
	}
	return nil
}

// pods reads the pods of a node that its drain waits for, in order of namespace and name. They come in one piece, from the
// memory of the API server, which has them by node: to read them from etcd would mean to read all pods of the cluster. If it is
// a moment behind, the UID keeps a deletion from hitting another pod, and one that is ending already goes on to.
func (p *drainPass) pods(ctx context.Context, node string, evaluation *forcedrain.Evaluation) ([]forcedrain.Pod, error) {
	list := &corev1.PodList{}
	running := fields.AndSelectors(fields.OneTermEqualSelector("spec.nodeName", node),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)), fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)))
	fromMemory := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}}
	if err := p.Live.List(ctx, list, client.MatchingFieldsSelector{Selector: running}, fromMemory); err != nil {
		return nil, fmt.Errorf("list the Pods of Node/%s: %w", node, err)
	}
	found := slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool {
		return !forcedrain.Concerns(&pod) || p.memory.selection.IgnoresNamespace(pod.Namespace)
	})
	if len(found) > 0 && !p.memory.selection.AnyNamespace() {
		namespaces, err := p.namespaces.Get(ctx, p.now, namespacesAge, p.readNamespaces)
		if err != nil {
			return nil, err
		}
		found = slices.DeleteFunc(found, func(pod corev1.Pod) bool {
			known, ok := namespaces[pod.Namespace] // one that is younger than what is known is not selected until the next look
			return !ok || !p.memory.selection.SelectsNamespace(known)
		})
	}
	slices.SortFunc(found, func(a, b corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return p.evaluate(ctx, node, found, evaluation), nil
}

// evaluate applies podJQSelector to the pods of a node, and notes how it failed.
func (p *drainPass) evaluate(ctx context.Context, node string, found []corev1.Pod, evaluation *forcedrain.Evaluation) []forcedrain.Pod {
	pods := make([]forcedrain.Pod, 0, len(found))
	failures, first := 0, ""
	for i := range found {
		selected, err := evaluation.Selects(ctx, &found[i])
		pods = append(pods, forcedrain.NewPod(&found[i], selected))
		if err == nil {
			continue
		}
		if failures++; failures == 1 {
			first = fmt.Sprintf("%s/%s: %v", found[i].Namespace, found[i].Name, err)
		}
	}
	delete(p.memory.failed, node)
	if failures > 0 {
		p.memory.failed[node] = fmt.Sprintf("podJQSelector failed for %d pods of node %s, the first being %s.", failures, node, first)
	}
	return pods
}

// readNamespaces reads the labels of all namespaces.
func (r *NodeForceDrainReconciler) readNamespaces(ctx context.Context) (map[string]labels.Set, error) {
	all := map[string]labels.Set{}
	next := ""
	for {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
		if err := r.Live.List(ctx, page, client.Limit(namespacesPage), client.Continue(next)); err != nil {
			return nil, fmt.Errorf("list Namespaces: %w", err)
		}
		for i := range page.Items {
			all[page.Items[i].Name] = page.Items[i].Labels
		}
		if next = page.Continue; next == "" {
			return all, nil
		}
	}
}

// confirm reads the node itself, just before pods of it are deleted: the cache may be behind, and does not know when the node
// was cordoned.
func (p *drainPass) confirm(ctx context.Context, name string, view forcedrain.View) (forcedrain.View, error) {
	node := &corev1.Node{}
	err := p.Live.Get(ctx, client.ObjectKey{Name: name}, node)
	if client.IgnoreNotFound(err) != nil {
		return view, fmt.Errorf("get Node/%s: %w", name, err)
	}
	view.Confirmed = true
	if err != nil {
		return view, nil //nolint:nilerr // a node that is gone does not drain
	}
	if drain, pending := openshift.PendingDrain(&metav1.PartialObjectMetadata{ObjectMeta: node.ObjectMeta}); pending {
		view.DrainID = drain
	}
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeUnschedulable && taint.TimeAdded != nil {
			view.Cordoned = taint.TimeAdded.Time
		}
	}
	return view, nil
}

// deleteAll deletes what is to be deleted, and tells whether the API server permitted any of it. A node of which a deletion
// failed is looked at again as if this look had not been; one of which a deletion was refused later.
func (p *drainPass) deleteAll(ctx context.Context, decision *forcedrain.Decision) (permitted bool, err error) {
	var errs []error
	for i := range decision.Delete {
		d := &decision.Delete[i]
		err := p.delete(ctx, d)
		switch {
		case err == nil:
			permitted = true
		case apierrors.IsForbidden(err):
			decision.LookAt(d.Drain.Node, p.now.Add(forcedrain.LookInterval))
		default:
			p.memory.failed[d.Drain.Node] = fmt.Sprintf("A deletion failed, and is tried again: %v.", err)
			decision.LookAt(d.Drain.Node, time.Time{})
		}
		errs = append(errs, p.unlessRefused(d.Drain.Node, err))
	}
	return permitted, errors.Join(errs...)
}

// delete deletes a pod, if it is still the one that was looked at, and tells of it.
func (p *drainPass) delete(ctx context.Context, d *forcedrain.Deletion) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name, UID: d.UID}}
	options := []client.DeleteOption{client.Preconditions{UID: &d.UID}}
	reason, how := reasonPodDeleted, "Deleted"
	if d.Forced {
		options = append(options, client.GracePeriodSeconds(forcedGrace))
		reason, how = reasonPodForceDeleted, "Deleted with a grace period of one second"
	}
	err := p.Client.Delete(ctx, pod, options...)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it is gone, or another one has its name
	}
	if err != nil {
		return fmt.Errorf("delete Pod %s/%s of Node/%s: %w", d.Namespace, d.Name, d.Drain.Node, err)
	}
	p.memory.unrecorded = append(p.memory.unrecorded, d.Record(p.now))
	drained := p.now.Sub(d.Drain.Observed).Round(time.Second)
	log.FromContext(ctx).Info("Deleted a pod that held up the drain of a node", "pod", client.ObjectKeyFromObject(pod), "node", d.Drain.Node,
		"drain", d.Drain.ID, "draining", drained.String(), "forced", d.Forced)
	note := fmt.Sprintf("%s pod %s/%s of node %s, which has been draining for %s.", how, d.Namespace, d.Name, d.Drain.Node, drained)
	p.Events.Eventf(p.nfd, pod, corev1.EventTypeWarning, reason, actionForceDrain, "%s", v1beta1.Truncate(note, maxNote))
	return nil
}
