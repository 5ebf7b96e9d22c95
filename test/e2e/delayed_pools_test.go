// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// Two pools follow later, one after the other, beside one that follows at once. A hook is heard before each.
func TestDelayedPoolsFollowAtTheirTime(t *testing.T) {
	const early, late = 6 * time.Second, 12 * time.Second
	c := newCluster(t, withPool("late", 1), withPool("early", 2))
	create(c, aHook(at(unpause), aborting))
	c.startOperator()
	start := soon(0)
	job := create(c, aJob(startingAt(start), delaying("late", late, time.Minute), delaying("early", early, 0)))
	c.wait(job, holding("early", "late"), inPhase(v1beta1.PhasePaused),
		waitingIn(steps.ConditionDelayedPoolsUpgraded, v1beta1.ReasonMachineConfigPoolsDelayed), done(steps.ConditionCompletionHooksCompleted),
		poolSaid("early", pausedUntil(job, start.Add(early), time.Time{})), poolSaid("late", pausedUntil(job, start.Add(late), start.Add(time.Minute))))
	c.pool("worker", free, updated)
	c.wait(job, succeeded(), withoutFinalizers(), holdingNothing())

	paused := c.orderWhen(job, holding("early", "late"))
	for pool, delay := range map[string]time.Duration{"early": early, "late": late} {
		pause, release := c.turnOf(pool, heldBy(job)), c.releaseOf(pool)
		c.rebootedAfter(pool, orderOf(pause.object), orderOf(release.object))
		c.heardOnce(job, pool, "DelayReached", start.Add(delay), release)
		if desired := orderOf(c.desiredUpdateWrites()[0].object); orderOf(pause.object) > desired || paused > desired {
			t.Errorf("pool %s is paused at %d, the condition says so at %d, but desiredUpdate is set at %d", pool, orderOf(pause.object), paused, desired)
		}
		c.pool(pool, free, updated)
		if err := poolIs(release.object, free); err != nil {
			t.Errorf("the write that releases the pool leaves something: %v", err)
		}
	}
	want := []v1beta1.Phase{
		v1beta1.PhaseActive, v1beta1.PhasePaused, v1beta1.PhaseActive, v1beta1.PhasePaused, v1beta1.PhaseActive, v1beta1.PhaseSucceeded,
	}
	if got := c.phasesOf(job); !slices.Equal(got, want) {
		t.Errorf("the phases are %v, want %v", got, want)
	}
	if n := len(c.hookJobsOf(job)); n != 2 {
		t.Errorf("the hook had %d Jobs, want one for each pool", n)
	}
	c.upgradedOnce(job)
	c.everyNodeRuns(offered)
}

// pausedUntil expects that the job has paused the pool, and when it releases it and gives up; zero for never.
func pausedUntil(job *v1beta1.UpgradeJob, after, before time.Time) func(v1beta1.MachineConfigPoolStatus) error {
	return func(pool v1beta1.MachineConfigPoolStatus) error {
		if !pool.Paused || pool.PausedBy != keyOf(job) || pool.UnpauseAfter == nil || !pool.UnpauseAfter.Time.Equal(after) {
			return fmt.Errorf("want it to be paused by %s until %s", keyOf(job), after)
		}
		if before.IsZero() != (pool.UnpauseBefore == nil) || (pool.UnpauseBefore != nil && !pool.UnpauseBefore.Time.Equal(before)) {
			return fmt.Errorf("want the job to give up at %s", before)
		}
		return nil
	}
}

// heardOnce expects that the hook ran once for a pool, at its time and for that reason, and that the pool was released when
// it had finished.
func (c *cluster) heardOnce(job *v1beta1.UpgradeJob, pool, reason string, due time.Time, release revision[*mcfgv1.MachineConfigPool]) {
	c.t.Helper()
	jobs := slices.DeleteFunc(c.hookJobsOf(job), func(j *hookJob) bool { return j.key != pool || j.event != unpause })
	if len(jobs) != 1 {
		c.t.Fatalf("the hook ran %d times for pool %s, want once", len(jobs), pool)
	}
	if j := jobs[0]; j.finished == 0 || j.finished > orderOf(release.object) {
		c.t.Errorf("pool %s was released at %d, but its hook had finished at %d only", pool, orderOf(release.object), j.finished)
	}
	first := slices.IndexFunc(past.hookJobsSince(c.began), func(r revision[*batchv1.Job]) bool { return r.object.UID == jobs[0].object.UID })
	c.promptly("the hook of pool "+pool, past.hookJobsSince(c.began)[first].seen, due)
	if got := c.ranIn(jobs[0].object.Name, "main").Env; got["EVENT_reason"] != quoted(reason) || got["EVENT_name"] != quoted(string(unpause)) || got["EVENT_pool"] != quoted(pool) {
		c.t.Errorf("the hook of pool %s was told %s %s for pool %s, want %s", pool, got["EVENT_name"], got["EVENT_reason"], got["EVENT_pool"], reason)
	}
}

// The delay is over long before the control plane is upgraded: the pool follows when the cluster has been found healthy. Both
// entries select the pool; the first counts.
func TestDelayThatIsOverEarlyDoesNotOvertakeTheControlPlane(t *testing.T) {
	c := newCluster(t, withFewNodes, withPool("night", 1), func(s *sim.Scenario) {
		s.Timings.Operators = map[string]sim.Duration{"network": sim.Duration(5 * time.Second)}
	})
	c.startOperator()
	job := create(c, aJob(delaying("night", 4*time.Second, 0), delaying("night", time.Hour, 0)))
	c.wait(job, holding("night"), poolSaid("night", func(pool v1beta1.MachineConfigPoolStatus) error {
		return mentions(pool.Message, "Entries 0, 1 of machineConfigPools", "the first")
	}))
	c.wait(job, succeeded(), holdingNothing())
	release := orderOf(c.releaseOf("night").object)
	old := c.poolHistory("worker")[0].object.Spec.Configuration.Name
	workers := c.turnOf("worker", func(pool *mcfgv1.MachineConfigPool) error {
		if pool.Status.Configuration.Name == old {
			return fmt.Errorf("pool worker has its old configuration")
		}
		return updated(pool)
	})
	if masters := c.completion(offered); masters == 0 || release < masters || release < orderOf(workers.object) {
		t.Errorf("the pool is released at %d, the control plane is through at %d, the workers at %d", release, masters, orderOf(workers.object))
	}
	if slices.Contains(c.phasesOf(job), v1beta1.PhasePaused) {
		t.Error("the job is Paused, but no pool waits for its time")
	}
	c.rebootedAfter("night", orderOf(c.turnOf("night", heldBy(job)).object), release)
	c.upgradedOnce(job)
	c.everyNodeRuns(offered)
}

// A pool that was paused in the middle of a change would have machines of two configurations, for hours.
func TestPoolThatRollsIsPausedWhenItIsThrough(t *testing.T) {
	c := newCluster(t, withFewNodes, withPool("night", 2), offering(offered, "4.18.3"), func(s *sim.Scenario) {
		s.Nodes = []sim.NodeFault{{Name: "night-0", StaysDown: true}}
	})
	edit(c, c.version(), func(cv *configv1.ClusterVersion) {
		cv.Spec.DesiredUpdate = &configv1.Update{Version: offered, Image: sim.Image(offered)}
	})
	c.completed(offered)
	c.nodeIs("night-0", "Rebooting")
	c.offers("4.18.3")
	c.fromNowOn()
	c.startOperator()
	job := create(c, aJob(to("4.18.3"), delaying("night", 6*time.Second, 0)))
	c.wait(job, waitingIn(v1beta1.ConditionMachineConfigPoolsPaused, v1beta1.ReasonMachineConfigPoolsUpdating),
		blockedBy("MachineConfigPoolUpdating", "MachineConfigPool/night"))
	c.pool("night", free)
	c.change(func(s *sim.Scenario) { s.Nodes = nil })
	c.wait(job, succeeded(), withoutFinalizers(), holdingNothing())
	if err := updated(c.turnOf("night", heldBy(job)).object); err != nil {
		t.Errorf("it was paused in the middle of a change: %v", err)
	}
	c.upgradedOnce(job)
	c.everyNodeRuns("4.18.3")
}

// A job without a version does with pools, and their hooks, what any job does.
func TestJobWithoutAVersionPausesAndReleasesPools(t *testing.T) {
	const delay = 4 * time.Second
	c := newCluster(t, withFewNodes, withPool("night", 1))
	before := c.version()
	create(c, aHook(at(unpause), aborting))
	c.startOperator()
	start := soon(0)
	job := create(c, aJob(startingAt(start), withoutVersion, delaying("night", delay, 0)))
	c.wait(job, inPhase(v1beta1.PhasePaused), holding("night"), waitingIn(steps.ConditionDelayedPoolsUpgraded, v1beta1.ReasonMachineConfigPoolsDelayed))
	c.pool("night", heldBy(job))
	c.wait(job, succeededFor(v1beta1.ReasonNothingToUpgrade), withoutFinalizers(), holdingNothing())
	c.heardOnce(job, "night", "DelayReached", start.Add(delay), c.releaseOf("night"))
	c.pool("night", free)
	c.untouched(before)
}

// What holds one pool up holds no other.
func TestHookThatHangsForAPoolHoldsNoOther(t *testing.T) {
	c := newCluster(t, withFewNodes, withPool("first", 1), withPool("second", 1))
	create(c, aHook(at(unpause), aborting, hanging))
	c.startOperator()
	job := create(c, aJob(delaying("first", 4*time.Second, 0), delaying("second", 5*time.Second, 0)))
	c.wait(job, ran("backup", unpause, v1beta1.HookRunActive, v1beta1.HookRunActive),
		waitingIn(steps.ConditionDelayedPoolsUpgraded, v1beta1.ReasonHooksRunning), blockedBy(v1beta1.ReasonHookRunning, hookBackup, "backup"))
	c.let(c.podFor(job, "second"), sim.OutcomeSucceed)
	c.pool("second", free, updated)
	c.pool("first", heldBy(job))
	c.let(c.podFor(job, "first"), sim.OutcomeSucceed)
	c.wait(job, succeeded(), withoutFinalizers())
	c.upgradedOnce(job)
}

// podFor returns the pod in which the hook runs for a pool.
func (c *cluster) podFor(job *v1beta1.UpgradeJob, pool string) *corev1.Pod {
	c.t.Helper()
	i := slices.IndexFunc(job.Status.HookTracker, func(run v1beta1.HookRun) bool { return run.TrackingKey == pool })
	if i < 0 {
		c.t.Fatalf("no hook runs for pool %s: %+v", pool, job.Status.HookTracker)
	}
	return c.podOf(job.Status.HookTracker[i].Job)
}

// What somebody else has paused stays paused, and is told of; so is what somebody releases stays released.
func TestHandsOfOthersAreRespected(t *testing.T) {
	c := newCluster(t, withFewNodes, withPool("foreign", 1), withPool("night", 1), withPool("held", 1))
	c.handPause("foreign", true)
	c.startOperator()
	job := create(c, aJob(delaying("foreign", 4*time.Second, 0), delaying("night", time.Hour, 0), delaying("held", 4*time.Second, 0)))
	c.wait(job, done(steps.ConditionUpgradeCommenced), holding("night", "held", "foreign"))
	// Somebody does not want to wait for the night.
	c.wait(job, done(steps.ConditionControlPlaneUpgraded))
	c.handPause("night", false)
	c.pool("night", updated)
	c.wait(job, waitingIn(steps.ConditionDelayedPoolsUpgraded, v1beta1.ReasonMachineConfigPoolsUpdating),
		blockedBy("MachineConfigPoolPaused", "MachineConfigPool/foreign", "foreign"))
	c.pool("held", free, updated)
	c.poolStays("foreign", pausedByHand)
	c.handPause("foreign", false)
	c.wait(job, succeeded(), withoutFinalizers(), holdingNothing())
	c.pool("night", free)
	for _, r := range c.poolHistory("night") {
		if orderOf(r.object) > orderOf(c.releaseOf("night").object) && r.object.Spec.Paused {
			t.Error("what somebody has released was paused again")
		}
	}
	c.everyNodeRuns(offered)
}

// mentions expects words in a text.
func mentions(text string, words ...string) error {
	var errs []error
	for _, word := range words {
		if !strings.Contains(text, word) {
			errs = append(errs, fmt.Errorf("%q does not say %q", text, word))
		}
	}
	return errors.Join(errs...)
}
