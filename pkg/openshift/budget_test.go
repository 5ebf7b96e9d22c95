// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

func TestJudgeBudget(t *testing.T) {
	const (
		allows, never, exhausted = openshift.BudgetAllows, openshift.BudgetNeverAllows, openshift.BudgetExhausted
		unknown, uncounted       = openshift.BudgetNotComputed, openshift.BudgetState(99)
	)
	type options = []func(*policyv1.PodDisruptionBudget)
	budget := func(required, healthy, pods int32, o ...func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
		return openshifttest.Budget("shop", "web", required, healthy, pods, o...)
	}
	syncFailed := openshifttest.BudgetCondition(policyv1.SyncFailedReason)
	for _, tc := range []struct {
		reason  string
		budget  *policyv1.PodDisruptionBudget
		options options
		want    openshift.BudgetState
		message string
	}{
		{"one of three may go", budget(2, 3, 3), nil, allows, ""},
		{"none has to be there", budget(0, 3, 3), nil, allows, ""},
		{"no pods: a number counts all that there are", budget(1, 0, 0), nil, allows, ""},

		{"all of them are required", budget(3, 3, 3), nil, never, "3 of 3 pods have to be healthy"},
		{"more than there are", budget(3, 1, 1), nil, never, "3 of 1 pods have to be healthy"},
		{"even if some are sick: they would not help", budget(3, 1, 3), nil, never, "3 of 3 pods have to be healthy"},
		{"a percentage that comes to all of them", budget(3, 3, 3), options{openshifttest.MinAvailable("90%")}, never, "3 of 3 pods have to be healthy"},
		{"none may be unavailable", budget(3, 3, 3), options{openshifttest.MaxUnavailable("0")}, never, "maxUnavailable is 0"},
		{"the same as a percentage", budget(3, 3, 3), options{openshifttest.MaxUnavailable("0%")}, never, "maxUnavailable is 0%"},
		{"all have to be available", budget(3, 3, 3), options{openshifttest.MinAvailable("100%")}, never, "minAvailable is 100%"},

		// The disruption controller says this of two healthy pods without a controller.
		{"none of them may be unavailable", budget(0, 2, 0), options{openshifttest.MaxUnavailable("0")}, never, "maxUnavailable is 0"},
		{"all of them have to be available", budget(0, 2, 0), options{openshifttest.MinAvailable("100%")}, never, "minAvailable is 100%"},
		{"one of them may be unavailable", budget(0, 2, 0), options{openshifttest.MaxUnavailable("1")}, uncounted, "pods without a controller count only if minAvailable is a number"},
		{"half of them have to be available", budget(0, 2, 0), options{openshifttest.MinAvailable("50%")}, uncounted, "pods without a controller count only if minAvailable is a number"},
		// And this if none is healthy, or if there are none: the status does not tell.
		{"they may be sick, or not there", budget(0, 0, 0), options{openshifttest.MaxUnavailable("1")}, uncounted, "pods without a controller count only if minAvailable is a number"},
		{"they may be sick, or not there, and none may be unavailable", budget(0, 0, 0), options{openshifttest.MaxUnavailable("0")}, never, "maxUnavailable is 0"},

		{"a sick pod is one too many", budget(2, 2, 3), nil, exhausted, "2 of 3 pods healthy, 2 required"},
		{"more sick pods", budget(2, 1, 3), nil, exhausted, "1 of 3 pods healthy, 2 required"},
		{"the controller cannot tell", budget(2, 3, 3), options{syncFailed}, unknown, "the disruption controller cannot compute it"},
		{"it could as long as there were no pods", budget(0, 0, 0), options{openshifttest.MaxUnavailable("1"), syncFailed}, unknown, "the disruption controller cannot compute it"},
		{"it never could", budget(2, 3, 3), options{openshifttest.BudgetNotObserved(), syncFailed}, unknown, "the disruption controller cannot compute it"},

		{"not looked at yet", budget(3, 3, 3), options{openshifttest.BudgetNotObserved()}, unknown, "the disruption controller has not looked at it yet"},
		{"not looked at yet, and without a generation", budget(3, 3, 3), options{
			openshifttest.BudgetNotObserved(), func(b *policyv1.PodDisruptionBudget) { b.Generation = 0 },
		}, unknown, "the disruption controller has not looked at it yet"},
		{"not looked at since it was changed", budget(2, 3, 3), options{func(b *policyv1.PodDisruptionBudget) { b.Generation++ }}, unknown, "the disruption controller has not looked at it yet"},
		{"not looked at yet, but its spec says enough", budget(3, 3, 3), options{openshifttest.BudgetNotObserved(), openshifttest.MaxUnavailable("0")}, never, "maxUnavailable is 0"},
		{"the same as a percentage", budget(3, 3, 3), options{openshifttest.BudgetNotObserved(), openshifttest.MaxUnavailable("0%")}, never, "maxUnavailable is 0%"},
		{"the same the other way round", budget(3, 3, 3), options{openshifttest.BudgetNotObserved(), openshifttest.MinAvailable("100%")}, never, "minAvailable is 100%"},
		{"a percentage that leaves some", budget(2, 3, 3), options{openshifttest.MinAvailable("99%")}, allows, ""},
		{"the same the other way round", budget(2, 3, 3), options{openshifttest.MaxUnavailable("1%")}, allows, ""},
		{"a hundred pods are not a hundred percent", budget(100, 101, 101), options{openshifttest.MinAvailable("100")}, allows, ""},

		{"a budget that is being deleted still counts", budget(3, 3, 3), options{func(b *policyv1.PodDisruptionBudget) { b.DeletionTimestamp = &metav1.Time{Time: now} }}, never, "3 of 3 pods have to be healthy"},
		{"no selector selects nothing", budget(3, 3, 3), options{openshifttest.BudgetSelector(nil), openshifttest.MaxUnavailable("0")}, allows, ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			for _, option := range tc.options {
				option(tc.budget)
			}
			if got, message := openshift.JudgeBudget(tc.budget); got != tc.want || message != tc.message {
				t.Errorf("got %d, %q; want %d, %q", got, message, tc.want, tc.message)
			}
		})
	}
}

// held returns the pods that the only budget among the objects holds.
func held(t *testing.T, live client.Reader, api client.Client) openshift.HeldPods {
	t.Helper()
	cluster := openshift.NewCluster(api, live)
	budgets, err := cluster.Budgets(t.Context(), now, time.Minute)
	if err != nil || len(budgets) != 1 {
		t.Fatalf("got %d budgets (%v), want 1", len(budgets), err)
	}
	pods, err := cluster.HeldPods(t.Context(), budgets[0], now, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return pods
}

func TestHeldPods(t *testing.T) {
	web := func(index int, options ...func(*corev1.Pod)) client.Object {
		return openshifttest.Pod("shop", "web", index, "worker-0", options...)
	}
	never := openshifttest.Budget("shop", "web", 3, 3, 3)
	short := openshifttest.Budget("shop", "web", 3, 2, 4)  // two healthy pods of the three that are required
	enough := openshifttest.Budget("shop", "web", 2, 2, 3) // just as many healthy pods as are required
	unknown := openshifttest.Budget("shop", "web", 2, 2, 3, openshifttest.BudgetCondition(policyv1.SyncFailedReason))
	sparing := func(b *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
		b = b.DeepCopy()
		openshifttest.AlwaysEvictUnhealthy()(b)
		return b
	}
	for _, tc := range []struct {
		reason string
		budget *policyv1.PodDisruptionBudget
		pods   []client.Object
		want   []string
	}{
		{"healthy pods", never, []client.Object{web(1), web(0)}, []string{"web-0", "web-1"}},
		{"no pods", never, nil, nil},
		{"pods of another app, and of another namespace", never, []client.Object{
			openshifttest.Pod("shop", "db", 0, "worker-0"), openshifttest.Pod("test", "web", 0, "worker-0"),
		}, nil},
		{"what a drain does not evict", never, []client.Object{
			web(0, func(p *corev1.Pod) { p.Spec.NodeName = "" }), web(1, openshifttest.PodPhase(corev1.PodSucceeded)), web(2, openshifttest.PodPhase(corev1.PodFailed)),
			web(3, openshifttest.PodStatic()), web(4, openshifttest.PodOwner("DaemonSet", "web")),
		}, nil},
		{"pods without a controller are evicted", never, []client.Object{web(0, func(p *corev1.Pod) { p.OwnerReferences = nil })}, []string{"web-0"}},
		{"what is sick, starts or ends will be there, healthy", never, []client.Object{
			web(0, openshifttest.PodNotReady()), web(1, openshifttest.PodPhase(corev1.PodPending)), web(2, openshifttest.PodTerminating()),
		}, []string{"web-0", "web-1", "web-2"}},
		{"the same if sick pods are always evicted", sparing(never), []client.Object{web(0, openshifttest.PodNotReady())}, []string{"web-0"}},

		{"too few are healthy: sick ones are held too", short, []client.Object{web(0), web(1, openshifttest.PodNotReady())}, []string{"web-0", "web-1"}},
		{"but not if they are always evicted", sparing(short), []client.Object{web(0), web(1, openshifttest.PodNotReady())}, []string{"web-0"}},
		{"all are sick, and always evicted", sparing(short), []client.Object{web(0, openshifttest.PodNotReady())}, nil},
		{"what starts or ends is evicted whatever the budget says", short, []client.Object{
			web(0, openshifttest.PodPhase(corev1.PodPending)), web(1, openshifttest.PodTerminating()),
		}, nil},
		{"as many are healthy as are required: sick ones may go", enough, []client.Object{web(0), web(1, openshifttest.PodNotReady())}, []string{"web-0"}},
		{"nobody knows how many are healthy", unknown, []client.Object{web(0), web(1, openshifttest.PodNotReady())}, []string{"web-0", "web-1"}},
		{"but sick ones are always evicted", sparing(unknown), []client.Object{web(0), web(1, openshifttest.PodNotReady())}, []string{"web-0"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			api := newAPI(append(tc.pods, tc.budget.DeepCopy())...)
			got := held(t, api, api)
			if diff := cmp.Diff(tc.want, got.Pods); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSelectorsOfBudgets(t *testing.T) {
	in := func(values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: values}}}
	}
	for _, tc := range []struct {
		reason   string
		selector *metav1.LabelSelector
		want     []string
	}{
		{"by expression", in("web", "db"), []string{"db-0", "web-0"}},
		{"everything in the namespace", &metav1.LabelSelector{}, []string{"api-0", "db-0", "web-0"}},
		{"by label and expression", &metav1.LabelSelector{
			MatchLabels: map[string]string{"app": "db"}, MatchExpressions: in("web", "db").MatchExpressions,
		}, []string{"db-0"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			api := newAPI(
				openshifttest.Budget("shop", "all", 3, 3, 3, openshifttest.BudgetSelector(tc.selector)), openshifttest.Pod("test", "web", 1, "worker-0"),
				openshifttest.Pod("shop", "web", 0, "worker-0"), openshifttest.Pod("shop", "db", 0, "worker-0"), openshifttest.Pod("shop", "api", 0, "worker-0"),
			)
			got := held(t, api, api)
			if diff := cmp.Diff(tc.want, got.Pods); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Run("one that cannot be parsed selects nothing", func(t *testing.T) {
		near := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}}
		api := newAPI(openshifttest.Budget("shop", "web", 3, 3, 3, openshifttest.BudgetSelector(near)))
		if got, err := openshift.NewCluster(api, api).Budgets(t.Context(), now, time.Minute); err != nil || len(got) != 0 {
			t.Errorf("got %d budgets, %v", len(got), err)
		}
	})
}

func TestBudgetsAreReadInPagesAndSorted(t *testing.T) {
	api := newAPI(
		openshifttest.Budget("shop", "web", 3, 3, 3), openshifttest.Budget("shop", "db", 2, 1, 3), openshifttest.Budget("shop", "api", 2, 3, 3),
		openshifttest.Budget("bank", "web", 3, 3, 3),
	)
	budgets, err := openshift.NewCluster(api, openshifttest.Paged(api, 1)).Budgets(t.Context(), now, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, b := range budgets {
		got = append(got, b.Namespace+"/"+b.Name)
	}
	if diff := cmp.Diff([]string{"bank/web", "shop/db", "shop/web"}, got); diff != "" {
		t.Errorf("those that allow no eviction (-want +got):\n%s", diff)
	}
}

// Jobs leave many finished pods behind: those that are held may come after them.
func TestHeldPodsAreLookedForInPages(t *testing.T) {
	budget := openshifttest.Budget("shop", "web", 3, 3, 3)
	pod := func(index int, node string, options ...func(*corev1.Pod)) client.Object {
		return openshifttest.Pod("shop", "web", index, node, options...)
	}
	finished := openshifttest.PodPhase(corev1.PodSucceeded)

	api := newAPI(budget, pod(0, "worker-2"), pod(1, "worker-1"), pod(2, "worker-1"), pod(3, "worker-0", finished), pod(4, "worker-0", finished))
	want := openshift.HeldPods{Pods: []string{"web-1", "web-2"}, Nodes: []string{"worker-1"}, More: true}
	if diff := cmp.Diff(want, held(t, openshifttest.Paged(api, 2), api)); diff != "" {
		t.Errorf("the first page with a pod that is held (-want +got):\n%s", diff)
	}

	want = openshift.HeldPods{Pods: []string{"web-0", "web-1", "web-2"}, Nodes: []string{"worker-1", "worker-2"}}
	if diff := cmp.Diff(want, held(t, openshifttest.Paged(api, 50), api)); diff != "" {
		t.Errorf("all in one page (-want +got):\n%s", diff)
	}

	api = newAPI(budget, pod(0, "worker-0", finished), pod(1, "worker-0", finished), pod(2, "worker-0", finished))
	if diff := cmp.Diff(openshift.HeldPods{}, held(t, openshifttest.Paged(api, 2), api)); diff != "" {
		t.Errorf("only finished pods (-want +got):\n%s", diff)
	}
}
