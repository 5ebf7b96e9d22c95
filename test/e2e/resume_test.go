// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// resume asks for another attempt.
func (c *cluster) resume(job *v1beta1.UpgradeJob, request string) {
	c.t.Helper()
	edit(c, job, func(job *v1beta1.UpgradeJob) { job.Spec.ResumeRequest = request })
}

func TestFailedJobIsResumedWhereTheClusterStands(t *testing.T) {
	c := newCluster(t, stuck("network"))
	c.startOperator()
	job := create(c, aJob(configured(func(config *v1beta1.UpgradeJobConfig) { config.UpgradeTimeout = duration(3 * time.Second) })))
	c.wait(job, failedFor(v1beta1.ReasonTimedOut), withoutFinalizers())
	c.waitVersion("the lock is released", unlocked)
	healthy := *stepOf(t, job, steps.ConditionClusterHealthyBeforeUpgrade)

	c.change(mended)
	c.resume(job, "the network is mended")
	c.wait(job, succeeded(), withoutFinalizers())
	c.upgradedOnce(job)
	if got := job.Status.ResumedRequests; len(got) != 1 || got[0].Request != job.Spec.ResumeRequest || got[0].Reopened != "Failed(TimedOut)" {
		t.Errorf("resumedRequests are %+v", got)
	}
	if got := *stepOf(t, job, steps.ConditionClusterHealthyBeforeUpgrade); got.Attempts != 1 || !got.StartTime.Equal(&healthy.StartTime) {
		t.Errorf("a step that was done ran again: %+v, was %+v", got, healthy)
	}
	if got := stepOf(t, job, steps.ConditionControlPlaneUpgraded); got.Attempts != 2 || got.CompletionTime == nil {
		t.Errorf("the step that the job is resumed in is %+v, want two attempts", got)
	}
}

func TestJobThatFailsAgainIsResumedAgain(t *testing.T) {
	c := newCluster(t, degraded("storage"))
	c.startOperator()
	job := create(c, aJob(configured(func(config *v1beta1.UpgradeJobConfig) {
		config.PreUpgradeHealthChecks.Timeout = duration(3 * time.Second)
	})))
	c.wait(job, skippedFor(v1beta1.ReasonPreHealthCheckFailed))
	c.resume(job, "again")
	resumed := c.when(job, inPhase(v1beta1.PhaseActive), resumedTimes(1))
	c.wait(job, skippedFor(v1beta1.ReasonPreHealthCheckFailed), withoutFinalizers(), resumedTimes(1))
	if took := time.Since(resumed); took < 500*time.Millisecond {
		t.Errorf("the resumed job was given up after %s: its timeout is not a fresh one", took)
	}
	c.change(mended)
	c.resume(job, "once more")
	c.wait(job, succeeded())
	c.upgradedOnce(job)
}

// resumedTimes expects how often the job was resumed.
func resumedTimes(n int) expectation {
	return func(job *v1beta1.UpgradeJob) error {
		if got := len(job.Status.ResumedRequests); got != n {
			return fmt.Errorf("the job was resumed %d times, want %d", got, n)
		}
		return nil
	}
}

func stepOf(t *testing.T, job *v1beta1.UpgradeJob, condition string) *v1beta1.StepStatus {
	t.Helper()
	for i := range job.Status.Steps {
		if job.Status.Steps[i].Condition == condition {
			return &job.Status.Steps[i]
		}
	}
	t.Fatalf("there is no step %s in %+v", condition, job.Status.Steps)
	return nil
}
