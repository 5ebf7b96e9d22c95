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

// Nothing happens in these clusters when the deadline comes: the operator has to wake by itself.

func TestStartBeforeEndsAJobThatCannotStart(t *testing.T) {
	c := newCluster(t)
	before := edit(c, c.version(), func(cv *configv1.ClusterVersion) {
		cv.Annotations = map[string]string{v1beta1.UpgradeJobAnnotation: "elsewhere/other"}
	})
	c.startOperator()
	end := soon(2 * time.Second)
	job := create(c, aJob(startingBefore(end)))
	c.wait(job, notStarted(v1beta1.ReasonClusterLocked), saying(v1beta1.ConditionStarted, "elsewhere/other", v1beta1.UpgradeJobAnnotation))
	c.wait(job, skippedFor(v1beta1.ReasonExpired), withoutFinalizers())
	c.promptly("the end of the job", c.when(job, skippedFor(v1beta1.ReasonExpired)), end)

	after := edit(c, c.version(), func(cv *configv1.ClusterVersion) { delete(cv.Annotations, v1beta1.UpgradeJobAnnotation) })
	if after.Generation != before.Generation || job.Status.StartTime != nil {
		t.Errorf("a job that never started changed the cluster: started %v, spec %+v", job.Status.StartTime, after.Spec)
	}
}

func TestHealthCheckTimeoutBeforeTheUpgrade(t *testing.T) {
	c := newCluster(t, degraded("storage"))
	before := c.version()
	c.startOperator()
	const timeout = 2 * time.Second
	job := create(c, aJob(configured(func(config *v1beta1.UpgradeJobConfig) { config.PreUpgradeHealthChecks.Timeout = duration(timeout) })))
	c.wait(job, waitingIn(steps.ConditionClusterHealthyBeforeUpgrade, v1beta1.ReasonUnhealthy),
		blockedBy("ClusterOperatorDegraded", "ClusterOperator/storage"))
	c.wait(job, skippedFor(v1beta1.ReasonPreHealthCheckFailed),
		saying(v1beta1.ConditionSkipped, "storage", timeout.String()),
		blockedBy("ClusterOperatorDegraded", "ClusterOperator/storage"))
	c.promptly("the end of the job", c.when(job, inPhase(v1beta1.PhaseSkipped)), job.Status.StartTime.Add(timeout))
	c.untouched(before)
}

func TestHealthCheckTimeoutAfterTheUpgrade(t *testing.T) {
	// The operator breaks when the cluster-version operator is through, so that it does not wait for it.
	c := newCluster(t, func(s *sim.Scenario) { s.Workers.RenderDelay = sim.Duration(time.Second) })
	c.startOperator()
	const timeout = 2 * time.Second
	job := create(c, aJob(configured(func(config *v1beta1.UpgradeJobConfig) { config.PostUpgradeHealthChecks.Timeout = duration(timeout) })))
	c.wait(job, done(steps.ConditionControlPlaneUpgraded))
	c.change(degraded("storage"))
	c.wait(job, failedFor(v1beta1.ReasonPostHealthCheckFailed), blockedBy("ClusterOperatorDegraded", "ClusterOperator/storage"))
	step := stepOf(t, job, steps.ConditionClusterHealthyAfterUpgrade)
	c.promptly("the end of the job", c.when(job, inPhase(v1beta1.PhaseFailed)), step.StartTime.Add(timeout))
	c.upgradedOnce(job)
}

func TestUpgradeTimeout(t *testing.T) {
	c := newCluster(t, stuck("network"))
	c.startOperator()
	const timeout = 3 * time.Second
	start := soon(0)
	job := create(c, aJob(startingAt(start), configured(func(config *v1beta1.UpgradeJobConfig) { config.UpgradeTimeout = duration(timeout) })))
	c.wait(job, failedFor(v1beta1.ReasonTimedOut), saying(v1beta1.ConditionFailed, "Last it waited for"))
	c.promptly("the end of the job", c.when(job, inPhase(v1beta1.PhaseFailed)), start.Add(timeout))
	// What the cluster-version operator has accepted goes on.
	c.upgradedOnce(job)
}

func TestReleaseThatIsRefusedIsTakenBack(t *testing.T) {
	tests := map[string]struct {
		fault sim.ReleaseFault
		words []string
	}{
		"refused": {sim.ReleaseFault{Version: offered, Reason: "RetrievePayload"}, []string{"RetrievePayload", "cannot be verified"}},
		"no word": {sim.ReleaseFault{Version: offered, Stuck: true}, []string{"has not accepted " + offered}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, func(s *sim.Scenario) { s.Releases = []sim.ReleaseFault{tt.fault} })
			c.startOperator()
			const timeout = 2 * time.Second
			job := create(c, aJob(configured(func(config *v1beta1.UpgradeJobConfig) { config.ReleaseAcceptTimeout = duration(timeout) })))
			reason, code := v1beta1.ReasonReleaseNotAccepted, "ReleaseNotAccepted"
			if tt.fault.Stuck {
				reason, code = v1beta1.ReasonControlPlaneUpdating, "AwaitingAcceptance"
			}
			c.wait(job, waitingIn(steps.ConditionControlPlaneUpgraded, reason), blockedBy(code, "ClusterVersion/version"))
			c.wait(job, failedFor(v1beta1.ReasonReleaseNotAccepted), saying(v1beta1.ConditionFailed, tt.words...), withoutFinalizers())
			c.promptly("the end of the job", c.when(job, inPhase(v1beta1.PhaseFailed)), job.Status.StartTime.Add(timeout))

			c.waitVersion("desiredUpdate is taken back", desires(""))
			c.waitVersion("the lock is released", unlocked)
			if writes := c.desiredUpdateWrites(); len(writes) != 2 {
				t.Errorf("desiredUpdate was written %d times, want twice: set and taken back", len(writes))
			}
			// The obstacle goes, and nothing begins by itself.
			c.change(func(s *sim.Scenario) { s.Releases = nil })
			c.waitVersion("the cluster stays where it is", func(cv *configv1.ClusterVersion) error {
				if got := cv.Status.History[0].Version; got != installed {
					t.Errorf("the cluster moves to %s", got)
				}
				return nil
			})
		})
	}
}
