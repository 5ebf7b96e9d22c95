// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"slices"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// What a hook says as its last word when it fails.
const noTicket = "the change was not approved: CHG0031337"

func TestHookThatFailsAbortsTheJob(t *testing.T) {
	tests := []struct {
		event v1beta1.HookEvent
		// at is the condition that tells of it, after the outcome.
		at string
		// desired is what the cluster is left with.
		desired string
	}{
		{v1beta1.HookEventCreate, v1beta1.ConditionCreateHooksCompleted, ""},
		{v1beta1.HookEventStart, steps.ConditionStartHooksCompleted, ""},
		{aboutToCommence, steps.ConditionUpgradeCommenced, ""},
		{controlPlaneUpgraded, steps.ConditionMachineConfigPoolsUpgraded, offered}, // the step is done: the next one is held
		{v1beta1.HookEventUpgradeComplete, steps.ConditionCompletionHooksCompleted, offered},
	}
	for _, tt := range tests {
		t.Run(string(tt.event), func(t *testing.T) {
			c := newCluster(t)
			before := c.version()
			create(c, aHook(at(tt.event), aborting, failing(noTicket)))
			create(c, aHook(hookNamed("report"), at(v1beta1.HookEventFailure, v1beta1.HookEventFinish, v1beta1.HookEventSuccess)))
			c.startOperator()
			job := create(c, aJob())
			c.wait(job, failedFor(v1beta1.ReasonHookFailed), saying(v1beta1.ConditionFailed, "backup", string(tt.event), noTicket),
				waitingIn(tt.at, v1beta1.ReasonHookFailed), saying(tt.at, noTicket), withoutFinalizers())
			c.nothingAfter(job, tt.at)
			c.waitVersion("the lock is released", unlocked)
			c.waitVersion("the desired update", desires(tt.desired))
			if tt.desired == "" {
				c.untouched(before)
			}
			got := c.hookJobsOf(job)
			var events []v1beta1.HookEvent
			for _, j := range got {
				events = append(events, j.event)
			}
			slices.Sort(events[1:])
			if want := []v1beta1.HookEvent{tt.event, v1beta1.HookEventFailure, v1beta1.HookEventFinish}; !slices.Equal(events, want) {
				t.Errorf("hooks ran at %v, want %v", events, want)
			}
		})
	}
}

// nothingAfter expects that no step after that condition has ever been begun.
func (c *cluster) nothingAfter(job *v1beta1.UpgradeJob, condition string) {
	c.t.Helper()
	later := stepsInOrder[slices.Index(stepsInOrder, condition)+1:]
	for _, step := range later {
		if found := meta.FindStatusCondition(job.Status.Conditions, step); found != nil {
			c.t.Errorf("after the hook has failed there is %s=%s (%s)", step, found.Status, found.Reason)
		}
	}
	if condition == v1beta1.ConditionCreateHooksCompleted {
		if err := check(job, started()); err == nil {
			c.t.Error("the job has started")
		}
	}
}

func TestHookThatFailsIsIgnored(t *testing.T) {
	events := []v1beta1.HookEvent{v1beta1.HookEventCreate, v1beta1.HookEventStart, controlPlaneUpgraded}
	c := newCluster(t)
	create(c, aHook(at(events...), failing(noTicket)))
	c.startOperator()
	job := c.wait(create(c, aJob()), succeeded(), withoutFinalizers())
	c.upgradedOnce(job)
	for i, condition := range []string{
		v1beta1.ConditionCreateHooksCompleted, steps.ConditionStartHooksCompleted, steps.ConditionControlPlaneUpgraded,
	} {
		err := check(job, ran("backup", events[i], v1beta1.HookRunFailed), done(condition), saying(condition, "backup", "ignored", noTicket))
		if err != nil {
			t.Errorf("%s: %v", events[i], err)
		}
		for _, run := range runsOf(job, "backup", events[i]) {
			if run.FailurePolicy != v1beta1.HookFailureIgnore {
				t.Errorf("%s: the record has the policy %q", events[i], run.FailurePolicy)
			}
		}
		c.told(job, corev1.EventTypeWarning, v1beta1.ReasonHookFailed, "backup", string(events[i]), noTicket)
	}
}

// A job that a hook has ended is resumed: only that hook runs again, as another run.
func TestResumedJobRunsOnlyTheHookAgainThatFailed(t *testing.T) {
	c := newCluster(t)
	create(c, aHook(hookNamed("good"), at(v1beta1.HookEventCreate, v1beta1.HookEventStart), aborting))
	bad := create(c, aHook(hookNamed("bad"), aborting, failing(noTicket)))
	c.startOperator()
	job := create(c, aJob())
	c.wait(job, failedFor(v1beta1.ReasonHookFailed), withoutFinalizers())
	edit(c, bad, succeeding)
	c.resume(job, "approved")
	c.wait(job, succeeded(), withoutFinalizers(), resumedTimes(1),
		ran("good", v1beta1.HookEventCreate, v1beta1.HookRunSucceeded), ran("good", v1beta1.HookEventStart, v1beta1.HookRunSucceeded),
		ran("bad", v1beta1.HookEventStart, v1beta1.HookRunFailed, v1beta1.HookRunSucceeded))
	runs := runsOf(job, "bad", v1beta1.HookEventStart)
	if runs[0].TrackingKey == runs[1].TrackingKey || runs[0].Job == runs[1].Job {
		t.Errorf("the runs are not told apart: %+v", runs)
	}
	if n := len(c.hookJobsOf(job)); n != 4 {
		t.Errorf("there were %d Jobs, want 4", n)
	}
	c.upgradedOnce(job)
}

// A hook that was mended does not help as long as nobody resumes the job, and one that fails again ends it again.
func TestResumedJobIsAbortedByItsHookAgain(t *testing.T) {
	c := newCluster(t)
	before := c.version()
	create(c, aHook(at(v1beta1.HookEventCreate), aborting, failing(noTicket)))
	c.startOperator()
	job := create(c, aJob())
	c.wait(job, failedFor(v1beta1.ReasonHookFailed), withoutFinalizers())
	c.resume(job, "again")
	c.wait(job, failedFor(v1beta1.ReasonHookFailed), resumedTimes(1), withoutFinalizers(),
		ran("backup", v1beta1.HookEventCreate, v1beta1.HookRunFailed, v1beta1.HookRunFailed))
	c.untouched(before)
	if writes := c.desiredUpdateWrites(); len(writes) > 0 {
		t.Errorf("desiredUpdate was written %d times", len(writes))
	}
	if err := errors.Join(unlocked(c.version()), history(installed, configv1.CompletedUpdate)(c.version())); err != nil {
		t.Error(err)
	}
}
