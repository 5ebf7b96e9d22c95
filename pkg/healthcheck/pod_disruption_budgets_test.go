// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package healthcheck_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/healthcheck"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

// pods returns pods of an app, one on each of so many nodes.
func pods(namespace, app string, count int, options ...func(*corev1.Pod)) []client.Object {
	var all []client.Object
	for i := range count {
		all = append(all, openshifttest.Pod(namespace, app, i, fmt.Sprintf("worker-%d", i), options...))
	}
	return all
}

func twoNodes() []client.Object {
	return []client.Object{openshifttest.Node("worker-0", "worker"), openshifttest.Node("worker-1", "worker")}
}

func neverAllowed(name, why string) healthcheck.Finding {
	return healthcheck.Finding{
		Check: "PodDisruptionBudgets", Object: "PodDisruptionBudget/" + name, Reason: "DisruptionNeverAllowed",
		Message:    "PodDisruptionBudget " + name + " can never allow a disruption: " + why,
		ClearsWhen: "PodDisruptionBudget " + name + " lets a pod be unavailable, by its spec or by more pods",
	}
}

func TestPodDisruptionBudgets(t *testing.T) {
	notAllowed := func(name, why, clears string) healthcheck.Finding {
		return healthcheck.Finding{
			Check: "PodDisruptionBudgets", Object: "PodDisruptionBudget/" + name, Reason: "DisruptionNotAllowed",
			Message: "PodDisruptionBudget " + name + " allows no disruption at present: " + why, ClearsWhen: clears,
		}
	}
	const webHolds = "pod web-0 on node worker-0 would hold up a drain"
	webNever := neverAllowed("shop/web", "1 of 1 pods have to be healthy; "+webHolds)
	web := func(options ...func(*policyv1.PodDisruptionBudget)) []client.Object {
		return append(pods("shop", "web", 1), openshifttest.Budget("shop", "web", 1, 1, 1, options...))
	}
	overlap := func(name, what string) healthcheck.Finding {
		return healthcheck.Finding{
			Check: "PodDisruptionBudgets", Object: "PodDisruptionBudget/shop/" + name, Reason: "DisruptionNeverAllowed",
			Message:    "PodDisruptionBudget shop/" + name + ": " + what + ", and so cannot be evicted",
			ClearsWhen: "no pod of PodDisruptionBudget shop/" + name + " is selected by another one",
		}
	}
	sick, bare := openshifttest.PodNotReady(), openshifttest.PodWithoutController()
	vm := openshifttest.BudgetOwner("kubevirt.io/v1", "VirtualMachineInstance", "web")
	found := func(findings ...healthcheck.Finding) healthcheck.Report {
		return healthcheck.Report{Findings: findings, Recheck: maxAge}
	}

	for _, tc := range []struct {
		reason  string
		config  v1beta1.HealthChecks
		objects []client.Object
		want    healthcheck.Report
	}{
		{reason: "no budgets", objects: pods("shop", "web", 3)},
		{reason: "one that lets a pod go", objects: append(pods("shop", "web", 3), openshifttest.Budget("shop", "web", 2, 3, 3))},
		{reason: "one that never does", objects: web(), want: found(webNever)},
		{
			reason: "by its spec, before the disruption controller has looked at it", objects: web(openshifttest.BudgetNotObserved(), openshifttest.MaxUnavailable("0%")),
			want: found(neverAllowed("shop/web", "maxUnavailable is 0%; "+webHolds)),
		},
		{
			reason: "three names, and how many more", objects: append(pods("shop", "web", 5), openshifttest.Budget("shop", "web", 5, 5, 5)),
			want: found(neverAllowed("shop/web",
				"5 of 5 pods have to be healthy; pods web-0, web-1, web-2 and 2 more on nodes worker-0, worker-1, worker-2 and 2 more would hold up a drain")),
		},
		{
			reason: "pods and nodes each in their order", objects: []client.Object{
				openshifttest.Budget("shop", "web", 2, 2, 2), openshifttest.Pod("shop", "web", 0, "worker-1"), openshifttest.Pod("shop", "web", 1, "worker-0"),
			},
			want: found(neverAllowed("shop/web", "2 of 2 pods have to be healthy; pods web-0, web-1 on nodes worker-0, worker-1 would hold up a drain")),
		},
		{
			reason: "more pods than a page has", objects: append(pods("shop", "web", 260), openshifttest.Budget("shop", "web", 260, 260, 260)),
			want: found(neverAllowed("shop/web",
				"260 of 260 pods have to be healthy; pods web-0, web-1, web-10 and 257 more on nodes worker-0, worker-1, worker-10 and 257 more would hold up a drain")),
		},
		{
			reason:  "one that cannot tell how many pods there should be, because nobody starts others",
			objects: append(pods("shop", "web", 1, bare), openshifttest.Budget("shop", "web", 0, 1, 0, openshifttest.MaxUnavailable("1"))),
			want: found(func() healthcheck.Finding {
				f := neverAllowed("shop/web", "pods without a controller count only if minAvailable is a number; "+webHolds)
				f.ClearsWhen = "PodDisruptionBudget shop/web has a number in minAvailable, or its pods have a controller"
				return f
			}()),
		},
		{
			reason:  "the same, and its spec forbids everything",
			objects: append(pods("shop", "web", 1, bare), openshifttest.Budget("shop", "web", 0, 1, 0, openshifttest.MaxUnavailable("0"))),
			want:    found(neverAllowed("shop/web", "maxUnavailable is 0; "+webHolds)),
		},
		{reason: "one without pods", objects: []client.Object{openshifttest.Budget("shop", "web", 0, 0, 0, openshifttest.MaxUnavailable("1"))}},
		{
			reason: "two over the same pods, either of which would let one go",
			objects: append(pods("shop", "web", 3), openshifttest.Budget("shop", "web", 1, 3, 3),
				openshifttest.Budget("shop", "all", 1, 3, 3, openshifttest.BudgetSelector(&metav1.LabelSelector{}))),
			want: found(overlap("all", "its pods web-0, web-1, web-2 on nodes worker-0, worker-1, worker-2 are selected by PodDisruptionBudget web too")),
		},
		{
			reason: "several over the same pod",
			objects: append(pods("shop", "web", 1), openshifttest.Budget("shop", "web", 0, 1, 1),
				openshifttest.Budget("shop", "all", 0, 1, 1, openshifttest.BudgetSelector(&metav1.LabelSelector{})),
				openshifttest.Budget("shop", "more", 0, 1, 1, openshifttest.BudgetSelector(&metav1.LabelSelector{}))),
			want: found(overlap("all", "its pod web-0 on node worker-0 is selected by PodDisruptionBudgets more, web too")),
		},
		{
			reason: "one of a virtual machine, which is migrated", objects: append(web(vm), openshifttest.Pod("shop", "db", 0, "worker-0")),
			want: healthcheck.Report{Notes: []string{"1 PodDisruptionBudget of virtual machines left out: they are migrated"}},
		},
		{
			reason: "of several virtual machines, beside others", objects: slices.Concat(web(), []client.Object{
				openshifttest.Budget("vms", "a", 1, 1, 1, vm), openshifttest.Budget("vms", "b", 1, 1, 1, vm),
			}),
			want: healthcheck.Report{
				Findings: []healthcheck.Finding{webNever}, Recheck: maxAge,
				Notes: []string{"2 PodDisruptionBudgets of virtual machines left out: they are migrated"},
			},
		},
		{
			reason: "one of a virtual machine in a namespace that is excluded", config: v1beta1.HealthChecks{ExcludeNamespaces: []string{"shop"}}, objects: web(vm),
		},
		{
			reason: "one that does not while pods are sick",
			objects: []client.Object{
				openshifttest.Budget("shop", "web", 2, 1, 3), openshifttest.Pod("shop", "web", 0, "worker-0", sick),
				openshifttest.Pod("shop", "web", 1, "worker-0", sick), openshifttest.Pod("shop", "web", 2, "worker-0"),
			},
			want: found(notAllowed("shop/web", "1 of 3 pods healthy, 2 required; pods web-0, web-1, web-2 on node worker-0 would hold up a drain",
				"more than 2 pods of PodDisruptionBudget shop/web are healthy")),
		},
		{
			reason: "the same, but sick pods may go: the others may not",
			objects: []client.Object{
				openshifttest.Budget("shop", "web", 2, 1, 3, openshifttest.AlwaysEvictUnhealthy()), openshifttest.Pod("shop", "web", 0, "worker-0", sick),
				openshifttest.Pod("shop", "web", 1, "worker-0", sick), openshifttest.Pod("shop", "web", 2, "worker-0"),
			},
			want: found(notAllowed("shop/web", "1 of 3 pods healthy, 2 required; pod web-2 on node worker-0 would hold up a drain",
				"more than 2 pods of PodDisruptionBudget shop/web are healthy")),
		},
		{
			reason:  "the same, and all are sick: nothing hangs",
			objects: append(pods("shop", "web", 3, sick), openshifttest.Budget("shop", "web", 2, 0, 3, openshifttest.AlwaysEvictUnhealthy())),
		},
		{
			reason: "one that the disruption controller cannot compute",
			objects: append(pods("shop", "web", 1), openshifttest.Budget("shop", "web", 1, 2, 2,
				openshifttest.BudgetNotObserved(), openshifttest.BudgetCondition(policyv1.SyncFailedReason))),
			want: found(notAllowed("shop/web", "the disruption controller cannot compute it; "+webHolds,
				"the disruption controller can compute PodDisruptionBudget shop/web")),
		},
		{
			reason:  "pods that a drain does not evict",
			objects: append(pods("shop", "web", 3, openshifttest.PodOwner("DaemonSet", "web")), openshifttest.Budget("shop", "web", 3, 3, 3)),
		},
		{
			reason:  "several, in order",
			objects: slices.Concat(web(), pods("bank", "db", 1), []client.Object{openshifttest.Budget("bank", "db", 1, 1, 1)}),
			want:    found(neverAllowed("bank/db", "1 of 1 pods have to be healthy; pod db-0 on node worker-0 would hold up a drain"), webNever),
		},
		{
			reason: "excluded", config: v1beta1.HealthChecks{ExcludeNamespaces: []string{"shop", "test"}}, objects: web(),
			want: healthcheck.Report{Notes: []string{"PodDisruptionBudgets that allow no disruption left out: 1 by excludeNamespaces"}},
		},
		{
			reason: "what is excluded and healthy is not worth a note", config: v1beta1.HealthChecks{ExcludeNamespaces: []string{"shop"}},
			objects: append(pods("shop", "web", 3), openshifttest.Budget("shop", "web", 2, 3, 3)),
		},
		{
			reason: "another one is excluded", config: v1beta1.HealthChecks{ExcludeNamespaces: []string{"bank"}},
			objects: slices.Concat(web(), []client.Object{openshifttest.Budget("bank", "db", 1, 1, 1)}),
			want: healthcheck.Report{
				Findings: []healthcheck.Finding{webNever}, Recheck: maxAge,
				Notes: []string{"PodDisruptionBudgets that allow no disruption left out: 1 by excludeNamespaces"},
			},
		},
		{reason: "names are not patterns", config: v1beta1.HealthChecks{ExcludeNamespaces: []string{"sho", "sh*"}}, objects: web(), want: found(webNever)},
		{reason: "turned on explicitly", config: v1beta1.HealthChecks{CheckPodDisruptionBudgets: new(true)}, objects: web(), want: found(webNever)},
		{reason: "turned off", config: v1beta1.HealthChecks{CheckPodDisruptionBudgets: new(false)}, objects: web()},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			api := openshifttest.NewClientBuilder(openshift.NodeField, noIndex).WithObjects(slices.Concat(twoNodes(), tc.objects)...).Build()
			live := openshift.NewCluster(api, openshifttest.Paged(api, 1000))
			expectReport(t, tc.want, examine(t, healthcheck.PodDisruptionBudgets(), healthcheck.Request{Config: tc.config, Cluster: live}))
		})
	}
}

func TestPodDisruptionBudgetsOfNodesThatAreNotDrained(t *testing.T) {
	single := openshifttest.NodeAnnotations(map[string]string{"controlPlaneTopology": "SingleReplica"})
	several := openshifttest.NodeAnnotations(map[string]string{"controlPlaneTopology": "HighlyAvailable"})
	notDrained := healthcheck.Report{Notes: []string{"PodDisruptionBudgets do not matter: with a single control plane node no node is drained"}}
	found := func(where string) healthcheck.Report {
		return healthcheck.Report{Findings: []healthcheck.Finding{neverAllowed("shop/web", "2 of 2 pods have to be healthy; "+where+" would hold up a drain")}, Recheck: maxAge}
	}
	for _, tc := range []struct {
		reason string
		nodes  []client.Object
		want   healthcheck.Report
	}{
		{"a single node", []client.Object{openshifttest.Node("worker-0", "master")}, notDrained},
		{"a single control plane node, and a worker", []client.Object{openshifttest.Node("worker-0", "master", single), openshifttest.Node("worker-1", "worker", single)}, notDrained},
		{"several control plane nodes", []client.Object{openshifttest.Node("worker-0", "master", several), openshifttest.Node("worker-1", "worker", several)}, found("pods web-0, web-1 on nodes worker-0, worker-1")},
		{"the machine-config operator has not said it of all nodes", []client.Object{openshifttest.Node("worker-0", "master", single), openshifttest.Node("worker-1", "worker")}, found("pod web-1 on node worker-1")},
		{"no nodes are known", nil, found("pods web-0, web-1 on nodes worker-0, worker-1")},
		{"the pods' nodes are not known", []client.Object{openshifttest.Node("a", "master", single), openshifttest.Node("b", "worker")}, found("pods web-0, web-1 on nodes worker-0, worker-1")},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			objects := slices.Concat(tc.nodes, pods("shop", "web", 2), []client.Object{openshifttest.Budget("shop", "web", 2, 2, 2)})
			expectReport(t, tc.want, examine(t, healthcheck.PodDisruptionBudgets(), healthcheck.Request{Cluster: cluster(objects...)}))
		})
	}
}

// All of them are looked into: those that come first may protect nothing.
func TestManyPodDisruptionBudgets(t *testing.T) {
	objects := twoNodes()
	var want []healthcheck.Finding
	for i := range 40 {
		namespace := fmt.Sprintf("shop%02d", i)
		pod := openshifttest.Pod(namespace, "web", 0, "worker-0")
		if i < 20 {
			openshifttest.PodPhase(corev1.PodSucceeded)(pod)
		} else {
			want = append(want, neverAllowed(namespace+"/web", "1 of 1 pods have to be healthy; pod web-0 on node worker-0 would hold up a drain"))
		}
		objects = append(objects, pod, openshifttest.Budget(namespace, "web", 1, 1, 1))
	}
	expectReport(t, healthcheck.Report{Findings: want, Recheck: maxAge}, examine(t, healthcheck.PodDisruptionBudgets(), healthcheck.Request{Cluster: cluster(objects...)}))
}

func TestPodDisruptionBudgetsThatCannotBeLookedInto(t *testing.T) {
	objects := slices.Concat(twoNodes(), pods("shop", "web", 1), []client.Object{openshifttest.Budget("shop", "web", 1, 1, 1)})
	for kind, want := range map[string]string{
		"Pod":  "list Pods of namespace shop: the API server is away",
		"Node": "list Nodes: the API server is away",
	} {
		t.Run(kind, func(t *testing.T) {
			got := examine(t, healthcheck.PodDisruptionBudgets(), healthcheck.Request{Cluster: clusterWithout(kind, objects...)})
			expectReport(t, healthcheck.Report{Findings: []healthcheck.Finding{{
				Check: "PodDisruptionBudgets", Reason: healthcheck.CodeUnanswered, ClearsWhen: "the check gets an answer",
				Message: "PodDisruptionBudgets cannot be answered: " + want,
			}}, Recheck: maxAge}, got)
		})
	}
}
