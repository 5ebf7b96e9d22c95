// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package healthcheck_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/healthcheck"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

func TestNodes(t *testing.T) {
	finding := func(name, reason, message, clears string) healthcheck.Finding {
		return healthcheck.Finding{
			Check: "Nodes", Object: "Node/" + name, Reason: reason, Message: "Node " + name + " " + message, ClearsWhen: "Node " + name + " " + clears,
		}
	}
	cordoned := func(name string) healthcheck.Finding {
		return finding(name, "NodeCordoned", "is cordoned, and not by the machine-config operator", "is uncordoned")
	}
	worker := func(name string, options ...func(*corev1.Node)) client.Object {
		return openshifttest.Node(name, "worker", options...)
	}
	silent := openshifttest.NodeCondition(corev1.NodeReady, corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status.")

	for _, tc := range []struct {
		reason string
		config v1beta1.HealthChecks
		nodes  []client.Object
		want   []healthcheck.Finding
	}{
		{reason: "all are well", nodes: []client.Object{openshifttest.Node("master-0", "master"), worker("worker-0")}},
		{
			reason: "not ready", nodes: []client.Object{worker("worker-0", silent)},
			want: []healthcheck.Finding{finding("worker-0", "NodeNotReady", "is not ready (NodeStatusUnknown): Kubelet stopped posting node status.", "reports Ready=True")},
		},
		{
			reason: "every one that is cordoned, in order", nodes: []client.Object{
				worker("worker-2", openshifttest.NodeCordoned()), worker("worker-1"), worker("worker-0", openshifttest.NodeCordoned()),
			},
			want: []healthcheck.Finding{cordoned("worker-0"), cordoned("worker-2")},
		},
		{
			reason: "cordoned by the machine-config operator: that is for the check of its pool",
			nodes:  []client.Object{worker("worker-0", openshifttest.NodeCordoned(), openshifttest.NodeAnnotations(map[string]string{"state": "Working"}))},
		},
		{
			reason: "short of everything", nodes: []client.Object{worker("worker-0",
				openshifttest.NodeCondition(corev1.NodeMemoryPressure, corev1.ConditionTrue, "KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
				openshifttest.NodeCondition(corev1.NodeDiskPressure, corev1.ConditionTrue, "KubeletHasDiskPressure", "kubelet has disk pressure"),
				openshifttest.NodeCondition(corev1.NodePIDPressure, corev1.ConditionTrue, "KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
			)},
			want: []healthcheck.Finding{
				finding("worker-0", "NodeDiskPressure", "is short of disk (KubeletHasDiskPressure): kubelet has disk pressure", "reports DiskPressure=False"),
				finding("worker-0", "NodeMemoryPressure", "is short of memory (KubeletHasInsufficientMemory): kubelet has insufficient memory available", "reports MemoryPressure=False"),
				finding("worker-0", "NodePIDPressure", "is short of process ids (KubeletHasInsufficientPID): kubelet has insufficient PID available", "reports PIDPressure=False"),
			},
		},
		{
			reason: "turned on explicitly", config: v1beta1.HealthChecks{CheckNodes: new(true)}, nodes: []client.Object{worker("worker-0", openshifttest.NodeCordoned())},
			want: []healthcheck.Finding{cordoned("worker-0")},
		},
		{reason: "turned off", config: v1beta1.HealthChecks{CheckNodes: new(false)}, nodes: []client.Object{worker("worker-0", silent)}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			want := healthcheck.Report{Findings: tc.want}
			if len(tc.want) > 0 {
				want.Recheck = maxAge
			}
			expectReport(t, want, examine(t, healthcheck.Nodes(), healthcheck.Request{Config: tc.config, Cluster: cluster(tc.nodes...)}))
		})
	}
}
