// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// expectDeletions fails unless these deletions were asked for.
func (w *drainWorld) expectDeletions(want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.pods.deletions); diff != "" {
		w.t.Errorf("deletions (-want +got):\n%s", diff)
	}
}

func TestForceDrainOfANodeThatHangs(t *testing.T) {
	w := newDrainWorld(t, newForceDrain())
	w.passes(time.Second)
	w.ready(metav1.ConditionTrue, v1beta1.ReasonValid, "can be used")
	w.elapse(400 * time.Millisecond) // nothing happens at whole seconds
	w.pods.add("worker-1", "cart")
	w.pods.add("worker-2", "elsewhere")
	w.pods.add("worker-1", "agent", func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Controller: new(true)}}
	})
	w.api.writes()
	w.events()
	w.drain("worker-1", drainA)
	seen := w.clock.Now()
	w.passes(15*time.Minute - 1)
	w.expectDeletions()
	if writes := w.api.writes(); !slices.Equal(writes, []string{"patch NodeForceDrain/status"}) {
		t.Errorf("wrote %v, want what was seen, once", writes)
	}
	want := []v1beta1.ObservedNodeDrain{{NodeName: "worker-1", DrainID: drainA, ObservedTime: metav1.NewMicroTime(seen)}}
	if diff := cmp.Diff(want, w.status().LastObservedNodeDrain); diff != "" {
		t.Errorf("observed (-want +got):\n%s", diff)
	}

	w.elapse(1)
	w.pass()
	w.expectDeletions("15m1.4s cart grace 30")
	w.passes(2 * time.Minute)
	w.expectDeletions("15m1.4s cart grace 30")
	w.passes(time.Second) // the API tells of the deletion to the second
	w.expectDeletions("15m1.4s cart grace 30", "17m2s cart grace 1")
	w.passes(time.Hour)
	w.expectDeletions("15m1.4s cart grace 30", "17m2s cart grace 1")
	if writes := w.api.writes(); len(writes) != 4 {
		t.Errorf("wrote %v, want two deletions, each with the status", writes)
	}
	w.expectEvidence()

	w.pods.end("cart")
	w.drained("worker-1")
	if after := w.passes(time.Hour); after != 0 || len(w.api.writes()) > 0 {
		t.Errorf("after the drain it writes, or looks again after %s", after)
	}
}

// expectEvidence fails unless everything tells of the deletion of cart, and of that by force.
func (w *drainWorld) expectEvidence() {
	w.t.Helper()
	status := w.status()
	if status.PodsDeleted != 1 || status.PodsForceDeleted != 1 || len(status.LastDeletedPods) != 2 {
		w.t.Fatalf("got status %+v, want both deletions", status)
	}
	newest, oldest := status.LastDeletedPods[0], status.LastDeletedPods[1]
	if !newest.Forced || oldest.Forced || newest.Name != "cart" || newest.Namespace != "shop" || newest.NodeName != "worker-1" || newest.UID != "cart-uid-0" ||
		oldest.Name != "cart" || oldest.Namespace != "shop" || oldest.NodeName != "worker-1" {
		w.t.Errorf("got %+v and %+v", newest, oldest)
	}
	events := []string{
		"Warning PodDeleted Deleted pod shop/cart of node worker-1, which has been draining for 15m0s.",
		"Warning PodForceDeleted Deleted with a grace period of one second pod shop/cart of node worker-1, which has been draining for 17m1s.",
	}
	if diff := cmp.Diff(events, w.events()); diff != "" {
		w.t.Errorf("Events (-want +got):\n%s", diff)
	}
}

// A pod that hangs is looked for even though nothing tells when it was evicted.
func TestForceDrainOfAPodThatHangs(t *testing.T) {
	w := newDrainWorld(t, newForceDrain(func(n *v1beta1.NodeForceDrain) { n.Spec.NodeDrainGracePeriod = nil }))
	cart := w.pods.add("worker-1", "cart")
	w.pods.add("worker-1", "runs")
	w.drain("worker-1", drainA)
	w.passes(5*time.Minute + 300*time.Millisecond)
	w.pods.evict(cart)
	w.passes(time.Hour)
	w.expectDeletions("7m1s cart grace 1")
}

func TestForceDrainWritesOnceForADrain(t *testing.T) {
	w := newDrainWorld(t, newForceDrain())
	w.pass()
	w.api.writes()
	for i := range 3 {
		w.drain(fmt.Sprintf("worker-%d", i), drainA)
	}
	w.passes(time.Minute)
	if writes := w.api.writes(); len(writes) != 1 {
		t.Errorf("wrote %v for drains that were seen together, want one write", writes)
	}
	w.drained("worker-0")
	w.drained("worker-1")
	w.passes(time.Minute)
	if writes := w.api.writes(); len(writes) > 0 || len(w.status().LastObservedNodeDrain) != 3 {
		t.Errorf("the end of a drain wrote %v", writes)
	}
	w.drain("worker-3", drainA)
	w.passes(time.Minute)
	var nodes []string
	for _, d := range w.status().LastObservedNodeDrain {
		nodes = append(nodes, d.NodeName)
	}
	if writes := w.api.writes(); len(writes) != 1 || !slices.Equal(nodes, []string{"worker-2", "worker-3"}) {
		t.Errorf("wrote %v, so that %v are recorded, want those that drain", writes, nodes)
	}
}

func TestForceDrainThatBeginsAnew(t *testing.T) {
	const minute = time.Minute
	for _, tc := range []struct {
		reason string
		// between the 10th and the 11th minute of the first drain.
		happens func(w *drainWorld)
		deleted string
	}{
		{"nothing happens", func(*drainWorld) {}, "15m0s cart grace 30"},
		{"the process is replaced", func(w *drainWorld) { w.restart() }, "15m1s cart grace 30"}, // cordoned in the second in which it was seen: before or after
		{"another drain", func(w *drainWorld) { w.drain("worker-1", "drain-b2") }, "26m0s cart grace 30"},
		{"the same one, given up meanwhile", func(w *drainWorld) { w.drained("worker-1"); w.drain("worker-1", drainA) }, "26m0s cart grace 30"},
		{"the same one, seen by the next process", func(w *drainWorld) { w.drained("worker-1"); w.drain("worker-1", drainA); w.restart() }, "26m1s cart grace 30"},
		{"the same one, of which the watch does not tell", func(w *drainWorld) {
			for _, node := range w.watched {
				anew := &corev1.Node{ObjectMeta: *node.ObjectMeta.DeepCopy()}
				added := metav1.NewTime(w.clock.Now())
				anew.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, TimeAdded: &added}}
				w.put(anew)
			}
		}, "26m1s cart grace 30"},
		{"the node has no such taint", func(w *drainWorld) {
			w.drain("worker-1", drainA, func(n *corev1.Node) { n.Spec.Taints = nil })
			w.restart()
		}, "15m0s cart grace 30"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newDrainWorld(t, newForceDrain())
			w.pods.add("worker-1", "cart")
			w.drain("worker-1", drainA)
			w.passes(10 * minute)
			w.elapse(minute)
			tc.happens(w)
			w.passes(30 * minute)
			if len(w.pods.deletions) == 0 || w.pods.deletions[0] != tc.deleted {
				t.Errorf("deletions %v, want %q first", w.pods.deletions, tc.deleted)
			}
		})
	}
}

// The watch may be behind. What the API server says of the node counts.
func TestForceDrainOfADrainThatIsOver(t *testing.T) {
	for reason, change := range map[string]func(*drainWorld, *corev1.Node){
		"done":    func(_ *drainWorld, n *corev1.Node) { n.Annotations[lastAppliedDrain] = drainA },
		"another": func(_ *drainWorld, n *corev1.Node) { n.Annotations[desiredDrain] = "drain-b2" },
		"ending":  func(_ *drainWorld, n *corev1.Node) { n.Annotations[desiredDrain] = "uncordon-a1" },
		"gone":    nil,
	} {
		t.Run(reason, func(t *testing.T) {
			w := newDrainWorld(t, newForceDrain())
			w.pods.add("worker-1", "cart")
			w.drain("worker-1", drainA)
			w.passes(10 * time.Minute)
			node := &corev1.Node{ObjectMeta: *w.watched["worker-1"].ObjectMeta.DeepCopy()}
			if change == nil {
				w.remove(node)
			} else {
				change(w, node)
				w.put(node)
			}
			w.passes(time.Hour)
			w.expectDeletions()
			if after := w.pass().RequeueAfter; after != time.Minute {
				t.Errorf("looks again after %s", after)
			}
		})
	}
}

func TestForceDrainFollowsItsSpec(t *testing.T) {
	w := newDrainWorld(t, newForceDrain(func(n *v1beta1.NodeForceDrain) {
		n.Spec.PodForceDeleteGracePeriod = &v1beta1.Duration{Duration: 5 * time.Minute} // it looks then, and after as long again
	}))
	w.pods.add("worker-1", "cart")
	w.drain("worker-1", drainA)
	w.passes(5*time.Minute + time.Second)
	change(w.world, w.nfd, func(n *v1beta1.NodeForceDrain) {
		n.Spec.NodeDrainGracePeriod, n.Generation = &v1beta1.Duration{Duration: 6 * time.Minute}, 2
	})
	w.passes(time.Minute)
	w.expectDeletions("6m0s cart grace 30")
}

// Another one of the same name has seen nothing yet.
func TestForceDrainThatIsMadeAnew(t *testing.T) {
	w := newDrainWorld(t, newForceDrain())
	w.pods.add("worker-1", "cart")
	w.drain("worker-1", drainA)
	w.passes(10 * time.Minute)
	w.remove(w.nfd)
	w.nfd = newForceDrain(func(n *v1beta1.NodeForceDrain) { n.UID = "another" })
	if err := w.api.past(func() error { return w.client.Create(t.Context(), w.nfd.DeepCopy()) }); err != nil {
		t.Fatal(err)
	}
	w.passes(15 * time.Minute)
	w.expectDeletions("25m0s cart grace 30")
}

func TestForceDrainOfTooManyNodes(t *testing.T) {
	w := newDrainWorld(t, newForceDrain())
	for i := range v1beta1.MaxObservedDrains + 1 {
		w.drain(fmt.Sprintf("worker-%03d", i), drainA)
	}
	w.passes(time.Minute)
	w.ready(metav1.ConditionTrue, v1beta1.ReasonValid, "More nodes drain than the 256")
	if got := len(w.status().LastObservedNodeDrain); got != v1beta1.MaxObservedDrains {
		t.Errorf("follows %d", got)
	}
	w.drained("worker-000")
	w.passes(time.Minute)
	if c := w.status().Conditions[0]; strings.Contains(c.Message, "More nodes") {
		t.Errorf("says %q", c.Message)
	}
}

func TestForceDrainThatIsDeleted(t *testing.T) {
	w := newDrainWorld(t, newForceDrain(func(n *v1beta1.NodeForceDrain) { n.Finalizers = []string{"foregroundDeletion"} }))
	w.pods.add("worker-1", "cart")
	w.drain("worker-1", drainA)
	w.passes(14 * time.Minute)
	w.remove(w.nfd)
	if after := w.passes(time.Hour); after != 0 {
		t.Errorf("looks again after %s", after)
	}
	err := w.api.past(func() error {
		last := get(w.world, w.nfd)
		last.Finalizers = nil
		return w.client.Update(t.Context(), last)
	})
	if err != nil {
		t.Fatal(err)
	}
	if after := w.passes(time.Hour); after != 0 || len(w.r.memories) > 0 {
		t.Errorf("one that is gone is looked at after %s, and remembered by %v", after, w.r.memories)
	}
	w.expectDeletions()
}
