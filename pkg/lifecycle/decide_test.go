// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/hooks"
	"github.com/appuio/managed-upgrade-operator/pkg/lifecycle"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

const ns = time.Nanosecond

// commenceBy has the job fail if it has not commenced that time after its start.
func commenceBy(after time.Duration) lifecycle.Facts {
	return lifecycle.Facts{CommenceBy: startAfter.Add(after)}
}

func TestDecide(t *testing.T) {
	var (
		freeze     = lifecycle.Facts{Suspension: window("freeze", "Black Friday")}
		locked     = lifecycle.Facts{LockedBy: "UpgradeJob upgrades/other"}
		noUpgrader = lifecycle.Facts{UpgraderError: errors.New(`there is no upgrader "X"; known: OpenShift`)}
		ticket     = v1beta1.HookRun{UpgradeJobHook: "ticket", HookEvent: v1beta1.HookEventCreate, Message: "not approved"}
		hooksRun   = lifecycle.Facts{CreateHooks: hooks.Progress{Event: v1beta1.HookEventCreate, Running: []v1beta1.HookRun{ticket}}}
		hookFailed = lifecycle.Facts{CreateHooks: hooks.Progress{Event: v1beta1.HookEventCreate, Aborted: &ticket}}
		everything = lifecycle.Facts{Suspension: freeze.Suspension, LockedBy: locked.LockedBy, UpgraderError: noUpgrader.UpgraderError}

		timedOut = v1beta1.Failed(v1beta1.ReasonTimedOut, "")
		expired  = v1beta1.Skipped(v1beta1.ReasonExpired, "")
		nextDay  = startAfter.Add(24 * time.Hour)
		// Reopened the next day: the window is long past, the deadline is twelve hours from then.
		reopened = func() *v1beta1.UpgradeJob {
			return newJob(started(startAfter), finished(timedOut, deadline), resumed("again", nextDay))
		}
		reopenedUnstarted = newJob(finished(expired, startBefore), resumed("again", nextDay))
		commencedInFreeze = lifecycle.Facts{Suspension: freeze.Suspension, Commenced: true}
	)
	for _, tc := range []struct {
		reason  string
		job     *v1beta1.UpgradeJob
		facts   lifecycle.Facts
		now     time.Time
		action  lifecycle.Action
		because string
		message []string
		after   time.Duration
	}{
		// Before the start.
		{"long before its start it waits for exactly that", newJob(), lifecycle.Facts{}, startAfter.Add(-72 * time.Hour),
			lifecycle.Wait, v1beta1.ReasonWaitingForStart, []string{"2026-11-24T22:00:00Z"}, 72 * time.Hour},
		{"one nanosecond before its start it waits", newJob(), lifecycle.Facts{}, startAfter.Add(-ns),
			lifecycle.Wait, v1beta1.ReasonWaitingForStart, nil, ns},
		{"before the start no obstacle matters", newJob(), everything, startAfter.Add(-ns),
			lifecycle.Wait, v1beta1.ReasonWaitingForStart, nil, ns},
		{"before the start a short upgradeTimeout has not begun", newJob(withTimeout(time.Minute)), lifecycle.Facts{}, startAfter.Add(-time.Hour),
			lifecycle.Wait, v1beta1.ReasonWaitingForStart, nil, time.Hour},

		// In the window.
		{"at its start it runs", newJob(), lifecycle.Facts{}, startAfter, lifecycle.Run, "", nil, 12 * time.Hour},
		{"one nanosecond after its start it runs", newJob(), lifecycle.Facts{}, startAfter.Add(ns), lifecycle.Run, "", nil, 12*time.Hour - ns},
		{"at startBefore it may still start", newJob(), lifecycle.Facts{}, startBefore, lifecycle.Run, "", nil, 11 * time.Hour},
		{"a job without a status starts as well", newJob(func(j *v1beta1.UpgradeJob) { j.Status = v1beta1.UpgradeJobStatus{} }), lifecycle.Facts{}, startAfter,
			lifecycle.Run, "", nil, 12 * time.Hour},
		{"the timeout of the config counts", newJob(withTimeout(90 * time.Minute)), lifecycle.Facts{}, startAfter.Add(10 * time.Minute),
			lifecycle.Run, "", nil, 80 * time.Minute},

		// After the window.
		{"one nanosecond after startBefore it has expired", newJob(), lifecycle.Facts{}, startBefore.Add(ns),
			lifecycle.Skip, v1beta1.ReasonExpired, []string{"could not start by 2026-11-24T23:00:00Z"}, 0},
		{"a window in which nothing fits has expired at its start", newJob(func(j *v1beta1.UpgradeJob) { j.Spec.StartBefore = j.Spec.StartAfter }), lifecycle.Facts{},
			startAfter.Add(ns), lifecycle.Skip, v1beta1.ReasonExpired, nil, 0},
		{"what it waited for is told when it expires", newJob(withCondition(v1beta1.NotStarted(v1beta1.ReasonClusterLocked, "The cluster is locked by X."))),
			lifecycle.Facts{}, startBefore.Add(ns), lifecycle.Skip, v1beta1.ReasonExpired, []string{"The cluster is locked by X."}, 0},
		{"that it waited for its start is not worth telling", newJob(withCondition(v1beta1.NotStarted(v1beta1.ReasonWaitingForStart, "The job starts later."))),
			lifecycle.Facts{}, startBefore.Add(ns), lifecycle.Skip, v1beta1.ReasonExpired, []string{"!The job starts later."}, 0},
		{"expired comes before suspended", newJob(), freeze, startBefore.Add(ns), lifecycle.Skip, v1beta1.ReasonExpired, nil, 0},
		{"expired comes before locked", newJob(), locked, startBefore.Add(ns), lifecycle.Skip, v1beta1.ReasonExpired, nil, 0},
		{"an upgradeTimeout before startBefore ends the window", newJob(withTimeout(30 * time.Minute)), lifecycle.Facts{}, startAfter.Add(30*time.Minute + ns),
			lifecycle.Skip, v1beta1.ReasonExpired, []string{"could not start by 2026-11-24T22:30:00Z"}, 0},
		{"one nanosecond before such a timeout it still starts", newJob(withTimeout(30 * time.Minute)), lifecycle.Facts{}, startAfter.Add(30*time.Minute - ns),
			lifecycle.Run, "", nil, ns},
		{"a job that never started does not fail at its timeout", newJob(withTimeout(30 * time.Minute)), lifecycle.Facts{}, startAfter.Add(30 * time.Minute),
			lifecycle.Skip, v1beta1.ReasonExpired, nil, 0},

		// Suspended.
		{"a suspension window at the start skips it", newJob(), freeze, startAfter,
			lifecycle.Skip, v1beta1.ReasonSuspended, []string{"UpgradeSuspensionWindow freeze", "until 2026-11-26T22:00:00Z", "Black Friday"}, 0},
		{"suspended comes before the lock and the upgrader", newJob(), everything, startBefore, lifecycle.Skip, v1beta1.ReasonSuspended, nil, 0},
		{"a running job goes on in a suspension window", newJob(started(startAfter)), freeze, startAfter.Add(ns), lifecycle.Run, "", nil, 12*time.Hour - ns},
		{"a job whose upgrade has commenced is not suspended, even if its start was not recorded", newJob(), commencedInFreeze, startAfter,
			lifecycle.Run, "", nil, 12 * time.Hour},

		// Locked.
		{"a locked cluster is waited for until just after startBefore", newJob(), locked, startAfter,
			lifecycle.Wait, v1beta1.ReasonClusterLocked, []string{"UpgradeJob upgrades/other"}, time.Hour + time.Millisecond},
		{"at startBefore it is waited for one moment more", newJob(), locked, startBefore,
			lifecycle.Wait, v1beta1.ReasonClusterLocked, nil, time.Millisecond},
		{"with an upgradeTimeout before startBefore that is the end of waiting", newJob(withTimeout(30 * time.Minute)), locked, startAfter,
			lifecycle.Wait, v1beta1.ReasonClusterLocked, nil, 30*time.Minute + time.Millisecond},
		{"a job that has commenced does not ask for the lock", newJob(started(startAfter)), lifecycle.Facts{LockedBy: "X", Commenced: true}, startAfter.Add(ns),
			lifecycle.Run, "", nil, 12*time.Hour - ns},
		{"a job that has started but lost the race for the lock waits for it", newJob(started(startAfter)), locked, startAfter.Add(ns),
			lifecycle.Wait, v1beta1.ReasonClusterLocked, nil, time.Hour - ns + time.Millisecond},
		{"and expires like one that never started", newJob(started(startAfter)), locked, startBefore.Add(ns), lifecycle.Skip, v1beta1.ReasonExpired, nil, 0},

		// Hooks of the event Create.
		{"before the start a hook of its creation is no reason to wait", newJob(), hooksRun, startAfter.Add(-ns),
			lifecycle.Wait, v1beta1.ReasonWaitingForStart, nil, ns},
		{"at the start it is waited for until just after startBefore", newJob(), hooksRun, startAfter,
			lifecycle.Wait, v1beta1.ReasonHooksRunning, []string{"Waiting for the hooks of Create: ticket."}, time.Hour + time.Millisecond},
		{"then the job has expired", newJob(), hooksRun, startBefore.Add(ns), lifecycle.Skip, v1beta1.ReasonExpired, nil, 0},
		{"suspended comes before that", newJob(), lifecycle.Facts{Suspension: freeze.Suspension, CreateHooks: hooksRun.CreateHooks}, startAfter,
			lifecycle.Skip, v1beta1.ReasonSuspended, nil, 0},
		{"one that aborts fails the job at once, long before its start", newJob(), hookFailed, startAfter.Add(-72 * time.Hour),
			lifecycle.Fail, v1beta1.ReasonHookFailed, []string{"UpgradeJobHook ticket failed at Create: not approved"}, 0},
		{"a job that has started is past that", newJob(started(startAfter)), hookFailed, startAfter.Add(ns), lifecycle.Run, "", nil, 12*time.Hour - ns},
		{"a job that was resumed waits for them too", reopenedUnstarted, hooksRun, nextDay,
			lifecycle.Wait, v1beta1.ReasonHooksRunning, nil, 12*time.Hour + time.Millisecond},

		// Unknown upgrader.
		{"an unknown upgrader is waited for: the operator may be updated", newJob(), noUpgrader, startAfter,
			lifecycle.Wait, v1beta1.ReasonUnknownUpgrader, []string{`there is no upgrader "X"; known: OpenShift.`}, time.Hour + time.Millisecond},
		{"the upgrader is missed before the lock", newJob(), lifecycle.Facts{LockedBy: "X", UpgraderError: noUpgrader.UpgraderError}, startAfter,
			lifecycle.Wait, v1beta1.ReasonUnknownUpgrader, nil, time.Hour + time.Millisecond},

		// Running.
		{"a running job runs past startBefore", newJob(started(startAfter)), lifecycle.Facts{}, startBefore.Add(ns), lifecycle.Run, "", nil, 11*time.Hour - ns},
		{"one nanosecond before its timeout it runs", newJob(started(startAfter)), lifecycle.Facts{}, deadline.Add(-ns), lifecycle.Run, "", nil, ns},
		{"at its timeout it fails", newJob(started(startAfter)), lifecycle.Facts{}, deadline,
			lifecycle.Fail, v1beta1.ReasonTimedOut, []string{"did not end by 2026-11-25T10:00:00Z"}, 0},
		{"the timeout counts from startAfter, not from the start", newJob(started(startBefore)), lifecycle.Facts{}, deadline,
			lifecycle.Fail, v1beta1.ReasonTimedOut, nil, 0},
		{"what it waited for is told when it fails", newJob(started(startAfter), withBlocker("MachineConfigPool worker is degraded.")), lifecycle.Facts{}, deadline.Add(ns),
			lifecycle.Fail, v1beta1.ReasonTimedOut, []string{"Last it waited for: MachineConfigPool worker is degraded.", "!Not the first"}, 0},

		// With an upgrade window.
		{"until the end of its upgrade window it runs", newJob(started(startAfter)), commenceBy(2 * time.Hour), startAfter.Add(time.Hour), lifecycle.Run, "", nil, time.Hour},
		{"to one nanosecond before that", newJob(started(startAfter)), commenceBy(2 * time.Hour), startAfter.Add(2*time.Hour - ns), lifecycle.Run, "", nil, ns},
		{"and then it fails", newJob(started(startAfter)), commenceBy(2 * time.Hour), startAfter.Add(2 * time.Hour),
			lifecycle.Fail, v1beta1.ReasonUpgradeWindowBreached, []string{"did not commence by 2026-11-25T00:00:00Z", "!Last it waited"}, 0},
		{"and tells what it waited for", newJob(started(startAfter), withBlocker("Node worker-1 is sick.")), commenceBy(2 * time.Hour), startAfter.Add(3 * time.Hour),
			lifecycle.Fail, v1beta1.ReasonUpgradeWindowBreached, []string{"Last it waited for: Node worker-1 is sick.", "!Not the first"}, 0},
		{"an upgrade that has commenced is not bound by it", newJob(started(startAfter)), lifecycle.Facts{CommenceBy: startAfter.Add(2 * time.Hour), Commenced: true}, startAfter.Add(3 * time.Hour),
			lifecycle.Run, "", nil, 9 * time.Hour},
		{"nor at its very end", newJob(started(startAfter)), lifecycle.Facts{CommenceBy: startAfter.Add(2 * time.Hour), Commenced: true}, startAfter.Add(2 * time.Hour),
			lifecycle.Run, "", nil, 10 * time.Hour},
		{"a job that starts runs until then", newJob(), commenceBy(2 * time.Hour), startAfter, lifecycle.Run, "", nil, 2 * time.Hour},
		{"one that was resumed too", reopened(), lifecycle.Facts{CommenceBy: nextDay.Add(2 * time.Hour)}, nextDay, lifecycle.Run, "", nil, 2 * time.Hour},
		{"and fails then", reopened(), lifecycle.Facts{CommenceBy: nextDay.Add(2 * time.Hour)}, nextDay.Add(2 * time.Hour), lifecycle.Fail, v1beta1.ReasonUpgradeWindowBreached, nil, 0},
		{"the end of the job comes first", newJob(started(startAfter), withTimeout(time.Hour)), commenceBy(2 * time.Hour), startAfter.Add(59 * time.Minute), lifecycle.Run, "", nil, time.Minute},
		{"and is what is told", newJob(started(startAfter), withTimeout(time.Hour)), commenceBy(time.Hour), startAfter.Add(time.Hour), lifecycle.Fail, v1beta1.ReasonTimedOut, nil, 0},
		{"before its start it does not matter", newJob(), commenceBy(-2 * time.Hour), startAfter.Add(-time.Hour), lifecycle.Wait, v1beta1.ReasonWaitingForStart, nil, time.Hour},

		// Resumed.
		{"a resumed job runs outside of its window, with a fresh timeout", reopened(), lifecycle.Facts{}, nextDay, lifecycle.Run, "", nil, 12 * time.Hour},
		{"a resumed job runs to one nanosecond before its fresh timeout", reopened(), lifecycle.Facts{}, nextDay.Add(12*time.Hour - ns), lifecycle.Run, "", nil, ns},
		{"a resumed job fails at its fresh timeout", reopened(), lifecycle.Facts{}, nextDay.Add(12 * time.Hour),
			lifecycle.Fail, v1beta1.ReasonTimedOut, []string{"did not end by 2026-11-26T10:00:00Z"}, 0},
		{"a resumed job that could not go on in time fails", reopened(), lifecycle.Facts{}, nextDay.Add(12*time.Hour + ns),
			lifecycle.Fail, v1beta1.ReasonTimedOut, nil, 0},
		{"a resumed job waits for the lock up to its fresh timeout", reopened(), locked, nextDay,
			lifecycle.Wait, v1beta1.ReasonClusterLocked, nil, 12*time.Hour + time.Millisecond},
		{"a resumed job that has not commenced is suspended", reopened(), freeze, nextDay, lifecycle.Skip, v1beta1.ReasonSuspended, nil, 0},
		{"a resumed job that has commenced is not", reopened(), commencedInFreeze, nextDay, lifecycle.Run, "", nil, 12 * time.Hour},
		{"a resumed job that never started runs too", reopenedUnstarted, lifecycle.Facts{}, nextDay, lifecycle.Run, "", nil, 12 * time.Hour},
		{"a resumed job whose timeout ends while it waits fails, locked or not", reopened(), locked, nextDay.Add(12*time.Hour + ns),
			lifecycle.Fail, v1beta1.ReasonTimedOut, nil, 0},
		{"only the last resume counts", newJob(started(startAfter), finished(timedOut, deadline), resumed("a", nextDay),
			started(nextDay), finished(timedOut, nextDay.Add(12*time.Hour)), resumed("b", nextDay.Add(24*time.Hour))),
			lifecycle.Facts{}, nextDay.Add(36*time.Hour - ns), lifecycle.Run, "", nil, ns},
		{"a job resumed before its start runs at once: somebody asked for it now", newJob(finished(v1beta1.Skipped("Test", ""), startAfter.Add(-time.Hour)), resumed("a", startAfter.Add(-time.Hour))),
			lifecycle.Facts{}, startAfter.Add(-time.Hour), lifecycle.Run, "", nil, 12 * time.Hour},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			before := tc.job.DeepCopy()
			got := lifecycle.Decide(tc.job, tc.facts, tc.now)
			if got.Action != tc.action || got.Reason != tc.because || got.After != tc.after {
				t.Errorf("got action %d, reason %q, after %s (%s), want action %d, reason %q, after %s",
					got.Action, got.Reason, got.After, got.Message, tc.action, tc.because, tc.after)
			}
			for _, part := range tc.message {
				if unwanted, ok := strings.CutPrefix(part, "!"); ok == strings.Contains(got.Message, unwanted) {
					t.Errorf("message %q: want %q", got.Message, part)
				}
			}
			if diff := cmp.Diff(before, tc.job); diff != "" {
				t.Errorf("deciding changed the job (-before +after):\n%s", diff)
			}
			if again := lifecycle.Decide(tc.job, tc.facts, tc.now); again != got {
				t.Errorf("decided anew: got %v, want %v", again, got)
			}
		})
	}
}

func TestDecideWakesForEachTurn(t *testing.T) {
	// Whatever stands in the way of a job: if it is left alone until Decision.After has passed, over and over, it
	// ends, in a few rounds, and what it says does not change in between.
	rapid.Check(t, func(t *rapid.T) {
		upTo := func(name string, hours int) time.Duration {
			return time.Duration(rapid.Int64Range(0, int64(hours)*int64(time.Hour)).Draw(t, name))
		}
		job := newJob(withTimeout(upTo("upgradeTimeout", 24)))
		job.Spec.StartBefore.Time = startAfter.Add(upTo("startBefore", 24))
		facts := lifecycle.Facts{}
		if rapid.Bool().Draw(t, "locked") {
			facts.LockedBy = "X"
		}
		window := upTo("upgradeWindow", 24) // zero for none
		now := startAfter.Add(-upTo("created", 24))
		for range 6 {
			if window > 0 {
				facts.CommenceBy = steps.RunningSince(job, now).Add(window)
			}
			d := lifecycle.Decide(job, facts, now)
			switch d.Action {
			case lifecycle.Wait:
				lifecycle.SetWaiting(job, d, now)
			case lifecycle.Run:
				if now.Before(startAfter) || now.After(job.Spec.StartBefore.Time) && job.Status.StartTime == nil {
					t.Fatalf("runs at %s, outside of its window", now)
				}
				lifecycle.SetStarted(job, "", now)
			case lifecycle.Skip:
				if job.Status.StartTime != nil {
					t.Fatalf("skipped (%s) after it had started", d.Reason)
				}
				return
			case lifecycle.Fail:
				if job.Status.StartTime == nil {
					t.Fatalf("failed (%s) though it had not started", d.Reason)
				}
				return
			}
			if d.After <= 0 {
				t.Fatalf("nothing wakes for %+v", d)
			}
			// A wait for something that may never come ends a millisecond after the last moment for it.
			early := now.Add(max(0, d.After-time.Millisecond) / 2)
			if again := lifecycle.Decide(job, facts, early); again.Action != d.Action || again.Reason != d.Reason || again.Message != d.Message {
				t.Fatalf("half way to the next turn: got %+v, want %+v", again, d)
			}
			now = now.Add(d.After)
		}
		t.Fatalf("not ended at %s", now)
	})
}

func TestDecisionMessageFitsACondition(t *testing.T) {
	w := window("freeze", strings.Repeat("ä", v1beta1.MaxMessageLength))
	d := lifecycle.Decide(newJob(), lifecycle.Facts{Suspension: w}, startAfter)
	if len(d.Message) > v1beta1.MaxMessageLength || !strings.HasSuffix(d.Message, "....") {
		t.Errorf("got %d bytes ending in %q, want at most %d ending in the mark of a cut and a full stop",
			len(d.Message), d.Message[len(d.Message)-8:], v1beta1.MaxMessageLength)
	}
}

func TestDeadline(t *testing.T) {
	later := startAfter.Add(100 * time.Hour)
	for _, tc := range []struct {
		reason string
		job    *v1beta1.UpgradeJob
		want   time.Time
	}{
		{"by default twelve hours after startAfter", newJob(), deadline},
		{"the config's timeout after startAfter", newJob(withTimeout(time.Hour)), startAfter.Add(time.Hour)},
		{"startAfter counts, not the start", newJob(started(startBefore)), deadline},
		{"a request that stood there from the beginning makes no difference", newJob(withRequest("a"), started(startBefore)), deadline},
		{"the config's timeout after the resume", newJob(withTimeout(time.Hour), started(startAfter), finished(v1beta1.Failed("Test", ""), startBefore), resumed("a", later)),
			later.Add(time.Hour)},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if got := lifecycle.Deadline(tc.job); !got.Equal(tc.want) {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
