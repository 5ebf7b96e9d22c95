// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

const (
	desiredDrain     = "machineconfiguration.openshift.io/desiredDrain"
	lastAppliedDrain = "machineconfiguration.openshift.io/lastAppliedDrain"
	drainA           = "drain-a1"
)

// drainWorld is a world with nodes that drain, and with pods on them.
type drainWorld struct {
	*world
	pods  *podAPI
	r     *NodeForceDrainReconciler
	queue workqueue.TypedRateLimitingInterface[ctrl.Request]
	nfd   *v1beta1.NodeForceDrain
	// watched are the nodes in the cache.
	watched map[string]*metav1.PartialObjectMetadata
}

// newDrainWorld returns a world with the NodeForceDrain, at startAfter.
func newDrainWorld(t *testing.T, nfd *v1beta1.NodeForceDrain, objects ...client.Object) *drainWorld {
	t.Helper()
	base := newWorld(t) // for its manager
	w := &drainWorld{
		world: &world{t: t, clock: clocktesting.NewFakePassiveClock(startAfter), api: &api{}, recorder: events.NewFakeRecorder(1000), mgr: base.mgr},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]()),
		nfd:   nfd, watched: map[string]*metav1.PartialObjectMetadata{},
	}
	t.Cleanup(w.queue.ShutDown)
	w.pods = &podAPI{now: w.clock.Now}
	store := interceptor.NewClient(fake.NewClientBuilder().WithScheme(testScheme()).WithObjects(append(objects, nfd)...).
		WithStatusSubresource(&v1beta1.NodeForceDrain{}).Build(), interceptor.Funcs{List: w.pods.list, Delete: w.pods.delete})
	w.client = interceptor.NewClient(store, w.api.intercept(true))
	w.restart()
	return w
}

// restart replaces the process by another one, which sees the nodes as they are.
func (w *drainWorld) restart() {
	w.t.Helper()
	store := interceptor.NewClient(w.client.(client.WithWatch), interceptor.Funcs{})
	w.r = setUp(w.world, &NodeForceDrainReconciler{
		Client: w.client, Live: store, Clock: w.clock, Events: w.recorder, Namespace: namespace,
	})
	for _, node := range w.watched {
		w.r.nodeEvents().Create(w.t.Context(), event.CreateEvent{Object: node, IsInInitialList: true}, w.queue)
	}
}

// pass does one pass over the NodeForceDrain.
func (w *drainWorld) pass() ctrl.Result {
	w.t.Helper()
	return w.reconcile(w.r, w.nfd)
}

// passes lets time go by, with passes whenever the reconciler wants one, and returns the time that is left until the next.
func (w *drainWorld) passes(d time.Duration) time.Duration {
	w.t.Helper()
	end := w.clock.Now().Add(d)
	for range 10000 {
		after := w.pass().RequeueAfter
		if after == 0 || w.clock.Now().Add(after).After(end) {
			w.clock.SetTime(end)
			return after
		}
		w.elapse(after)
	}
	w.t.Fatal("it looks all the time")
	return 0
}

func (w *drainWorld) status() v1beta1.NodeForceDrainStatus {
	w.t.Helper()
	return get(w.world, w.nfd).Status
}

// ready fails unless the condition Ready is of that status and reason, with the words in its message.
func (w *drainWorld) ready(status metav1.ConditionStatus, reason string, words ...string) {
	w.t.Helper()
	expectCondition(w.t, w.status().Conditions, v1beta1.ConditionReady, status, reason, words...)
}

// drain has a node drain by that id, cordoned now.
func (w *drainWorld) drain(name, id string, overrides ...func(*corev1.Node)) {
	w.t.Helper()
	timeAdded := metav1.NewTime(w.clock.Now().Truncate(time.Second))
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID(name + "-uid"), Labels: map[string]string{"role": "app"}, Annotations: map[string]string{desiredDrain: id, lastAppliedDrain: "uncordon-0"},
	}}
	node.Spec.Unschedulable = true
	node.Spec.Taints = []corev1.Taint{
		{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &timeAdded},
		{Key: "other", TimeAdded: new(metav1.NewTime(w.clock.Now().Add(24 * time.Hour)))},
	}
	for _, override := range overrides {
		override(node)
	}
	w.put(node)
	w.watch(node)
}

// put stores a node, of which the watch has not told yet.
func (w *drainWorld) put(node *corev1.Node) {
	w.t.Helper()
	err := w.api.past(func() error {
		old := &corev1.Node{}
		if err := w.client.Get(w.t.Context(), client.ObjectKeyFromObject(node), old); err != nil {
			return errors.Join(client.IgnoreNotFound(err), w.client.Create(w.t.Context(), node.DeepCopy()))
		}
		node.ResourceVersion = old.ResourceVersion
		return w.client.Update(w.t.Context(), node.DeepCopy())
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// watch has the watch tell of a node.
func (w *drainWorld) watch(node *corev1.Node) {
	w.t.Helper()
	seen := &metav1.PartialObjectMetadata{ObjectMeta: *node.ObjectMeta.DeepCopy()}
	old, known := w.watched[node.Name]
	handler := w.r.nodeEvents()
	switch {
	case known && !node.Spec.Unschedulable:
		delete(w.watched, node.Name)
		handler.Delete(w.t.Context(), event.DeleteEvent{Object: seen}, w.queue)
	case known:
		w.watched[node.Name] = seen
		handler.Update(w.t.Context(), event.UpdateEvent{ObjectOld: old, ObjectNew: seen}, w.queue)
	case node.Spec.Unschedulable:
		w.watched[node.Name] = seen
		handler.Create(w.t.Context(), event.CreateEvent{Object: seen}, w.queue)
	}
}

// drained has the drain of a node end, and the node uncordoned.
func (w *drainWorld) drained(name string) {
	w.t.Helper()
	node := &corev1.Node{}
	if err := w.api.past(func() error { return w.client.Get(w.t.Context(), client.ObjectKey{Name: name}, node) }); err != nil {
		w.t.Fatal(err)
	}
	node.Annotations[lastAppliedDrain] = node.Annotations[desiredDrain]
	w.put(node)
	w.watch(node)
	node.Spec.Unschedulable, node.Spec.Taints = false, nil
	w.put(node)
	w.watch(node)
}

// requests returns the names of the objects that are to be reconciled.
func (w *drainWorld) requests() []string {
	var names []string
	for w.queue.Len() > 0 {
		req, _ := w.queue.Get()
		names = append(names, req.String())
		w.queue.Done(req)
	}
	slices.Sort(names)
	return names
}

// newForceDrain returns a NodeForceDrain with 15 minutes for nodes and 2 for pods, changed by the overrides.
func newForceDrain(overrides ...func(*v1beta1.NodeForceDrain)) *v1beta1.NodeForceDrain {
	nfd := &v1beta1.NodeForceDrain{
		ObjectMeta: metav1.ObjectMeta{Name: "app-nodes", Namespace: namespace, UID: "nfd-uid", Generation: 1},
		Spec: v1beta1.NodeForceDrainSpec{
			NodeDrainGracePeriod:      &v1beta1.Duration{Duration: 15 * time.Minute},
			PodForceDeleteGracePeriod: &v1beta1.Duration{Duration: 2 * time.Minute},
		},
	}
	for _, override := range overrides {
		override(nfd)
	}
	return nfd
}

// podAPI is what the API server and the kubelets do with pods.
type podAPI struct {
	now  func() time.Time
	pods []*corev1.Pod
	// deletions that were asked for, with their times and grace periods.
	deletions []string
	// fault is asked for an error before a deletion.
	fault func(name string) error
	// lists counts the questions for pods.
	lists int
}

// add has a pod run on the node.
func (a *podAPI) add(node, name string, overrides ...func(*corev1.Pod)) *corev1.Pod {
	grace := int64(30)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(fmt.Sprintf("%s-uid-%d", name, len(a.pods)))},
		Spec:       corev1.PodSpec{NodeName: node, TerminationGracePeriodSeconds: &grace}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, override := range overrides {
		override(pod)
	}
	a.pods = append(a.pods, pod)
	return pod
}

// end has a pod end.
func (a *podAPI) end(name string) {
	a.pods = slices.DeleteFunc(a.pods, func(p *corev1.Pod) bool { return p.Name == name })
}

// evict asks for the deletion of a pod, as the machine-config operator does.
func (a *podAPI) evict(pod *corev1.Pod) {
	a.terminate(pod, *pod.Spec.TerminationGracePeriodSeconds)
}

func (a *podAPI) terminate(pod *corev1.Pod, grace int64) {
	began := a.now()
	if pod.DeletionTimestamp != nil {
		began = pod.DeletionTimestamp.Add(-time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second)
	}
	pod.DeletionTimestamp = &metav1.Time{Time: began.Add(time.Duration(grace) * time.Second).Truncate(time.Second)}
	pod.DeletionGracePeriodSeconds = &grace
}

func (a *podAPI) list(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
	pods, ok := list.(*corev1.PodList)
	if !ok {
		return c.List(ctx, list, opts...)
	}
	a.lists++
	options := &client.ListOptions{}
	options.ApplyOptions(opts)
	for _, pod := range a.pods {
		if options.FieldSelector == nil || options.FieldSelector.Matches(fields.Set{"spec.nodeName": pod.Spec.NodeName, "status.phase": string(pod.Status.Phase)}) {
			pods.Items = append(pods.Items, *pod.DeepCopy())
		}
	}
	return nil
}

func (a *podAPI) delete(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
	if _, ok := o.(*corev1.Pod); !ok {
		return c.Delete(ctx, o, opts...)
	}
	if a.fault != nil {
		if err := a.fault(o.GetName()); err != nil {
			return err
		}
	}
	resource := corev1.Resource("pods")
	i := slices.IndexFunc(a.pods, func(p *corev1.Pod) bool { return p.Namespace == o.GetNamespace() && p.Name == o.GetName() })
	if i < 0 {
		return apierrors.NewNotFound(resource, o.GetName())
	}
	pod := a.pods[i]
	options := &client.DeleteOptions{}
	options.ApplyOptions(opts)
	if options.Preconditions == nil || options.Preconditions.UID == nil {
		return apierrors.NewBadRequest("a deletion without a UID may hit another pod of that name")
	}
	if *options.Preconditions.UID != pod.UID {
		return apierrors.NewConflict(resource, o.GetName(), errors.New("the UID in the precondition does not match"))
	}
	grace := *pod.Spec.TerminationGracePeriodSeconds
	if options.GracePeriodSeconds != nil {
		grace = *options.GracePeriodSeconds
	}
	a.deletions = append(a.deletions, fmt.Sprintf("%s %s grace %d", a.now().Sub(startAfter), pod.Name, grace))
	a.terminate(pod, grace)
	return nil
}

// forbids refuses to delete the pods of those names; without names all.
func forbids(names ...string) func(string) error {
	return func(name string) error {
		if len(names) > 0 && !slices.Contains(names, name) {
			return nil
		}
		return apierrors.NewForbidden(corev1.Resource("pods"), name, errors.New(`User "operator" cannot delete resource "pods"`))
	}
}
