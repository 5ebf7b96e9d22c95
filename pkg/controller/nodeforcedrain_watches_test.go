// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// Only the beginning and the end of a drain wake a NodeForceDrain, and a change of what it is selected by.
func TestNodeEventsThatWakeAForceDrain(t *testing.T) {
	elsewhere := newForceDrain(func(n *v1beta1.NodeForceDrain) { n.Name, n.Namespace, n.UID = "theirs", "tenant", "theirs-uid" })
	w := newDrainWorld(t, newForceDrain(), elsewhere)
	node := func(change func(*corev1.Node)) func() {
		return func() { w.drain("worker-1", drainA, change) }
	}
	for _, step := range []struct {
		reason  string
		happens func()
		wakes   bool
	}{
		{"cordoned by hand", node(func(n *corev1.Node) { delete(n.Annotations, desiredDrain) }), false},
		{"a drain is asked for", node(func(*corev1.Node) {}), true},
		{"a heartbeat", node(func(n *corev1.Node) { n.Annotations["other"] = "x" }), false},
		{"a label", node(func(n *corev1.Node) { n.Labels["zone"] = "a" }), true},
		{"nothing else", node(func(n *corev1.Node) { n.Labels["zone"] = "a" }), false},
		{"another drain", node(func(n *corev1.Node) { n.Labels["zone"], n.Annotations[desiredDrain] = "a", "drain-b2" }), true},
		{"it is done", node(func(n *corev1.Node) {
			n.Labels["zone"], n.Annotations[desiredDrain], n.Annotations[lastAppliedDrain] = "a", "drain-b2", "drain-b2"
		}), true},
		{"to be uncordoned", node(func(n *corev1.Node) { n.Annotations[desiredDrain] = "uncordon-b2" }), false},
		{"uncordoned", node(func(n *corev1.Node) { n.Annotations[desiredDrain], n.Spec.Unschedulable = "uncordon-b2", false }), false},
		{"the next one", node(func(*corev1.Node) {}), true},
		{"another node of that name", node(func(n *corev1.Node) { n.UID = "another" }), true},
		{"gone in the middle", node(func(n *corev1.Node) { n.Spec.Unschedulable = false }), true},
	} {
		step.happens()
		var want []string
		if step.wakes {
			want = []string{namespace + "/app-nodes"}
		}
		if got := w.requests(); !slices.Equal(got, want) {
			t.Errorf("%s wakes %v, want %v", step.reason, got, want)
		}
	}
	w.r.nodeEvents().Create(t.Context(), event.CreateEvent{Object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{desiredDrain: drainA}}}}, w.queue)
	if got := w.requests(); len(got) > 0 {
		t.Errorf("what is no metadata wakes %v", got)
	}
}

// A drain that is given up and asked for again by the same id, before anybody has looked, begins anew: events tell what the
// cache does not.
func TestForceDrainSeesADrainThatIsGivenUp(t *testing.T) {
	w := newDrainWorld(t, newForceDrain())
	w.drain("worker-1", drainA)
	first := w.clock.Now()
	w.passes(7 * time.Minute)
	w.drain("worker-1", "uncordon-a1")
	w.drain("worker-1", drainA)
	w.drain("worker-1", drainA, func(n *corev1.Node) { n.Labels["zone"] = "a" })
	w.pass()
	if got := w.status().LastObservedNodeDrain; len(got) != 1 || !got[0].ObservedTime.Time.Equal(first.Add(7*time.Minute)) {
		t.Errorf("observed %+v, want the second time", got)
	}
}
