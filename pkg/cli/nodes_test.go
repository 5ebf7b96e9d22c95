// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	o "github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

// kubelet sets the version of the kubelet of a node.
func kubelet(version string) func(*corev1.Node) {
	return func(node *corev1.Node) { node.Status.NodeInfo.KubeletVersion = version }
}

// hostsInEachState is a cluster with a node in each state.
func hostsInEachState() []client.Object {
	old, towards := kubelet("v1.31.5"), o.NodeTowards("worker", "4.18.2")
	apiServer := o.ClusterOperator("kube-apiserver", o.OperatorAt("4.18.2"), func(co *configv1.ClusterOperator) {
		co.Status.Versions = append(co.Status.Versions, configv1.OperandVersion{Name: "kube-apiserver", Version: "1.31.6"})
	})
	return append([]client.Object{
		upgraded(), apiServer, o.Pool("master", o.PoolAt("4.18.2")), o.Pool("worker", o.PoolTowards("4.18.2", 1)),
		o.Pool("night", o.PoolTowards("4.18.2", 0), o.PoolPausedBy("upgrades/weekly-1795554000-abc1234")), o.Pool("late"),
		o.MachineConfig("night", "4.18.1"), o.MachineConfig("night", "4.18.2"), o.MachineConfig("late", "4.18.1"),
		upgradeJob(started(time.Minute, allSteps[:6]...), workerInWork),
		o.Node("done", "master", atVersion("master", "4.18.2"), o.NodeRole("control-plane")),
		o.Node("pending", "worker", old),
		o.Node("worker-0", "worker", towards, o.NodeDraining("4.18.2"), old), o.Pod("shop", "cart", 0, "worker-0"), o.Budget("shop", "cart", 1, 1, 1),
		o.Node("draining", "worker", towards, o.NodeDraining("4.18.2"), old),
		o.Node("updating", "worker", towards, o.NodeDrained("4.18.2"), old),
		o.Node("rebooting", "worker", towards, o.NodeRebooting("4.18.2"), old, o.NodeCondition(corev1.NodeReady, corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status.")),
		o.Node("uncordoning", "worker", atVersion("worker", "4.18.2"), o.NodeAnnotations(map[string]string{"desiredDrain": "uncordon-1"}), o.NodeCordoned()),
		o.Node("degraded", "worker", towards, old, o.NodeAnnotations(map[string]string{"state": "Degraded", "reason": "unexpected on-disk state of /etc/crio.conf"})),
		o.Node("lost", "worker", old, o.NodeCondition(corev1.NodeReady, corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status.")),
		o.Node("cordoned", "worker", old, o.NodeCordoned()),
		o.Node("paused", "night", old),
		o.Node("not-rendered", "late", old),
		o.Node("strange", "windows", old),
	}, configs("4.18.1", "4.18.2")...)
}

func TestNodes(t *testing.T) {
	c := world(hostsInEachState()...).Build()
	for _, line := range []string{"nodes", "nodes -o wide", "nodes -o json", "nodes --pool night"} {
		out, errOut, status := runTool(t, c, window.Add(2*time.Hour), strings.Fields(line)...)
		if status != ExitOK || errOut != "" {
			t.Errorf("%s: exit status %d, %s", line, status, errOut)
		}
		golden(t, "look/nodes/"+strings.NewReplacer(" ", ".", "-", "").Replace(line)+".txt", out)
	}
	_, errOut, status := runTool(t, c, window, "nodes", "--pool", "nigth")
	if want := "error: there is no MachineConfigPool \"nigth\": there are late, master, night, worker\n"; status != ExitFailed || errOut != want {
		t.Errorf("exit status %d, %q, want %q", status, errOut, want)
	}
}

// Whoever may not see the pools is not told that the cluster has none.
func TestNodesOfAPoolThatIsNotSeen(t *testing.T) {
	c := interceptor.NewClient(world(hostsInEachState()...).Build(), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, ok := list.(*mcfgv1.MachineConfigPoolList); ok {
				return denied("list", "machineconfigpools")
			}
			return c.List(ctx, list, options...)
		},
	})
	_, errOut, status := runTool(t, c, window, "nodes", "--pool", "worker")
	if status != ExitFailed || !strings.Contains(errOut, "list MachineConfigPools: you may not") {
		t.Errorf("exit status %d, %q", status, errOut)
	}
}

func TestKnownNamesAreCounted(t *testing.T) {
	for n, want := range map[int]string{0: "", 1: "pool-00", 2: "pool-00, pool-01", 12: "pool-00, pool-01, pool-02, pool-03, pool-04, pool-05, pool-06, pool-07, pool-08, pool-09, and 2 more"} {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprintf("pool-%02d", i))
		}
		if got := listKnown(names); got != want {
			t.Errorf("%d names are %q, want %q", n, got, want)
		}
	}
}

func TestManyNodesAreReadInPages(t *testing.T) {
	objects := []client.Object{o.ClusterVersion(), o.Pool("worker"), o.MachineConfig("worker", "4.18.1")}
	const many = 600
	for i := range many {
		objects = append(objects, o.Node(fmt.Sprintf("worker-%03d", i), "worker"))
	}
	all := world(objects...).Build()
	paged := o.Paged(all, 250)
	c := interceptor.NewClient(all, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		if _, nodes := list.(*corev1.NodeList); nodes {
			return paged.List(ctx, list, options...)
		}
		return c.List(ctx, list, options...)
	}})
	out, errOut, status := runTool(t, c, window, "nodes")
	if got := strings.Count(out, " done "); status != ExitOK || got != many {
		t.Errorf("exit status %d, %s; %d nodes are done, want %d", status, errOut, got, many)
	}
}

// TestOfManyNodesInWorkTheFirstAreLookedInto has the drains of 20 workers and of 3 nodes of another pool, whose names come last, wait for pods.
func TestOfManyNodesInWorkTheFirstAreLookedInto(t *testing.T) {
	objects := []client.Object{o.ClusterVersion(), o.Budget("shop", "cart", 23, 23, 23), o.Pool("worker"), o.Pool("zone"), upgradeJob(started(0))}
	for i := range 23 {
		pool := "worker"
		if i >= 20 {
			pool = "zone"
		}
		name := fmt.Sprintf("%s-%02d", pool, i)
		objects = append(objects, o.Node(name, pool, o.NodeTowards(pool, "4.18.2"), o.NodeDraining("4.18.2")), o.Pod("shop", "cart", i, name))
	}
	c := world(objects...).Build()
	for _, tc := range []struct {
		line, blocked, unread string
		want                  int
	}{
		{"nodes", "drain-blocked ", "what holds the drains of 15 more nodes", maxNodesLookedInto},
		{"nodes --pool worker", "drain-blocked ", "what holds the drains of 12 more nodes", maxNodesLookedInto},
		{"nodes --pool zone", "drain-blocked ", "", 3},
		{"status -o wide", "The drain waits for pod ", "what holds the drains of 15 more nodes", maxNodesLookedInto},
	} {
		t.Run(tc.line, func(t *testing.T) {
			out, errOut, status := runTool(t, c, window, strings.Fields(tc.line)...)
			if status != ExitOK {
				t.Fatalf("exit status %d, %s", status, errOut)
			}
			if got := len(linesWith(out, tc.blocked)); got != tc.want {
				t.Errorf("%d nodes are looked into, want %d:\n%s", got, tc.want, out)
			}
			if said := strings.Contains(out, "what holds the drains of"); said != (tc.unread != "") || !strings.Contains(out, tc.unread) {
				t.Errorf("want it to say %q:\n%s", tc.unread, out)
			}
		})
	}
}
