// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"fmt"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"

	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

const requiredForUpgrade = "operator.machineconfiguration.openshift.io/required-for-upgrade"

// poolsFailed returns the message of the machine-config operator's Degraded condition, empty when it is not True.
func (c *simulated) poolsFailed() string {
	for _, condition := range c.operator("machine-config").Status.Conditions {
		if condition.Type == configv1.OperatorDegraded && condition.Status == configv1.ConditionTrue && condition.Reason == "RequiredPoolsFailed" {
			return condition.Message
		}
	}
	return ""
}

func TestRequiredPoolThatIsPausedHoldsTheCVO(t *testing.T) {
	s := quick()
	s.Timings.DegradedFails = sim.Duration(300 * time.Millisecond)
	s.CustomPools = []sim.CustomPool{{
		Name: "storage", Labels: map[string]string{requiredForUpgrade: "", "example.com/team": "disks"}, Pool: sim.Pool{Size: 2, Paused: true},
	}}
	c := start(t, s)
	labels := c.pool("storage").Labels
	if _, required := labels[requiredForUpgrade]; !required || labels["example.com/team"] != "disks" || labels["pools.operator.machineconfiguration.openshift.io/storage"] != "" {
		t.Errorf("labels of the pool: %v", labels)
	}
	c.desire(&configv1.Update{Version: desiredVersion})
	c.eventually("Failing", c.is("Failing", configv1.ConditionTrue, "ClusterOperatorDegraded"))
	if got, want := c.poolsFailed(), "Failed to resync 4.18.2 because: required MachineConfigPool storage is paused and can not sync until it is unpaused"; got != want {
		t.Errorf("degraded because of %q, want %q", got, want)
	}
	c.eventually("masters updated", func() bool { return c.pool("master").Status.UpdatedMachineCount == 3 })
	if got := operatorVersion(c.operator("machine-config")); got != "4.18.1" {
		t.Errorf("machine-config says that it runs %s", got)
	}
	if updated := c.pool("storage").Status.UpdatedMachineCount; updated != 0 {
		t.Errorf("%d nodes of the paused pool are updated", updated)
	}
	c.pause("storage", false)
	c.eventually("ClusterVersion completed", c.completed(desiredVersion))
	if pool := c.pool("storage"); !poolIs(pool, mcfgv1.MachineConfigPoolUpdated) {
		t.Error("the CVO completed before the required pool was updated")
	}
	c.eventually("well again", func() bool { return c.poolsFailed() == "" })
	c.eventually("pools updated", c.updated(desiredVersion))
}

func TestPoolThatIsPausedWhileItRolls(t *testing.T) {
	s := quick()
	s.Nodes = []sim.NodeFault{{Name: "worker-0", HangsDraining: true}}
	c := start(t, s)
	c.desire(&configv1.Update{Version: desiredVersion})
	c.eventually("worker-0 drains", func() bool { return draining(c.node("worker-0")) })
	c.pause("worker", true)
	c.eventually("the pause is seen", func() bool {
		pool := c.pool("worker")
		return pool.Status.ObservedGeneration == pool.Generation
	})
	c.change(func(s *sim.Scenario) { s.Nodes = nil })
	updated := func(n int32) func() bool {
		return func() bool { return c.pool("worker").Status.UpdatedMachineCount == n }
	}
	c.eventually("the node in work is updated", updated(1))
	c.eventually("ClusterVersion completed", c.completed(desiredVersion))
	if pool := c.pool("worker"); pool.Status.UpdatedMachineCount != 1 || poolIs(pool, mcfgv1.MachineConfigPoolUpdating) || poolIs(pool, mcfgv1.MachineConfigPoolUpdated) {
		t.Errorf("the paused pool goes on: %+v", pool.Status)
	}
	for _, name := range []string{"worker-1", "worker-2"} {
		if a := c.node(name).Annotations; a[annotations+"desiredConfig"] != a[annotations+"currentConfig"] {
			t.Errorf("%s was given a configuration by a paused pool", name)
		}
	}
	c.pause("worker", false)
	c.eventually("pools updated", c.updated(desiredVersion))
}

// TestManyPoolsRollAtOnce holds a node of each pool in its drain: all of them are there at the same time.
func TestManyPoolsRollAtOnce(t *testing.T) {
	s := quick()
	const pools = 12
	for i := range pools {
		name := fmt.Sprintf("pool%d", i)
		s.CustomPools = append(s.CustomPools, sim.CustomPool{Name: name, Pool: sim.Pool{Size: 2}})
		s.Nodes = append(s.Nodes, sim.NodeFault{Name: name + "-0", HangsDraining: true})
	}
	c := start(t, s)
	c.desire(&configv1.Update{Version: desiredVersion})
	c.eventually("a node of each pool drains", func() bool {
		for i := range pools {
			if !draining(c.node(fmt.Sprintf("pool%d-0", i))) {
				return false
			}
		}
		return true
	})
	c.change(func(s *sim.Scenario) { s.Nodes = nil })
	c.eventually("pools updated", c.updated(desiredVersion))
}
