// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// One hook has every event there is. Each of its Jobs runs once, at its moment, and the upgrade waits for it.
func TestHooksRunInTheOrderOfTheUpgradeAndHoldIt(t *testing.T) {
	c := newClusterFor(t, 2*patience)
	c.startOperator()
	create(c, aHook(at(append(eventsInOrder(), v1beta1.HookEventFailure, v1beta1.HookEventSkipped)...)))
	job := c.wait(create(c, aJob()), succeeded(), withoutFinalizers())
	c.upgradedOnce(job)

	jobs := c.hookJobsOf(job)
	var got []v1beta1.HookEvent
	created, finished := map[v1beta1.HookEvent]order{}, map[v1beta1.HookEvent]order{}
	for i, j := range jobs {
		got = append(got, j.event)
		created[j.event], finished[j.event] = j.created, j.finished
		if i > 0 && j.event.Holds() && jobs[i-1].finished > j.created {
			t.Errorf("the hook ran at %s before that of %s had finished", j.event, jobs[i-1].event)
		}
	}
	if want := eventsInOrder(); !slices.Equal(got, want) {
		t.Fatalf("the hook ran at\n%v, want\n%v", got, want)
	}

	type moment struct {
		what string
		when order
	}
	beginOf := func(e v1beta1.HookEvent) moment { return moment{"the hook runs at " + string(e), created[e]} }
	endOf := func(e v1beta1.HookEvent) moment {
		return moment{"the hook of " + string(e) + " has finished", finished[e]}
	}
	desired := moment{"desiredUpdate is set", orderOf(c.desiredUpdateWrites()[0].object)}
	success := moment{"the job has succeeded", c.orderWhen(job, succeeded())}
	turns := [][]moment{
		{endOf(v1beta1.HookEventCreate), {"the job starts", c.orderWhen(job, started())}},
		{endOf(v1beta1.HookEventStart), endOf(aboutToCommence), desired, beginOf(v1beta1.HookEventStepCompleted(steps.ConditionUpgradeCommenced))},
		{{"the control plane is through", c.completion(offered)}, beginOf(controlPlaneUpgraded)},
		{endOf(v1beta1.HookEventUpgradeComplete), success, beginOf(v1beta1.HookEventSuccess)},
		{success, beginOf(v1beta1.HookEventFinish)},
	}
	var before moment // the end of what holds the step
	for i, step := range stepsInOrder {
		begun, complete := beginOf(v1beta1.HookEventStepStarted(step)), moment{step + " is done", c.orderWhen(job, over(step))}
		turns = append(turns, []moment{begun, complete, beginOf(v1beta1.HookEventStepCompleted(step))})
		if i > 0 {
			turns = append(turns, []moment{before, begun})
		}
		before = endOf(v1beta1.HookEventStepCompleted(step))
	}
	turns = append(turns, []moment{before, success})
	for _, turn := range turns {
		for i := range turn[1:] {
			if turn[i].when == 0 || turn[i].when > turn[i+1].when {
				t.Errorf("%s (%d), but not before %s (%d)", turn[i].what, turn[i].when, turn[i+1].what, turn[i+1].when)
			}
		}
	}
}

// over expects that a step lets the next ones run, in a job that pauses no pool.
func over(step string) expectation {
	if step == steps.ConditionMachineConfigPoolsPaused {
		return waitingIn(step, v1beta1.ReasonNoManagedPools)
	}
	return done(step)
}

// completion returns when the cluster-version operator wrote that it was through with a release.
func (c *cluster) completion(version string) order {
	for _, r := range past.versionsSince(c.began) {
		if history(version, configv1.CompletedUpdate)(r.object) == nil {
			return orderOf(r.object)
		}
	}
	return 0
}

// What fails after the end does not change it, whatever its failurePolicy is.
func TestHooksOfAnOutcomeOnlyInform(t *testing.T) {
	const hook = "backup"
	c := newCluster(t)
	c.startOperator()
	create(c, aHook(at(v1beta1.HookEventSuccess, v1beta1.HookEventFailure, v1beta1.HookEventSkipped, v1beta1.HookEventFinish), aborting, failing("no mail server")))
	withoutVersion := func(job *v1beta1.UpgradeJob) { job.Spec.DesiredVersion = nil }
	for _, tt := range []struct {
		job   *v1beta1.UpgradeJob
		end   expectation
		event v1beta1.HookEvent
	}{
		{aJob(named("succeeds"), withoutVersion), succeededFor(v1beta1.ReasonNothingToUpgrade), v1beta1.HookEventSuccess},
		{
			aJob(named("is-late"), startingAt(time.Now().Add(-time.Hour)), startingBefore(time.Now().Add(-time.Minute))),
			skippedFor(v1beta1.ReasonExpired), v1beta1.HookEventSkipped,
		},
		{aJob(named("fails"), timingOutAfter(3*time.Second)), failedFor(v1beta1.ReasonTimedOut), v1beta1.HookEventFailure},
	} {
		if tt.event == v1beta1.HookEventFailure {
			c.change(degraded("storage"))
			tt.job.Spec.StartAfter.Time = soon(0)
		}
		job := c.wait(create(c, tt.job), tt.end, withoutFinalizers(),
			ran(hook, tt.event, v1beta1.HookRunFailed), ran(hook, v1beta1.HookEventFinish, v1beta1.HookRunFailed))
		ended := c.orderWhen(job, tt.end)
		jobs := c.hookJobsOf(job)
		for _, j := range jobs {
			if j.created < ended {
				t.Errorf("%s: the hook ran at %s before the job had ended", job.Name, j.event)
			}
		}
		if len(jobs) != 2 {
			t.Errorf("%s: the hook had %d Jobs, want one at %s and one at Finish", job.Name, len(jobs), tt.event)
		}
	}
}

// timingOutAfter gives a job so long, from its startAfter.
func timingOutAfter(d time.Duration) func(*v1beta1.UpgradeJob) {
	return configured(func(config *v1beta1.UpgradeJobConfig) { config.UpgradeTimeout = duration(d) })
}
