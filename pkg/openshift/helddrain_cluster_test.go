// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

var errAway = errors.New("etcd is away")

// lists returns a client whose lists fail while the function returns an error.
func lists(api client.WithWatch, refuse func(client.ObjectList) error) client.WithWatch {
	return interceptor.NewClient(api, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := refuse(list); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
	})
}

// heldOn tells which pods the drain of a node waits for in vain.
func heldOn(t *testing.T, cluster *openshift.Cluster, node string, at time.Time) []string {
	t.Helper()
	held, err := cluster.HeldDrain(t.Context(), node, at)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, h := range held {
		lines = append(lines, fmt.Sprintf("%s %s/%s", h.Reason, h.Namespace, h.Name))
	}
	return lines
}

func expectHeldOn(t *testing.T, cluster *openshift.Cluster, node string, at time.Time, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, heldOn(t, cluster, node, at)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", node, diff)
	}
}

func TestHeldDrain(t *testing.T) {
	stuck := openshifttest.PodTerminatingSince(now.Add(-time.Minute), "example.com/slow")
	api := newAPI(
		cartBudget(3, 3, 3), openshifttest.Budget("shop", "web", 1, 2, 2), openshifttest.Budget("bank", "vault", 1, 1, 1), openshifttest.Budget("other", "a", 1, 1, 1),
		openshifttest.Budget("test", "a", 1, 2, 2), openshifttest.Budget("test", "b", 1, 2, 2, openshifttest.BudgetSelector(&metav1.LabelSelector{})),
		openshifttest.Pod("test", "a", 0, "worker-3"), openshifttest.Pod("test", "b", 0, "worker-3"),
		openshifttest.Pod("shop", "cart", 0, "worker-0"), openshifttest.Pod("shop", "cart", 1, "worker-1"), openshifttest.Pod("shop", "cart", 2, "worker-0"),
		openshifttest.Pod("shop", "web", 0, "worker-0"), openshifttest.Pod("shop", "web", 1, "worker-0", stuck),
		openshifttest.Pod("bank", "vault", 0, "worker-0"), openshifttest.Pod("bank", "log", 0, "worker-0", openshifttest.PodOwner("DaemonSet", "log")),
	)
	// Nothing is read from the operator's cache, which would have to have all pods for it, nor pods past the API server's
	// own, for which it would have to go through all of them.
	cluster := openshift.NewCluster(nil, interceptor.NewClient(openshifttest.Paged(api, 2), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			var o client.ListOptions
			o.ApplyOptions(opts)
			if _, pods := list.(*corev1.PodList); pods && (o.Raw == nil || o.Raw.ResourceVersion != "0") {
				return errors.New("pods are listed from etcd")
			}
			return c.List(ctx, list, opts...)
		},
	}))
	expectHeldOn(t, cluster, "worker-0", now, "BudgetRefuses bank/vault-0", "BudgetRefuses shop/cart-0", "BudgetRefuses shop/cart-2", "StuckTerminating shop/web-1")
	expectHeldOn(t, cluster, "worker-1", now, "BudgetRefuses shop/cart-1")
	expectHeldOn(t, cluster, "worker-2", now)
	expectHeldOn(t, cluster, "worker-3", now, "BudgetRefuses test/a-0") // of two budgets, each of which would let it go
}

// What is kept of a pod is all that is told of it.
func TestHeldDrainTellsWhatKeepsAPod(t *testing.T) {
	pod := cart(openshifttest.PodTerminatingSince(now.Add(-time.Minute), "example.com/slow"))
	held, err := openshift.NewCluster(nil, newAPI(pod)).HeldDrain(t.Context(), "worker-0", now)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(openshift.JudgeHeldDrain([]*corev1.Pod{pod}, nil, now), held); diff != "" {
		t.Errorf("(-of the whole pod +got):\n%s", diff)
	}
}

// The pods of most nodes are no business of any budget, or are gone soon: then the budgets do not matter.
func TestHeldDrainAsksForBudgetsOnlyIfTheyMatter(t *testing.T) {
	api := lists(newAPI(
		cart(openshifttest.PodOwner("DaemonSet", "cart")), openshifttest.Pod("shop", "web", 0, "worker-0", openshifttest.PodPhase(corev1.PodSucceeded)),
		openshifttest.Pod("shop", "web", 1, "worker-0", openshifttest.PodPhase(corev1.PodPending)),
		openshifttest.Pod("shop", "web", 2, "worker-0", openshifttest.PodTerminatingSince(now.Add(-time.Minute), "example.com/slow")),
		openshifttest.Pod("shop", "web", 3, "worker-1"),
	), func(list client.ObjectList) error {
		if _, budgets := list.(*policyv1.PodDisruptionBudgetList); budgets {
			return errAway
		}
		return nil
	})
	cluster := openshift.NewCluster(nil, api)
	expectHeldOn(t, cluster, "worker-0", now, "StuckTerminating shop/web-2")
	if held, err := cluster.HeldDrain(t.Context(), "worker-1", now); !errors.Is(err, errAway) || err.Error() != "list PodDisruptionBudgets: etcd is away" {
		t.Errorf("a budget may protect a pod of this one: got %v, %v", held, err)
	}
}

// What is told is never older than the interval, neither of the pods nor of the budgets.
func TestHeldDrainFollowsTheCluster(t *testing.T) {
	const held = "BudgetRefuses shop/cart-0"
	pod, budget := cart(), cartBudget(1, 1, 1)
	api := newAPI(pod, budget)
	cluster := openshift.NewCluster(nil, api)
	later := func(d time.Duration) time.Time { return now.Add(d) }
	const interval = openshift.HeldDrainInterval

	expectHeldOn(t, cluster, "worker-0", now, held)
	budget.Status.DisruptionsAllowed = 1
	if err := api.Status().Update(t.Context(), budget); err != nil {
		t.Fatal(err)
	}
	expectHeldOn(t, cluster, "worker-0", later(interval-1), held)
	expectHeldOn(t, cluster, "worker-0", later(interval))

	// Now the pod: another one is in its place.
	if err := api.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if err := api.Create(t.Context(), openshifttest.Pod("shop", "cart", 1, "worker-0")); err != nil {
		t.Fatal(err)
	}
	budget.Status.DisruptionsAllowed = 0
	if err := api.Status().Update(t.Context(), budget); err != nil {
		t.Fatal(err)
	}
	expectHeldOn(t, cluster, "worker-0", later(2*interval-1))
	expectHeldOn(t, cluster, "worker-0", later(2*interval), "BudgetRefuses shop/cart-1")

	// A pod gets stuck while the answer of the API server stands.
	stuck := openshift.NewCluster(nil, newAPI(cart(openshifttest.PodTerminatingSince(later(interval), "example.com/slow"))))
	expectHeldOn(t, stuck, "worker-0", later(interval+openshift.StuckTerminatingAfter))
	expectHeldOn(t, stuck, "worker-0", later(interval+openshift.StuckTerminatingAfter+1), "StuckTerminating shop/cart-0")
}

// The budgets are those of the whole cluster: they are asked for once, however many nodes drain at a time.
func TestNodesShareTheBudgets(t *testing.T) {
	const nodes = 8
	objects := []client.Object{cartBudget(nodes, nodes, nodes)}
	for i := range nodes {
		objects = append(objects, openshifttest.Pod("shop", "cart", i, fmt.Sprintf("worker-%d", i)))
	}
	var asked atomic.Bool
	cluster := openshift.NewCluster(nil, lists(newAPI(objects...), func(list client.ObjectList) error {
		if _, budgets := list.(*policyv1.PodDisruptionBudgetList); budgets && asked.Swap(true) {
			return errAway
		}
		return nil
	}))
	all := func(at time.Time) (known int) {
		var wait sync.WaitGroup
		var held [nodes]int
		for i := range nodes {
			wait.Go(func() {
				found, err := cluster.HeldDrain(t.Context(), fmt.Sprintf("worker-%d", i), at)
				if err == nil {
					held[i] = len(found)
				}
			})
		}
		wait.Wait()
		for _, n := range held {
			known += n
		}
		return known
	}
	for _, after := range []time.Duration{0, openshift.HeldDrainInterval - 1} {
		if got := all(now.Add(after)); got != nodes {
			t.Errorf("%s after: got %d held pods, want %d", after, got, nodes)
		}
	}
	if got := all(now.Add(openshift.HeldDrainInterval)); got != 0 {
		t.Errorf("budgets that are too old: got %d held pods, want that they are not known", got)
	}
}

// What is not known is not asked for again at once, and is once the API server may be back.
func TestHeldDrainThatIsNotKnown(t *testing.T) {
	away := true
	cluster := openshift.NewCluster(nil, lists(newAPI(cart(), cartBudget(1, 1, 1)), func(client.ObjectList) error {
		if away {
			return errAway
		}
		return nil
	}))
	for _, at := range []time.Time{now, now.Add(openshift.HeldDrainInterval - 1)} {
		if held, err := cluster.HeldDrain(t.Context(), "worker-0", at); !errors.Is(err, errAway) || held != nil {
			t.Errorf("at %s: got %v, %v", at, held, err)
		}
		away = false
	}
	expectHeldOn(t, cluster, "worker-0", now.Add(openshift.HeldDrainInterval), "BudgetRefuses shop/cart-0")
}
