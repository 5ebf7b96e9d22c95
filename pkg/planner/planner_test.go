// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package planner_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/planner"
	"github.com/appuio/managed-upgrade-operator/pkg/schedule"
)

const (
	ns = time.Nanosecond
	ms = time.Millisecond
)

func TestMake(t *testing.T) {
	var (
		offered  = planner.Facts{Update: update}
		nothing  = planner.Facts{}
		pinned   = withPin(4 * time.Hour)
		createAt = tuesday.Add(-4 * time.Hour)
		giveUpAt = createAt.Add(time.Hour)
		jobs     = func(jobs ...v1beta1.UpgradeJob) planner.Facts { return planner.Facts{Jobs: jobs, Update: update} }
		windows  = func(windows ...v1beta1.UpgradeSuspensionWindow) planner.Facts {
			return planner.Facts{Windows: windows, Update: update}
		}
		elsewhere = newWindow("elsewhere", created, tuesday.Add(week))
		onlyJobs  = newWindow("jobs", created, tuesday.Add(week))
	)
	elsewhere.Namespace = "other"
	onlyJobs.Spec.ConfigSelector, onlyJobs.Spec.JobSelector = nil, &metav1.LabelSelector{}

	for _, tc := range []struct {
		reason string
		config *v1beta1.UpgradeConfig
		facts  planner.Facts
		now    time.Time
		// create is the start of the job that is created; the zero time for none.
		create time.Time
		// because is the reason of the condition Scheduling.
		because string
		// message has these parts in it, and not those that begin with "!".
		message []string
		// skipped is the start that is recorded as skipped and why; the zero time for none.
		skipped    time.Time
		skippedFor string
		after      time.Duration
	}{
		// In time.
		{"long before it waits for the moment of creation", newConfig(pinned), offered, tuesday.Add(-72 * time.Hour), time.Time{},
			v1beta1.ReasonScheduled, []string{"created at 2026-11-24T18:00:00Z for the start at 2026-11-24T22:00:00Z"}, time.Time{}, "", 68 * time.Hour},
		{"one nanosecond before the moment it waits for that", newConfig(pinned), offered, createAt.Add(-ns), time.Time{},
			v1beta1.ReasonScheduled, nil, time.Time{}, "", ns},
		{"exactly at start - pinVersionWindow the job is created", newConfig(pinned), offered, createAt, tuesday,
			v1beta1.ReasonJobActive, []string{"is not finished"}, time.Time{}, "", 4 * time.Hour},
		{"a job for a later start, of a schedule that was changed since, is no obstacle", newConfig(pinned, withScheduled(tuesday.Add(time.Hour))), offered, createAt, tuesday,
			v1beta1.ReasonJobActive, nil, time.Time{}, "", 4 * time.Hour},
		{"without a pinVersionWindow it is created at the start", newConfig(), offered, tuesday, tuesday,
			v1beta1.ReasonJobActive, nil, time.Time{}, "", week},
		{"one nanosecond before the start it is not", newConfig(), offered, tuesday.Add(-ns), time.Time{},
			v1beta1.ReasonScheduled, nil, time.Time{}, "", ns},
		{"the job of a start that is recorded is not created again", newConfig(withScheduled(tuesday)), offered, tuesday, time.Time{},
			v1beta1.ReasonScheduled, []string{"2026-12-01T22:00:00Z"}, time.Time{}, "", week},
		{"nor is that of a start that has a job", newConfig(), jobs(newJob("done", tuesday, v1beta1.PhaseSucceeded)), tuesday.Add(time.Minute), time.Time{},
			v1beta1.ReasonScheduled, nil, time.Time{}, "", week - time.Minute},
		{"with a pinVersionWindow of more than a week each start has its job", newConfig(withPin(10*24*time.Hour), withScheduled(tuesday)), offered,
			tuesday.Add(week - 10*24*time.Hour), tuesday.Add(week), v1beta1.ReasonJobActive, nil, time.Time{}, "", 3 * 24 * time.Hour},

		// Late.
		{"late by maxSchedulingDelay the job is created", newConfig(pinned), offered, giveUpAt, tuesday,
			v1beta1.ReasonJobActive, nil, time.Time{}, "", 3 * time.Hour},
		{"one nanosecond later the start is missed", newConfig(pinned), offered, giveUpAt.Add(ns), time.Time{},
			v1beta1.ReasonScheduled, []string{"created at 2026-12-01T18:00:00Z", "The start at 2026-11-24T22:00:00Z was skipped (Missed)", "due at 2026-11-24T18:00:00Z", "by 2026-11-24T19:00:00Z"},
			tuesday, v1beta1.ReasonMissed, 3*time.Hour - ns},
		{"weeks later only the last start is missed", newConfig(), offered, tuesday.Add(3*week + 2*time.Hour), time.Time{},
			v1beta1.ReasonScheduled, nil, tuesday.Add(3 * week), v1beta1.ReasonMissed, week - 2*time.Hour},
		{"the time for it counts, not the start", newConfig(withSchedulingDelay(2 * time.Hour)), offered, tuesday.Add(time.Hour), tuesday,
			v1beta1.ReasonJobActive, nil, time.Time{}, "", week - time.Hour},
		{"without any delay it must be exactly then", newConfig(withSchedulingDelay(0)), offered, tuesday, tuesday,
			v1beta1.ReasonJobActive, nil, time.Time{}, "", week},
		{"without any delay a nanosecond is too much", newConfig(withSchedulingDelay(0)), offered, tuesday.Add(ns), time.Time{},
			v1beta1.ReasonScheduled, nil, tuesday, v1beta1.ReasonMissed, week - ns},
		{"a job that could not start any more is not created", newConfig(withStartDelay(10 * time.Minute)), offered, tuesday.Add(10*time.Minute + ns), time.Time{},
			v1beta1.ReasonScheduled, []string{"was skipped (Missed)"}, tuesday, v1beta1.ReasonMissed, week - 10*time.Minute - ns},
		{"a job that could just start is", newConfig(withStartDelay(10 * time.Minute)), offered, tuesday.Add(10 * time.Minute), tuesday,
			v1beta1.ReasonJobActive, nil, time.Time{}, "", week - 10*time.Minute},
		{"of several starts that are due only the last gets a job", newConfig(withCron("0 * * * *", "UTC"), withSchedulingDelay(6*time.Hour), withStartDelay(6*time.Hour)), offered,
			tuesday.Add(30 * time.Minute), tuesday, v1beta1.ReasonJobActive, nil, time.Time{}, "", 30 * time.Minute},

		// What the config did not schedule, it did not miss.
		{"starts before the creation are not missed", newConfig(), offered, created, time.Time{}, v1beta1.ReasonScheduled, []string{"!skipped"}, time.Time{}, "", tuesday.Sub(created)},
		{"nor are starts before the schedule was changed", newConfig(withObserved(tuesday.Add(2 * time.Hour))), offered, tuesday.Add(3 * time.Hour), time.Time{},
			v1beta1.ReasonScheduled, []string{"!skipped"}, time.Time{}, "", week - 3*time.Hour},
		{"nor due", newConfig(withObserved(tuesday.Add(time.Minute))), offered, tuesday.Add(2 * time.Minute), time.Time{},
			v1beta1.ReasonScheduled, []string{"!skipped"}, time.Time{}, "", week - 2*time.Minute},
		{"a start that is still ahead is, though its job was due before the change", newConfig(pinned, withObserved(createAt.Add(30*time.Minute))), offered, createAt.Add(30 * time.Minute), tuesday,
			v1beta1.ReasonJobActive, nil, time.Time{}, "", 3*time.Hour + 30*time.Minute},
		{"a start of the very second of the change is not due", newConfig(withObserved(tuesday)), offered, tuesday, time.Time{},
			v1beta1.ReasonScheduled, nil, time.Time{}, "", week},
		{"a start a second after the change is", newConfig(withObserved(tuesday.Add(-time.Second))), offered, tuesday, tuesday,
			v1beta1.ReasonJobActive, nil, time.Time{}, "", week},
		{"a config that nobody has looked at begins with its creation", newConfig(func(c *v1beta1.UpgradeConfig) { c.Status = v1beta1.UpgradeConfigStatus{} }), offered,
			created.Add(-ns), time.Time{}, v1beta1.ReasonScheduled, []string{"!skipped"}, time.Time{}, "", tuesday.Sub(created) + ns},

		// Suspended.
		{"suspended in general", newConfig(suspend), offered, created, time.Time{},
			v1beta1.ReasonSuspended, []string{"spec.schedule.suspend is set.", "!skipped"}, time.Time{}, "", tuesday.Sub(created)},
		{"suspended when a start is due: it is skipped, and looked at again when its time is over", newConfig(suspend), offered, tuesday, time.Time{},
			v1beta1.ReasonSuspended, []string{"No job is created for the start at 2026-11-24T22:00:00Z."}, tuesday, v1beta1.ReasonSuspended, time.Hour + ms},
		{"suspended and its time is over", newConfig(suspend, withSkipped(tuesday, v1beta1.ReasonSuspended)), offered, tuesday.Add(time.Hour + ms), time.Time{},
			v1beta1.ReasonSuspended, []string{"The start at 2026-11-24T22:00:00Z was skipped (Suspended): As recorded."}, tuesday, v1beta1.ReasonSuspended, week - time.Hour - ms},
		{"no more suspended in time: the job is created", newConfig(withSkipped(tuesday, v1beta1.ReasonSuspended)), offered, tuesday.Add(time.Hour), tuesday,
			v1beta1.ReasonJobActive, nil, time.Time{}, "", week - time.Hour},
		{"what is recorded of an earlier start is kept but not told any more", newConfig(withSkipped(tuesday, v1beta1.ReasonSuspended), withScheduled(tuesday.Add(week))), offered,
			tuesday.Add(week + time.Hour), time.Time{}, v1beta1.ReasonScheduled, []string{"!skipped"}, tuesday, v1beta1.ReasonSuspended, week - time.Hour},
		{"a start that is missed later replaces what is recorded", newConfig(withSkipped(tuesday, v1beta1.ReasonSuspended)), offered, tuesday.Add(week + 2*time.Hour), time.Time{},
			v1beta1.ReasonScheduled, nil, tuesday.Add(week), v1beta1.ReasonMissed, week - 2*time.Hour},

		// Suspension windows.
		{"a window that begins later is waited for", newConfig(), windows(newWindow("freeze", created.Add(time.Hour), created.Add(2*time.Hour))), created, time.Time{},
			v1beta1.ReasonScheduled, nil, time.Time{}, "", time.Hour},
		{"a window that holds is waited for", newConfig(), windows(newWindow("freeze", created, created.Add(2*time.Hour))), created, time.Time{},
			v1beta1.ReasonSuspensionWindow, []string{"UpgradeSuspensionWindow freeze suspends upgrades until 2026-11-20T11:00:00Z: Black Friday.", "!skipped"}, time.Time{}, "", 2 * time.Hour},
		{"a window that holds when a start is due skips it", newConfig(), windows(newWindow("freeze", tuesday.Add(-time.Hour), tuesday.Add(30*time.Minute))), tuesday, time.Time{},
			v1beta1.ReasonSuspensionWindow, []string{"No job is created"}, tuesday, v1beta1.ReasonSuspensionWindow, 30 * time.Minute},
		{"a window that begins with the start skips it", newConfig(pinned), windows(newWindow("freeze", tuesday, tuesday.Add(30*time.Minute))), createAt, time.Time{},
			v1beta1.ReasonSuspensionWindow, []string{"No job is created"}, tuesday, v1beta1.ReasonSuspensionWindow, time.Hour + ms},
		{"a window that ends with the start, but is over when it is due, does not", newConfig(pinned), windows(newWindow("freeze", createAt.Add(ns), tuesday)), createAt, tuesday,
			v1beta1.ReasonJobActive, nil, time.Time{}, "", ns},
		{"a window that ends with the start does not", newConfig(), windows(newWindow("freeze", created, tuesday)), tuesday, tuesday, v1beta1.ReasonJobActive, nil, time.Time{}, "", week},
		{"a window that ends in the time for creation lets the job be created late", newConfig(pinned), windows(newWindow("freeze", created, createAt.Add(30*time.Minute))),
			createAt.Add(30 * time.Minute), tuesday, v1beta1.ReasonJobActive, nil, time.Time{}, "", 3*time.Hour + 30*time.Minute},
		{"a window of another namespace does not count", newConfig(), windows(elsewhere), tuesday, tuesday, v1beta1.ReasonJobActive, nil, time.Time{}, "", week},
		{"a window of jobs does not count", newConfig(), windows(onlyJobs), tuesday, tuesday, v1beta1.ReasonJobActive, nil, time.Time{}, "", week},
		{"suspend is told before a window", newConfig(suspend), windows(newWindow("freeze", created, tuesday.Add(week))), created, time.Time{},
			v1beta1.ReasonSuspended, nil, time.Time{}, "", tuesday.Sub(created)},

		// A job is active.
		{"an active job is told", newConfig(withScheduled(tuesday)), jobs(newJob("running", tuesday, v1beta1.PhaseActive)), tuesday.Add(time.Hour), time.Time{},
			v1beta1.ReasonJobActive, []string{"UpgradeJob running is not finished.", "!skipped"}, time.Time{}, "", week - time.Hour},
		{"an active job keeps the next start from getting one", newConfig(), jobs(newJob("running", tuesday, v1beta1.PhaseActive)), tuesday.Add(week), time.Time{},
			v1beta1.ReasonJobActive, []string{"No job is created for the start at 2026-12-01T22:00:00Z."}, tuesday.Add(week), v1beta1.ReasonJobActive, time.Hour + ms},
		{"so does a pending one without a status", newConfig(), jobs(newJob("new", tuesday, "")), tuesday.Add(week), time.Time{},
			v1beta1.ReasonJobActive, nil, tuesday.Add(week), v1beta1.ReasonJobActive, time.Hour + ms},
		{"so does a paused one", newConfig(), jobs(newJob("paused", tuesday, v1beta1.PhasePaused)), tuesday.Add(week), time.Time{},
			v1beta1.ReasonJobActive, nil, tuesday.Add(week), v1beta1.ReasonJobActive, time.Hour + ms},
		{"a job that runs for weeks does not make the next starts past ones", newConfig(), jobs(newJob("paused", tuesday, v1beta1.PhasePaused)), tuesday.Add(5*week + 2*time.Hour), time.Time{},
			v1beta1.ReasonJobActive, nil, tuesday.Add(5 * week), v1beta1.ReasonMissed, week - 2*time.Hour},
		{"finished ones do not", newConfig(), jobs(newJob("a", tuesday, v1beta1.PhaseFailed), newJob("b", tuesday, v1beta1.PhaseSkipped)), tuesday.Add(week), tuesday.Add(week),
			v1beta1.ReasonJobActive, nil, time.Time{}, "", week},

		// No update.
		{"without an update the start is skipped", newConfig(), nothing, tuesday, time.Time{},
			v1beta1.ReasonNoUpdateAvailable, []string{"The cluster offers no update. No job is created"}, tuesday, v1beta1.ReasonNoUpdateAvailable, time.Hour + ms},
		{"an update that appears within the delay is used", newConfig(withSkipped(tuesday, v1beta1.ReasonNoUpdateAvailable)), offered, tuesday.Add(time.Hour), tuesday,
			v1beta1.ReasonJobActive, nil, time.Time{}, "", week - time.Hour},
		{"one that appears later is for the next start", newConfig(withSkipped(tuesday, v1beta1.ReasonNoUpdateAvailable)), offered, tuesday.Add(time.Hour + ns), time.Time{},
			v1beta1.ReasonScheduled, []string{"was skipped (NoUpdateAvailable)"}, tuesday, v1beta1.ReasonNoUpdateAvailable, week - time.Hour - ns},
		{"between the starts it does not matter", newConfig(), nothing, created, time.Time{}, v1beta1.ReasonScheduled, nil, time.Time{}, "", tuesday.Sub(created)},
		{"by policy a job without a version is created", newConfig(withPolicy(v1beta1.NoUpdatePolicyCreateJob)), nothing, tuesday, tuesday,
			v1beta1.ReasonJobActive, nil, time.Time{}, "", week},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			before := tc.config.DeepCopy()
			got := plan(t, tc.config, tc.facts, tc.now)

			if tc.create.IsZero() != (got.Create == nil) {
				t.Fatalf("created job is %v, want one for the start %s", got.Create, tc.create)
			}
			if got.Create != nil && !got.Create.Spec.StartAfter.Time.Equal(tc.create) {
				t.Errorf("the job is for the start at %s, want %s", got.Create.Spec.StartAfter, tc.create)
			}
			wantStatus := metav1.ConditionFalse
			if tc.because == v1beta1.ReasonScheduled {
				wantStatus = metav1.ConditionTrue
			}
			if c := got.Scheduling; c.Type != v1beta1.ConditionScheduling || c.Status != wantStatus || c.Reason != tc.because {
				t.Errorf("got condition %s=%s(%s), want %s=%s(%s)", c.Type, c.Status, c.Reason, v1beta1.ConditionScheduling, wantStatus, tc.because)
			}
			for _, part := range tc.message {
				if unwanted, ok := strings.CutPrefix(part, "!"); ok == strings.Contains(got.Scheduling.Message, unwanted) {
					t.Errorf("message %q: want %q", got.Scheduling.Message, part)
				}
			}
			switch s := got.Skipped; {
			case s == nil && !tc.skipped.IsZero():
				t.Errorf("nothing is skipped, want the start at %s (%s)", tc.skipped, tc.skippedFor)
			case s != nil && (!s.StartAfter.Time.Equal(tc.skipped) || s.Reason != tc.skippedFor || s.Message == ""):
				t.Errorf("skipped the start at %s (%s: %s), want %s (%s)", s.StartAfter, s.Reason, s.Message, tc.skipped, tc.skippedFor)
			}
			if got.After != tc.after {
				t.Errorf("plans anew after %s, want %s", got.After, tc.after)
			}
			expectStarts(t, got, tc.facts, tc.now)
			if diff := cmp.Diff(before, tc.config); diff != "" {
				t.Errorf("planning changed the config (-before +after):\n%s", diff)
			}
		})
	}
}

// expectStarts fails unless ten starts are listed, in order and from now on, but for the first: that may be the start of a
// job that is not finished, or is created now.
func expectStarts(t *testing.T, got planner.Plan, facts planner.Facts, now time.Time) {
	t.Helper()
	if len(got.Starts) != 10 || !slices.IsSortedFunc(got.Starts, time.Time.Compare) || got.Starts[1].Before(now) {
		t.Errorf("next starts are %v, want ten from %s on", got.Starts, now)
	}
	if first := got.Starts[0]; !first.After(now) {
		unfinished := slices.ContainsFunc(facts.Jobs, func(job v1beta1.UpgradeJob) bool {
			return !job.Status.Phase.Finished() && job.Spec.StartAfter.Time.Equal(first)
		})
		if created := got.Create != nil && got.Create.Spec.StartAfter.Time.Equal(first); !created && !unfinished {
			t.Errorf("the first of the next starts is %s, which is past at %s", first, now)
		}
	}
}

func TestMakeIsStable(t *testing.T) {
	// Between two turns a plan says the same, so that the status is not written for nothing.
	suspended := newConfig(suspend)
	first := plan(t, suspended, planner.Facts{Update: update}, tuesday)
	suspended.Status.LastSkippedStart = first.Skipped
	second := plan(t, suspended, planner.Facts{Update: update}, tuesday.Add(59*time.Minute))
	if diff := cmp.Diff(first.Scheduling, second.Scheduling); diff != "" {
		t.Errorf("the condition changed (-first +second):\n%s", diff)
	}
	if diff := cmp.Diff(first.Skipped, second.Skipped); diff != "" {
		t.Errorf("the skipped start changed (-first +second):\n%s", diff)
	}
}

func TestMakeWithoutNextStart(t *testing.T) {
	for _, cron := range []string{"0 0 30 2 *", "0 0 31 4,6,9,11 *"} {
		config := newConfig(withCron(cron, "UTC"))
		if _, err := planner.Make(config, parse(t, config), planner.Facts{}, created); !errors.Is(err, schedule.ErrNoNextSchedule) {
			t.Errorf("%s: got error %v, want ErrNoNextSchedule", cron, err)
		}
	}
}

func TestMakeAtTheEndOfTheCalendar(t *testing.T) {
	// There is a start after now, but none after now + pinVersionWindow.
	config := newConfig(withPin(8760 * time.Hour))
	s := parse(t, config)
	last, err := s.Prev(time.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := planner.Make(config, s, planner.Facts{}, last.Add(-time.Hour)); err != nil && !errors.Is(err, schedule.ErrNoNextSchedule) {
		t.Errorf("got error %v, want none or ErrNoNextSchedule", err)
	}
}
