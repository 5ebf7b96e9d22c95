// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

func TestDegradedOperatorStopsTheUpdate(t *testing.T) {
	s := quick()
	s.Timings.DegradedFails = sim.Duration(300 * time.Millisecond)
	s.Operators = []sim.OperatorFault{{Name: "monitoring", Degraded: true, Reason: "Rollout", Message: "stuck", OnlyTowards: desiredVersion}}
	c := start(t, s)
	c.desire(&configv1.Update{Version: desiredVersion})
	c.eventually("Failing", c.is("Failing", configv1.ConditionTrue, "ClusterOperatorDegraded"))
	if operatorVersion(c.operator("network")) != "4.18.1" {
		t.Error("a later run level was updated")
	}
	c.change(func(s *sim.Scenario) { s.Operators = nil })
	c.eventually("ClusterVersion completed", c.completed(desiredVersion))
}

func operatorVersion(co *configv1.ClusterOperator) string {
	for _, v := range co.Status.Versions {
		if v.Name == "operator" {
			return v.Version
		}
	}
	return ""
}

func TestRetargetDuringAnUpdate(t *testing.T) {
	s := quick()
	s.Updates = []sim.OfferedUpdate{{Version: "4.18.2"}, {Version: "4.18.3"}}
	s.Operators = []sim.OperatorFault{{Name: "etcd", NeverReports: true, OnlyTowards: "4.18.2"}}
	c := start(t, s)
	c.desire(&configv1.Update{Version: "4.18.2"})
	c.eventually("waits on etcd", c.is("Progressing", configv1.ConditionTrue, "ClusterOperatorUpdating"))
	c.desire(&configv1.Update{Version: "4.18.3"})
	c.eventually("pools updated", c.updated("4.18.3"))
	c.eventually("ClusterVersion completed", c.completed("4.18.3")) // it follows its last operator, which follows the pools
	history := c.version().Status.History
	if len(history) != 3 || history[0].State != configv1.CompletedUpdate ||
		history[1].Version != "4.18.2" || history[1].State != configv1.PartialUpdate || history[1].CompletionTime == nil {
		t.Errorf("history: %+v, want a superseded Partial entry of 4.18.2 below 4.18.3", history)
	}
}

func TestReleaseThatIsNotTaken(t *testing.T) {
	s := quick()
	s.Releases = []sim.ReleaseFault{{Version: desiredVersion, Reason: "VerifyPayloadVersion"}}
	c := start(t, s)
	c.desire(&configv1.Update{Version: desiredVersion})
	c.eventually("refused", c.is("ReleaseAccepted", configv1.ConditionFalse, "VerifyPayloadVersion"))
	if cv := c.version(); len(cv.Status.History) != 1 || cv.Status.Desired.Version != "4.18.1" || cv.Status.ObservedGeneration == cv.Generation {
		t.Errorf("a refused release shows in %+v", cv.Status)
	}
	c.desire(nil)
	c.eventually("accepted again", c.is("ReleaseAccepted", configv1.ConditionTrue, "PayloadLoaded"))
}

func TestUpdatesChangeWhileItRuns(t *testing.T) {
	c := start(t, quick())
	offered := func(n int, retrieved configv1.ConditionStatus, reason string) func() bool {
		return func() bool {
			return len(c.version().Status.AvailableUpdates) == n && c.is("RetrievedUpdates", retrieved, reason)()
		}
	}
	c.eventually("offered", offered(1, configv1.ConditionTrue, ""))
	c.change(func(s *sim.Scenario) { s.Updates = nil })
	c.eventually("withdrawn", offered(0, configv1.ConditionTrue, ""))
	c.desire(&configv1.Update{Version: desiredVersion})
	c.eventually("invalid", c.is("Invalid", configv1.ConditionTrue, "InvalidClusterVersion"))
	c.desire(nil)
	c.eventually("valid", c.is("Invalid", "", ""))
	c.change(func(s *sim.Scenario) {
		s.Updates = []sim.OfferedUpdate{{Version: "4.18.2"}, {Version: "4.18.3"}}
		s.UpdatesUnknown = &sim.UpdatesUnknown{Reason: "RemoteFailed"}
	})
	c.eventually("unknown", offered(0, configv1.ConditionFalse, "RemoteFailed"))
	c.change(func(s *sim.Scenario) { s.UpdatesUnknown = nil })
	c.eventually("known", offered(2, configv1.ConditionTrue, ""))

	c.editScenario("version: nonsense")
	c.desire(&configv1.Update{Version: desiredVersion})
	c.eventually("goes on with the scenario it had", c.completed(desiredVersion))
}

func TestNodesWithTrouble(t *testing.T) {
	s := quick()
	s.Workers.Size = 3
	s.Nodes = []sim.NodeFault{{Name: "worker-0", HangsDraining: true}}
	c := start(t, s)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-0"}}
	c.desire(&configv1.Update{Version: desiredVersion})
	c.eventually("ClusterVersion completed", c.completed(desiredVersion))
	c.get(node)
	if a := node.Annotations; !node.Spec.Unschedulable || !strings.HasPrefix(a[annotations+"desiredDrain"], "drain-") || a[annotations+"desiredDrain"] == a[annotations+"lastAppliedDrain"] {
		t.Errorf("worker-0 does not drain: %v", a)
	}
	if updated := c.pool("worker").Status.UpdatedMachineCount; updated != 0 {
		t.Errorf("%d nodes are updated although one takes all of maxUnavailable", updated)
	}
	c.change(func(s *sim.Scenario) {
		s.Nodes = []sim.NodeFault{{Name: "worker-0", Degraded: "disk is full"}, {Name: "worker-1", StaysDown: true}}
	})
	c.eventually("pool degraded", func() bool { return poolIs(c.pool("worker"), mcfgv1.MachineConfigPoolNodeDegraded) })
	c.eventually("not upgradeable", c.is("Upgradeable", configv1.ConditionFalse, "RiskNameNotCompatibleWithReasonProperty"))
	c.change(func(s *sim.Scenario) { s.Nodes = s.Nodes[1:] })
	down := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}}
	c.eventually("worker-1 down", func() bool { c.get(down); return !ready(down) })
	c.change(func(s *sim.Scenario) { s.Nodes = nil })
	c.eventually("pools updated", c.updated(desiredVersion))
}

func TestCordonedNodeCountsAsUnavailable(t *testing.T) {
	c := start(t, quick())
	c.cordon("worker-2", true)
	c.eventually("counted", func() bool { return c.pool("worker").Status.UnavailableMachineCount == 1 })
	c.desire(&configv1.Update{Version: desiredVersion})
	c.eventually("ClusterVersion completed", c.completed(desiredVersion))
	if updated := c.pool("worker").Status.UpdatedMachineCount; updated != 0 {
		t.Errorf("%d workers are updated, but the cordoned one takes all of maxUnavailable", updated)
	}
	c.cordon("worker-2", false)
	c.eventually("pools updated", c.updated(desiredVersion))
}

func TestRunNeedsAnInstallation(t *testing.T) {
	c := start(t, quick())
	c.halt()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: sim.Namespace, Name: sim.ConfigMapName}}
	if err := c.client.Delete(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	if err := sim.Run(t.Context(), plane.Config()); !errors.Is(err, sim.ErrNotInstalled) {
		t.Errorf("Run without an installation: %v, want ErrNotInstalled", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := sim.Run(ended, plane.Config()); err != nil {
		t.Errorf("Run with an ended context: %v, want nil", err)
	}
}

// pause writes a pool's spec.paused.
func (c *simulated) pause(name string, paused bool) {
	c.t.Helper()
	pool := c.pool(name)
	next := pool.DeepCopy()
	next.Spec.Paused = paused
	if err := c.client.Patch(c.t.Context(), next, client.MergeFrom(pool)); err != nil {
		c.t.Fatal(err)
	}
}

// cordon writes a node's spec.unschedulable.
func (c *simulated) cordon(name string, cordoned bool) {
	c.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.get(node)
	next := node.DeepCopy()
	next.Spec.Unschedulable = cordoned
	if err := c.client.Patch(c.t.Context(), next, client.MergeFrom(node)); err != nil {
		c.t.Fatal(err)
	}
}

// get reads an object again.
func (c *simulated) get(obj client.Object) {
	c.t.Helper()
	if err := c.client.Get(c.t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		c.t.Fatal(err)
	}
}

// editScenario writes the scenario's ConfigMap like kubectl edit.
func (c *simulated) editScenario(text string) {
	c.t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: sim.Namespace, Name: sim.ConfigMapName}}
	c.get(cm)
	cm.Data = map[string]string{"scenario.yaml": text}
	if err := c.client.Update(c.t.Context(), cm); err != nil {
		c.t.Fatal(err)
	}
}
