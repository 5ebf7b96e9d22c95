// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// The job fails at delayMax by itself: nothing happens in these clusters when it comes.
func TestPoolThatCannotBeReleasedInItsTimeFailsTheJob(t *testing.T) {
	const limit = 6 * time.Second
	t.Run("the control plane is not through", func(t *testing.T) {
		c := newCluster(t, withFewNodes, withPool("night", 1), stuck("network"))
		c.startOperator()
		start := soon(0)
		job := create(c, aJob(startingAt(start), delaying("night", 4*time.Second, limit)))
		c.wait(job, failedFor(v1beta1.ReasonUnpausingPoolsExpired), saying(v1beta1.ConditionFailed, "night"),
			leftPaused(v1beta1.ReasonLeftPaused, "night"), withoutFinalizers())
		c.promptly("the end of the job", c.when(job, inPhase(v1beta1.PhaseFailed)), start.Add(limit))
		c.poolStays("night", heldBy(job))

		// Resumed, it has as long again, and releases the pool, whose delay is over, when the control plane is through.
		c.change(mended)
		c.resume(job, "the network is mended")
		c.wait(job, succeeded(), withoutFinalizers(), resumedTimes(1), holdingNothing())
		c.pool("night", free, updated)
		c.upgradedOnce(job)
	})
	t.Run("its hook hangs", func(t *testing.T) {
		c := newCluster(t, withFewNodes, withPool("night", 1))
		create(c, aHook(at(unpause), hanging))
		c.startOperator()
		start := soon(0)
		// The other spelling means the same.
		job := create(c, aJob(startingAt(start), configured(func(config *v1beta1.UpgradeJobConfig) {
			config.MachineConfigPools = []v1beta1.MachineConfigPoolConfig{{
				MatchLabels:  &v1beta1.PoolSelector{MatchLabels: map[string]string{roleOf("night"): ""}},
				DelayUpgrade: &v1beta1.DelayUpgrade{StartAfter: duration(4 * time.Second), StartBefore: duration(limit + 2*time.Second)},
			}}
		})))
		pod := c.active(job, "backup", unpause)
		c.wait(job, failedFor(v1beta1.ReasonUnpausingPoolsExpired), saying(v1beta1.ConditionFailed, "night", "backup"),
			leftPaused(v1beta1.ReasonLeftPaused, "night"))
		c.promptly("the end of the job", c.when(job, inPhase(v1beta1.PhaseFailed)), start.Add(limit+2*time.Second))
		c.let(pod, sim.OutcomeSucceed)
		c.wait(job, failedFor(v1beta1.ReasonUnpausingPoolsExpired), withoutFinalizers())
		c.poolStays("night", heldBy(job))
	})
}

func TestHookThatFailsKeepsAPoolPaused(t *testing.T) {
	c := newCluster(t, withFewNodes, withPool("night", 1))
	hook := create(c, aHook(at(unpause), aborting, failing(noTicket)))
	c.startOperator()
	job := create(c, aJob(delaying("night", 4*time.Second, 0)))
	c.wait(job, failedFor(v1beta1.ReasonHookFailed), saying(v1beta1.ConditionFailed, "backup", noTicket),
		waitingIn(steps.ConditionDelayedPoolsUpgraded, v1beta1.ReasonHookFailed), leftPaused(v1beta1.ReasonLeftPaused, "night"), withoutFinalizers())
	c.poolStays("night", heldBy(job))
	edit(c, hook, succeeding)
	c.resume(job, "approved")
	c.wait(job, succeeded(), withoutFinalizers(), ran("backup", unpause, v1beta1.HookRunFailed, v1beta1.HookRunSucceeded))
	c.pool("night", free, updated)
	c.upgradedOnce(job)
}

// The cluster-version operator would wait for such a pool for ever.
func TestPoolThatTheControlPlaneNeedsCannotBeDelayed(t *testing.T) {
	c := newCluster(t, withFewNodes, withPool("infra", 1), func(s *sim.Scenario) {
		s.CustomPools[0].Labels = map[string]string{"operator.machineconfiguration.openshift.io/required-for-upgrade": ""}
	})
	before := c.version()
	c.startOperator()
	for _, pool := range []string{"master", "infra"} {
		config := create(c, aConfig(creatingAJobNow(), ofJobs(withDelay(pool, time.Hour, 0)), func(config *v1beta1.UpgradeConfig) { config.Name = pool }))
		c.waitConfig(config, v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonPoolCannotBeDelayed, pool, "machineConfigPools[0]", "control plane")
		c.waitConfig(config, v1beta1.ConditionScheduling, metav1.ConditionFalse, v1beta1.ReasonInvalidConfig)
		job := c.wait(create(c, aJob(named("by-hand-"+pool), delaying(pool, time.Hour, 0))), skippedFor(v1beta1.ReasonPoolCannotBeDelayed),
			saying(v1beta1.ConditionSkipped, pool, "control plane"), withoutFinalizers())
		c.poolStays(pool, free)
		// It is mended by a change of the config.
		edit(c, config, func(config *v1beta1.UpgradeConfig) {
			config.Spec.PinVersionWindow = nil
			config.Spec.JobTemplate.Spec.Config.MachineConfigPools[0].DelayUpgrade = nil
		})
		c.waitConfig(config, v1beta1.ConditionReady, metav1.ConditionTrue, v1beta1.ReasonValid)
		if got := len(c.jobsOf(config)); got > 0 {
			t.Errorf("a config that cannot be used has created %d jobs", got)
		}
		c.remove(job)
	}
	c.untouched(before)
}

// The API server cannot tell a bad selector, but we can.
func TestSelectorOfPoolsThatIsNoneIsTold(t *testing.T) {
	c := newCluster(t, withFewNodes)
	before := c.version()
	c.startOperator()
	for name, tt := range map[string]struct {
		selector v1beta1.PoolSelector
		words    []string
	}{
		"expression": {v1beta1.PoolSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near", Values: []string{"night"}}}}, []string{"Near"}},
		"number":     {v1beta1.PoolSelector{Malformed: map[string]string{"tier": "3"}}, []string{"tier", "3", "quotes"}},
		"twice": {
			v1beta1.PoolSelector{Labels: map[string]string{"app": "night"}, MatchLabels: map[string]string{"app": "day"}},
			[]string{"app", "night", "day"},
		},
	} {
		bad := func(config *v1beta1.UpgradeJobConfig) {
			config.MachineConfigPools = []v1beta1.MachineConfigPoolConfig{{MatchLabels: &tt.selector, DelayUpgrade: &v1beta1.DelayUpgrade{DelayMin: duration(time.Hour)}}}
		}
		config := create(c, aConfig(creatingAJobNow(), ofJobs(bad), func(config *v1beta1.UpgradeConfig) { config.Name = name }))
		words := append([]string{"machineConfigPools[0].matchLabels"}, tt.words...)
		c.waitConfig(config, v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonInvalidSelector, words...)
		c.wait(create(c, aJob(named(name), configured(bad))), skippedFor(v1beta1.ReasonInvalidSelector), saying(v1beta1.ConditionSkipped, words...), withoutFinalizers())
		if got := len(c.jobsOf(config)); got > 0 {
			t.Errorf("a config that cannot be used has created %d jobs", got)
		}
	}
	c.untouched(before)
}

// Both spellings of a selector select the same pools, by any label.
func TestSelectorsOfPoolsInUseSelectThem(t *testing.T) {
	c := newCluster(t, withFewNodes, withPool("plain", 1), withPool("expression", 1), func(s *sim.Scenario) {
		s.CustomPools[0].Labels = map[string]string{"name": "x-app-night-maintenance"}
		s.CustomPools[1].Labels = map[string]string{"app": "night"}
	})
	c.startOperator()
	delay := &v1beta1.DelayUpgrade{DelayMin: duration(time.Hour)}
	job := create(c, aJob(withoutVersion, configured(func(config *v1beta1.UpgradeJobConfig) {
		config.MachineConfigPools = []v1beta1.MachineConfigPoolConfig{
			{MatchLabels: &v1beta1.PoolSelector{Labels: map[string]string{"name": "x-app-night-maintenance"}}, DelayUpgrade: delay},
			{DelayUpgrade: delay, MatchLabels: &v1beta1.PoolSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"night"}}},
			}},
		}
	})))
	c.wait(job, inPhase(v1beta1.PhasePaused), holding("plain", "expression"))
	c.pool("plain", heldBy(job))
	c.pool("expression", heldBy(job))
	c.pool("worker", free)
	c.pool("master", free)
}
