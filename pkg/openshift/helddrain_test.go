// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

type (
	podOption    = func(*corev1.Pod)
	budgetOption = func(*policyv1.PodDisruptionBudget)
)

func cart(options ...podOption) *corev1.Pod {
	return openshifttest.Pod("shop", "cart", 0, "worker-0", options...)
}

func cartBudget(required, healthy, pods int32, options ...budgetOption) *policyv1.PodDisruptionBudget {
	return openshifttest.Budget("shop", "cart", required, healthy, pods, options...)
}

// judge tells in a line for each pod that is held, in order, what its reason, its budgets and its message are.
func judge(pods []*corev1.Pod, budgets ...*policyv1.PodDisruptionBudget) []string {
	var all openshift.DrainBudgets
	for _, pdb := range budgets {
		all.Add(pdb)
	}
	var lines []string
	for _, h := range openshift.JudgeHeldDrain(pods, &all, now) {
		lines = append(lines, fmt.Sprintf("%s %v %s", h.Reason, h.Budgets, h))
	}
	return lines
}

// What one budget does to one pod, as the API server decides on an eviction at present.
func TestJudgeHeldDrain(t *testing.T) {
	never, sparing := openshifttest.MaxUnavailable("0"), openshifttest.AlwaysEvictUnhealthy()
	sick, pending := openshifttest.PodNotReady(), openshifttest.PodPhase(corev1.PodPending)
	syncFailed := openshifttest.BudgetCondition(policyv1.SyncFailedReason)
	surge := func(b *policyv1.PodDisruptionBudget) { b.Status.CurrentHealthy, b.Status.DisruptionsAllowed = 4, 1 }
	changed := func(b *policyv1.PodDisruptionBudget) { b.Generation++ }

	for _, tc := range []struct {
		reason string
		budget *policyv1.PodDisruptionBudget
		pod    *corev1.Pod
		want   string // of the message; empty if it goes
	}{
		{"a disruption is allowed", cartBudget(1, 2, 2), cart(), ""},
		{"all have to be healthy", cartBudget(1, 1, 1), cart(), "1 of 1 pods have to be healthy"},
		{"none may be unavailable", cartBudget(1, 1, 1, never), cart(), "maxUnavailable is 0"},
		{"all have to be healthy, but there is one more than there are to be", cartBudget(3, 3, 3, surge), cart(), ""},
		{"the same, if none may be unavailable", cartBudget(3, 3, 3, never, surge), cart(), ""},
		{"the same, before the controller has looked at the spec", cartBudget(3, 3, 3, surge, changed), cart(), "the disruption controller has not looked at it yet"},
		{"another one is sick", cartBudget(2, 2, 3), cart(), "no more pods are healthy than the 2 required"},
		{"more are sick: the words do not change with their number", cartBudget(2, 1, 3), cart(), "no more pods are healthy than the 2 required"},
		{"the controller cannot tell", cartBudget(1, 1, 2, syncFailed), cart(), "the disruption controller cannot compute it"},
		{"the controller has not looked yet", cartBudget(1, 2, 2, openshifttest.BudgetNotObserved()), cart(), "the disruption controller has not looked at it yet"},
		{"the controller has looked when there were no pods", cartBudget(1, 0, 0), cart(), "the disruption controller has not counted its pods yet"},
		{"pods that are not counted", cartBudget(0, 2, 0, openshifttest.MaxUnavailable("1")), cart(), "pods without a controller count only if minAvailable is a number"},

		{"a sick pod, and enough are healthy", cartBudget(1, 1, 2), cart(sick), ""},
		{"the same, if none may be unavailable: it may go at present", cartBudget(1, 1, 1, never), cart(sick), ""},
		{"a sick pod, and too few are healthy", cartBudget(2, 1, 3), cart(sick), "no more pods are healthy than the 2 required"},
		{"a sick pod, and the last one", cartBudget(0, 0, 1), cart(sick), "no more pods are healthy than the 0 required"},
		{"a sick pod that may always go", cartBudget(2, 1, 3, sparing), cart(sick), ""},
		{"no budget protects what starts", cartBudget(1, 1, 1), cart(pending), ""},
		{"nor what ends", cartBudget(1, 1, 1), cart(openshifttest.PodTerminatingSince(now.Add(20 * time.Second))), ""},
		{"nor what has ended", cartBudget(1, 1, 1), cart(openshifttest.PodPhase(corev1.PodSucceeded)), ""},
		{"nor what has failed", cartBudget(1, 1, 1), cart(openshifttest.PodPhase(corev1.PodFailed)), ""},
		{"a drain leaves alone what belongs to the node", cartBudget(1, 1, 1), cart(openshifttest.PodStatic()), ""},
		{"and what a DaemonSet keeps there", cartBudget(1, 1, 1), cart(openshifttest.PodOwner("DaemonSet", "cart")), ""},
		{"of another app", openshifttest.Budget("shop", "web", 1, 1, 1), cart(), ""},
		{"of another namespace", openshifttest.Budget("test", "cart", 1, 1, 1), cart(), ""},
		{"of a virtual machine: its pod is migrated", cartBudget(1, 1, 1, openshifttest.BudgetOwner("kubevirt.io/v1", "VirtualMachineInstance", "vm")), cart(), ""},
		{"it selects nothing", cartBudget(1, 1, 1, openshifttest.BudgetSelector(nil)), cart(), ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			var want []string
			if tc.want != "" {
				want = []string{"BudgetRefuses [shop/cart] pod shop/cart-0: PodDisruptionBudget shop/cart allows no disruption: " + tc.want}
			}
			if diff := cmp.Diff(want, judge([]*corev1.Pod{tc.pod}, tc.budget)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The API server evicts no pod that several budgets select, whatever they say.
func TestJudgeHeldDrainOfSeveralBudgets(t *testing.T) {
	const refused = "BudgetRefuses [shop/cart shop/front] pod shop/cart-0: a pod with several PodDisruptionBudgets is never evicted: shop/cart, shop/front"
	front := func(name string) *policyv1.PodDisruptionBudget {
		return openshifttest.Budget("shop", name, 1, 3, 3, openshifttest.BudgetSelector(&metav1.LabelSelector{MatchLabels: map[string]string{"tier": "front"}}))
	}
	frontCart := func(options ...podOption) []*corev1.Pod {
		return []*corev1.Pod{cart(append(options, openshifttest.PodLabel("tier", "front"))...)}
	}
	vm := openshifttest.BudgetOwner("kubevirt.io/v1", "VirtualMachineInstance", "vm")
	type budgets = []*policyv1.PodDisruptionBudget
	for _, tc := range []struct {
		reason  string
		pods    []*corev1.Pod
		budgets budgets
		want    []string
	}{
		{"both would let it go", frontCart(), budgets{front("front"), cartBudget(1, 2, 2)}, []string{refused}},
		{"one of them would not", frontCart(), budgets{cartBudget(2, 2, 2), front("front")}, []string{refused}},
		{"the same if it is sick, and sick ones may go", frontCart(openshifttest.PodNotReady()), budgets{front("front"), cartBudget(1, 2, 2)}, []string{refused}},
		{"but not if it starts", frontCart(openshifttest.PodPhase(corev1.PodPending)), budgets{front("front"), cartBudget(1, 2, 2)}, nil},
		{"a pod that only one of them selects", []*corev1.Pod{cart()}, budgets{front("front"), cartBudget(1, 2, 2)}, nil},
		{"one is of a virtual machine", frontCart(), budgets{front("front"), cartBudget(2, 2, 2, vm)}, nil},
		{
			"so many that not all of them are named", frontCart(), budgets{front("f"), front("e"), front("d"), front("c"), front("b"), front("a")},
			[]string{"BudgetRefuses [shop/a shop/b shop/c shop/d shop/e] pod shop/cart-0: a pod with several PodDisruptionBudgets is never evicted: shop/a, shop/b, shop/c, shop/d, shop/e and others"},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, judge(tc.pods, tc.budgets...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestJudgeHeldDrainOfPodsThatAreStuck(t *testing.T) {
	const stuck = "StuckTerminating [] pod shop/cart-0: it was deleted, and is still there after the end of its grace period"
	since := func(ago time.Duration, finalizers ...string) podOption {
		return openshifttest.PodTerminatingSince(now.Add(-ago), finalizers...)
	}
	late := openshift.StuckTerminatingAfter + time.Second
	for _, tc := range []struct {
		reason string
		pod    *corev1.Pod
		want   []string
	}{
		{"within its grace period", cart(since(-time.Second)), nil},
		{"the kubelet cleans up after it", cart(since(openshift.StuckTerminatingAfter)), nil},
		{"nobody cleans up after it", cart(since(late)), []string{stuck}},
		{"for years", cart(since(10000 * time.Hour)), []string{stuck}},
		{"it never started", cart(since(late), openshifttest.PodPhase(corev1.PodPending)), []string{stuck}},
		{"it has ended, and something keeps it", cart(since(late, "example.com/slow"), openshifttest.PodPhase(corev1.PodSucceeded)), []string{stuck + "; it has finalizers: example.com/slow"}},
		{"many keep it", cart(since(late, "a/a", "b/b", "c/c", "d/d", "e/e", "f/f")), []string{stuck + "; it has finalizers: a/a, b/b, c/c, d/d, e/e and others"}},
		{"a drain leaves alone what a DaemonSet keeps there", cart(since(late), openshifttest.PodOwner("DaemonSet", "cart")), nil},
		{"and what belongs to the node", cart(since(late), openshifttest.PodStatic()), nil},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, judge([]*corev1.Pod{tc.pod}, cartBudget(1, 1, 1))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestJudgeHeldDrainTellsInOrderAndNotOfAll(t *testing.T) {
	var pods []*corev1.Pod
	for i := range openshift.MaxHeldEvictions {
		pods = append(pods, openshifttest.Pod("shop", "cart", i, "worker-0"))
	}
	pods = append(pods, openshifttest.Pod("bank", "vault", 1, "worker-0"), openshifttest.Pod("bank", "vault", 0, "worker-0"))
	got := judge(pods, cartBudget(99, 99, 99), openshifttest.Budget("bank", "vault", 2, 2, 2))
	if len(got) != openshift.MaxHeldEvictions {
		t.Errorf("told of %d pods, want %d", len(got), openshift.MaxHeldEvictions)
	}
	for i, want := range []string{"pod bank/vault-0:", "pod bank/vault-1:", "pod shop/cart-0:", "pod shop/cart-1:", "pod shop/cart-10:"} {
		if !strings.Contains(got[i], want) {
			t.Errorf("at %d: got %s, want %s", i, got[i], want)
		}
	}
}
