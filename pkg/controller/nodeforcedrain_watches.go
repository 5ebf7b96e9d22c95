// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/forcedrain"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// drainingNodes are the nodes that drain at present, as the events of the cache tell one after the other. The cache itself
// shows only the latest state: a drain that was given up and asked for again by the same id in between would look like one.
type drainingNodes struct {
	mutex sync.Mutex
	nodes map[string]drainingNode
}

type drainingNode struct {
	uid    types.UID
	labels map[string]string
	drain  string
	// began is when the drain was seen to begin; the zero time if it was under way at first.
	began time.Time
}

func newDrainingNodes() *drainingNodes { return &drainingNodes{nodes: map[string]drainingNode{}} }

// see notes a node as it is now, and tells whether that is news. A node that comes into the cache has just been cordoned,
// unless it was there from the first.
func (d *drainingNodes) see(o client.Object, first bool, now time.Time) bool {
	node, ok := o.(*metav1.PartialObjectMetadata)
	if !ok {
		return false
	}
	drain, draining := openshift.PendingDrain(node)
	if !draining {
		return d.forget(node.Name)
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	known, ok := d.nodes[node.Name]
	same := ok && known.uid == node.UID && known.drain == drain
	if same && maps.Equal(known.labels, node.Labels) {
		return false
	}
	seen := drainingNode{uid: node.UID, labels: node.Labels, drain: drain}
	switch {
	case same:
		seen.began = known.began
	case !first:
		seen.began = now
	}
	d.nodes[node.Name] = seen
	return true
}

// forget notes that a node does not drain, and tells whether that is news.
func (d *drainingNodes) forget(name string) bool {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	_, known := d.nodes[name]
	delete(d.nodes, name)
	return known
}

// selected returns the nodes that drain and are selected, in no particular order.
func (d *drainingNodes) selected(selection *forcedrain.Selection) []forcedrain.Node {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	var nodes []forcedrain.Node
	for name, node := range d.nodes {
		if selection.SelectsNode(node.labels) {
			nodes = append(nodes, forcedrain.Node{Name: name, DrainID: node.drain, Began: node.began})
		}
	}
	return nodes
}

// SetupWithManager registers the reconciler and its watches.
func (r *NodeForceDrainReconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.retry = newRetrier()
	r.freshness = newFreshness()
	r.draining = newDrainingNodes()
	r.memories = map[types.NamespacedName]*drainMemory{}
	return ctrl.NewControllerManagedBy(mgr).
		Named("nodeforcedrain").
		For(&v1beta1.NodeForceDrain{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(openshift.NodeMetadata(), r.nodeEvents()).
		Complete(r)
}

// nodeEvents keeps track of the nodes that drain, and wakes every NodeForceDrain when one begins or ends, or is labelled
// anew. The rest of what happens to cordoned nodes is no news.
func (r *NodeForceDrainReconciler) nodeEvents() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]
	wake := func(ctx context.Context, news bool, q queue) {
		if !news {
			return
		}
		list := &v1beta1.NodeForceDrainList{}
		for _, req := range requestsFor(ctx, r.Client, list, r.Namespace, func() []client.Object { return pointers(list.Items) }) {
			q.Add(req)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			wake(ctx, r.draining.see(e.Object, e.IsInInitialList, r.Clock.Now()), q)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			wake(ctx, r.draining.see(e.ObjectNew, false, r.Clock.Now()), q)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			wake(ctx, r.draining.forget(e.Object.GetName()), q)
		},
	}
}
