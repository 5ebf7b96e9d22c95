// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// failsInTheControlPlane has a config's job fail while the control plane updates, with these settings, and returns both.
func (c *cluster) failsInTheControlPlane(changes ...func(*v1beta1.UpgradeJobConfig)) (*v1beta1.UpgradeConfig, *v1beta1.UpgradeJob) {
	c.t.Helper()
	config := create(c, aConfig(creatingAJobNow(), ofJobs(changes...), ofJobs(func(config *v1beta1.UpgradeJobConfig) {
		config.UpgradeTimeout = duration(6 * time.Second)
	})))
	job := c.jobOf(config)
	c.startNow(job)
	c.wait(job, failedFor(v1beta1.ReasonTimedOut), withoutFinalizers())
	c.waitVersion("the lock is released", unlocked)
	return config, job
}

// The machines would follow outside of any window: the pools stay as they are, and that is said until they are released.
func TestPoolsOfAFailedJobStayPausedUntilTheNextOneSucceeds(t *testing.T) {
	c := newClusterFor(t, 2*patience, withFewNodes, withPool("night", 1), withPool("noon", 1), stuck("network"))
	c.startOperator()
	bystander := create(c, aConfig(func(config *v1beta1.UpgradeConfig) { config.Name = "bystander" }))
	config, job := c.failsInTheControlPlane(withDelay("night", 4*time.Second, 0), withDelay("noon", 5*time.Second, 0))
	if err := check(job, leftPaused(v1beta1.ReasonLeftPaused, "night", "noon")); err != nil {
		t.Error(err)
	}
	c.told(job, corev1.EventTypeWarning, v1beta1.ReasonLeftPaused, "night", "noon")
	c.told(config, corev1.EventTypeWarning, v1beta1.ReasonLeftPaused, "night", "noon", job.Name)
	left := [][2]string{{"night", job.Name}, {"noon", job.Name}}
	c.leftBehind(config, left...)
	c.leftBehind(bystander, left...)
	paused := map[string]order{}
	for _, pool := range []string{"night", "noon"} {
		c.poolStays(pool, heldBy(job))
		paused[pool] = orderOf(c.turnOf(pool, heldBy(job)).object)
	}

	// The cluster comes to its release, but for those pools. The next job releases them, one at its time.
	c.change(mended)
	c.completed(offered)
	c.change(offering("4.18.3"))
	c.offers("4.18.3")
	c.pool("night", heldBy(job))
	c.remove(config)
	c.gone(config)
	c.gone(job)
	c.leftBehind(bystander, left...) // also when the job is gone
	create(c, aHook(at(unpause), aborting))
	c.fromNowOn()
	start := soon(0)
	next := create(c, aJob(named("next"), startingAt(start), to("4.18.3"), delaying("night", 5*time.Second, 0)))
	c.wait(next, succeeded(), withoutFinalizers(), holdingNothing())
	c.heardOnce(next, "night", "DelayReached", start.Add(5*time.Second), c.releaseOf("night"))
	for pool := range paused {
		c.rebootedAfter(pool, paused[pool], orderOf(c.releaseOf(pool).object))
		c.pool(pool, free, updated)
	}
	if noon, upgraded := orderOf(c.releaseOf("noon").object), c.orderWhen(next, done(steps.ConditionMachineConfigPoolsUpgraded)); noon > upgraded {
		t.Errorf("pool noon, which is not delayed any more, is released at %d, after the pools without a delay at %d", noon, upgraded)
	}
	c.releasedAsCompleted(next, "noon")
	c.leftBehind(bystander)
	c.upgradedOnce(next)
	c.everyNodeRuns("4.18.3")
}

// releasedAsCompleted expects that the hook was told that a pool is released because its upgrade is due anyway.
func (c *cluster) releasedAsCompleted(job *v1beta1.UpgradeJob, pool string) {
	c.t.Helper()
	for _, j := range c.hookJobsOf(job) {
		if j.key != pool {
			continue
		}
		if got := c.ranIn(j.object.Name, "main").Env["EVENT_reason"]; got != quoted("Completed") {
			c.t.Errorf("the hook of pool %s was told %s, want Completed", pool, got)
		}
		return
	}
	c.t.Errorf("the hook was not told of pool %s", pool)
}

// The old job is still there when the next one releases its pools, and says so.
func TestFailedJobSaysThatItsPoolsWereReleased(t *testing.T) {
	c := newCluster(t, withFewNodes, withPool("night", 1), stuck("network"))
	c.startOperator()
	config, job := c.failsInTheControlPlane(withDelay("night", 4*time.Second, 0))
	c.leftBehind(config, [2]string{"night", job.Name})
	c.change(mended)
	c.wait(create(c, aJob(named("next"), withoutVersion)), succeededFor(v1beta1.ReasonNothingToUpgrade), withoutFinalizers())
	c.pool("night", free)
	c.wait(job, failedFor(v1beta1.ReasonTimedOut), holdingNothing())
	c.leftBehind(config)
	c.pool("night", updated)
}

func TestPoolsArePausedOnFailure(t *testing.T) {
	c := newClusterFor(t, 2*patience, withFewNodes, withPool("night", 1), withPool("other", 1), stuck("network"))
	c.startOperator()
	config, job := c.failsInTheControlPlane(withDelay("night", 4*time.Second, 0), pausingOnFailure(map[string]string{roleOf("worker"): ""}))
	if err := check(job, leftPaused(v1beta1.ReasonPausedOnFailure, "night", "worker")); err != nil {
		t.Error(err)
	}
	c.told(job, corev1.EventTypeWarning, v1beta1.ReasonPausedOnFailure, "night", "worker")
	c.leftBehind(config, [2]string{"night", job.Name}, [2]string{"worker", job.Name})
	c.pool("worker", heldBy(job))
	c.pool("other", free)
	c.pool("master", free)

	// The network is mended: only what nobody has paused follows.
	c.change(mended)
	c.completed(offered)
	c.pool("other", updated)
	c.nodeIs("worker-0", "Done", installed)

	// The job is resumed, and finishes its work.
	c.resume(job, "the network is mended")
	c.wait(job, succeeded(), withoutFinalizers(), resumedTimes(1), holdingNothing())
	c.pool("night", free, updated)
	c.pool("worker", free, updated)
	c.leftBehind(config)
	c.upgradedOnce(job)
	c.everyNodeRuns(offered)
}

// Without a selector all pools are paused whose machines are not through, but never one that the control plane needs.
func TestAllPoolsArePausedOnFailureButThoseOfTheControlPlane(t *testing.T) {
	c := newCluster(t, withFewNodes, withPool("infra", 1), withPool("other", 1), stuck("network"), func(s *sim.Scenario) {
		s.CustomPools[0].Labels = map[string]string{"operator.machineconfiguration.openshift.io/required-for-upgrade": ""}
	})
	c.startOperator()
	job := create(c, aJob(timingOutAfter(3*time.Second), configured(pausingOnFailure(nil))))
	c.wait(job, failedFor(v1beta1.ReasonTimedOut), leftPaused(v1beta1.ReasonPausedOnFailure, "other", "worker"), withoutFinalizers())
	c.pool("other", heldBy(job))
	c.pool("worker", heldBy(job))
	c.pool("infra", free)
	c.pool("master", free)
	c.change(mended)
	c.completed(offered)
}

// The job ends before the cluster has taken anything up: nothing is left paused.
func TestPoolsOfASkippedJobAreReleased(t *testing.T) {
	t.Run("unhealthy", func(t *testing.T) {
		c := newCluster(t, withFewNodes, withPool("night", 1), degraded("storage"))
		before := c.version()
		c.startOperator()
		job := create(c, aJob(delaying("night", time.Hour, 0), attentive(givingUpAfter(3*time.Second))))
		c.wait(job, waitingIn(steps.ConditionClusterHealthyBeforeUpgrade, v1beta1.ReasonUnhealthy), holding("night"))
		c.pool("night", heldBy(job))
		c.wait(job, skippedFor(v1beta1.ReasonPreHealthCheckFailed), holdingNothing(), withoutFinalizers())
		c.notLaterThan("the release", c.releaseOf("night").seen, c.when(job, inPhase(v1beta1.PhaseSkipped)), promptness)
		c.pool("night", free)
		c.untouched(before)
	})
	t.Run("withdrawn", func(t *testing.T) {
		c := newCluster(t, withFewNodes, withPool("night", 1), degraded("storage"))
		before := c.version()
		c.startOperator()
		job := create(c, aJob(delaying("night", time.Hour, 0), attentive()))
		c.wait(job, waitingIn(steps.ConditionClusterHealthyBeforeUpgrade, v1beta1.ReasonUnhealthy), holding("night"))
		c.change(offering())
		c.offers()
		c.change(mended)
		c.wait(job, skippedFor(v1beta1.ReasonUpgradeWithdrawn), holdingNothing(), withoutFinalizers())
		c.pool("night", free)
		c.untouched(before)
	})
	t.Run("refused by the cluster", func(t *testing.T) {
		c := newCluster(t, withFewNodes, withPool("night", 1), func(s *sim.Scenario) {
			s.Releases = []sim.ReleaseFault{{Version: offered, Reason: "RetrievePayload"}}
		})
		c.startOperator()
		job := create(c, aJob(delaying("night", time.Hour, 0), configured(pausingOnFailure(nil)), configured(func(config *v1beta1.UpgradeJobConfig) {
			config.ReleaseAcceptTimeout = duration(2 * time.Second)
		})))
		c.wait(job, failedFor(v1beta1.ReasonReleaseNotAccepted), holdingNothing(), withoutFinalizers())
		c.waitVersion("desiredUpdate is taken back", desires(""))
		c.pool("night", free)
		c.pool("worker", free)
	})
}

func TestDeletedJobGivesItsPoolsBack(t *testing.T) {
	t.Run("before the upgrade commenced", func(t *testing.T) {
		c := newCluster(t, withFewNodes, withPool("night", 1), degraded("storage"))
		before := c.version()
		c.startOperator()
		job := c.wait(create(c, aJob(delaying("night", time.Hour, 0))), waitingIn(steps.ConditionClusterHealthyBeforeUpgrade, v1beta1.ReasonUnhealthy))
		c.pool("night", heldBy(job))
		c.remove(job)
		c.gone(job)
		c.pool("night", free)
		c.untouched(before)
	})
	t.Run("before the release was accepted", func(t *testing.T) {
		c := newCluster(t, withFewNodes, withPool("night", 1), func(s *sim.Scenario) {
			s.Releases = []sim.ReleaseFault{{Version: offered, Reason: "PreconditionChecks"}}
		})
		c.startOperator()
		job := c.wait(create(c, aJob(delaying("night", time.Hour, 0))), waitingIn(steps.ConditionControlPlaneUpgraded, v1beta1.ReasonReleaseNotAccepted))
		c.pool("night", heldBy(job))
		c.remove(job)
		c.gone(job)
		c.pool("night", free)
		c.waitVersion("the lock is released", unlocked)
		c.waitVersion("desiredUpdate is taken back", desires(""))
	})
	// Its machines would reboot at once: they are left to the next job, and it is said that they are.
	t.Run("while it waits for the time of a pool", func(t *testing.T) {
		c := newCluster(t, withFewNodes, withPool("night", 1))
		c.startOperator()
		config := create(c, aConfig())
		job := c.wait(create(c, aJob(delaying("night", time.Hour, 0))), inPhase(v1beta1.PhasePaused))
		c.remove(job)
		c.gone(job)
		c.waitVersion("the lock is released", unlocked)
		c.poolStays("night", heldBy(job))
		c.leftBehind(config, [2]string{"night", job.Name})
		c.told(config, corev1.EventTypeWarning, v1beta1.ReasonLeftPaused, "night", job.Name)
		next := create(c, aJob(named("next"), withoutVersion))
		c.wait(next, succeededFor(v1beta1.ReasonNothingToUpgrade), withoutFinalizers())
		c.pool("night", free, updated)
		c.leftBehind(config)
		c.everyNodeRuns(offered)
	})
}
