// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/lifecycle"
	o "github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

// pastNight returns what is left of an upgrade that went through, by its name and start.
func pastNight(name string, start time.Duration) *v1beta1.UpgradeJob {
	return upgradeJob(jobNamed(name, start), started(start, allSteps...), finished(v1beta1.Succeeded(v1beta1.ReasonUpgraded, ""), start+90*time.Minute))
}

func TestHistoryIsNewestFirst(t *testing.T) {
	day := 24 * time.Hour
	// The one that started first was resumed, and ended last.
	resumed := pastNight("resumed", -3*day)
	resumed.Status.CompletionTime = new(at(-time.Hour))
	never := upgradeJob(jobNamed("never", -day), finished(v1beta1.Skipped(v1beta1.ReasonExpired, ""), -day+time.Hour))
	s := seen(0, pastNight("older", -2*day), resumed, never, upgradeJob(jobNamed("next", day)))
	r := historyOf(s)
	var names []string
	for _, j := range r.Jobs {
		names = append(names, j.Name)
	}
	if len(names) != 3 || names[0] != "resumed" || names[1] != "never" || names[2] != "older" {
		t.Fatalf("got %v, want resumed, never, older", names)
	}
	if never := r.Jobs[1]; never.DurationSeconds != nil || never.WaitedSeconds != nil {
		t.Errorf("a job that never started ran for %v, and waited %v", *never.DurationSeconds, *never.WaitedSeconds)
	}
	if older := r.Jobs[2]; older.DurationSeconds == nil || *older.DurationSeconds != 90*60 || *older.WaitedSeconds != 0 {
		t.Errorf("a job of 90 minutes has %v", older.DurationSeconds)
	}
}

// resumedAt resumes a job, and has it start and end again.
func resumedAt(resumed, started, ended time.Duration) func(*v1beta1.UpgradeJob) {
	return func(job *v1beta1.UpgradeJob) {
		job.Spec.ResumeRequest = "again"
		lifecycle.Resume(job, window.Add(resumed))
		if started > 0 {
			lifecycle.SetStarted(job, "4.18.1", window.Add(started))
		}
		if ended > 0 {
			lifecycle.Finish(job, v1beta1.Failed(v1beta1.ReasonTimedOut, "It did not end."), window.Add(ended))
		}
	}
}

// What a job that was resumed took and waited is of its last run: the days in between nobody waited for it.
func TestTheLastRunOfAJobIsCounted(t *testing.T) {
	day := 24 * time.Hour
	failed := finished(v1beta1.Failed(v1beta1.ReasonTimedOut, "It did not end."), 12*time.Hour)
	skipped := finished(v1beta1.Skipped(v1beta1.ReasonExpired, ""), time.Hour)
	for _, tc := range []struct {
		reason string
		job    *v1beta1.UpgradeJob
		cells  string
		lead   string
		fact   reportCell
	}{
		{"never resumed", upgradeJob(started(time.Minute), failed), "2026-11-24 22:01 CET 60s 11h", "Failed after 11 h 59 min. TimedOut: It did not end.", reportCell{Text: "11 h 59 min"}},
		{"it failed, and was resumed days later", upgradeJob(started(time.Minute), failed, resumedAt(3*day, 3*day+10*time.Minute, 3*day+2*time.Hour)),
			"2026-11-27 22:10 CET 10m 110m", "Failed 2 h after it was resumed. TimedOut: It did not end.", reportCell{Text: "1 h 50 min", Sub: "in its last run"}},
		{"it was skipped before it had started, and resumed", upgradeJob(skipped, resumedAt(3*day, 3*day+time.Minute, 3*day+time.Hour)),
			"2026-11-27 22:01 CET 60s 59m", "Failed 1 h after it was resumed. TimedOut: It did not end.", reportCell{Text: "59 min", Sub: "in its last run"}},
		{"it did not start again", upgradeJob(started(time.Minute), failed, resumedAt(3*day, 0, 3*day+time.Hour)),
			"2026-11-24 22:01 CET - -", "Failed 1 h after it was resumed. TimedOut: It did not end.", reportCell{}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			s := seen(4*day, tc.job)
			v, r := &view{now: s.Now, width: 200}, historyOf(s)
			v.printHistory(&r, false)
			if got := strings.Join(strings.Fields(v.String()), " "); !strings.HasSuffix(got, " TimedOut "+tc.cells) {
				t.Errorf("got %q, want %q at its end", got, tc.cells)
			}
			status := statusOf(s, &s.Jobs[0])
			if got := leadOf(status)[0]; got != tc.lead {
				t.Errorf("the report begins with %q, want %q", got, tc.lead)
			}
			took := reportCell{}
			for _, f := range summaryFacts(status, &s.Jobs[0], zone) {
				if f.Name == "Took" {
					took = f.Value
				}
			}
			if took != tc.fact {
				t.Errorf("it took %v, want %v", took, tc.fact)
			}
		})
	}
}

func TestWhoseAnUpdateWas(t *testing.T) {
	// The jobs commence eight minutes after their start.
	first, second := pastNight("first", -24*time.Hour), pastNight("second", 0)
	entry := func(version string, start time.Duration) configv1.UpdateHistory {
		h := o.Completed(version)
		h.StartedTime = at(start)
		return h
	}
	imageOnly := pastNight("image", 0)
	imageOnly.Spec.DesiredVersion.Version = ""
	for _, tc := range []struct {
		reason string
		jobs   []*v1beta1.UpgradeJob
		h      configv1.UpdateHistory
		want   string
	}{
		{"it began when a job asked for it", []*v1beta1.UpgradeJob{first, second}, entry("4.18.2", 8*time.Minute), "upgrades/second"},
		{"the API server's clock is a little behind", []*v1beta1.UpgradeJob{first, second}, entry("4.18.2", 8*time.Minute-30*time.Second), "upgrades/second"},
		{"an earlier job had asked for the same", []*v1beta1.UpgradeJob{first, second}, entry("4.18.2", -24*time.Hour+10*time.Minute), "upgrades/first"},
		{"it began before any job asked for it", []*v1beta1.UpgradeJob{second}, entry("4.18.2", 0), ""},
		{"it began when the job was over", []*v1beta1.UpgradeJob{second}, entry("4.18.2", 2*time.Hour), ""},
		{"another version", []*v1beta1.UpgradeJob{second}, entry("4.18.3", 8*time.Minute), ""},
		{"a job that names the image alone", []*v1beta1.UpgradeJob{imageOnly}, entry("4.18.2", 8*time.Minute), "upgrades/image"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if got := whose(seen(0, tc.jobs...), &tc.h); got != tc.want {
				t.Errorf("it is of %q, want %q", got, tc.want)
			}
		})
	}
}
