// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/test/monitoring"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

func TestCriticalAlertHoldsTheUpgradeUntilItIsResolved(t *testing.T) {
	c := newCluster(t)
	c.fire("EtcdMembersDown", "namespace=openshift-etcd")
	c.startOperator()
	job := create(c, aJob(attentive()))
	c.wait(job, unhealthy(), blockers(1),
		blockedBy("CriticalAlertFiring", "Alert/EtcdMembersDown", `namespace="openshift-etcd"`),
		saying(steps.ConditionClusterHealthyBeforeUpgrade, "critical alert EtcdMembersDown is firing"))
	c.leftAlone(job)
	c.goesOn(job, c.resolve("EtcdMembersDown"))
}

// All of these fire at once, and each would hold the job up if it counted.
func TestAlertsThatDoNotCountAreNamedWithTheReason(t *testing.T) {
	c := newCluster(t)
	c.fire("KubeAPIErrorBudgetBurn")
	c.fire("ShopIsDown", "namespace=shop")
	c.fire("ManagedUpgradeJobFailed", "namespace=managed-upgrade-operator")
	c.fire("NodeClockNotSynchronising", "severity=warning")
	c.fire("EtcdBackupFailed", "namespace=openshift-etcd")
	c.startOperator()
	checks := attentive(excludingNamespace("shop"), func(checks *v1beta1.HealthChecks) {
		checks.ExcludeAlerts = []v1beta1.ExcludedAlert{{AlertName: "KubeAPIErrorBudgetBurn"}}
	})
	counts := []expectation{unhealthy(), blockers(1), blockedBy("CriticalAlertFiring", "Alert/EtcdBackupFailed")}

	job := c.wait(create(c, aJob(checks)), counts...)
	expire := c.silence("EtcdBackupFailed", "namespace=openshift-etcd")
	c.goesOn(job, time.Now())
	for _, step := range []string{steps.ConditionClusterHealthyBeforeUpgrade, steps.ConditionClusterHealthyAfterUpgrade} {
		c.wait(job, saying(step, "The cluster is healthy; critical alerts left out: 1 by excludeAlerts (KubeAPIErrorBudgetBurn), "+
			"1 by excludeNamespaces (ShopIsDown), 1 of this operator (ManagedUpgradeJobFailed), 1 silenced (EtcdBackupFailed)."))
	}

	c.thenOffers(job, "4.18.3")
	expire()
	c.alertIs("EtcdBackupFailed", monitoring.AlertActive)
	job = c.wait(create(c, aJob(named("after-the-silence"), to("4.18.3"), checks)), counts...)
	c.wait(job, saying(steps.ConditionClusterHealthyBeforeUpgrade, "Beside that: critical alerts left out: 1 by excludeAlerts"))
	c.leftAlone(job)
}

func TestAlertThatDoesNotClearAfterTheUpgradeFailsTheJob(t *testing.T) {
	// The alert fires when the cluster-version operator is through, and long before the machines are.
	c := newCluster(t, func(s *sim.Scenario) { s.Workers.RenderDelay = sim.Duration(2 * time.Second) })
	c.startOperator()
	const timeout = 2 * time.Second
	job := create(c, aJob(attentive(givingUpAfter(timeout))))
	c.wait(job, done(steps.ConditionControlPlaneUpgraded))
	c.fire("IngressIsDown", "namespace=openshift-ingress")
	c.get(job)
	if check(job, done(steps.ConditionMachineConfigPoolsUpgraded)) == nil {
		t.Fatal("the alert fires too late for this test")
	}
	c.wait(job, failedFor(v1beta1.ReasonPostHealthCheckFailed), saying(v1beta1.ConditionFailed, "IngressIsDown", timeout.String()),
		blockers(1), blockedBy("CriticalAlertFiring", "Alert/IngressIsDown", `namespace="openshift-ingress"`))
	step := stepOf(t, job, steps.ConditionClusterHealthyAfterUpgrade)
	c.promptly("the end of the job", c.when(job, inPhase(v1beta1.PhaseFailed)), step.StartTime.Add(timeout))
	c.upgradedOnce(job)
}
