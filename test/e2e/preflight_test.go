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

func TestUpdateWithdrawnBetweenPinAndStart(t *testing.T) {
	c := newCluster(t)
	before := c.version()
	c.startOperator()
	config := create(c, aConfig(creatingAJobNow()))
	job := c.jobOf(config)
	c.change(offering("4.18.3"))
	c.offers("4.18.3")
	c.startNow(job)
	c.wait(job, skippedFor(v1beta1.ReasonUpgradeWithdrawn), saying(v1beta1.ConditionSkipped, offered), withoutFinalizers())
	c.untouched(before)
}

func TestUpdateThatBecameConditionalIsWithdrawn(t *testing.T) {
	c := newCluster(t, func(s *sim.Scenario) {
		s.Updates[0].Risks = []sim.Risk{{Name: "DataLoss", Message: "Data may be lost.", Applies: sim.AppliesYes}}
	})
	before := c.version()
	c.startOperator()
	job := create(c, aJob())
	c.wait(job, skippedFor(v1beta1.ReasonUpgradeWithdrawn), saying(v1beta1.ConditionSkipped, "DataLoss"))
	c.untouched(before)
}

func TestClusterThatDoesNotKnowItsUpdatesIsWaitedFor(t *testing.T) {
	c := newCluster(t, func(s *sim.Scenario) { s.UpdatesUnknown = &sim.UpdatesUnknown{Reason: "RemoteFailed"} })
	c.offers()
	c.startOperator()
	job := create(c, aJob())
	c.wait(job, waitingIn(steps.ConditionUpdateAvailable, v1beta1.ReasonUpdatesUnknown), blockedBy("UpdatesNotRetrieved", "ClusterVersion/version"))
	c.change(func(s *sim.Scenario) { s.UpdatesUnknown = nil })
	c.wait(job, succeeded())
	c.upgradedOnce(job)
}

func TestClusterThatRecoversInTimeIsUpgraded(t *testing.T) {
	c := newCluster(t, degraded("storage"), faulty(sim.OperatorFault{Name: "ingress", Unavailable: true}))
	c.startOperator()
	job := create(c, aJob())
	c.wait(job, waitingIn(steps.ConditionClusterHealthyBeforeUpgrade, v1beta1.ReasonUnhealthy),
		blockedBy("ClusterOperatorDegraded", "ClusterOperator/storage"), blockedBy("ClusterOperatorNotAvailable", "ClusterOperator/ingress"))
	if writes := c.desiredUpdateWrites(); len(writes) > 0 {
		t.Fatal("a sick cluster is upgraded")
	}
	recovered := time.Now()
	c.change(mended)
	c.wait(job, succeeded())
	if took := c.when(job, done(steps.ConditionClusterHealthyBeforeUpgrade)).Sub(recovered); took > 2*time.Second {
		t.Errorf("the job went on %s after the cluster recovered, want within 2s", took)
	}
	c.upgradedOnce(job)
}

func TestUpgradeBySomebodyElseIsWaitedFor(t *testing.T) {
	c := newCluster(t, offering("4.18.2", "4.18.3"), stuck("network"))
	edit(c, c.version(), func(cv *configv1.ClusterVersion) { cv.Spec.DesiredUpdate = &configv1.Update{Version: "4.18.3"} })
	c.accepted("4.18.3")
	c.fromNowOn()
	c.startOperator()
	const timeout = time.Second
	job := create(c, aJob(configured(func(config *v1beta1.UpgradeJobConfig) { config.PreUpgradeHealthChecks.Timeout = duration(timeout) })))
	c.wait(job, skippedFor(v1beta1.ReasonPreHealthCheckFailed), blockedBy("UpdateInProgress", "ClusterVersion/version"))
	if writes := c.desiredUpdateWrites(); len(writes) > 0 {
		t.Errorf("desiredUpdate was written %d times, want never", len(writes))
	}
}
