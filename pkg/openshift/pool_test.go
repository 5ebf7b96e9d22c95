// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift_test

import (
	"testing"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"

	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

func TestJudgePool(t *testing.T) {
	const target = "4.18.2"
	type options = []func(*mcfgv1.MachineConfigPool)

	for _, tc := range []struct {
		reason     string
		pool       options
		renderedBy string
		version    string
		want       openshift.PoolProgress
	}{
		{
			"every machine runs the configuration of the release",
			options{openshifttest.PoolAt(target)}, target, target,
			openshift.PoolProgress{State: openshift.PoolUpdated, Message: "3 of 3 machines updated", Rendered: true, OnRelease: 3},
		},
		{
			"Updated for a configuration of the old release is not started",
			nil, "4.18.1", target,
			openshift.PoolProgress{State: openshift.PoolNotRendered, Message: "the configuration of the new release is not rendered yet"},
		},
		{
			"a spec that the machine-config operator has not seen yet",
			options{openshifttest.PoolAt(target), func(p *mcfgv1.MachineConfigPool) { p.Generation++ }}, target, target,
			openshift.PoolProgress{State: openshift.PoolNotRendered, Message: "the configuration of the new release is not rendered yet"},
		},
		{
			"the new configuration is chosen, and the status is still that of the old one, Updated and all",
			options{func(p *mcfgv1.MachineConfigPool) { p.Spec.Configuration.Name = "rendered-worker-4.18.2" }}, target, target,
			openshift.PoolProgress{State: openshift.PoolUpdating, Message: "3 of 3 machines updated, 0 unavailable", Rendered: true, OnRelease: 3},
		},
		{
			"some machines are updated",
			options{openshifttest.PoolTowards(target, 1)}, target, target,
			openshift.PoolProgress{State: openshift.PoolUpdating, Message: "1 of 3 machines updated, 1 unavailable", Rendered: true, OnRelease: 1},
		},
		{
			"all machines are counted, but the pool is not Updated yet",
			options{openshifttest.PoolTowards(target, 3), func(p *mcfgv1.MachineConfigPool) { p.Status.Configuration.Name = p.Spec.Configuration.Name }}, target, target,
			openshift.PoolProgress{State: openshift.PoolUpdating, Message: "3 of 3 machines updated, 1 unavailable", Rendered: true, OnRelease: 3},
		},
		{
			"Updated, but a machine has joined since",
			options{openshifttest.PoolAt(target), func(p *mcfgv1.MachineConfigPool) { p.Status.MachineCount = 4 }}, target, target,
			openshift.PoolProgress{State: openshift.PoolUpdating, Message: "3 of 4 machines updated, 0 unavailable", Rendered: true, OnRelease: 3},
		},
		{
			"paused with a new configuration",
			options{openshifttest.PoolTowards(target, 0), openshifttest.PoolPaused()}, target, target,
			openshift.PoolProgress{State: openshift.PoolPaused, Message: "0 of 3 machines updated, the pool is paused", Rendered: true},
		},
		{
			"paused and up to date is up to date",
			options{openshifttest.PoolAt(target), openshifttest.PoolPaused()}, target, target,
			openshift.PoolProgress{State: openshift.PoolUpdated, Message: "3 of 3 machines updated", Rendered: true, OnRelease: 3},
		},
		{
			"a node is degraded: its message, not that of the summary",
			options{
				openshifttest.PoolTowards(target, 1),
				openshifttest.PoolCondition(mcfgv1.MachineConfigPoolDegraded, ""),
				openshifttest.PoolCondition(mcfgv1.MachineConfigPoolNodeDegraded, "Node worker-0 is reporting: disk full"),
			}, target, target,
			openshift.PoolProgress{State: openshift.PoolDegraded, Message: "1 of 3 machines updated, NodeDegraded: Node worker-0 is reporting: disk full", Rendered: true, OnRelease: 1},
		},
		{
			"a configuration that cannot be rendered, while the pool is Updated for the old one",
			options{openshifttest.PoolCondition(mcfgv1.MachineConfigPoolRenderDegraded, "no such kernel type")}, "4.18.1", target,
			openshift.PoolProgress{State: openshift.PoolDegraded, Message: "0 of 3 machines updated, RenderDegraded: no such kernel type"},
		},
		{
			"paused, with all machines at the configuration of the old release",
			options{openshifttest.PoolPaused()}, "4.18.1", target,
			openshift.PoolProgress{State: openshift.PoolPaused, Message: "0 of 3 machines updated, the pool is paused"},
		},
		{
			"paused, and the machine-config operator has not seen that it has a new configuration",
			options{openshifttest.PoolAt(target), openshifttest.PoolPaused(), func(p *mcfgv1.MachineConfigPool) { p.Generation++ }}, target, target,
			openshift.PoolProgress{State: openshift.PoolPaused, Message: "0 of 3 machines updated, the pool is paused"},
		},
		{
			"paused, and it is not known which release its configuration is of",
			options{openshifttest.PoolTowards(target, 1), openshifttest.PoolPaused()}, "", target,
			openshift.PoolProgress{State: openshift.PoolPaused, Message: "1 of 3 machines updated, the pool is paused", Rendered: true, OnRelease: 1},
		},
		{
			"degraded for another cause",
			options{openshifttest.PoolTowards(target, 1), openshifttest.PoolCondition(mcfgv1.MachineConfigPoolDegraded, "build failed")}, target, target,
			openshift.PoolProgress{State: openshift.PoolDegraded, Message: "1 of 3 machines updated, Degraded: build failed", Rendered: true, OnRelease: 1},
		},
		{
			"degraded is said before paused: unpausing it does not help",
			options{openshifttest.PoolTowards(target, 1), openshifttest.PoolPaused(), openshifttest.PoolCondition(mcfgv1.MachineConfigPoolNodeDegraded, "x")}, target, target,
			openshift.PoolProgress{State: openshift.PoolDegraded, Message: "1 of 3 machines updated, NodeDegraded: x", Rendered: true, OnRelease: 1},
		},
		{
			"a configuration that does not say who rendered it is taken by its status",
			nil, "", target,
			openshift.PoolProgress{State: openshift.PoolUpdated, Message: "3 of 3 machines updated", Rendered: true, OnRelease: 3},
		},
		{
			"a release whose version is not known yet",
			nil, "4.18.1", "",
			openshift.PoolProgress{State: openshift.PoolUpdated, Message: "3 of 3 machines updated", Rendered: true, OnRelease: 3},
		},
		{
			"a pool without machines has nothing to do",
			options{openshifttest.PoolAt(target), func(p *mcfgv1.MachineConfigPool) {
				p.Status.MachineCount, p.Status.UpdatedMachineCount = 0, 0
			}}, target, target,
			openshift.PoolProgress{State: openshift.PoolUpdated, Message: "0 of 0 machines updated", Rendered: true},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got := openshift.JudgePool(openshifttest.Pool("worker", tc.pool...), tc.renderedBy, tc.version)
			if got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestPoolAtRest(t *testing.T) {
	type options = []func(*mcfgv1.MachineConfigPool)
	for _, tc := range []struct {
		reason string
		pool   options
		want   openshift.PoolProgress
	}{
		{"nothing to do", nil, openshift.PoolProgress{State: openshift.PoolUpdated, Message: "3 of 3 machines updated"}},
		{
			"some machines are updated", options{openshifttest.PoolTowards("4.18.2", 1)},
			openshift.PoolProgress{State: openshift.PoolUpdating, Message: "1 of 3 machines updated, 1 unavailable"},
		},
		{
			"a machine has joined", options{func(p *mcfgv1.MachineConfigPool) { p.Status.MachineCount = 4 }},
			openshift.PoolProgress{State: openshift.PoolUpdating, Message: "3 of 4 machines updated"},
		},
		{
			"all are counted, and the pool says that it is not done", options{openshifttest.PoolTowards("4.18.1", 3)},
			openshift.PoolProgress{State: openshift.PoolUpdating, Message: "3 of 3 machines updated, 1 unavailable"},
		},
		{
			"a new configuration that has not been taken up", options{func(p *mcfgv1.MachineConfigPool) { p.Spec.Configuration.Name = "new" }},
			openshift.PoolProgress{State: openshift.PoolUpdating, Message: "a change has not reached its machines yet"},
		},
		{
			"a change of the spec that has not been seen", options{func(p *mcfgv1.MachineConfigPool) { p.Generation++ }},
			openshift.PoolProgress{State: openshift.PoolUpdating, Message: "a change has not reached its machines yet"},
		},
		{
			"paused with a new configuration", options{openshifttest.PoolTowards("4.18.2", 1), openshifttest.PoolPaused()},
			openshift.PoolProgress{State: openshift.PoolPaused, Message: "1 of 3 machines updated"},
		},
		{
			"paused before any machine was counted anew",
			options{func(p *mcfgv1.MachineConfigPool) { p.Spec.Configuration.Name = "new" }, openshifttest.PoolPaused()},
			openshift.PoolProgress{State: openshift.PoolPaused, Message: "3 of 3 machines updated"},
		},
		{
			"paused a moment ago, with nothing to do", options{openshifttest.PoolPaused(), func(p *mcfgv1.MachineConfigPool) { p.Generation++ }},
			openshift.PoolProgress{State: openshift.PoolUpdated, Message: "3 of 3 machines updated"},
		},
		{
			"a node is degraded", options{
				openshifttest.PoolTowards("4.18.2", 1), openshifttest.PoolCondition(mcfgv1.MachineConfigPoolDegraded, ""),
				openshifttest.PoolCondition(mcfgv1.MachineConfigPoolNodeDegraded, "Node worker-0 is reporting: disk full"),
			},
			openshift.PoolProgress{State: openshift.PoolDegraded, Message: "1 of 3 machines updated, NodeDegraded: Node worker-0 is reporting: disk full"},
		},
		{
			"degraded with nothing to do", options{openshifttest.PoolCondition(mcfgv1.MachineConfigPoolRenderDegraded, "no such kernel type")},
			openshift.PoolProgress{State: openshift.PoolDegraded, Message: "3 of 3 machines updated, RenderDegraded: no such kernel type"},
		},
		{
			"degraded without a word, and paused", options{openshifttest.PoolPaused(), openshifttest.PoolCondition(mcfgv1.MachineConfigPoolDegraded, "")},
			openshift.PoolProgress{State: openshift.PoolDegraded, Message: "3 of 3 machines updated, Degraded"},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if got := openshift.PoolAtRest(openshifttest.Pool("worker", tc.pool...)); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}
