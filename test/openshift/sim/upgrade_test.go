// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

const (
	annotations    = "machineconfiguration.openshift.io/"
	desiredVersion = "4.18.2"
)

func TestUpgrade(t *testing.T) {
	c := start(t, sim.Default())
	c.recordRevisions()
	began := time.Now()
	c.desire(&configv1.Update{Version: desiredVersion, Image: sim.Image(desiredVersion)})
	c.eventually("ClusterVersion completed", c.completed(desiredVersion))
	t.Logf("ClusterVersion completed after %s", time.Since(began))
	if !poolIs(c.pool("master"), mcfgv1.MachineConfigPoolUpdated) {
		t.Error("the CVO completed before the masters were updated")
	}
	if c.updated(desiredVersion)() {
		t.Error("the CVO completed only after the workers")
	}
	c.eventually("pools updated", c.updated(desiredVersion))
	t.Logf("pools updated after %s", time.Since(began))
	c.checkStalePools()
	c.checkMaxUnavailable("master", 1)
	c.checkMaxUnavailable("worker", 1)
	for _, node := range []string{"master-0", "worker-3"} {
		c.checkNodeSteps(node)
	}
}

// checkStalePools looks for the two moments in which Updated=True is old news:
// the CVO has moved and the pool has not, and the pool has its new target
// but has not looked at its nodes.
func (c *simulated) checkStalePools() {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	before, behind := false, false
	first := c.pools[0].Spec.Configuration.Name
	for _, pool := range c.pools {
		if pool.Name != c.pools[0].Name || !poolIs(pool, mcfgv1.MachineConfigPoolUpdated) {
			continue
		}
		before = before || pool.Spec.Configuration.Name == first
		behind = behind || pool.Status.ObservedGeneration < pool.Generation && pool.Spec.Configuration.Name != first
	}
	if !before || !behind {
		c.t.Errorf("Updated=True on the old configuration before the pool's move: %t, just after it: %t; want both", before, behind)
	}
}

// checkMaxUnavailable replays the nodes' revisions.
func (c *simulated) checkMaxUnavailable(pool string, limit int) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	unavailable := map[string]bool{}
	for _, node := range c.nodes {
		if !strings.HasPrefix(node.Name, pool+"-") {
			continue
		}
		delete(unavailable, node.Name)
		if node.Spec.Unschedulable || !ready(node) {
			unavailable[node.Name] = true
		}
		if len(unavailable) > limit {
			c.t.Errorf("nodes %v are unavailable at the same time, want at most %d", unavailable, limit)
			return
		}
	}
}

// checkNodeSteps compares the states that a node went through.
func (c *simulated) checkNodeSteps(name string) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	var steps []string
	for _, node := range c.nodes {
		if node.Name != name {
			continue
		}
		a := node.Annotations
		step := a[annotations+"state"] +
			" wants " + strings.SplitN(a[annotations+"desiredDrain"], "-", 2)[0] +
			" has " + strings.SplitN(a[annotations+"lastAppliedDrain"], "-", 2)[0]
		if a[annotations+"currentConfig"] != a[annotations+"desiredConfig"] {
			step += " outdated"
		}
		if node.Spec.Unschedulable {
			step += " cordoned"
		}
		if !ready(node) {
			step += " down"
		}
		step += " " + node.Status.NodeInfo.KubeletVersion
		if len(steps) == 0 || steps[len(steps)-1] != step {
			steps = append(steps, step)
		}
	}
	want := []string{
		"Done wants uncordon has uncordon v1.31.1",
		"Done wants uncordon has uncordon outdated v1.31.1",
		"Working wants drain has uncordon outdated v1.31.1",
		"Working wants drain has uncordon outdated cordoned v1.31.1",
		"Working wants drain has drain outdated cordoned v1.31.1",
		"Rebooting wants drain has drain outdated cordoned v1.31.1",
		"Rebooting wants drain has drain outdated cordoned down v1.31.1",
		"Rebooting wants drain has drain outdated cordoned v1.31.2",
		"Rebooting wants uncordon has drain outdated cordoned v1.31.2",
		"Rebooting wants uncordon has uncordon outdated v1.31.2",
		"Done wants uncordon has uncordon v1.31.2",
	}
	if !slices.Equal(steps, want) {
		c.t.Errorf("steps of %s:\n%s\nwant:\n%s", name, strings.Join(steps, "\n"), strings.Join(want, "\n"))
	}
}

func ready(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func TestCustomPoolsRollByPercentage(t *testing.T) {
	s := quick()
	half := intstr.FromString("50%")
	s.CustomPools = []sim.CustomPool{{Name: "infra", Pool: sim.Pool{Size: 5, MaxUnavailable: &half}}}
	s.Workers = sim.Pool{Size: 2}
	c := start(t, s)
	c.recordRevisions()
	c.desire(&configv1.Update{Version: desiredVersion})
	c.eventually("pools updated", c.updated(desiredVersion))
	c.checkMaxUnavailable("infra", 2)
	if got := c.pool("infra").Status.MachineCount; got != 5 {
		t.Errorf("pool infra counts %d nodes, want 5", got)
	}
	if got := c.pool("worker").Status.MachineCount; got != 2 {
		t.Errorf("pool worker counts %d nodes, want only its own 2", got)
	}
}

func TestPoolThatFollowsLate(t *testing.T) {
	s := quick()
	s.Workers.RenderDelay = sim.Duration(time.Hour)
	c := start(t, s)
	c.desire(&configv1.Update{Version: desiredVersion})
	c.eventually("ClusterVersion completed", c.completed(desiredVersion))
	worker := c.pool("worker")
	if !poolIs(worker, mcfgv1.MachineConfigPoolUpdated) || c.releaseOf(worker.Spec.Configuration.Name) != "4.18.1" {
		t.Errorf("pool worker is not Updated=True on its old configuration: %+v", worker.Status)
	}
	c.change(func(s *sim.Scenario) { s.Workers.RenderDelay = 0 })
	c.eventually("pools updated", c.updated(desiredVersion))
}

func TestPausedPool(t *testing.T) {
	s := quick()
	s.Workers.Paused = true
	c := start(t, s)
	c.desire(&configv1.Update{Version: desiredVersion})
	c.eventually("ClusterVersion completed", c.completed(desiredVersion))
	c.eventually("pool says that it is paused", func() bool {
		for _, condition := range c.pool("worker").Status.Conditions {
			if condition.Type == mcfgv1.MachineConfigPoolUpdating {
				return condition.Status == corev1.ConditionFalse && condition.Message == "Pool is paused; will not update to "+c.pool("worker").Spec.Configuration.Name
			}
		}
		return false
	})
	worker := c.pool("worker")
	if poolIs(worker, mcfgv1.MachineConfigPoolUpdated) || worker.Status.UpdatedMachineCount != 0 {
		t.Errorf("paused pool updates: %+v", worker.Status)
	}
	c.pause("worker", false)
	c.eventually("pools updated", c.updated(desiredVersion))
}

func TestRestartsOfTheSimulator(t *testing.T) {
	c := start(t, quick())
	c.desire(&configv1.Update{Version: desiredVersion})
	pools, release := c.updated(desiredVersion), c.completed(desiredVersion)
	done, restarts := func() bool { return pools() && release() }, 0
	for ; !done(); restarts++ {
		before := c.version().ResourceVersion + c.pool("master").ResourceVersion + c.pool("worker").ResourceVersion
		c.eventually("something happens", func() bool {
			return done() || before != c.version().ResourceVersion+c.pool("master").ResourceVersion+c.pool("worker").ResourceVersion
		})
		c.halt()
		c.run()
	}
	if restarts < 5 {
		t.Errorf("restarted %d times only", restarts)
	}
	history := c.version().Status.History
	if len(history) != 2 {
		t.Errorf("history after restarts: %+v, want one entry for the update", history)
	}
}

func TestOutageOfTheAPIServer(t *testing.T) {
	c := start(t, quick())
	c.desire(&configv1.Update{Version: desiredVersion})
	c.eventually("the update runs", c.is("Progressing", configv1.ConditionTrue, "ClusterOperatorsUpdating"))
	if err := plane.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	if err := plane.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.eventually("pools updated", c.updated(desiredVersion))
	c.change(func(s *sim.Scenario) { s.Updates = []sim.OfferedUpdate{{Version: "4.18.3"}} })
	c.eventually("the new scenario is seen", func() bool { return len(c.version().Status.AvailableUpdates) == 1 })
}
