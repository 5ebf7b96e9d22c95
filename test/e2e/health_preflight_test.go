// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// The job of these tests starts in weeks: until then it tells what it would find.

func TestJobTellsBeforeItsStartWhatWouldHoldItUp(t *testing.T) {
	c := newCluster(t, degraded("storage"))
	c.fire("EtcdHighFsyncDurations", "namespace=openshift-etcd")
	c.startOperator()
	job := c.jobOf(create(c, aConfig(creatingAJobNow(), ofAttentiveJobs())))
	c.wait(job, notStarted(v1beta1.ReasonWaitingForStart), wouldBe(metav1.ConditionFalse, v1beta1.ReasonUnhealthy), blockers(2),
		saying(v1beta1.ConditionPreflightHealthy, "EtcdHighFsyncDurations", "ClusterOperator storage"),
		blockedBy("CriticalAlertFiring", "Alert/EtcdHighFsyncDurations"), blockedBy("ClusterOperatorDegraded", "ClusterOperator/storage"))
	c.announced(job, "PreflightUnhealthy", "EtcdHighFsyncDurations", "ClusterOperator storage")

	c.change(mended)
	recovered := time.Now()
	onlyTheAlert := []expectation{wouldBe(metav1.ConditionFalse, v1beta1.ReasonUnhealthy), blockers(1), notSaying(v1beta1.ConditionPreflightHealthy, "storage")}
	c.wait(job, onlyTheAlert...)
	c.notLaterThan("the news", c.when(job, onlyTheAlert...), recovered, 2*promptness)

	c.startNow(job)
	c.wait(job, unhealthy(), blockers(1), without(v1beta1.ConditionPreflightHealthy))
	c.notUpgraded(job)
	c.goesOn(job, c.resolve("EtcdHighFsyncDurations"))
}

func TestQueryThatIsNoPromQLIsToldAtOnce(t *testing.T) {
	c := newCluster(t)
	c.startOperator()
	config := create(c, aConfig(creatingAJobNow(), ofAttentiveJobs(asking(`up{job="shop"} !=`))))
	c.waitConfig(config, v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonInvalidQuery, "preUpgradeHealthChecks.customQueries[0]")
	if n := len(c.jobsOf(config)); n > 0 || config.Status.ObservedGeneration != config.Generation {
		t.Errorf("a config that cannot be used has %d jobs", n)
	}
	edit(c, config, func(config *v1beta1.UpgradeConfig) {
		checks := &config.Spec.JobTemplate.Spec.Config
		checks.PreUpgradeHealthChecks.CustomQueries[0].Query = `up{job="shop"} != 1`
		checks.PostUpgradeHealthChecks.CustomQueries = nil
	})
	c.waitConfig(config, v1beta1.ConditionReady, metav1.ConditionTrue, v1beta1.ReasonValid)
	c.wait(c.jobOf(config), notStarted(v1beta1.ReasonWaitingForStart), wouldBe(metav1.ConditionTrue, v1beta1.ReasonHealthy))
	c.remove(config)
	c.gone(config)

	// Nobody checks a job that is made by hand when it is made.
	asked := c.queries()
	invalid := []expectation{
		blockers(2), blockedBy(v1beta1.ReasonInvalidQuery, "CustomQuery/0", "up != not PromQL"),
		blockedBy(v1beta1.ReasonInvalidQuery, "", "postUpgradeHealthChecks.customQueries[0]"),
	}
	job := create(c, aJob(named("by-hand"), startingAt(nextFarAway()), startingBefore(nextFarAway().Add(time.Hour)),
		attentive(asking("up\n  != not PromQL"), withoutAlerts)))
	c.wait(job, append(invalid, wouldBe(metav1.ConditionFalse, v1beta1.ReasonUnhealthy))...)
	c.startNow(job)
	c.wait(job, append(invalid, unhealthy())...)
	c.notUpgraded(job)
	if got := c.queries() - asked; got > 0 {
		t.Errorf("Prometheus was asked %d times what is no query", got)
	}
}

func TestCustomQueryThatReturnsASampleHoldsTheUpgrade(t *testing.T) {
	c := newCluster(t)
	c.expose("test_unsynced_replicas", 3, "database=orders", "zone=a")
	c.startOperator()
	job := create(c, aJob(attentive(asking("test_unsynced_replicas > 0"))))
	c.wait(job, unhealthy(), blockers(1),
		blockedBy("CustomQueryReturnedSamples", "CustomQuery/0", "test_unsynced_replicas > 0", `database="orders"`, `zone="a"`, "= 3"),
		saying(steps.ConditionClusterHealthyBeforeUpgrade, `database="orders"`))
	c.leftAlone(job)
	c.goesOn(job, c.withdraw("test_unsynced_replicas"))
}

// wouldBe expects what a job would find if it started now.
func wouldBe(status metav1.ConditionStatus, reason string) expectation {
	return turned(v1beta1.ConditionPreflightHealthy, status, reason)
}

// without expects that there is no such condition.
func without(condition string) expectation {
	return func(job *v1beta1.UpgradeJob) error {
		if found := meta.FindStatusCondition(job.Status.Conditions, condition); found != nil {
			return fmt.Errorf("there is still a condition %s: %s", condition, found.Message)
		}
		return nil
	}
}

// notSaying expects that the message of a condition has no such word.
func notSaying(condition, word string) expectation {
	return func(job *v1beta1.UpgradeJob) error {
		if found := meta.FindStatusCondition(job.Status.Conditions, condition); found == nil || strings.Contains(found.Message, word) {
			return fmt.Errorf("want %s without %q: %+v", condition, word, found)
		}
		return nil
	}
}

// announced waits for an Event about a job whose note says the words.
func (c *cluster) announced(job *v1beta1.UpgradeJob, reason string, words ...string) {
	c.t.Helper()
	c.eventually("an Event "+reason, func() error {
		list := &eventsv1.EventList{}
		if err := env.Client.List(c.ctx, list, client.InNamespace(job.Namespace)); err != nil {
			return err
		}
		for _, event := range list.Items {
			if event.Regarding.UID != job.UID || event.Reason != reason {
				continue
			}
			for _, word := range words {
				if !strings.Contains(event.Note, word) {
					return fmt.Errorf("it does not say %q: %s", word, event.Note)
				}
			}
			return nil
		}
		return errors.New("there is none")
	})
}
