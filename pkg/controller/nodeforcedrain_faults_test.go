// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

func TestForceDrainTriesAgain(t *testing.T) {
	team := map[string]string{"team": "a"}
	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: team}}
	timeout := apierrors.NewTimeoutError("etcd is slow", 1)
	for _, call := range []string{"list PodList", "list PartialObjectMetadataList", "get Node", "delete Pod", "patch NodeForceDrain/status", "get NodeForceDrain"} {
		for name, err := range map[string]error{"broken": errBroken, "timeout": timeout} {
			t.Run(call+" "+name, func(t *testing.T) {
				w := newDrainWorld(t, newForceDrain(func(n *v1beta1.NodeForceDrain) {
					n.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: team}
					n.Spec.PodForceDeleteGracePeriod = nil
				}), shop)
				w.drain("worker-1", drainA)
				w.pods.add("worker-1", "cart")
				w.passes(15*time.Minute - 1)
				w.elapse(1)
				w.api.fault = failing(call, 3, err)
				w.passes(40 * time.Second) // an error is the answer about namespaces for ten
				if len(w.pods.deletions) != 1 {
					t.Errorf("deletions %v, want one", w.pods.deletions)
				}
				if status := w.status(); status.PodsDeleted != 1 || len(status.LastDeletedPods) != 1 {
					t.Errorf("got status %+v", status)
				}
				w.ready(metav1.ConditionTrue, v1beta1.ReasonValid)
			})
		}
	}
}

// What one pod or node is about does not keep the others.
func TestForceDrainOfOthersGoesOn(t *testing.T) {
	w := newDrainWorld(t, newForceDrain(func(n *v1beta1.NodeForceDrain) { n.Spec.PodForceDeleteGracePeriod = nil }))
	for _, node := range []string{"worker-1", "worker-2", "worker-3"} {
		w.drain(node, drainA)
		w.pods.add(node, "a-of-"+node)
		w.pods.add(node, "b-of-"+node)
	}
	w.passes(15*time.Minute - 1)
	w.elapse(1)
	lists := 0
	w.api.fault = func(_ int, call string) (error, error) {
		if call == "list PodList" {
			if lists++; lists == 1 {
				return errBroken, nil
			}
		}
		return nil, nil
	}
	w.pods.fault = func(name string) error {
		if name == "a-of-worker-2" {
			return errBroken
		}
		return nil
	}
	if after := w.pass().RequeueAfter; after != minBackoff {
		t.Errorf("tries again after %s, want %s", after, minBackoff)
	}
	w.expectDeletions("15m0s b-of-worker-2 grace 30", "15m0s a-of-worker-3 grace 30", "15m0s b-of-worker-3 grace 30")
	w.pods.fault = nil
	w.elapse(minBackoff)
	w.pass()
	slices.Sort(w.pods.deletions)
	w.expectDeletions("15m0.1s a-of-worker-1 grace 30", "15m0.1s a-of-worker-2 grace 30", "15m0.1s b-of-worker-1 grace 30",
		"15m0s a-of-worker-3 grace 30", "15m0s b-of-worker-2 grace 30", "15m0s b-of-worker-3 grace 30")
	if got := w.status().PodsDeleted; got != 6 {
		t.Errorf("counts %d deletions", got)
	}
}

// A pod that is gone, or another one of that name, is no failure, and no deletion.
func TestForceDrainOfPodsThatAreGone(t *testing.T) {
	for reason, happens := range map[string]func(w *drainWorld){
		"gone": func(w *drainWorld) { w.pods.end("cart") },
		"another": func(w *drainWorld) {
			w.pods.end("cart")
			w.pods.add("worker-1", "cart", func(p *corev1.Pod) { p.UID = "another" })
		},
	} {
		t.Run(reason, func(t *testing.T) {
			w := newDrainWorld(t, newForceDrain())
			w.drain("worker-1", drainA)
			w.pods.add("worker-1", "cart")
			w.passes(15*time.Minute - 1)
			w.elapse(1)
			w.api.fault = func(_ int, call string) (error, error) {
				if call == "delete Pod" {
					happens(w)
				}
				return nil, nil
			}
			if after := w.pass().RequeueAfter; after != time.Minute {
				t.Errorf("looks again after %s, want a minute", after)
			}
			w.expectDeletions()
			if status := w.status(); status.PodsDeleted != 0 || len(status.LastDeletedPods) > 0 || len(w.events()) > 0 {
				t.Errorf("tells of a deletion that was none: %+v", status)
			}
			w.ready(metav1.ConditionTrue, v1beta1.ReasonValid)
		})
	}
}

func TestForceDrainCountsOnce(t *testing.T) {
	conflict := apierrors.NewConflict(v1beta1.GroupVersion.WithResource("nodeforcedrains").GroupResource(), "app-nodes", errors.New("modified"))
	for _, tc := range []struct {
		reason        string
		before, after error
	}{
		{"a conflict", conflict, nil},
		{"the write did not get through", errBroken, nil},
		{"its answer was lost", nil, errBroken},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newDrainWorld(t, newForceDrain(func(n *v1beta1.NodeForceDrain) { n.Spec.PodForceDeleteGracePeriod = nil }))
			w.drain("worker-1", drainA)
			w.pods.add("worker-1", "cart")
			w.pods.add("worker-1", "stock")
			w.passes(15*time.Minute - 1)
			w.elapse(1)
			w.events()
			times := 3
			w.api.fault = func(_ int, call string) (error, error) {
				if call != "patch NodeForceDrain/status" || times == 0 {
					return nil, nil
				}
				times--
				return tc.before, tc.after
			}
			w.pass()
			w.pods.add("worker-1", "late") // found a minute later
			w.passes(time.Minute)
			w.passes(time.Second)
			status := w.status()
			var names []string
			for _, d := range status.LastDeletedPods {
				names = append(names, d.Name)
			}
			if status.PodsDeleted != 3 || !slices.Equal(names, []string{"late", "stock", "cart"}) {
				t.Errorf("counts %d deletions of %v, want each once, the newest first", status.PodsDeleted, names)
			}
			if events := w.events(); len(events) != 3 {
				t.Errorf("published %v, want one Event for each deletion", events)
			}
		})
	}
}

func TestForceDrainListsTheLastDeletions(t *testing.T) {
	w := newDrainWorld(t, newForceDrain(func(n *v1beta1.NodeForceDrain) { n.Spec.PodForceDeleteGracePeriod = nil }))
	w.drain("worker-1", drainA)
	for i := range v1beta1.MaxDrainedPods + 8 {
		w.pods.add("worker-1", fmt.Sprintf("pod-%02d", i))
	}
	w.passes(15 * time.Minute)
	status := w.status()
	if len(status.LastDeletedPods) != v1beta1.MaxDrainedPods || status.LastDeletedPods[0].Name != "pod-39" || status.PodsDeleted != v1beta1.MaxDrainedPods+8 {
		t.Errorf("lists %d of %d, first %+v", len(status.LastDeletedPods), status.PodsDeleted, status.LastDeletedPods[0])
	}
}

func TestForceDrainWithoutPermission(t *testing.T) {
	w := newDrainWorld(t, newForceDrain(func(n *v1beta1.NodeForceDrain) { n.Spec.PodForceDeleteGracePeriod = nil }))
	w.drain("worker-1", drainA)
	w.pods.add("worker-1", "cart")
	w.pods.add("worker-1", "vault", func(p *corev1.Pod) { p.Namespace = "bank" })
	w.passes(15*time.Minute - 1)
	w.elapse(1)
	w.api.writes()
	w.pods.fault = forbids("cart", "vault")
	if after := w.pass().RequeueAfter; after != time.Minute {
		t.Errorf("tries again after %s, want a minute", after)
	}
	w.ready(metav1.ConditionFalse, v1beta1.ReasonForbidden, "delete Pod bank/vault of Node/worker-1", `cannot delete resource "pods"`, "deploy/rbac/force-drain", "docs/force-drain.md")
	if events := w.events(); len(events) != 1 || !strings.HasPrefix(events[0], "Warning Forbidden What the API server does not permit") {
		t.Errorf("published %v", events)
	}
	w.api.writes()
	w.passes(5 * time.Minute)
	w.restart()
	w.passes(5 * time.Minute)
	deletes := slices.DeleteFunc(w.api.writes(), func(c string) bool { return c != "delete Pod" })
	if events := w.events(); len(events) > 0 || len(deletes) < 18 || len(deletes) > 22 {
		t.Errorf("published %v and tried %d times in ten minutes, want no more Events, and each pod tried every minute", events, len(deletes))
	}

	w.pods.fault = forbids("cart") // the role was bound in one namespace
	w.passes(2 * time.Minute)
	w.ready(metav1.ConditionFalse, v1beta1.ReasonForbidden, "delete Pod shop/cart")
	if len(w.pods.deletions) != 1 || !strings.Contains(w.pods.deletions[0], "vault") {
		t.Errorf("deletions %v, want the one that is permitted", w.pods.deletions)
	}
	w.pods.fault = nil
	w.passes(2 * time.Minute)
	w.ready(metav1.ConditionTrue, v1beta1.ReasonValid, "The NodeForceDrain can be used.")
	if len(w.pods.deletions) != 2 {
		t.Errorf("deletions %v, want both", w.pods.deletions)
	}
}

// However short the grace period of pods, what is refused is tried again every minute only.
func TestForceDrainDoesNotInsist(t *testing.T) {
	w := newDrainWorld(t, newForceDrain(func(n *v1beta1.NodeForceDrain) {
		n.Spec.NodeDrainGracePeriod, n.Spec.PodForceDeleteGracePeriod = nil, &v1beta1.Duration{Duration: 5 * time.Second}
	}))
	w.drain("worker-1", drainA)
	w.pods.evict(w.pods.add("worker-1", "cart"))
	w.pods.fault = forbids()
	w.passes(10 * time.Second)
	w.api.writes()
	w.passes(10 * time.Minute)
	deletes := slices.DeleteFunc(w.api.writes(), func(c string) bool { return c != "delete Pod" })
	if len(deletes) != 10 {
		t.Errorf("tried %d times in ten minutes", len(deletes))
	}
}

// After the night in which the permission was missing, the object still tells why nothing was deleted.
func TestForceDrainKeepsSayingThatItLackedPermission(t *testing.T) {
	w := newDrainWorld(t, newForceDrain())
	w.drain("worker-1", drainA)
	w.pods.add("worker-1", "cart")
	w.pods.fault = forbids()
	w.passes(20 * time.Minute)
	w.pods.end("cart")
	w.drained("worker-1")
	w.restart()
	w.passes(8 * time.Hour)
	w.ready(metav1.ConditionFalse, v1beta1.ReasonForbidden, "delete Pod shop/cart of Node/worker-1")
	change(w.world, w.nfd, func(n *v1beta1.NodeForceDrain) { n.Generation = 2 })
	w.passes(time.Second)
	w.ready(metav1.ConditionTrue, v1beta1.ReasonValid)
}

// What was not permitted on a node that does not drain any more does not count for ever.
func TestForceDrainThatIsPermittedAtLast(t *testing.T) {
	w := newDrainWorld(t, newForceDrain())
	w.drain("worker-1", drainA)
	w.pods.add("worker-1", "cart")
	w.pods.fault = forbids()
	w.passes(16 * time.Minute)
	w.drained("worker-1")
	w.passes(time.Minute)
	w.ready(metav1.ConditionFalse, v1beta1.ReasonForbidden, "delete Pod shop/cart of Node/worker-1")
	w.pods.fault = nil
	w.drain("worker-2", drainA)
	w.pods.add("worker-2", "stock")
	w.passes(16 * time.Minute)
	w.ready(metav1.ConditionTrue, v1beta1.ReasonValid)
}

func TestForceDrainThatMayNotRead(t *testing.T) {
	for _, call := range []string{"list PodList", "get Node"} {
		t.Run(call, func(t *testing.T) {
			w := newDrainWorld(t, newForceDrain())
			w.drain("worker-1", drainA)
			w.pods.add("worker-1", "cart")
			w.passes(15*time.Minute - 1)
			w.elapse(1)
			w.api.fault = failing(call, -1, apierrors.NewForbidden(corev1.Resource("x"), "x", errors.New("no")))
			if after := w.pass().RequeueAfter; after != time.Minute {
				t.Errorf("tries again after %s, want a minute", after)
			}
			w.ready(metav1.ConditionFalse, v1beta1.ReasonForbidden, "forbidden: no")
			w.api.fault = nil
			w.passes(2 * time.Minute)
			w.ready(metav1.ConditionTrue, v1beta1.ReasonValid)
			if len(w.pods.deletions) != 1 {
				t.Errorf("deletions %v", w.pods.deletions)
			}
		})
	}
}

// A pass over an object that is older than what this process wrote is in vain.
func TestForceDrainWaitsForItsCache(t *testing.T) {
	w := newDrainWorld(t, newForceDrain())
	old := get(w.world, w.nfd)
	w.drain("worker-1", drainA)
	w.pass()
	w.api.stale = func(o client.Object) bool {
		nfd, ok := o.(*v1beta1.NodeForceDrain)
		if ok {
			old.DeepCopyInto(nfd)
		}
		return ok
	}
	w.api.writes()
	if after := w.pass().RequeueAfter; after != minStaleDelay || len(w.api.writes()) > 0 {
		t.Errorf("looks again after %s, want %s and no write", after, minStaleDelay)
	}
}
