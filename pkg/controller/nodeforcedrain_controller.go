// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/poll"
)

// NodeForceDrainReconciler deletes the pods that hold up the drain of a node for too long, as NodeForceDrains say.
type NodeForceDrainReconciler struct {
	Client client.Client
	// Live reads from the API server: Nodes and Namespaces, and the Pods of a draining node, which are kept nowhere.
	Live   client.Reader
	Clock  clock.PassiveClock
	Events events.EventRecorder
	// Namespace in which a NodeForceDrain must stand to have an effect. It reaches the pods of all namespaces, so that who
	// may write one elsewhere must not.
	Namespace string

	retry      *retrier
	freshness  *freshness
	draining   *drainingNodes
	namespaces poll.Question[map[string]labels.Set]
	// memories by object. They are used by one worker.
	memories map[types.NamespacedName]*drainMemory
}

// Reconcile does one pass over a NodeForceDrain.
func (r *NodeForceDrainReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	nfd := &v1beta1.NodeForceDrain{}
	if err := r.Client.Get(ctx, req.NamespacedName, nfd); err != nil {
		if apierrors.IsNotFound(err) {
			delete(r.memories, req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if wait := r.freshness.wait(nfd); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	if !nfd.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // it is for nobody any more
	}
	p := &drainPass{
		NodeForceDrainReconciler: r, nfd: nfd, base: nfd.DeepCopy(), memory: r.memory(req.NamespacedName, nfd), now: r.Clock.Now(),
	}
	next, err := p.advance(ctx)
	err = errors.Join(err, p.record(ctx))
	var after time.Duration
	if !next.IsZero() {
		after = max(next.Sub(r.Clock.Now()), time.Millisecond)
	}
	return r.retry.after(ctx, req, after, err), nil
}

// drainPass is one look at a NodeForceDrain.
type drainPass struct {
	*NodeForceDrainReconciler
	nfd, base *v1beta1.NodeForceDrain
	memory    *drainMemory
	now       time.Time
}

// advance follows the drains and deletes what is due, and returns when to look again; the zero time if only a watch can
// bring news. The object changes in memory only.
func (p *drainPass) advance(ctx context.Context) (time.Time, error) {
	switch {
	case p.nfd.Namespace != p.Namespace:
		p.setReady(v1beta1.NotReady(v1beta1.ReasonNotManaged, fmt.Sprintf(
			"Only NodeForceDrains in the namespace %s have an effect.", p.Namespace)))
		return time.Time{}, nil
	case p.memory.problem != nil:
		p.setReady(v1beta1.NotReady(p.memory.problem.Reason, p.memory.problem.Message))
		return time.Time{}, nil
	}
	decision, err := p.decide(ctx)
	permitted, deleteErr := p.deleteAll(ctx, &decision)
	p.memory.follow(decision.Drains)
	recordDrains(&p.nfd.Status, decision.Drains)
	p.setReady(p.ready(decision.Crowded, permitted))
	return decision.Next, errors.Join(err, deleteErr)
}

// ready tells whether the spec can be used and its deletions are permitted. A refusal is told of until a deletion has been
// permitted or the spec is changed: who comes in the morning shall see why the night's drain hung.
func (p *drainPass) ready(crowded, permitted bool) metav1.Condition {
	if refused := values(p.memory.refused); len(refused) > 0 {
		return v1beta1.NotReady(v1beta1.ReasonForbidden, fmt.Sprintf(
			"What the API server does not permit is tried again every minute while the node drains: %s. If it is the permission to delete pods that the operator lacks: that is in deploy/rbac/force-drain; see docs/force-drain.md.", refused[0]))
	}
	last := meta.FindStatusCondition(p.base.Status.Conditions, v1beta1.ConditionReady)
	if last != nil && last.Reason == v1beta1.ReasonForbidden && last.ObservedGeneration == p.nfd.Generation && !permitted {
		return *last
	}
	sentences := []string{"The NodeForceDrain can be used."}
	if crowded {
		sentences = append(sentences, fmt.Sprintf("More nodes drain than the %d that are followed at a time; the others wait for their turn.", v1beta1.MaxObservedDrains))
	}
	return v1beta1.Ready(v1beta1.ReasonValid, strings.Join(append(sentences, values(p.memory.failed)...), " "))
}

// values returns the values of a map, in order of its keys.
func values(m map[string]string) []string {
	list := make([]string, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		list = append(list, m[key])
	}
	return list
}

func (p *drainPass) setReady(condition metav1.Condition) {
	p.nfd.Status.ObservedGeneration = p.nfd.Generation
	setCondition(&p.nfd.Status.Conditions, condition, p.nfd.Generation, p.Clock)
}

// record writes the status if there is news, and tells of a refusal once.
//
// A crash between a deletion and this write loses the deletion's place in the status, and nothing else: the Event and the log
// line were made at once, and no pod is deleted twice, because what is due is found anew among the pods that are there. A
// write that fails is made up for by the next pass. If its answer alone was lost, the next pass finds the deletions recorded.
func (p *drainPass) record(ctx context.Context) error {
	recordDeletions(&p.nfd.Status, p.memory.unrecorded)
	wrote, err := writeStatus(ctx, p.Client, p.base, p.nfd, nodeForceDrainStatus)
	if err != nil {
		return err
	}
	if wrote {
		p.freshness.wrote(p.nfd)
	}
	p.memory.unrecorded = nil
	if ready := readyReason(p.nfd); ready == v1beta1.ReasonForbidden && readyReason(p.base) != ready {
		note := meta.FindStatusCondition(p.nfd.Status.Conditions, v1beta1.ConditionReady).Message
		log.FromContext(ctx).Info("A deletion, or what it takes, is not permitted", "cause", note)
		p.Events.Eventf(p.nfd, nil, corev1.EventTypeWarning, ready, actionForceDrain, "%s", v1beta1.Truncate(note, maxNote))
	}
	return nil
}

func readyReason(nfd *v1beta1.NodeForceDrain) string {
	if c := meta.FindStatusCondition(nfd.Status.Conditions, v1beta1.ConditionReady); c != nil {
		return c.Reason
	}
	return ""
}

func nodeForceDrainStatus(o client.Object) *v1beta1.NodeForceDrainStatus {
	return &o.(*v1beta1.NodeForceDrain).Status
}
