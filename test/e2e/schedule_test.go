// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

func TestJobIsCreatedAtItsTimeWithTheVersionOfThatTime(t *testing.T) {
	c := newCluster(t)
	c.startOperator()
	due := time.Now().Add(3 * time.Second)
	config := create(c, aConfig(creatingAJobAt(due)))
	c.waitConfig(config, v1beta1.ConditionScheduling, metav1.ConditionTrue, v1beta1.ReasonScheduled)
	c.change(offering("4.18.9", "4.18.10", "4.19.0-rc.1"))

	job := c.jobOf(config)
	c.promptly("the creation of the job", c.when(job), due)
	if got := job.Spec.DesiredVersion; got == nil || got.Version != "4.19.0-rc.1" {
		t.Errorf("the job is pinned to %+v, want the highest of the updates at its creation", got)
	}
	c.waitConfig(config, v1beta1.ConditionScheduling, metav1.ConditionFalse, v1beta1.ReasonJobActive, job.Name)

	// What is offered later changes nothing.
	c.change(offering("4.18.9", "4.18.10", "4.18.12", "4.19.0-rc.1"))
	c.offers("4.19.0-rc.1", "4.18.12", "4.18.10", "4.18.9")
	if got := c.jobOf(config); got.Name != job.Name || got.Spec.DesiredVersion.Version != "4.19.0-rc.1" {
		t.Errorf("the job became %s to %+v", got.Name, got.Spec.DesiredVersion)
	}
}

func TestSuspendedConfigCreatesNoJobUntilItIsNotSuspendedAnyMore(t *testing.T) {
	c := newCluster(t)
	c.startOperator()
	config := create(c, aConfig(creatingAJobNow(), func(config *v1beta1.UpgradeConfig) { config.Spec.Schedule.Suspend = true }))
	c.waitConfig(config, v1beta1.ConditionScheduling, metav1.ConditionFalse, v1beta1.ReasonSuspended, "spec.schedule.suspend")
	if jobs := c.jobsOf(config); len(jobs) > 0 {
		t.Errorf("there are %d jobs, want none", len(jobs))
	}
	edit(c, config, func(config *v1beta1.UpgradeConfig) { config.Spec.Schedule.Suspend = false })
	c.jobOf(config)
}

func TestSuspensionWindowKeepsConfigsFromCreatingJobs(t *testing.T) {
	c := newCluster(t)
	window := create(c, aFreeze(ofAllConfigs))
	c.startOperator()
	config := create(c, aConfig(creatingAJobNow()))
	c.waitConfig(config, v1beta1.ConditionScheduling, metav1.ConditionFalse, v1beta1.ReasonSuspensionWindow, window.Name, window.Spec.Reason)
	c.eventually("the window lists the config", func() error {
		c.get(window)
		if got := window.Status.MatchingConfigs; len(got) != 1 || got[0].Name != config.Name {
			return fmt.Errorf("it lists %v", got)
		}
		return conditionIs(window.Status.Conditions, v1beta1.ConditionReady, metav1.ConditionTrue, v1beta1.ReasonValid)
	})
	if jobs := c.jobsOf(config); len(jobs) > 0 {
		t.Errorf("there are %d jobs, want none", len(jobs))
	}
	c.remove(window)
	c.jobOf(config)
}

func TestSuspensionWindowKeepsJobsFromStarting(t *testing.T) {
	c := newCluster(t)
	before := c.version()
	window := create(c, aFreeze(ofAllJobs))
	c.startOperator()
	start := soon(time.Second)
	job := create(c, aJob(startingAt(start)))
	c.wait(job, skippedFor(v1beta1.ReasonSuspended), saying(v1beta1.ConditionSkipped, window.Name, window.Spec.Reason))
	c.promptly("the end of the job", c.when(job, skippedFor(v1beta1.ReasonSuspended)), start)
	c.get(window)
	if got := window.Status.MatchingJobs; len(got) != 1 || got[0].Name != job.Name {
		t.Errorf("the window lists the jobs %v", got)
	}
	c.untouched(before)
}

func TestRunningJobGoesOnInASuspensionWindow(t *testing.T) {
	c := newCluster(t, stuck("network"))
	c.startOperator()
	job := c.wait(create(c, aJob()), waitingIn(steps.ConditionControlPlaneUpgraded, v1beta1.ReasonControlPlaneUpdating))
	create(c, aFreeze(ofAllJobs, ofAllConfigs))
	c.change(mended)
	c.wait(job, succeeded())
	c.upgradedOnce(job)
}

func TestJobWhoseWindowPassedWhileTheOperatorWasDownIsSkipped(t *testing.T) {
	c := newCluster(t)
	before := c.version()
	end := soon(0)
	job := create(c, aJob(startingAt(end.Add(-time.Hour)), startingBefore(end)))
	c.until(end.Add(10 * time.Millisecond))
	c.startOperator()
	c.wait(job, skippedFor(v1beta1.ReasonExpired), withoutFinalizers())
	c.untouched(before)
}

func TestStartMissedWhileTheOperatorWasDown(t *testing.T) {
	tests := map[string]struct {
		maxSchedulingDelay time.Duration
		wantJob            bool
	}{
		"within maxSchedulingDelay its job is created late": {time.Hour, true},
		"after maxSchedulingDelay it is given up":           {100 * time.Millisecond, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			due := time.Now().Add(time.Second)
			config := create(c, aConfig(creatingAJobAt(due), func(config *v1beta1.UpgradeConfig) {
				config.Spec.MaxSchedulingDelay = duration(tt.maxSchedulingDelay)
			}))
			c.until(due.Add(200 * time.Millisecond))
			c.startOperator()
			if tt.wantJob {
				c.jobOf(config)
				return
			}
			c.waitConfig(config, v1beta1.ConditionScheduling, metav1.ConditionTrue, v1beta1.ReasonScheduled, "skipped", v1beta1.ReasonMissed)
			if got := config.Status.LastSkippedStart; got == nil || got.Reason != v1beta1.ReasonMissed || !got.StartAfter.Time.Equal(nextFarAway()) {
				t.Errorf("lastSkippedStart is %+v", got)
			}
			if jobs := c.jobsOf(config); len(jobs) > 0 {
				t.Errorf("there are %d jobs, want none", len(jobs))
			}
		})
	}
}

func TestSecondJobWaitsForTheFirst(t *testing.T) {
	c := newCluster(t, stuck("network"), func(s *sim.Scenario) {
		s.Updates = append(s.Updates, sim.OfferedUpdate{Version: "4.18.3"})
	})
	c.startOperator()
	first := c.wait(create(c, aJob(named("first"))), started(), done(steps.ConditionUpgradeCommenced))
	end := soon(time.Second)
	tooLate := create(c, aJob(named("too-late"), to("4.18.3"), startingBefore(end)))
	second := create(c, aJob(named("second"), to("4.18.3")))
	for _, job := range []*v1beta1.UpgradeJob{tooLate, second} {
		c.wait(job, notStarted(v1beta1.ReasonClusterLocked), saying(v1beta1.ConditionStarted, "first"))
	}
	c.wait(tooLate, skippedFor(v1beta1.ReasonExpired), saying(v1beta1.ConditionSkipped, "first"))

	c.change(mended)
	c.wait(first, succeeded())
	c.wait(second, succeeded())
	if writes := c.desiredUpdateWrites(); len(writes) != 2 {
		t.Errorf("desiredUpdate was written %d times, want once by each of two jobs", len(writes))
	}
}

// Two configs with one window want the same version at the same moment.
func TestOfTwoJobsAtTheSameMomentOneUpgrades(t *testing.T) {
	c := newCluster(t, stuck("network"))
	c.startOperator()
	start := soon(500 * time.Millisecond)
	one := create(c, aJob(named("one"), startingAt(start)))
	two := create(c, aJob(named("two"), startingAt(start)))
	c.accepted(offered)
	c.eventually("one job waits for the other", func() error {
		c.get(one)
		c.get(two)
		first, second := one, two
		if check(one, started()) != nil {
			first, second = two, one
		}
		return check(first, started(), done(steps.ConditionUpgradeCommenced), func(*v1beta1.UpgradeJob) error {
			return check(second, notStarted(v1beta1.ReasonClusterLocked), saying(v1beta1.ConditionStarted, first.Name))
		})
	})
	c.change(mended)
	c.wait(one, inPhase(v1beta1.PhaseSucceeded))
	c.wait(two, inPhase(v1beta1.PhaseSucceeded))
	if writes := c.desiredUpdateWrites(); len(writes) != 1 {
		t.Errorf("desiredUpdate was written %d times, want once", len(writes))
	}
}

func TestOneConfigHasOneUnfinishedJob(t *testing.T) {
	c := newCluster(t, stuck("network"))
	c.startOperator()
	config := create(c, aConfig(creatingAJobNow()))
	job := c.jobOf(config)
	c.startNow(job)
	c.wait(job, done(steps.ConditionUpgradeCommenced))
	// Another schedule, which is due too.
	edit(c, config, func(config *v1beta1.UpgradeConfig) {
		config.Spec.Schedule.Cron = "0 12 2 * *"
		config.Spec.PinVersionWindow = duration(40 * 24 * time.Hour)
	})
	c.eventually("the config knows its new schedule", func() error {
		c.get(config)
		if config.Status.ObservedGeneration != config.Generation {
			return errors.New("it does not")
		}
		return conditionIs(config.Status.Conditions, v1beta1.ConditionScheduling, metav1.ConditionFalse, v1beta1.ReasonJobActive, job.Name)
	})
	c.jobOf(config) // fails if there are two
	c.change(mended)
	c.wait(job, succeeded())
}

func TestNoJobIsCreatedWhileNoUpdateIsAvailable(t *testing.T) {
	for name, asList := range map[string]bool{"null": false, "empty list": true} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, offering(), func(s *sim.Scenario) { s.EmptyUpdatesAsList = asList })
			c.startOperator()
			config := create(c, aConfig(creatingAJobNow()))
			c.waitConfig(config, v1beta1.ConditionScheduling, metav1.ConditionFalse, v1beta1.ReasonNoUpdateAvailable)
			if jobs := c.jobsOf(config); len(jobs) > 0 {
				t.Errorf("there are %d jobs, want none", len(jobs))
			}
			// One that appears in time is still used.
			c.change(offering(offered))
			if got := c.jobOf(config).Spec.DesiredVersion; got == nil || got.Version != offered {
				t.Errorf("the job is pinned to %+v", got)
			}
		})
	}
}

func TestJobWithoutAVersionUpgradesNothing(t *testing.T) {
	c := newCluster(t, offering())
	before := c.version()
	c.startOperator()
	config := create(c, aConfig(creatingAJobNow(), func(config *v1beta1.UpgradeConfig) {
		config.Spec.NoUpdatePolicy = v1beta1.NoUpdatePolicyCreateJob
	}))
	job := c.jobOf(config)
	if job.Spec.DesiredVersion != nil {
		t.Errorf("the job has the version %+v", job.Spec.DesiredVersion)
	}
	c.startNow(job)
	c.wait(job, succeededFor(v1beta1.ReasonNothingToUpgrade))
	c.untouched(before)
}
