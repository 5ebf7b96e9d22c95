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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

// held tells in a line for each budget, in order, which pods it holds, on which nodes, and with which other budgets.
func held(t *testing.T, live client.Reader) []string {
	t.Helper()
	cluster := openshift.NewCluster(newAPI(), live)
	namespaces, err := cluster.Budgets(t.Context(), now, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, n := range namespaces {
		all, err := cluster.HeldPods(t.Context(), n, now, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		for _, held := range all {
			line := held.Budget.Namespace + "/" + held.Budget.Name
			if len(held.With) > 0 {
				line += " with " + strings.Join(held.With, ", ")
			}
			line += ":"
			for _, pod := range held.Pods {
				line += fmt.Sprintf(" %s@%s", pod.Name, pod.Node)
			}
			lines = append(lines, line)
		}
	}
	return lines
}

func expectHeld(t *testing.T, want []string, live client.Reader) {
	t.Helper()
	if diff := cmp.Diff(want, held(t, live)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func web(index int, options ...func(*corev1.Pod)) client.Object {
	return openshifttest.Pod("shop", "web", index, "worker-0", options...)
}

func TestHeldPods(t *testing.T) {
	budget := func(required, healthy, pods int32, options ...func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
		return openshifttest.Budget("shop", "web", required, healthy, pods, options...)
	}
	syncFailed, sparing := openshifttest.BudgetCondition(policyv1.SyncFailedReason), openshifttest.AlwaysEvictUnhealthy()
	bare, sick := openshifttest.PodWithoutController(), openshifttest.PodNotReady()
	starts, ends := openshifttest.PodPhase(corev1.PodPending), openshifttest.PodTerminating()
	one, none := openshifttest.MaxUnavailable("1"), openshifttest.MaxUnavailable("0")

	for _, tc := range []struct {
		reason string
		budget *policyv1.PodDisruptionBudget
		pods   []client.Object
		want   string
	}{
		{"a pod may go", budget(2, 3, 3), []client.Object{web(0), web(1), web(2)}, ""},
		{"none may, ever", budget(3, 3, 3), []client.Object{web(1), web(0)}, "web-0 web-1"},
		{"but there are no pods", budget(3, 3, 3), nil, ""},
		{"but they are pods of another app, and of another namespace", budget(3, 3, 3), []client.Object{
			openshifttest.Pod("shop", "db", 0, "worker-0"), openshifttest.Pod("test", "web", 0, "worker-0"),
		}, ""},
		{"but a drain does not evict them", budget(3, 3, 3), []client.Object{
			web(0, func(p *corev1.Pod) { p.Spec.NodeName = "" }), web(1, openshifttest.PodPhase(corev1.PodSucceeded)), web(2, openshifttest.PodPhase(corev1.PodFailed)),
			web(3, openshifttest.PodStatic()), web(4, openshifttest.PodOwner("DaemonSet", "web")),
		}, ""},
		{"what is sick, starts or ends will be there, healthy", budget(3, 3, 3), []client.Object{web(0, sick), web(1, starts), web(2, ends)}, "web-0 web-1 web-2"},
		{"the same if sick pods are always evicted", budget(3, 3, 3, sparing), []client.Object{web(0, sick)}, "web-0"},

		{"too few are healthy: sick ones are held too", budget(3, 2, 4), []client.Object{web(0), web(1, sick)}, "web-0 web-1"},
		{"but not if they are always evicted", budget(3, 2, 4, sparing), []client.Object{web(0), web(1, sick)}, "web-0"},
		{"all are sick, and always evicted", budget(3, 0, 4, sparing), []client.Object{web(0, sick)}, ""},
		{"what starts or ends is evicted whatever the budget says", budget(3, 2, 4), []client.Object{web(0, starts), web(1, ends)}, ""},
		{"as many are healthy as are required: sick ones may go", budget(2, 2, 3), []client.Object{web(0), web(1, sick)}, "web-0"},

		{"nobody knows how many have to be healthy", budget(2, 1, 2, syncFailed), []client.Object{web(0), web(1, sick)}, "web-0 web-1"},
		{"but sick ones are always evicted", budget(2, 1, 2, syncFailed, sparing), []client.Object{web(0), web(1, sick)}, "web-0"},
		{"it was known when there were no pods yet", budget(0, 0, 0, one, syncFailed), []client.Object{web(0)}, "web-0"},
		{"enough were healthy when it was known last: sick ones may go", budget(2, 2, 2, syncFailed), []client.Object{web(0), web(1, sick)}, "web-0"},
		{"nobody has looked yet", budget(2, 3, 3, openshifttest.BudgetNotObserved()), []client.Object{web(0), web(1, starts)}, "web-0"},

		{"without a controller they do not count", budget(0, 2, 0, one), []client.Object{web(0, bare), web(1, bare)}, "web-0 web-1"},
		{"the same of a percentage", budget(0, 2, 0, openshifttest.MinAvailable("50%")), []client.Object{web(0, bare)}, "web-0"},
		{"not even if they are sick", budget(0, 0, 0, one), []client.Object{web(0, bare, sick)}, "web-0"},
		{"but then they may always be evicted", budget(0, 0, 0, one, sparing), []client.Object{web(0, bare, sick)}, ""},
		{"what has no controller and starts or ends is evicted", budget(0, 0, 0, one), []client.Object{web(0, bare, starts), web(1, bare, ends)}, ""},
		{"the same if the spec forbids everything: there will be no others", budget(0, 0, 0, none), []client.Object{web(0, ends)}, ""},
		{"the spec forbids everything", budget(0, 2, 0, none), []client.Object{web(0, bare)}, "web-0"},
		{"the spec forbids everything, and nobody has looked yet", budget(0, 0, 0, openshifttest.BudgetNotObserved(), none), []client.Object{web(0, starts)}, "web-0"},
		{"a number counts them", budget(1, 2, 2), []client.Object{web(0, bare), web(1, bare)}, ""},
		{"a number that is too high", budget(2, 2, 2), []client.Object{web(0, bare), web(1, bare)}, "web-0 web-1"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			var want []string
			if tc.want != "" {
				want = []string{"shop/web: " + strings.ReplaceAll(tc.want, " ", "@worker-0 ") + "@worker-0"}
			}
			expectHeld(t, want, newAPI(append(tc.pods, tc.budget)...))
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
		{"by expression", in("web", "db"), []string{"shop/all: db-0@worker-0 web-0@worker-0"}},
		{"everything in the namespace", &metav1.LabelSelector{}, []string{"shop/all: api-0@worker-0 db-0@worker-0 web-0@worker-0"}},
		{"by label and expression", &metav1.LabelSelector{
			MatchLabels: map[string]string{"app": "db"}, MatchExpressions: in("web", "db").MatchExpressions,
		}, []string{"shop/all: db-0@worker-0"}},
		{"none selects nothing", nil, nil},
		{"one that cannot be parsed selects nothing", &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}},
		}, nil},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			expectHeld(t, tc.want, newAPI(
				openshifttest.Budget("shop", "all", 3, 3, 3, openshifttest.BudgetSelector(tc.selector)), openshifttest.Pod("test", "web", 1, "worker-0"),
				web(0), openshifttest.Pod("shop", "db", 0, "worker-0"), openshifttest.Pod("shop", "api", 0, "worker-0"),
			))
		})
	}
}

// The API server evicts no pod that has several budgets.
func TestBudgetsThatOverlap(t *testing.T) {
	selecting := func(labels ...string) *metav1.LabelSelector {
		selector := &metav1.LabelSelector{MatchLabels: map[string]string{}}
		for _, label := range labels {
			key, value, _ := strings.Cut(label, "=")
			selector.MatchLabels[key] = value
		}
		return selector
	}
	// allowing is a budget that lets pods go.
	allowing := func(name string, labels ...string) *policyv1.PodDisruptionBudget {
		return openshifttest.Budget("shop", name, 1, 3, 3, openshifttest.BudgetSelector(selecting(labels...)))
	}
	front := openshifttest.PodLabel("tier", "front")
	vm := openshifttest.BudgetOwner("kubevirt.io/v1", "VirtualMachineInstance", "vm")
	for _, tc := range []struct {
		reason  string
		objects []client.Object
		want    []string
	}{
		{"each has its own pods", []client.Object{allowing("a", "app=web"), allowing("b", "app=db"), web(0)}, nil},
		{"the same pods", []client.Object{allowing("b", "app=web"), allowing("a", "app=web"), web(1), web(0)}, []string{"shop/a with b: web-0@worker-0 web-1@worker-0"}},
		{"some of the pods", []client.Object{allowing("a", "app=web"), allowing("b", "tier=front"), web(0), web(1, front)}, []string{"shop/a with b: web-1@worker-0"}},
		{"everything", []client.Object{allowing("a", "app=web"), allowing("b"), web(0), openshifttest.Pod("shop", "db", 0, "worker-0")}, []string{"shop/a with b: web-0@worker-0"}},
		{
			"three of them: each pod is named once", []client.Object{allowing("a", "app=web"), allowing("b", "tier=front"), allowing("c"), web(0), web(1, front)},
			[]string{"shop/a with b, c: web-0@worker-0 web-1@worker-0"},
		},
		{"no pods", []client.Object{allowing("a", "app=web"), allowing("b", "app=web")}, nil},
		{"no pod that both select", []client.Object{allowing("a", "app=web"), allowing("b", "tier=front"), web(0), openshifttest.Pod("shop", "db", 0, "worker-0", front)}, nil},
		{"nor one that a drain evicts", []client.Object{allowing("a", "app=web"), allowing("b"), web(0, openshifttest.PodOwner("DaemonSet", "web"))}, nil},
		{"sick ones will be healthy", []client.Object{allowing("a", "app=web"), allowing("b"), web(0, openshifttest.PodNotReady()), web(1, openshifttest.PodPhase(corev1.PodPending))}, []string{"shop/a with b: web-0@worker-0 web-1@worker-0"}},
		{
			"one of them never allows anything: both are said", []client.Object{openshifttest.Budget("shop", "web", 1, 1, 1), allowing("a"), web(0)},
			[]string{"shop/a with web: web-0@worker-0", "shop/web: web-0@worker-0"},
		},
		{
			"the same in the other order", []client.Object{openshifttest.Budget("shop", "web", 1, 1, 1), allowing("x"), web(0)},
			[]string{"shop/web: web-0@worker-0", "shop/web with x: web-0@worker-0"},
		},
		{"in several namespaces", []client.Object{allowing("a", "app=web"), openshifttest.Budget("test", "web", 1, 3, 3), web(0), openshifttest.Pod("test", "web", 0, "worker-0")}, nil},
		{"one selects nothing", []client.Object{allowing("a", "app=web"), openshifttest.Budget("shop", "b", 1, 3, 3, openshifttest.BudgetSelector(nil)), web(0)}, nil},
		{
			"of a virtual machine: its pod is migrated all the same",
			[]client.Object{allowing("a", "app=web"), openshifttest.Budget("shop", "web", 1, 1, 1, vm), web(0)}, nil,
		},
	} {
		t.Run(tc.reason, func(t *testing.T) { expectHeld(t, tc.want, newAPI(tc.objects...)) })
	}
}

// Only the pods of namespaces are listed where they can make a difference.
func TestNamespacesWhoseBudgetsMatter(t *testing.T) {
	of := func(namespace, name string, labels map[string]string) client.Object {
		return openshifttest.Budget(namespace, name, 1, 3, 3, openshifttest.BudgetSelector(&metav1.LabelSelector{MatchLabels: labels}))
	}
	in := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"web", "db"}}}}
	vm := openshifttest.BudgetOwner("kubevirt.io/v1", "VirtualMachineInstance", "vm")
	for _, tc := range []struct {
		reason  string
		budgets []client.Object
		want    string // refusing budgets, those of virtual machines
	}{
		{"one that lets pods go", []client.Object{openshifttest.Budget("shop", "web", 2, 3, 3)}, ""},
		{"one over everything", []client.Object{of("shop", "all", nil)}, ""},
		{"one over nothing", []client.Object{openshifttest.Budget("shop", "a", 1, 3, 3, openshifttest.BudgetSelector(nil)), of("shop", "all", nil)}, ""},
		{"those that do not, in order", []client.Object{
			openshifttest.Budget("shop", "web", 3, 3, 3), openshifttest.Budget("shop", "db", 2, 1, 3), openshifttest.Budget("shop", "api", 2, 3, 3), openshifttest.Budget("bank", "web", 3, 3, 3),
		}, "bank [web] 0, shop [db web] 0"},
		{"a label tells them apart, whatever else they require", []client.Object{
			of("shop", "a", map[string]string{"app": "web", "team": "x"}), of("shop", "b", map[string]string{"app": "db", "team": "x"}), of("shop", "c", map[string]string{"app": "api"}),
		}, ""},
		{"two of them share its value", []client.Object{
			of("shop", "a", map[string]string{"app": "web"}), of("shop", "b", map[string]string{"app": "db"}), of("shop", "c", map[string]string{"app": "web"}),
		}, "shop [] 0"},
		{"one of them does not require it", []client.Object{of("shop", "a", map[string]string{"app": "web"}), of("shop", "b", map[string]string{"tier": "db"})}, "shop [] 0"},
		{"one of them requires any of several values", []client.Object{
			of("shop", "a", map[string]string{"app": "api"}), openshifttest.Budget("shop", "b", 1, 3, 3, openshifttest.BudgetSelector(in)),
		}, "shop [] 0"},
		{"of virtual machines", []client.Object{openshifttest.Budget("vms", "a", 1, 1, 1, vm), openshifttest.Budget("vms", "b", 2, 1, 2, vm), openshifttest.Budget("vms", "c", 1, 2, 2, vm)}, "vms [] 2"},
		{"of something else of KubeVirt's", []client.Object{openshifttest.Budget("vms", "a", 1, 1, 1, openshifttest.BudgetOwner("kubevirt.io/v1", "VirtualMachinePool", "vm"))}, "vms [a] 0"},
		{"of virtual machines of somebody else", []client.Object{openshifttest.Budget("vms", "a", 1, 1, 1, openshifttest.BudgetOwner("example.com/v1", "VirtualMachineInstance", "vm"))}, "vms [a] 0"},
		{"owned by a virtual machine, but not kept by it", []client.Object{openshifttest.Budget("vms", "a", 1, 1, 1, vm, func(b *policyv1.PodDisruptionBudget) {
			b.OwnerReferences[0].Controller = nil
		})}, "vms [a] 0"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			api := newAPI(tc.budgets...)
			namespaces, err := openshift.NewCluster(api, openshifttest.Paged(api, 1)).Budgets(t.Context(), now, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, n := range namespaces {
				var names []string
				for _, b := range n.Refusing {
					names = append(names, b.Name)
				}
				got = append(got, fmt.Sprintf("%s %s %d", n.Namespace, names, n.OfVirtualMachines))
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Jobs leave many finished pods behind: those that are held may come after them.
func TestHeldPodsAreLookedForInPages(t *testing.T) {
	finished := openshifttest.PodPhase(corev1.PodSucceeded)
	api := newAPI(openshifttest.Budget("shop", "web", 3, 3, 3), web(0), web(1), web(2), web(3, finished), web(4, finished))
	expectHeld(t, []string{"shop/web: web-0@worker-0 web-1@worker-0 web-2@worker-0"}, openshifttest.Paged(api, 2))
}
