// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

func TestPausedPoolHoldsTheJobUntilItIsUnpaused(t *testing.T) {
	c := newCluster(t, func(s *sim.Scenario) { s.Workers.Paused = true })
	c.startOperator()
	job := create(c, aJob())
	c.wait(job, waitingIn(steps.ConditionMachineConfigPoolsUpgraded, v1beta1.ReasonMachineConfigPoolsUpdating),
		blockedBy("MachineConfigPoolPaused", "MachineConfigPool/worker"))
	pool := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: "worker"}}
	edit(c, pool, func(pool *mcfgv1.MachineConfigPool) { pool.Spec.Paused = false })
	c.wait(job, succeeded())
	c.upgradedOnce(job)
}

func TestDegradedNodeIsNamed(t *testing.T) {
	c := newCluster(t, func(s *sim.Scenario) {
		s.Nodes = []sim.NodeFault{{Name: "worker-1", Degraded: "unexpected on-disk state validating against the new configuration"}}
	})
	running := c.startOperator()
	job := c.wait(create(c, aJob()), done(steps.ConditionControlPlaneUpgraded))
	c.poolIs("worker", mcfgv1.MachineConfigPoolNodeDegraded)
	running.Kill() // mere progress is written every ten seconds, but at once after a start
	c.startOperator()
	c.wait(job, waitingIn(steps.ConditionMachineConfigPoolsUpgraded, v1beta1.ReasonMachineConfigPoolsUpdating),
		blockedBy("MachineConfigPoolDegraded", "MachineConfigPool/worker", "worker-1", "unexpected on-disk state"))
	c.change(func(s *sim.Scenario) { s.Nodes = nil })
	c.wait(job, succeeded())
	c.upgradedOnce(job)
}

// Nodes are looked at, and named, when they hold a step up for ten seconds.
func TestMasterThatHangsIsNamedWhileTheControlPlaneUpdates(t *testing.T) {
	c := newCluster(t, func(s *sim.Scenario) { s.Nodes = []sim.NodeFault{{Name: "master-0", StaysDown: true}} })
	c.startOperator()
	job := create(c, aJob())
	c.wait(job, waitingIn(steps.ConditionControlPlaneUpgraded, v1beta1.ReasonControlPlaneUpdating),
		blockedBy("MachineConfigPoolUpdating", "MachineConfigPool/master"), blockedBy("NodeUpdating", "Node/master-0", "is rebooting"))
	c.change(func(s *sim.Scenario) { s.Nodes = nil })
	c.wait(job, succeeded())
	c.upgradedOnce(job)
}

// Some time passes between the completion of the release and the rendering of a pool's new configuration. Until then
// the pool says Updated=True, with all its machines, on the old one.
func TestPoolOnAnOldConfigurationIsNotTakenForUpdated(t *testing.T) {
	const delay = 2 * time.Second
	c := newCluster(t, func(s *sim.Scenario) { s.Workers.RenderDelay = sim.Duration(delay) })
	c.startOperator()
	job := create(c, aJob())
	c.wait(job, done(steps.ConditionControlPlaneUpgraded), waitingIn(steps.ConditionMachineConfigPoolsUpgraded, v1beta1.ReasonMachineConfigPoolsUpdating))
	c.wait(job, succeeded())
	c.everyNodeRuns(offered)
}

// poolIs waits until a condition of a pool is True.
func (c *cluster) poolIs(name string, condition mcfgv1.MachineConfigPoolConditionType) {
	c.t.Helper()
	pool := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.eventually("pool "+name, func() error {
		c.get(pool)
		for _, found := range pool.Status.Conditions {
			if found.Type == condition && found.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("%s is not True: %+v", condition, pool.Status.Conditions)
	})
}

// everyNodeRuns expects that all nodes run the configuration of a release, and are done with it.
func (c *cluster) everyNodeRuns(version string) {
	c.t.Helper()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(openshift.NodeMetadata().GroupVersionKind())
	if err := env.Client.List(c.ctx, list); err != nil {
		c.t.Fatal(err)
	}
	if len(list.Items) == 0 {
		c.t.Error("there are no nodes")
	}
	for i := range list.Items {
		if got := c.releaseOn(&list.Items[i]); got != version {
			c.t.Errorf("node %s runs the configuration of %s, want %s", list.Items[i].Name, got, version)
		}
	}
}

// releaseOn returns the release whose configuration a node runs.
func (c *cluster) releaseOn(node *metav1.PartialObjectMetadata) string {
	c.t.Helper()
	config := &mcfgv1.MachineConfig{ObjectMeta: metav1.ObjectMeta{Name: node.Annotations["machineconfiguration.openshift.io/currentConfig"]}}
	c.get(config)
	return config.Annotations[openshift.ReleaseImageVersionAnnotation]
}
