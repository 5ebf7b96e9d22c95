// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

const listBudgets = "list PodDisruptionBudgetList"

// protects is a budget of the namespace shop that selects the pods of an app.
func protects(app string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: app},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
	}
}

func ofApp(app string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{"app": app} }
}

// protectedFor has protected pods deleted after that time.
func protectedFor(d time.Duration) func(*v1beta1.NodeForceDrain) {
	return func(n *v1beta1.NodeForceDrain) { n.Spec.ProtectedPodGracePeriod = &v1beta1.Duration{Duration: d} }
}

func withoutPodGrace(n *v1beta1.NodeForceDrain) { n.Spec.PodForceDeleteGracePeriod = nil }

// budgetLists returns how often budgets were listed since it was called last.
func (w *drainWorld) budgetLists() int {
	calls := slices.DeleteFunc(slices.Clone(w.api.calls), func(call string) bool { return call != listBudgets })
	w.api.calls = nil
	return len(calls)
}

func TestForceDrainOfProtectedPods(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		changes []func(*v1beta1.NodeForceDrain)
		want    []string
	}{
		{"as the others", nil, []string{"15m0s cart grace 30", "15m0s db grace 30"}},
		{"later", []func(*v1beta1.NodeForceDrain){protectedFor(time.Hour + 500*time.Millisecond)}, []string{"15m0s cart grace 30", "1h0m0.5s db grace 30"}},
		{"sooner", []func(*v1beta1.NodeForceDrain){protectedFor(5 * time.Minute)}, []string{"5m0s db grace 30", "15m0s cart grace 30"}},
		{"never", []func(*v1beta1.NodeForceDrain){protectedFor(0)}, []string{"15m0s cart grace 30"}},
		{"they alone", []func(*v1beta1.NodeForceDrain){protectedFor(20 * time.Minute), func(n *v1beta1.NodeForceDrain) { n.Spec.NodeDrainGracePeriod = nil }}, []string{"20m0s db grace 30"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newDrainWorld(t, newForceDrain(append(tc.changes, withoutPodGrace)...), protects("db"))
			w.drain("worker-1", drainA)
			w.pods.add("worker-1", "cart", ofApp("cart"))
			w.pods.add("worker-1", "db", ofApp("db"))
			w.passes(3 * time.Hour)
			w.expectDeletions(tc.want...)
		})
	}
}

// A pod that was evicted and hangs is killed in its time, whatever protects it.
func TestForceDrainOfAProtectedPodThatHangs(t *testing.T) {
	w := newDrainWorld(t, newForceDrain(protectedFor(0)), protects("db"))
	w.drain("worker-1", drainA)
	w.pods.add("worker-1", "db-0", ofApp("db"))
	evicted := w.pods.add("worker-1", "db-1", ofApp("db"))
	w.passes(20 * time.Minute)
	w.pods.evict(evicted)
	w.passes(time.Hour)
	w.expectDeletions("22m1s db-1 grace 1")
}

// What protects a pod may come and go while the node drains.
func TestForceDrainLooksAtBudgetsAnew(t *testing.T) {
	w := newDrainWorld(t, newForceDrain(protectedFor(0), withoutPodGrace), protects("db"))
	w.drain("worker-1", drainA)
	w.pods.add("worker-1", "db", ofApp("db"))
	w.passes(30*time.Minute + time.Second)
	w.expectDeletions()
	w.remove(protects("db"))
	w.passes(time.Minute)
	w.expectDeletions("31m0s db grace 30")
}

func TestForceDrainListsBudgetsOnlyWhereTheyMatter(t *testing.T) {
	w := newDrainWorld(t, newForceDrain(protectedFor(time.Hour)), protects("db"))
	for _, node := range []string{"worker-1", "worker-2"} {
		w.drain(node, drainA)
		w.pods.add(node, "db-of-"+node, ofApp("db"))
	}
	w.pods.add("worker-1", "cart")
	w.passes(15*time.Minute - 1)
	if lists := w.budgetLists(); lists > 0 {
		t.Errorf("before a pod's time has come budgets are listed %d times", lists)
	}
	w.elapse(1)
	w.pass()
	if lists := w.budgetLists(); lists != 1 {
		t.Errorf("for two nodes at once budgets are listed %d times", lists)
	}
	w.expectDeletions("15m0s cart grace 30")
	w.passes(45*time.Minute - 1)
	w.budgetLists()
	w.elapse(1)
	w.passes(time.Hour)
	if lists := w.budgetLists(); lists > 0 {
		t.Errorf("when the time of all has come budgets are listed %d times", lists)
	}

	w = newDrainWorld(t, newForceDrain(), protects("db"))
	w.drain("worker-1", drainA)
	w.pods.add("worker-1", "db", ofApp("db"))
	w.passes(time.Hour)
	if lists := w.budgetLists(); lists > 0 {
		t.Errorf("without the field budgets are listed %d times", lists)
	}
}

// A budget on the last page protects as much as one on the first.
func TestForceDrainReadsAllBudgets(t *testing.T) {
	w := newDrainWorld(t, newForceDrain(protectedFor(0), withoutPodGrace), protects("a"), protects("b"), protects("c"))
	paged := openshifttest.Paged(w.r.Live.(client.WithWatch), 1)
	w.r.Live = interceptor.NewClient(w.r.Live.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, ok := list.(*policyv1.PodDisruptionBudgetList); ok {
				return paged.List(ctx, list, opts...)
			}
			return c.List(ctx, list, opts...)
		},
	})
	w.drain("worker-1", drainA)
	for _, app := range []string{"a", "b", "c", "d"} {
		w.pods.add("worker-1", app, ofApp(app))
	}
	w.passes(15 * time.Minute)
	w.expectDeletions("15m0s d grace 30")
}

// Without the budgets nobody knows what is protected: nothing of the node is deleted.
func TestForceDrainWhereBudgetsCannotBeListed(t *testing.T) {
	for reason, err := range map[string]error{
		"broken": errBroken, "timeout": apierrors.NewTimeoutError("etcd is slow", 1),
		"forbidden": apierrors.NewForbidden(policyv1.Resource("poddisruptionbudgets"), "", errors.New("no")),
	} {
		t.Run(reason, func(t *testing.T) {
			w := newDrainWorld(t, newForceDrain(protectedFor(time.Hour)), protects("db"))
			w.drain("worker-1", drainA)
			w.pods.add("worker-1", "cart")
			w.pods.add("worker-1", "db", ofApp("db"))
			w.passes(14 * time.Minute)
			w.drain("worker-2", drainA)
			w.pods.evict(w.pods.add("worker-1", "hangs"))
			w.pods.evict(w.pods.add("worker-2", "hangs-elsewhere"))
			w.events()
			w.api.fault = failing(listBudgets, -1, err)
			w.passes(6 * time.Minute)
			w.expectDeletions("16m1s hangs-elsewhere grace 1")
			lists := w.budgetLists()
			if reason == "forbidden" {
				w.ready(metav1.ConditionFalse, v1beta1.ReasonForbidden, "list PodDisruptionBudgets", "forbidden: no")
				if events := w.events(); len(events) != 2 || !strings.HasPrefix(events[0], "Warning Forbidden") || lists < 5 || lists > 6 {
					t.Errorf("published %v, and tried %d times in five minutes, want once each minute", events, lists)
				}
			} else {
				w.ready(metav1.ConditionTrue, v1beta1.ReasonValid)
			}
			w.api.fault = nil
			w.passes(time.Minute)
			if d := w.pods.deletions; len(d) != 3 || !strings.Contains(d[1], "cart") || !strings.Contains(d[2], "hangs grace 1") {
				t.Errorf("deletions %v, want both that are due within a minute", d)
			}
			w.ready(metav1.ConditionTrue, v1beta1.ReasonValid)
		})
	}
}

func TestForceDrainLeavesIgnoredNamespacesAlone(t *testing.T) {
	w := newDrainWorld(t, newForceDrain(func(n *v1beta1.NodeForceDrain) { n.Spec.IgnoredNamespacePatterns = []string{"^openshift-", "vault"} }))
	w.drain("worker-1", drainA)
	w.pods.add("worker-1", "cart")
	for _, ns := range []string{"openshift-storage", "my-vault-2"} {
		in := func(p *corev1.Pod) { p.Namespace = ns }
		w.pods.add("worker-1", "runs-in-"+ns, in)
		w.pods.evict(w.pods.add("worker-1", "hangs-in-"+ns, in))
	}
	w.passes(15 * time.Minute)
	w.expectDeletions("15m0s cart grace 30")
	w.pods.end("cart")
	w.passes(time.Hour)
	w.expectDeletions("15m0s cart grace 30")
	change(w.world, w.nfd, func(n *v1beta1.NodeForceDrain) {
		n.Spec.IgnoredNamespacePatterns, n.Generation = []string{"^openshift-"}, 2
	})
	w.passes(time.Second)
	slices.Sort(w.pods.deletions)
	w.expectDeletions("15m0s cart grace 30", "1h15m0s hangs-in-my-vault-2 grace 1", "1h15m0s runs-in-my-vault-2 grace 30")
}
