// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

const hookBackup = "UpgradeJobHook/backup"

func TestHookThatHangsDoesNotKeepTheJobFromTimingOut(t *testing.T) {
	const limit = 4 * time.Second
	c := newCluster(t)
	before := c.version()
	create(c, aHook(hanging, aborting))
	c.startOperator()
	start := soon(500 * time.Millisecond)
	job := create(c, aJob(startingAt(start), timingOutAfter(limit)))
	c.active(job, "backup", v1beta1.HookEventStart)
	// It is told from the first moment on.
	waiting := waitingIn(steps.ConditionStartHooksCompleted, v1beta1.ReasonHooksRunning)
	running := c.when(job, waiting, blockedBy(v1beta1.ReasonHookRunning, hookBackup, "backup", string(v1beta1.HookEventStart)))
	if first := c.when(job, waiting); !first.Equal(running) {
		t.Errorf("the blocker is told %s after the step began to wait", running.Sub(first))
	}
	if deadline := c.hookJobsOf(job)[0].object.Spec.ActiveDeadlineSeconds; deadline == nil || *deadline < 1 || *deadline > int64(limit.Seconds()) {
		t.Errorf("the Job has the deadline %v, want that of the job", deadline)
	}
	c.wait(job, failedFor(v1beta1.ReasonTimedOut), saying(v1beta1.ConditionFailed, "UpgradeJobHook backup"))
	c.promptly("the timeout", c.when(job, failedFor(v1beta1.ReasonTimedOut)), start.Add(limit))
	c.untouched(before)
	// Kubernetes ends the Job too, and that is recorded.
	c.wait(job, ran("backup", v1beta1.HookEventStart, v1beta1.HookRunFailed), failedFor(v1beta1.ReasonTimedOut), withoutFinalizers())
}

// What hangs before the upgrade keeps it from beginning once its window is over, however it ends then.
func TestHookThatHangsBeforeTheUpgradeLetsTheWindowPass(t *testing.T) {
	tests := map[v1beta1.HookEvent]struct {
		waiting func() expectation
		phase   v1beta1.Phase
	}{
		v1beta1.HookEventCreate: {func() expectation { return notStarted(v1beta1.ReasonHooksRunning) }, v1beta1.PhasePending},
		aboutToCommence: {func() expectation {
			return waitingIn(steps.ConditionUpgradeCommenced, v1beta1.ReasonHooksRunning)
		}, v1beta1.PhaseActive},
	}
	for event, tt := range tests {
		t.Run(string(event), func(t *testing.T) {
			c := newCluster(t)
			before := c.version()
			create(c, aHook(at(event), hanging))
			c.startOperator()
			end := soon(2 * time.Second)
			job := create(c, aJob(startingBefore(end), attentive(givingUpAfter(time.Second))))
			pod := c.active(job, "backup", event)
			c.wait(job, tt.waiting(), inPhase(tt.phase), blockedBy(v1beta1.ReasonHookRunning, hookBackup, string(event)))
			c.wait(job, skippedFor(v1beta1.ReasonExpired), saying(v1beta1.ConditionSkipped, "backup"))
			c.promptly("the end", c.when(job, skippedFor(v1beta1.ReasonExpired)), end)
			c.waitVersion("the lock is released", unlocked)
			c.let(pod, sim.OutcomeSucceed)
			c.wait(job, ran("backup", event, v1beta1.HookRunSucceeded), skippedFor(v1beta1.ReasonExpired), withoutFinalizers())
			c.untouched(before)
		})
	}
}

func TestHookThatHangsAfterTheEndHoldsNobodyUp(t *testing.T) {
	c := newCluster(t, offering(offered, "4.18.3"))
	create(c, aHook(at(v1beta1.HookEventFinish), hanging, ofJobsLabelled("mail", "slow")))
	c.startOperator()
	first := create(c, aJob(named("first"), labelled("mail", "slow")))
	pod := c.active(first, "backup", v1beta1.HookEventFinish)
	c.wait(first, succeeded())
	c.waitVersion("the lock is released", unlocked)
	second := c.wait(create(c, aJob(named("second"), to("4.18.3"))), succeeded(), withoutFinalizers())
	c.wait(first, succeeded(), ran("backup", v1beta1.HookEventFinish, v1beta1.HookRunActive))
	c.let(pod, sim.OutcomeSucceed)
	c.wait(first, ran("backup", v1beta1.HookEventFinish, v1beta1.HookRunSucceeded), withoutFinalizers())
	if first.Status.CompletionTime.After(second.Status.CompletionTime.Time) {
		t.Errorf("the first job ended at %s, the second at %s", first.Status.CompletionTime, second.Status.CompletionTime)
	}
}
