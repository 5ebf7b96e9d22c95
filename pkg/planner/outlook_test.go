// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package planner_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/planner"
)

func TestForesee(t *testing.T) {
	var (
		pinned   = withPin(24 * time.Hour)
		createAt = tuesday.Add(-24 * time.Hour)
		giveUpAt = createAt.Add(time.Hour)
		before   = createAt.Add(-time.Hour)
		windows  = func(windows ...v1beta1.UpgradeSuspensionWindow) planner.Facts {
			return planner.Facts{Windows: windows}
		}
		window = func(from, to time.Time) v1beta1.UpgradeSuspensionWindow { return newWindow("freeze", from, to) }
		jobs   = func(jobs ...v1beta1.UpgradeJob) planner.Facts { return planner.Facts{Jobs: jobs} }
		moved  = planner.NewJob(newConfig(pinned), tuesday, update)
	)
	moved.Spec.StartAfter = metav1.NewTime(tuesday.Add(3 * time.Hour))
	for _, tc := range []struct {
		reason string
		config *v1beta1.UpgradeConfig
		facts  planner.Facts
		now    time.Time
		// created is when the job is; the zero time for never. because is then the reason, and message a part of the message.
		created          time.Time
		because, message string
	}{
		{"nothing is in the way", newConfig(pinned), planner.Facts{}, before, createAt, "", ""},
		{"its time has come", newConfig(pinned), planner.Facts{}, createAt.Add(time.Minute), createAt.Add(time.Minute), "", ""},
		{"it may still be created", newConfig(pinned), planner.Facts{}, giveUpAt, giveUpAt, "", ""},
		{"it is too late", newConfig(pinned), planner.Facts{}, giveUpAt.Add(ns), time.Time{}, v1beta1.ReasonMissed, "due at 2026-11-23T22:00:00Z and was not created by 2026-11-23T23:00:00Z"},
		{"it could not start any more", newConfig(withStartDelay(10 * time.Minute)), windows(window(before, before.Add(time.Minute))), tuesday.Add(11 * time.Minute), time.Time{}, v1beta1.ReasonMissed, "by 2026-11-24T22:10:00Z"},
		{"it is suspended", newConfig(pinned, suspend), planner.Facts{}, before, time.Time{}, v1beta1.ReasonSuspended, ""},
		{"the schedule was changed since", newConfig(withObserved(tuesday)), planner.Facts{}, tuesday, time.Time{}, v1beta1.ReasonMissed, "older than the schedule"},
		{"it had a job that is gone", newConfig(pinned, withScheduled(tuesday)), planner.Facts{}, createAt, time.Time{}, v1beta1.ReasonMissed, "gone"},

		{"a window covers the start", newConfig(pinned), windows(window(tuesday, tuesday.Add(time.Hour))), before, time.Time{}, v1beta1.ReasonSuspensionWindow, "freeze suspends"},
		{"a window covers the creation and all of the delay", newConfig(pinned), windows(window(before, tuesday.Add(-time.Hour))), before, time.Time{}, v1beta1.ReasonSuspensionWindow, "freeze suspends"},
		{"a window ends within the delay", newConfig(pinned), windows(window(before, giveUpAt.Add(-time.Minute))), before, giveUpAt.Add(-time.Minute), "", ""},
		{"it ends with the delay: the operator wakes behind it", newConfig(pinned), windows(window(before, giveUpAt)), before, time.Time{}, v1beta1.ReasonSuspensionWindow, "freeze suspends"},
		{"it begins after the creation", newConfig(pinned), windows(window(createAt.Add(ns), giveUpAt)), before, createAt, "", ""},
		{"it began after the creation, of which nothing came", newConfig(pinned), windows(window(createAt.Add(ns), giveUpAt)), createAt.Add(time.Minute), time.Time{}, v1beta1.ReasonSuspensionWindow, ""},
		{"one window follows the other", newConfig(pinned), windows(window(before, createAt.Add(10*time.Minute)), newWindow("next", createAt.Add(10*time.Minute), createAt.Add(20*time.Minute))), before, createAt.Add(20 * time.Minute), "", ""},
		{"two windows last too long", newConfig(pinned), windows(window(before, createAt.Add(10*time.Minute)), newWindow("next", createAt.Add(5*time.Minute), giveUpAt)), before, time.Time{}, v1beta1.ReasonSuspensionWindow, "next suspends"},
		{"the job of the next start comes first when the window ends", newConfig(pinned, withSchedulingDelay(10*24*time.Hour)), windows(window(before, createAt.Add(week))), before, time.Time{}, v1beta1.ReasonSuspensionWindow, ""},
		{"the next start is due already", newConfig(withPin(8*24*time.Hour), withSchedulingDelay(10*24*time.Hour)), planner.Facts{}, createAt, time.Time{}, v1beta1.ReasonMissed, "is that of the start at 2026-12-01T22:00:00Z"},

		{"a job runs, and may be over then", newConfig(pinned), jobs(newJob("running", createAt.Add(-2*time.Hour), v1beta1.PhaseActive)), before, createAt, "", ""},
		{"a job runs when it is due", newConfig(pinned), jobs(newJob("running", createAt.Add(-2*time.Hour), v1beta1.PhaseActive)), createAt, time.Time{}, v1beta1.ReasonJobActive, "UpgradeJob running is not finished."},
		{"a job waits for its start for longer", newConfig(pinned), jobs(newJob("waits", giveUpAt, v1beta1.PhasePending)), before, time.Time{}, v1beta1.ReasonJobActive, "UpgradeJob waits"},
		{"a job waits for its start until then", newConfig(pinned), jobs(newJob("waits", createAt, v1beta1.PhasePending)), before, createAt, "", ""},
		{"a job waits for its start for a part of the delay", newConfig(pinned), jobs(newJob("waits", createAt.Add(time.Minute), v1beta1.PhasePending)), before, createAt.Add(time.Minute), "", ""},
		{"a job that is over is none", newConfig(pinned), jobs(newJob("over", giveUpAt, v1beta1.PhaseSkipped)), before, createAt, "", ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got := planner.Foresee(tc.config, tuesday, tuesday.Add(week), tc.facts, tc.now)
			if got.Job != nil || !got.Created.Equal(tc.created) || got.Reason != tc.because || !strings.Contains(got.Message, tc.message) {
				t.Errorf("got %+v, want it created at %s, or not because of %s (%q)", got, tc.created, tc.because, tc.message)
			}
		})
	}
	for _, job := range []v1beta1.UpgradeJob{newJob("there", tuesday, v1beta1.PhasePending), newJob("over", tuesday, v1beta1.PhaseSkipped), *moved} {
		got := planner.Foresee(newConfig(pinned), tuesday, time.Time{}, jobs(newJob("other", tuesday.Add(week), v1beta1.PhasePending), job), giveUpAt.Add(time.Hour))
		if got.Job == nil || got.Job.Name != job.Name || !got.Created.IsZero() || got.Reason != "" {
			t.Errorf("got %+v, want the job %s", got, job.Name)
		}
	}
}

func TestForeseeTheLastStart(t *testing.T) {
	if got := planner.Foresee(newConfig(), tuesday, time.Time{}, planner.Facts{}, created); !got.Created.Equal(tuesday) {
		t.Errorf("of a start that none follows %+v is foreseen, want its job at the start", got)
	}
}

// What is foreseen of each start, from the start before on, is what the planner does.
func TestForeseenYear(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		minutes := func(name string, least, most int) time.Duration {
			return time.Duration(rapid.IntRange(least, most).Draw(rt, name)) * time.Minute
		}
		w := world{
			config:  newConfig(withPin(minutes("pin", 0, 4*24*60)), withSchedulingDelay(minutes("late", 1, 12*60)), withStartDelay(minutes("startDelay", 1, 12*60))),
			jobTime: minutes("jobTime", 1, 24*60),
		}
		end := tuesday.Add(12 * week)
		for i := range rapid.IntRange(0, 12).Draw(rt, "windows") {
			from := tuesday.Add(minutes(fmt.Sprint("from", i), 0, 12*7*24*60))
			w.frozen = append(w.frozen, span{from, from.Add(minutes(fmt.Sprint("for", i), 1, 4*24*60))})
		}
		facts := planner.Facts{}
		for i, f := range w.frozen {
			facts.Windows = append(facts.Windows, newWindow(fmt.Sprint("freeze-", i), f.from, f.to))
		}
		got, _ := w.live(rtb{t, rt}, end)
		for start := tuesday.Add(week); start.Before(end.Add(-week)); start = start.Add(week) {
			now := start.Add(-week).Add(minutes("now", 0, 2*24*60))
			due, last := planner.CreationTimes(w.config, start)
			outlook := planner.Foresee(w.config, start, start.Add(week), facts, now)
			i := slices.IndexFunc(got, func(c creation) bool { return c.Start.Equal(start) })
			switch {
			case due.Before(now) || (i >= 0 && got[i].At.Equal(last)): // past, or only a clock without a resolution gets there in time
			case i < 0 && outlook.Reason != v1beta1.ReasonSuspensionWindow, i >= 0 && !outlook.Created.Equal(got[i].At):
				rt.Errorf("of the start at %s %+v is foreseen at %s; jobs %v", start, outlook, now, got)
			}
		}
	})
}
