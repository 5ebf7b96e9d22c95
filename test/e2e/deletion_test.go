// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

func TestDeletedJobGivesTheClusterBack(t *testing.T) {
	t.Run("pending", func(t *testing.T) {
		c := newCluster(t)
		before := c.version()
		c.startOperator()
		job := c.wait(create(c, aJob(startingAt(soon(30*time.Minute)))), notStarted(v1beta1.ReasonWaitingForStart))
		c.remove(job)
		c.gone(job)
		c.untouched(before)
	})
	t.Run("before the upgrade commenced", func(t *testing.T) {
		c := newCluster(t, degraded("storage"))
		before := c.version()
		c.startOperator()
		job := c.wait(create(c, aJob()), waitingIn(steps.ConditionClusterHealthyBeforeUpgrade, v1beta1.ReasonUnhealthy))
		c.remove(job)
		c.gone(job)
		c.untouched(before)
	})
	t.Run("before the release was accepted", func(t *testing.T) {
		c := newCluster(t, func(s *sim.Scenario) {
			s.Releases = []sim.ReleaseFault{{Version: offered, Reason: "PreconditionChecks"}}
		})
		c.startOperator()
		job := c.wait(create(c, aJob()), waitingIn(steps.ConditionControlPlaneUpgraded, v1beta1.ReasonReleaseNotAccepted))
		c.remove(job)
		c.gone(job)
		c.waitVersion("the lock is released", unlocked)
		c.waitVersion("desiredUpdate is taken back", desires(""))
	})
	t.Run("while the cluster updates", func(t *testing.T) {
		c := newCluster(t, stuck("network"))
		c.startOperator()
		job := c.wait(create(c, aJob()), done(steps.ConditionUpgradeCommenced))
		c.accepted(offered)
		c.remove(job)
		c.gone(job)
		c.waitVersion("the lock is released", unlocked)
		c.waitVersion("the cluster goes on", desires(offered))
	})
}

func TestDeletedConfigTakesItsRunningJobAlong(t *testing.T) {
	c := newCluster(t, stuck("network"))
	c.startOperator()
	config := create(c, aConfig(creatingAJobNow()))
	job := c.jobOf(config)
	c.startNow(job)
	c.wait(job, done(steps.ConditionUpgradeCommenced))
	c.accepted(offered)
	c.remove(config)
	c.gone(config)
	c.gone(job)
	c.waitVersion("the lock is released", unlocked)
	c.change(mended)
	c.completed(offered)
	if writes := c.desiredUpdateWrites(); len(writes) != 1 {
		t.Errorf("desiredUpdate was written %d times, want once", len(writes))
	}
}

func TestLockOfAJobThatIsGoneIsTakenOver(t *testing.T) {
	c := newCluster(t)
	edit(c, c.version(), func(cv *configv1.ClusterVersion) {
		cv.Annotations = map[string]string{v1beta1.UpgradeJobAnnotation: aJob().Namespace + "/long-gone"}
	})
	c.startOperator()
	job := c.wait(create(c, aJob()), succeeded())
	c.upgradedOnce(job)
}

// accepted waits until the cluster-version operator has taken up a release.
func (c *cluster) accepted(version string) {
	c.t.Helper()
	c.waitVersion("the release is accepted", history(version, ""))
}

// completed waits until the cluster-version operator is through with a release.
func (c *cluster) completed(version string) {
	c.t.Helper()
	c.waitVersion("the release is completed", history(version, configv1.CompletedUpdate))
}
