// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/test/environment"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// eventsOfAnUpgrade are one of each sort.
var eventsOfAnUpgrade = []v1beta1.HookEvent{
	v1beta1.HookEventCreate, v1beta1.HookEventStart, aboutToCommence, controlPlaneUpgraded, v1beta1.HookEventUpgradeComplete,
	v1beta1.HookEventSuccess, v1beta1.HookEventFinish,
}

// ranOnce expects that a job that is over had one Job of the hook at each of the events, and that each succeeded.
func (c *cluster) ranOnce(job *v1beta1.UpgradeJob, hook string, events ...v1beta1.HookEvent) {
	c.t.Helper()
	var got []v1beta1.HookEvent
	for _, j := range c.hookJobsOf(job) {
		got = append(got, j.event)
	}
	want := slices.Clone(events)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		c.t.Errorf("the hook had Jobs at %v, want one at each of %v", got, want)
	}
	for _, event := range events {
		if err := check(job, ran(hook, event, v1beta1.HookRunSucceeded)); err != nil {
			c.t.Error(err)
		}
	}
}

// Each process of the operator lives until the API server has carried out its first write, or the second, or the third, in
// turn, and never knows of that. With one write each nobody would come beyond that which proves, before a Job is created,
// that nothing has changed. The Jobs of the hook are deleted as soon as they have finished.
func TestOperatorIsKilledAgainAndAgainWhileHooksRun(t *testing.T) {
	c := newClusterFor(t, 3*patience)
	hook := create(c, aHook(at(eventsOfAnUpgrade...), forTheNextJob, removedWhenFinished))
	job := create(c, aJob())
	proxy := c.startProxy()
	victims, kills := make(chan *environment.Operator, 1), make(chan environment.Write, 1)
	killed := 0
	launch := func() {
		last := killed%3 + 1
		proxy.Interpose(func(number int, w environment.Write) *environment.Fault {
			if number != last {
				return nil
			}
			return &environment.Fault{Commit: true, Then: func() { (<-victims).Kill(); kills <- w }}
		})
		victims <- c.startOperatorThrough(proxy)
	}
	launch()
	c.eventually("the upgrade", func() error {
		select {
		case w := <-kills:
			killed++
			t.Logf("killed after %s %s", w.Method, w.Path)
			launch()
		default:
		}
		c.get(job)
		c.get(hook)
		return errors.Join(check(job, succeeded(), withoutFinalizers()), claimedBy(hook, job),
			lastResults(hook, job, slices.Sorted(slices.Values(eventsOfAnUpgrade))...))
	})
	proxy.Interpose(nil)
	t.Logf("killed %d times", killed)
	if least := 2 * len(eventsOfAnUpgrade); killed < least {
		t.Errorf("the operator was killed %d times, want at least %d: a hook takes several writes", killed, least)
	}
	c.ranOnce(job, hook.Name, eventsOfAnUpgrade...)
	c.upgradedOnce(job)
}

// The Job finishes while no operator runs, and Kubernetes wants it away at once: its result counts all the same.
func TestHookFinishesWhileTheOperatorIsAway(t *testing.T) {
	for _, outcome := range []string{sim.OutcomeSucceed, sim.OutcomeFail} {
		t.Run(outcome, func(t *testing.T) {
			c := newCluster(t)
			before := c.version()
			create(c, aHook(hanging, aborting, removedWhenFinished))
			running := c.startOperator()
			job := create(c, aJob())
			pod := c.active(job, "backup", v1beta1.HookEventStart)
			running.Kill()
			c.let(pod, outcome)
			batchJob := c.hookJobsOf(job)[0].object.DeepCopy()
			c.eventually("Kubernetes removes the Job", func() error {
				c.get(batchJob)
				if batchJob.DeletionTimestamp.IsZero() || !slices.ContainsFunc(batchJob.Status.Conditions, isFinal) {
					return fmt.Errorf("deleted at %v, conditions %v", batchJob.DeletionTimestamp, batchJob.Status.Conditions)
				}
				return nil
			})
			c.startOperator()
			if outcome == sim.OutcomeSucceed {
				c.wait(job, succeeded(), withoutFinalizers(), ran("backup", v1beta1.HookEventStart, v1beta1.HookRunSucceeded))
			} else {
				c.wait(job, failedFor(v1beta1.ReasonHookFailed), withoutFinalizers(), ran("backup", v1beta1.HookEventStart, v1beta1.HookRunFailed))
				c.untouched(before)
			}
			c.gone(batchJob)
			if n := len(c.hookJobsOf(job)); n != 1 {
				t.Errorf("the hook had %d Jobs, want one", n)
			}
		})
	}
}

func TestEveryOtherWriteFailsWhileHooksRun(t *testing.T) {
	faults := []environment.Fault{
		{Code: http.StatusInternalServerError}, {Code: http.StatusConflict}, {Commit: true, Code: http.StatusGatewayTimeout}, {Commit: true},
	}
	c := newClusterFor(t, 2*patience)
	events := []v1beta1.HookEvent{v1beta1.HookEventCreate, v1beta1.HookEventStart, v1beta1.HookEventFinish}
	hook := create(c, aHook(at(events...), forTheNextJob, removedWhenFinished))
	proxy := c.startProxy()
	chance := rand.New(rand.NewPCG(3, 4))
	proxy.Interpose(func(int, environment.Write) *environment.Fault {
		if chance.IntN(2) == 0 {
			return nil
		}
		return &faults[chance.IntN(len(faults))]
	})
	c.startOperatorThrough(proxy)
	job := c.wait(create(c, aJob()), succeeded(), withoutFinalizers())
	c.ranOnce(job, hook.Name, events...)
	c.upgradedOnce(job)
}

func TestOneJobClaimsAHookOfTheNextJob(t *testing.T) {
	c := newCluster(t)
	hook := create(c, aHook(at(v1beta1.HookEventCreate, v1beta1.HookEventStart), forTheNextJob))
	c.startOperator()
	// The hook is taken by whoever comes first, to the exclusion of the other.
	var jobs []*v1beta1.UpgradeJob
	for _, name := range []string{"one", "two", "three"} {
		jobs = append(jobs, aJob(named(name), startingAt(soon(time.Hour)), startingBefore(soon(2*time.Hour))))
	}
	var group sync.WaitGroup
	for _, job := range jobs {
		group.Go(func() {
			if err := env.Client.Create(c.ctx, job); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	var winner *v1beta1.UpgradeJob
	c.eventually("one of the jobs has the hook", func() error {
		c.get(hook)
		i := slices.IndexFunc(jobs, func(job *v1beta1.UpgradeJob) bool { return claimedBy(hook, job) == nil })
		if i < 0 {
			return fmt.Errorf("it is claimed by %+v", hook.Status.ClaimedBy)
		}
		winner = jobs[i]
		return nil
	})
	c.wait(winner, ran(hook.Name, v1beta1.HookEventCreate, v1beta1.HookRunSucceeded))
	for _, job := range jobs {
		c.startNow(job)
		c.wait(job, inPhase(v1beta1.PhaseSucceeded), withoutFinalizers())
		if n := len(c.hookJobsOf(job)); job != winner && n > 0 {
			t.Errorf("job %s had %d Jobs of a hook that %s has", job.Name, n, winner.Name)
		}
	}
	c.ranOnce(winner, hook.Name, v1beta1.HookEventCreate, v1beta1.HookEventStart)
}

func TestHookOfTheNextJobIsGivenFreeByASkippedJob(t *testing.T) {
	c := newCluster(t)
	hook := create(c, aHook(at(v1beta1.HookEventCreate), forTheNextJob))
	freeze := create(c, aFreeze(ofAllJobs))
	c.startOperator()
	skipped := c.wait(create(c, aJob(named("skipped"), startingAt(soon(3*time.Second)))), ran(hook.Name, v1beta1.HookEventCreate, v1beta1.HookRunSucceeded))
	c.get(hook)
	if err := claimedBy(hook, skipped); err != nil {
		t.Error(err)
	}
	c.wait(skipped, skippedFor(v1beta1.ReasonSuspended), withoutFinalizers())
	c.eventually("the hook is free", func() error {
		c.get(hook)
		return claimedBy(hook, nil)
	})
	c.remove(freeze)
	next := c.wait(create(c, aJob(named("next"))), succeeded(), withoutFinalizers())
	c.get(hook)
	if err := claimedBy(hook, next); err != nil {
		t.Error(err)
	}
	c.ranOnce(next, hook.Name, v1beta1.HookEventCreate)
	// It stays with the job that it ran for.
	after := c.wait(create(c, aJob(named("after"))), inPhase(v1beta1.PhaseSucceeded), withoutFinalizers())
	if n := len(c.hookJobsOf(after)); n > 0 {
		t.Errorf("the hook had %d Jobs for the job after the next", n)
	}
}

func TestJobOfAHookThatIsDeletedByHandHasFailed(t *testing.T) {
	c := newCluster(t)
	create(c, aHook(hanging))
	c.startOperator()
	job := create(c, aJob())
	pod := c.active(job, "backup", v1beta1.HookEventStart)
	batchJob := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: runsOf(job, "backup", v1beta1.HookEventStart)[0].Job}}
	if err := env.Client.Delete(c.ctx, batchJob, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	c.wait(job, succeeded(), withoutFinalizers(), ran("backup", v1beta1.HookEventStart, v1beta1.HookRunFailed))
	if message := runsOf(job, "backup", v1beta1.HookEventStart)[0].Message; message != "Job "+batchJob.Name+" was deleted before it finished." {
		t.Errorf("the message is %q", message)
	}
	c.gone(batchJob)
	c.gone(pod)
	if n := len(c.hookJobsOf(job)); n != 1 {
		t.Errorf("the hook had %d Jobs, want one", n)
	}
}
