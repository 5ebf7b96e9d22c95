// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

func TestPrometheusThatIsAwayHoldsTheUpgradeUntilItIsBack(t *testing.T) {
	c := newCluster(t)
	c.startOperator()

	c.awayWithPrometheus(env.Monitoring.Prometheus.Stop)
	job := create(c, aJob(attentive()))
	c.wait(job, unhealthy(), blockers(1), blockedBy("HealthCheckUnanswered", "", "Prometheus does not answer"),
		saying(steps.ConditionClusterHealthyBeforeUpgrade, "Prometheus does not answer: connection refused"))
	c.until(time.Now().Add(2 * lookInterval)) // nobody counts the attempts
	c.notUpgraded(job)
	c.goesOn(job, c.backWithPrometheus())

	c.thenOffers(job, "4.18.3")
	c.fire("EtcdNoLeader")
	job = create(c, aJob(named("while-an-alert-fires"), to("4.18.3"), attentive()))
	c.wait(job, unhealthy(), blockedBy("CriticalAlertFiring", "Alert/EtcdNoLeader"))
	c.awayWithPrometheus(env.Monitoring.Prometheus.Kill)
	c.wait(job, blockers(1), blockedBy("HealthCheckUnanswered", "", "Prometheus does not answer"))
	c.backWithPrometheus()
	c.wait(job, blockers(1), blockedBy("CriticalAlertFiring", "Alert/EtcdNoLeader"))
	c.leftAlone(job)
	c.goesOn(job, c.resolve("EtcdNoLeader"))

	c.thenOffers(job, "4.18.4")
	c.awayWithPrometheus(env.Monitoring.Prometheus.Stop)
	job = create(c, aJob(named("that-does-not-care"), to("4.18.4"), attentive(ignoringUnavailable)))
	c.wait(job, succeeded())
	for _, step := range []string{steps.ConditionClusterHealthyBeforeUpgrade, steps.ConditionClusterHealthyAfterUpgrade} {
		c.wait(job, saying(step, "critical alerts not checked (whenUnavailable: Ignore): Prometheus does not answer: connection refused"))
	}
	c.upgradedOnce(job)
}

func TestWithoutPrometheusTheJobIsSkipped(t *testing.T) {
	c := newCluster(t)
	before := c.version()
	c.startOperator("--prometheus-url=")
	const timeout = time.Second
	job := create(c, aJob(attentive(givingUpAfter(timeout))))
	c.wait(job, skippedFor(v1beta1.ReasonPreHealthCheckFailed), withoutFinalizers(),
		saying(v1beta1.ConditionSkipped, "no Prometheus is configured (--prometheus-url)"),
		blockedBy("HealthCheckUnanswered", "", "--prometheus-url"))
	c.promptly("the end of the job", c.when(job, inPhase(v1beta1.PhaseSkipped)), job.Status.StartTime.Add(timeout))
	c.untouched(before)
}

// Prometheus' own counter tells what it was asked. Meanwhile a ClusterOperator turns again and again, and each turn makes
// the operator look at its jobs.
func TestPrometheusIsAskedOncePerQueryAndIntervalAndOnlyInAHealthStep(t *testing.T) {
	const interval, distinct = 2 * time.Second, 3
	c := newCluster(t, stuck("network"))
	c.expose("test_queue_length", 120, "queue=orders")
	c.startOperator()
	asked := c.queries()
	c.flap("storage", time.Second)
	if got := c.queries() - asked; got > 0 {
		t.Errorf("without a job Prometheus was asked %d times", got)
	}

	asked = c.queries()
	job := create(c, aJob(configured(func(config *v1beta1.UpgradeJobConfig) {
		config.PreUpgradeHealthChecks.Interval, config.PostUpgradeHealthChecks.Interval = duration(interval), duration(interval)
		asking("test_queue_length > 100", `test_queue_length{queue="mails"} > 100`)(&config.PreUpgradeHealthChecks)
	})))
	c.wait(job, unhealthy(), blockedBy("CustomQueryReturnedSamples", "CustomQuery/0"))
	began := c.when(job, unhealthy())
	turns := c.flap("storage", 5*time.Second)
	intervals := int(time.Since(began)/interval) + 1
	got := c.queries() - asked
	t.Logf("in a health step, in %d intervals with %d turns of an operator: %d queries", intervals, turns, got)
	if got > intervals*distinct || got < (intervals-1)*distinct {
		t.Errorf("%d intervals of %d queries took %d requests", intervals, distinct, got)
	}

	c.withdraw("test_queue_length")
	c.wait(job, waitingIn(steps.ConditionControlPlaneUpgraded, v1beta1.ReasonControlPlaneUpdating))
	c.accepted(offered)
	asked = c.queries()
	turns = c.flap("storage", 3*time.Second)
	if got := c.queries() - asked; got > 0 {
		t.Errorf("while the control plane updates, with %d turns of an operator, Prometheus was asked %d times", turns, got)
	}
	c.change(mended)
	c.wait(job, succeeded())
	if got := c.queries() - asked; got != 1 {
		t.Errorf("after the upgrade Prometheus was asked %d times, want once, for alerts", got)
	}
	c.upgradedOnce(job)
}

// flap turns a ClusterOperator degraded and well again for a while, and tells how many turns that were.
func (c *cluster) flap(name string, while time.Duration) (turns int) {
	c.t.Helper()
	for end := time.Now().Add(while); time.Now().Before(end); turns += 2 {
		c.change(degraded(name))
		c.operatorIs(name, configv1.OperatorDegraded, configv1.ConditionTrue)
		c.change(recovered(name))
		c.operatorIs(name, configv1.OperatorDegraded, configv1.ConditionFalse)
	}
	return turns
}

// operatorIs waits until a condition of a ClusterOperator has a status.
func (c *cluster) operatorIs(name string, condition configv1.ClusterStatusConditionType, status configv1.ConditionStatus) {
	c.t.Helper()
	co := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.eventually("ClusterOperator "+name, func() error {
		c.get(co)
		if found := openshift.Condition(co.Status.Conditions, condition); found == nil || found.Status != status {
			return fmt.Errorf("%s is %+v, want %s", condition, found, status)
		}
		return nil
	})
}
