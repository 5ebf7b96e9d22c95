// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package forcedrain_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/forcedrain"
)

func TestDecideAboutProtectedPods(t *testing.T) {
	const minute = time.Minute
	cordoned := seen.Truncate(time.Second)
	later := forcedrain.Graces{Node: 15 * minute, Protected: 60*minute + 7}
	sooner := forcedrain.Graces{Node: 60 * minute, Protected: 15 * minute}
	never := forcedrain.Graces{Node: 15 * minute}
	only := forcedrain.Graces{Protected: 15 * minute}
	withPods := forcedrain.Graces{Node: 15 * minute, Protected: 60 * minute, Pod: 30 * minute}
	for _, tc := range []struct {
		reason string
		now    time.Duration // after seen
		graces forcedrain.Graces
		view   *forcedrain.View
		delete []string
		next   time.Duration // after seen; zero for never
		judge  bool
	}{
		{"before the first of both times nobody asks", 15*minute - 1, later, unconfirmed(pod("cart")), nil, 15 * minute, false},
		{"in between it depends on the budgets", 15 * minute, later, unconfirmed(pod("cart")), nil, 0, true},
		{"also if one pod is known", 15 * minute, later, unconfirmed(pod("cart"), pod("db", protected)), nil, 0, true},
		{"not if there is no pod", 15 * minute, later, unconfirmed(), nil, 16 * minute, false},
		{"nor of a pod that is not selected", 15 * minute, later, unconfirmed(pod("cart", notSelected)), nil, 16 * minute, false},
		{"nor of one that ends already", 15 * minute, later, unconfirmed(pod("cart", requested(at(minute), 30))), nil, 16 * minute, false},
		{"after both it makes no difference", 60*minute + 7, later, confirmed(cordoned, pod("cart"), pod("db")), []string{"worker-1: shop/cart", "worker-1: shop/db"}, 61*minute + 7, false},
		{"nor if both are the same", 15 * minute, graces, confirmed(cordoned, pod("cart")), []string{"worker-1: shop/cart"}, 16 * minute, false},

		{"those that are not protected go", 15 * minute, later, confirmed(cordoned, pod("cart", unprotected), pod("db", protected)), []string{"worker-1: shop/cart"}, 16 * minute, false},
		{"the node is not read for one that stays", 15 * minute, later, unconfirmed(pod("db", protected)), nil, 16 * minute, false},
		{"it is looked at to the nanosecond", 60 * minute, later, unconfirmed(pod("db", protected)), nil, 60*minute + 7, false},
		{"a nanosecond before", 60*minute + 6, later, unconfirmed(pod("db", protected)), nil, 60*minute + 7, false},
		{"and then they go", 60*minute + 7, later, confirmed(cordoned, pod("db", protected)), []string{"worker-1: shop/db"}, 61*minute + 7, false},

		{"protected ones may be the first", 15 * minute, sooner, confirmed(cordoned, pod("cart", unprotected), pod("db", protected)), []string{"worker-1: shop/db"}, 16 * minute, false},
		{"and the others follow exactly", 59*minute + 1, sooner, unconfirmed(pod("cart", unprotected)), nil, 60 * minute, false},
		{"also those that may come before", 59*minute + 1, sooner, unconfirmed(), nil, 60 * minute, false},
		{"then all", 60 * minute, sooner, confirmed(cordoned, pod("cart"), pod("db")), []string{"worker-1: shop/cart", "worker-1: shop/db"}, 61 * minute, false},

		{"never means never", 999 * minute, never, confirmed(cordoned, pod("cart", unprotected), pod("db", protected)), []string{"worker-1: shop/cart"}, 1000 * minute, false},
		{"and it has to be known for ever", 999 * minute, never, unconfirmed(pod("cart")), nil, 0, true},
		{"protected ones alone", 15 * minute, only, confirmed(cordoned, pod("cart", unprotected), pod("db", protected)), []string{"worker-1: shop/db"}, 16 * minute, false},
		{"whose time is waited for", minute, only, unconfirmed(pod("cart"), pod("db")), nil, 15 * minute, false},

		{"one that hangs is killed, protected or not, but not before it is known what else goes", 31*minute + 600*time.Millisecond, withPods,
			unconfirmed(pod("cart"), pod("db", requested(at(minute), 30))), nil, 0, true},
		{"together with the others", 31*minute + 600*time.Millisecond, withPods,
			confirmed(cordoned, pod("cart", unprotected), pod("db", protected), pod("hangs", requested(at(minute), 30), protected)), []string{"worker-1: shop/cart", "worker-1: shop/hangs!"},
			32*minute + 600*time.Millisecond, false},
		{"in its own time", 31*minute + 600*time.Millisecond - 1, withPods, unconfirmed(pod("hangs", requested(at(minute), 30), protected)), nil, 31*minute + 600*time.Millisecond, false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			d := forcedrain.Decide(&forcedrain.Facts{
				Graces: tc.graces, Recorded: []forcedrain.Drain{drain(0, at(tc.now))}, Nodes: []forcedrain.Node{draining()},
				Views: map[string]forcedrain.View{"worker-1": *tc.view}, Now: at(tc.now),
			})
			if diff := cmp.Diff(tc.delete, deletions(d)); diff != "" {
				t.Errorf("deletes (-want +got):\n%s", diff)
			}
			var next time.Time
			if tc.next > 0 {
				next = at(tc.next)
			}
			if !d.Next.Equal(next) {
				t.Errorf("looks again at %s, want %s", d.Next, next)
			}
			if got := len(d.Judge) == 1; got != tc.judge {
				t.Errorf("asks for the protection of %v, want %t", d.Judge, tc.judge)
			}
			if len(d.Confirm) > 0 {
				t.Errorf("reads the nodes %v for pods that stay", d.Confirm)
			}
		})
	}
}

// What is due first wakes it, whichever it is.
func TestDecideLooksFirst(t *testing.T) {
	const minute = time.Minute
	for _, tc := range []struct {
		graces forcedrain.Graces
		want   time.Duration
	}{
		{forcedrain.Graces{Node: 3 * minute, Protected: 5 * minute, Pod: 7 * minute}, 3 * minute},
		{forcedrain.Graces{Node: 5 * minute, Protected: 3 * minute, Pod: 7 * minute}, 3 * minute},
		{forcedrain.Graces{Protected: 3 * minute}, 3 * minute},
		{forcedrain.Graces{Protected: 3 * minute, Pod: 2 * minute}, 2 * minute},
	} {
		d := forcedrain.Decide(&forcedrain.Facts{Graces: tc.graces, Nodes: []forcedrain.Node{draining()}, Now: seen})
		if !d.Next.Equal(at(tc.want)) {
			t.Errorf("with %+v it looks first at %s, want %s", tc.graces, d.Next, at(tc.want))
		}
	}
}

// A node that turns out to drain for less long than it was taken to may need an answer that it did not need before.
func TestDecideAsksForProtectionOfANewerDrain(t *testing.T) {
	now := at(time.Hour)
	facts := &forcedrain.Facts{
		Graces:   forcedrain.Graces{Node: 15 * time.Minute, Protected: 45 * time.Minute},
		Recorded: []forcedrain.Drain{drain(0, now)}, Nodes: []forcedrain.Node{draining()}, Now: now,
		Views: map[string]forcedrain.View{"worker-1": *unconfirmed(pod("db"))},
	}
	if d := forcedrain.Decide(facts); len(d.Confirm) != 1 || len(d.Judge) > 0 {
		t.Fatalf("at first it asks for %+v, want the node", d)
	}
	facts.Views["worker-1"] = *confirmed(at(30*time.Minute).Truncate(time.Second), pod("db"))
	if d := forcedrain.Decide(facts); len(d.Judge) != 1 || len(d.Delete) > 0 {
		t.Fatalf("of a node that was cordoned anew it decides %+v, want a question about budgets", d)
	}
	facts.Views["worker-1"] = *confirmed(at(30*time.Minute).Truncate(time.Second), pod("db", protected))
	if d := forcedrain.Decide(facts); len(d.Delete) > 0 || !d.Next.Equal(now.Add(forcedrain.LookInterval)) {
		t.Errorf("decides %+v, want to leave the pod alone", d)
	}
}

func TestGracesOf(t *testing.T) {
	duration := func(d time.Duration) *v1beta1.Duration { return &v1beta1.Duration{Duration: d} }
	for reason, tc := range map[string]struct {
		spec v1beta1.NodeForceDrainSpec
		want forcedrain.Graces
	}{
		"nothing":                    {v1beta1.NodeForceDrainSpec{}, forcedrain.Graces{}},
		"protected pods as the node": {v1beta1.NodeForceDrainSpec{NodeDrainGracePeriod: duration(3), PodForceDeleteGracePeriod: duration(2)}, forcedrain.Graces{Node: 3, Protected: 3, Pod: 2}},
		"later":                      {v1beta1.NodeForceDrainSpec{NodeDrainGracePeriod: duration(3), ProtectedPodGracePeriod: duration(5)}, forcedrain.Graces{Node: 3, Protected: 5}},
		"never":                      {v1beta1.NodeForceDrainSpec{NodeDrainGracePeriod: duration(3), ProtectedPodGracePeriod: duration(0)}, forcedrain.Graces{Node: 3}},
	} {
		if got := forcedrain.GracesOf(&tc.spec); got != tc.want {
			t.Errorf("%s: got %+v, want %+v", reason, got, tc.want)
		}
	}
}

func TestBudgets(t *testing.T) {
	requirement := func(key string, operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
	}
	for _, tc := range []struct {
		reason    string
		namespace string
		selector  *metav1.LabelSelector
		want      forcedrain.Protection
	}{
		{"all of its labels", "shop", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "cart", "tier": "web"}}, forcedrain.Protected},
		{"one of its labels alone", "shop", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "cart", "tier": "batch"}}, forcedrain.Unprotected},
		{"another namespace", "bank", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "cart"}}, forcedrain.Unprotected},
		{"an expression", "shop", requirement("app", metav1.LabelSelectorOpIn, "cart", "stock"), forcedrain.Protected},
		{"an expression that it does not match", "shop", requirement("app", metav1.LabelSelectorOpNotIn, "cart"), forcedrain.Unprotected},
		{"a label that is not there", "shop", requirement("team", metav1.LabelSelectorOpDoesNotExist), forcedrain.Protected},
		{"labels and an expression", "shop", &metav1.LabelSelector{
			MatchLabels:      map[string]string{"app": "cart"},
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpDoesNotExist}},
		}, forcedrain.Unprotected},
		{"an empty selector", "shop", &metav1.LabelSelector{}, forcedrain.Protected},
		{"an empty selector elsewhere", "bank", &metav1.LabelSelector{}, forcedrain.Unprotected},
		{"no selector", "shop", nil, forcedrain.Unprotected},
		{"one that cannot be parsed", "shop", requirement("app", "Likes", "cart"), forcedrain.Unprotected},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			budgets := forcedrain.Budgets{}
			for _, b := range []policyv1.PodDisruptionBudget{
				{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: requirement("app", metav1.LabelSelectorOpIn, "other")}},
				{ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace, Name: "b"}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: tc.selector}},
			} {
				budgets.Add(&b)
			}
			pods := []forcedrain.Pod{pod("cart", func(p *forcedrain.Pod) { p.Labels = labels.Set{"app": "cart", "tier": "web"} })}
			if got := budgets.Judge(pods)[0].Protection; got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
			if pods[0].Protection != forcedrain.ProtectionUnknown {
				t.Error("what was known before is changed, too")
			}
		})
	}
	bank := forcedrain.Budgets{}
	bank.Add(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "bank"}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}}})
	vault := pod("vault", func(p *forcedrain.Pod) { p.Namespace = "bank" })
	if judged := bank.Judge([]forcedrain.Pod{pod("cart"), vault}); judged[0].Protection != forcedrain.Unprotected || judged[1].Protection != forcedrain.Protected {
		t.Errorf("a budget of bank protects %+v", judged)
	}
	if got := (forcedrain.Budgets{}).Judge([]forcedrain.Pod{pod("cart")})[0].Protection; got != forcedrain.Unprotected {
		t.Errorf("without any budget the protection is %d", got)
	}
}
