// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package healthcheck_test

import (
	"testing"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/healthcheck"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

func TestMachineConfigPools(t *testing.T) {
	updating := func(name string) healthcheck.Finding {
		return healthcheck.Finding{
			Check: "MachineConfigPools", Object: "MachineConfigPool/" + name, Reason: "MachineConfigPoolUpdating",
			Message:    "MachineConfigPool " + name + " is updating: 2 of 3 machines updated, 1 unavailable",
			ClearsWhen: "every machine of MachineConfigPool " + name + " runs its configuration",
		}
	}
	degraded := func(why string) healthcheck.Finding {
		return healthcheck.Finding{
			Check: "MachineConfigPools", Object: "MachineConfigPool/worker", Reason: "MachineConfigPoolDegraded",
			Message: "MachineConfigPool worker is degraded: " + why, ClearsWhen: "MachineConfigPool worker is not degraded any more",
		}
	}
	rolling := openshifttest.PoolTowards("4.18.2", 2)
	nodeDegraded := openshifttest.PoolCondition(mcfgv1.MachineConfigPoolNodeDegraded, "Node worker-0 is reporting: disk full")

	for _, tc := range []struct {
		reason string
		config v1beta1.HealthChecks
		pools  []client.Object
		want   healthcheck.Report
	}{
		{reason: "no pools"},
		{reason: "all have nothing to do", pools: []client.Object{openshifttest.Pool("master"), openshifttest.Pool("worker")}},
		{
			reason: "each one that is updating, in order", pools: []client.Object{openshifttest.Pool("worker", rolling), openshifttest.Pool("infra"), openshifttest.Pool("gpu", rolling)},
			want: healthcheck.Report{Findings: []healthcheck.Finding{updating("gpu"), updating("worker")}},
		},
		{
			reason: "a node is degraded", pools: []client.Object{openshifttest.Pool("worker", rolling, nodeDegraded)},
			want: healthcheck.Report{Findings: []healthcheck.Finding{degraded("2 of 3 machines updated, NodeDegraded: Node worker-0 is reporting: disk full")}},
		},
		{
			reason: "a configuration cannot be rendered",
			pools:  []client.Object{openshifttest.Pool("worker", openshifttest.PoolCondition(mcfgv1.MachineConfigPoolRenderDegraded, "no such kernel type"))},
			want:   healthcheck.Report{Findings: []healthcheck.Finding{degraded("3 of 3 machines updated, RenderDegraded: no such kernel type")}},
		},
		{
			reason: "a paused pool is let alone, and it is said that it is behind",
			pools:  []client.Object{openshifttest.Pool("worker", rolling, openshifttest.PoolPaused()), openshifttest.Pool("infra", openshifttest.PoolPaused())},
			want:   healthcheck.Report{Notes: []string{"MachineConfigPool worker is paused: 2 of 3 machines updated"}},
		},
		{
			reason: "unless it is degraded", pools: []client.Object{openshifttest.Pool("worker", openshifttest.PoolPaused(), nodeDegraded)},
			want: healthcheck.Report{Findings: []healthcheck.Finding{degraded("3 of 3 machines updated, NodeDegraded: Node worker-0 is reporting: disk full")}},
		},
		{
			reason: "turned on explicitly", config: v1beta1.HealthChecks{CheckMachineConfigPools: new(true)}, pools: []client.Object{openshifttest.Pool("worker", rolling)},
			want: healthcheck.Report{Findings: []healthcheck.Finding{updating("worker")}},
		},
		{reason: "turned off", config: v1beta1.HealthChecks{CheckMachineConfigPools: new(false)}, pools: []client.Object{openshifttest.Pool("worker", rolling)}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			expectReport(t, tc.want, examine(t, healthcheck.MachineConfigPools(), healthcheck.Request{Config: tc.config, Cluster: cluster(tc.pools...)}))
		})
	}
}
