// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

func TestJudgeNode(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		options []func(*corev1.Node)
		want    openshift.NodeFacts
	}{
		{reason: "nothing is wrong"},
		{
			reason:  "not ready, in its own words",
			options: []func(*corev1.Node){openshifttest.NodeCondition(corev1.NodeReady, corev1.ConditionFalse, "KubeletNotReady", "container runtime is down")},
			want:    openshift.NodeFacts{NotReady: &openshift.NodeCondition{Type: "Ready", Reason: "KubeletNotReady", Message: "container runtime is down"}},
		},
		{
			reason:  "not heard of",
			options: []func(*corev1.Node){openshifttest.NodeCondition(corev1.NodeReady, corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status.")},
			want:    openshift.NodeFacts{NotReady: &openshift.NodeCondition{Type: "Ready", Reason: "NodeStatusUnknown", Message: "Kubelet stopped posting node status."}},
		},
		{
			reason:  "not heard of yet",
			options: []func(*corev1.Node){func(n *corev1.Node) { n.Status.Conditions = nil }},
			want:    openshift.NodeFacts{NotReady: &openshift.NodeCondition{Type: "Ready", Reason: "NotReported", Message: "the node has not reported yet"}},
		},
		{
			reason:  "cordoned by hand",
			options: []func(*corev1.Node){openshifttest.NodeCordoned()},
			want:    openshift.NodeFacts{CordonedByHand: true},
		},
		{
			reason:  "cordoned by the machine-config operator",
			options: []func(*corev1.Node){openshifttest.NodeCordoned(), openshifttest.NodeAnnotations(map[string]string{"desiredDrain": "drain-1"})},
		},
		{
			reason:  "cordoned, on a node that the machine-config operator does not manage",
			options: []func(*corev1.Node){openshifttest.NodeCordoned(), func(n *corev1.Node) { n.Annotations = nil }},
			want:    openshift.NodeFacts{CordonedByHand: true},
		},
		{
			reason:  "beside a single control plane node",
			options: []func(*corev1.Node){openshifttest.NodeAnnotations(map[string]string{"controlPlaneTopology": "SingleReplica"})},
			want:    openshift.NodeFacts{NotDrained: true},
		},
		{
			reason:  "in a cluster as they mostly are",
			options: []func(*corev1.Node){openshifttest.NodeAnnotations(map[string]string{"controlPlaneTopology": "HighlyAvailable"})},
		},
		{
			reason: "short of everything that the kubelet watches, and of nothing else",
			options: []func(*corev1.Node){
				openshifttest.NodeCondition(corev1.NodePIDPressure, corev1.ConditionTrue, "KubeletHasInsufficientPID", "p"),
				openshifttest.NodeCondition(corev1.NodeDiskPressure, corev1.ConditionTrue, "KubeletHasDiskPressure", "d"),
				openshifttest.NodeCondition(corev1.NodeMemoryPressure, corev1.ConditionTrue, "KubeletHasInsufficientMemory", "m"),
				openshifttest.NodeCondition("FrequentContainerdRestart", corev1.ConditionTrue, "Often", "of the node-problem-detector"),
			},
			want: openshift.NodeFacts{Pressures: []openshift.NodeCondition{
				{Type: "MemoryPressure", Reason: "KubeletHasInsufficientMemory", Message: "m"},
				{Type: "DiskPressure", Reason: "KubeletHasDiskPressure", Message: "d"},
				{Type: "PIDPressure", Reason: "KubeletHasInsufficientPID", Message: "p"},
			}},
		},
		{
			reason:  "what is not known is no pressure: such a node is not ready",
			options: []func(*corev1.Node){openshifttest.NodeCondition(corev1.NodeDiskPressure, corev1.ConditionUnknown, "NodeStatusUnknown", "")},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			tc.want.Name = "worker-0"
			if diff := cmp.Diff(tc.want, openshift.JudgeNode(openshifttest.Node("worker-0", "worker", tc.options...))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNodesAreReadInPagesAndSorted(t *testing.T) {
	api := newAPI(openshifttest.Node("c", "worker"), openshifttest.Node("a", "worker", openshifttest.NodeCordoned()), openshifttest.Node("b", "worker"))
	nodes, err := openshift.NewCluster(api, openshifttest.Paged(api, 2)).Nodes(t.Context(), now, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	want := []openshift.NodeFacts{{Name: "a", CordonedByHand: true}, {Name: "b"}, {Name: "c"}}
	if diff := cmp.Diff(want, nodes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What cannot be watched is asked for once in a while, whoever asks, and as often as they ask.
func TestAnswersAreShared(t *testing.T) {
	node := openshifttest.Node("worker-0", "worker")
	budget := openshifttest.Budget("shop", "web", 1, 1, 1)
	pod := openshifttest.Pod("shop", "web", 0, "worker-0")
	count := openshifttest.APIRequestCount("flowschemas.v1beta3.flowcontrol.apiserver.k8s.io", "1.32", openshifttest.RequestsAt(3, "master-0", "eve", "kubectl/v1.28.2", 1))
	api := newAPI(node, budget, pod, count)
	cluster := openshift.NewCluster(api, api)

	// seen counts what there is to see of each kind.
	seen := func(at time.Time) string {
		t.Helper()
		nodes, err1 := cluster.Nodes(t.Context(), at, time.Minute)
		apis, err2 := cluster.RemovedAPIs(t.Context(), at, time.Minute)
		budgets, err3 := cluster.Budgets(t.Context(), at, time.Minute)
		pods := 0
		for _, n := range budgets {
			held, err := cluster.HeldPods(t.Context(), n, at, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range held {
				pods += len(h.Pods)
			}
		}
		if err1 != nil || err2 != nil || err3 != nil {
			t.Fatal(err1, err2, err3)
		}
		return fmt.Sprintf("%d node, %d API, %d budget, %d pod", len(nodes), len(apis), len(budgets), pods)
	}
	const all = "1 node, 1 API, 1 budget, 1 pod"
	if got := seen(now); got != all {
		t.Fatalf("got %s, want %s", got, all)
	}
	if err := api.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if got := seen(now.Add(time.Minute - 1)); got != all {
		t.Errorf("within the time: got %s, want the earlier answer %s", got, all)
	}
	if got, want := seen(now.Add(time.Minute)), "1 node, 1 API, 1 budget, 0 pod"; got != want {
		t.Errorf("the pod is gone: got %s, want %s", got, want)
	}
	for _, o := range []client.Object{node, budget, count} {
		if err := api.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := seen(now.Add(2*time.Minute-1)), "1 node, 1 API, 1 budget, 0 pod"; got != want {
		t.Errorf("within the time: got %s, want the earlier answer %s", got, want)
	}
	if got, want := seen(now.Add(2*time.Minute)), "0 node, 0 API, 0 budget, 0 pod"; got != want {
		t.Errorf("everything is gone: got %s, want %s", got, want)
	}
}
