// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package planner_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/planner"
	"github.com/appuio/managed-upgrade-operator/pkg/schedule"
)

// span is a time from, up to but not including, to.
type span struct{ from, to time.Time }

func (s span) has(t time.Time) bool { return !t.Before(s.from) && t.Before(s.to) }

// world is what happens around a config.
type world struct {
	config *v1beta1.UpgradeConfig
	// frozen are the suspension windows, away the times without an operator, dry those without an available update.
	frozen, away, dry []span
	// jobTime is how long after its start a job is finished.
	jobTime time.Duration
}

// after returns the first time from t on that lies in none of the spans.
func after(t time.Time, spans []span) time.Time {
	for i := 0; i < len(spans); i++ {
		if spans[i].has(t) {
			t, i = spans[i].to, -1
		}
	}
	return t
}

// creation is a job that was created.
type creation struct{ At, Start time.Time }

// live carries out the plans of the config from its creation to the end, as the reconciler does, and returns the jobs
// that were created and the starts that were ever told to be skipped. The clock is moved by plan.After, and by what a
// watch would tell: a job finished, an update appeared.
func (w world) live(t testing.TB, end time.Time) ([]creation, map[time.Time]string) {
	t.Helper()
	config := w.config.DeepCopy()
	s := parse(t, config)
	clock := clocktesting.NewFakePassiveClock(config.CreationTimestamp.Time)
	facts := planner.Facts{}
	for i, f := range w.frozen {
		facts.Windows = append(facts.Windows, newWindow(fmt.Sprint("freeze-", i), f.from, f.to))
	}
	var jobs []creation
	skipped := map[time.Time]string{}
	for now := clock.Now(); now.Before(end); now = clock.Now() {
		if i := slices.IndexFunc(w.away, func(s span) bool { return s.has(now) }); i >= 0 {
			clock.SetTime(w.away[i].to)
			continue
		}
		facts.Update = update
		if slices.ContainsFunc(w.dry, func(s span) bool { return s.has(now) }) {
			facts.Update = nil
		}
		wake := time.Time{}
		consider := func(t time.Time) {
			if t.After(now) && (wake.IsZero() || t.Before(wake)) {
				wake = t
			}
		}
		for i := range facts.Jobs {
			job := &facts.Jobs[i]
			if ended := job.Spec.StartAfter.Add(w.jobTime); !now.Before(ended) {
				job.Status.Phase = v1beta1.PhaseSucceeded
			} else {
				consider(ended)
			}
		}
		for _, d := range w.dry {
			consider(d.to)
		}

		p, err := planner.Make(config, s, facts, now)
		if err != nil {
			t.Fatalf("make a plan at %s: %v", now, err)
		}
		if p.After <= 0 {
			t.Fatalf("at %s nothing wakes the controller: %+v", now, p)
		}
		if p.Create != nil {
			job := *p.Create
			jobs = append(jobs, creation{At: now.UTC(), Start: job.Spec.StartAfter.UTC()})
			facts.Jobs = append(facts.Jobs, job)
			config.Status.LastScheduledUpgrade = &job.Spec.StartAfter
			consider(job.Spec.StartAfter.Add(w.jobTime))
		}
		config.Status.LastSkippedStart = p.Skipped
		if p.Skipped != nil {
			skipped[p.Skipped.StartAfter.UTC()] = p.Skipped.Reason
		}
		superfluous := planner.Superfluous(config, facts.Jobs)
		facts.Jobs = slices.DeleteFunc(facts.Jobs, func(job v1beta1.UpgradeJob) bool {
			return slices.ContainsFunc(superfluous, func(s v1beta1.UpgradeJob) bool { return s.Name == job.Name })
		})
		consider(now.Add(p.After))
		clock.SetTime(wake)
	}
	return jobs, skipped
}

// expected works out, from the starts alone, when the job of each is created.
func (w world) expected(starts []time.Time) []creation {
	spec := w.config.Spec
	obstacles := slices.Concat(w.frozen, w.away)
	if spec.NoUpdatePolicy != v1beta1.NoUpdatePolicyCreateJob {
		obstacles = append(obstacles, w.dry...)
	}
	var jobs []creation
	for _, start := range starts {
		at := start.Add(-spec.PinVersionWindow.Duration)
		last := at.Add(spec.MaxSchedulingDelay.Duration)
		if slices.ContainsFunc(w.frozen, func(s span) bool { return s.has(start) }) {
			continue
		}
		at = after(at, obstacles)
		if !at.After(last) && !at.After(start.Add(spec.MaxUpgradeStartDelay.Duration)) {
			jobs = append(jobs, creation{At: at.UTC(), Start: start.UTC()})
		}
	}
	return jobs
}

// wednesdays are the starts of a schedule in a year, found day by day.
func wednesdays(from, to time.Time, hour, minute, parity int, location *time.Location) []time.Time {
	var starts []time.Time
	for day := from.AddDate(0, 0, -1); day.Before(to.AddDate(0, 0, 1)); day = day.AddDate(0, 0, 1) {
		y, m, d := day.In(location).Date()
		start := time.Date(y, m, d, hour, minute, 0, 0, location)
		_, isoWeek := start.ISOWeek()
		if start.Weekday() == time.Wednesday && (parity < 0 || isoWeek%2 == parity) && start.After(from) && start.Before(to) &&
			(len(starts) == 0 || start.After(starts[len(starts)-1])) {
			starts = append(starts, start)
		}
	}
	return starts
}

func TestAYearOfWindows(t *testing.T) {
	locations := []string{"UTC", "Europe/Zurich", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"}
	rapid.Check(t, func(rt *rapid.T) {
		minutes := func(name string, least, most int) time.Duration {
			return time.Duration(rapid.IntRange(least, most).Draw(rt, name)) * time.Minute
		}
		begin := time.Date(2026, time.January, 5, 12, 0, 0, 0, time.UTC)
		end := begin.AddDate(1, 0, 0)
		spans := func(name string, most int) []span {
			var list []span
			for i := range rapid.IntRange(0, 8).Draw(rt, name) {
				from := begin.Add(minutes(fmt.Sprint(name, i, " from"), 0, 365*24*60))
				list = append(list, span{from, from.Add(minutes(fmt.Sprint(name, i, " for"), 1, most))})
			}
			return list
		}
		parity := rapid.IntRange(-1, 1).Draw(rt, "parity")
		location := rapid.SampledFrom(locations).Draw(rt, "location")
		hour, minute := rapid.IntRange(4, 23).Draw(rt, "hour"), rapid.IntRange(0, 59).Draw(rt, "minute")
		w := world{
			config: newConfig(withCron(fmt.Sprintf("%d %d * * 3", minute, hour), location),
				withPin(minutes("pin", 0, 4*24*60)), withSchedulingDelay(minutes("late", 0, 12*60)), withStartDelay(minutes("startDelay", 0, 12*60)),
				withPolicy(rapid.SampledFrom([]v1beta1.NoUpdatePolicy{"", v1beta1.NoUpdatePolicySkip, v1beta1.NoUpdatePolicyCreateJob}).Draw(rt, "policy"))),
			frozen: spans("frozen", 14*24*60), away: spans("away", 14*24*60), dry: spans("dry", 14*24*60),
			jobTime: minutes("jobTime", 1, 24*60),
		}
		w.config.Spec.Schedule.ISOWeek = map[int]string{-1: "", 0: "@even", 1: "@odd"}[parity]
		w.config.CreationTimestamp = metav1.NewTime(begin)
		w.config.Status.ScheduleObservedTime = &metav1.Time{Time: begin}
		zone, err := time.LoadLocation(location)
		if err != nil {
			rt.Fatal(err)
		}

		// A start whose creation time is before the config was is no concern of this test; nor is one near the end.
		begun := begin.Add(w.config.Spec.PinVersionWindow.Duration)
		starts := wednesdays(begin, end.Add(-20*24*time.Hour), hour, minute, parity, zone)
		relevant := func(t time.Time) bool { return t.After(begun) && t.Before(end.Add(-20*24*time.Hour)) }
		starts = slices.DeleteFunc(starts, func(s time.Time) bool { return !relevant(s) })

		got, skipped := w.live(rtb{t, rt}, end)
		got = slices.DeleteFunc(got, func(c creation) bool { return !relevant(c.Start) })
		want := w.expected(starts)
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Errorf("created jobs (-want +got):\n%s", diff)
		}
		// A start without a job is told, unless nobody was there in all of its time.
		for _, start := range starts {
			due := start.Add(-w.config.Spec.PinVersionWindow.Duration)
			absent := after(due, w.away).After(due.Add(w.config.Spec.MaxSchedulingDelay.Duration))
			created := slices.ContainsFunc(got, func(c creation) bool { return c.Start.Equal(start) })
			if _, told := skipped[start.UTC()]; !created && !told && !absent {
				rt.Errorf("the start at %s has neither a job nor a reason", start)
			}
		}
	})
}

// rtb is the testing.TB of a rapid test: it fails the draw, not the test.
type rtb struct {
	testing.TB
	rt *rapid.T
}

func (t rtb) Fatalf(format string, args ...any) { t.rt.Fatalf(format, args...) }

func parseRapid(t *rapid.T, config *v1beta1.UpgradeConfig) *schedule.Schedule {
	spec := config.Spec.Schedule
	s, err := schedule.Parse(spec.Cron, spec.ISOWeek, spec.Location)
	if err != nil {
		t.Fatalf("parse the schedule: %v", err)
	}
	return s
}

func TestDaylightSavingWeeks(t *testing.T) {
	for _, tc := range []struct {
		reason string
		begin  string
		want   []string
	}{
		{"a start in the gap runs at the first moment after it", "2026-03-28T00:00:00Z",
			[]string{"2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
		{"a start in the overlap runs once", "2026-10-24T00:00:00Z",
			[]string{"2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			begin, err := time.Parse(time.RFC3339, tc.begin)
			if err != nil {
				t.Fatal(err)
			}
			w := world{config: newConfig(withCron("30 2 * * *", "Europe/Zurich")), jobTime: 2 * time.Hour}
			w.config.CreationTimestamp, w.config.Status.ScheduleObservedTime = metav1.NewTime(begin), nil
			jobs, skipped := w.live(t, begin.AddDate(0, 0, 3))
			var got []string
			for _, job := range jobs {
				if !job.At.Equal(job.Start) {
					t.Errorf("the job for %s was created at %s", job.Start, job.At)
				}
				got = append(got, job.Start.Format(time.RFC3339))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || len(skipped) != 0 {
				t.Errorf("skipped %v, starts (-want +got):\n%s", skipped, diff)
			}
		})
	}
}

func BenchmarkAYearOfWeeklyWindows(b *testing.B) {
	w := world{config: newConfig(withPin(4 * time.Hour)), jobTime: 2 * time.Hour}
	for b.Loop() {
		if jobs, _ := w.live(b, created.AddDate(1, 0, 0)); len(jobs) != 52 {
			b.Fatalf("got %d jobs, want 52", len(jobs))
		}
	}
}
