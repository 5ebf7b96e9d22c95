// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/appuio/managed-upgrade-operator/pkg/schedule"
)

func TestAppoint(t *testing.T) {
	for _, test := range []struct{ reason, now, start, cron, week string }{
		{"there is time until the next minute", "2026-11-20T20:30:05Z", "2026-11-20T20:31:00Z", "31 21 * * 5", "@odd"},
		{"the next minute is too near", "2026-11-20T20:30:40Z", "2026-11-20T20:32:00Z", "32 21 * * 5", "@odd"},
		{"it is tomorrow in Zurich", "2026-11-21T22:59:50Z", "2026-11-21T23:01:00Z", "1 0 * * 0", "@odd"},
		{"the next week begins in Zurich", "2026-11-22T22:59:50Z", "2026-11-22T23:01:00Z", "1 0 * * 1", "@even"},
		{"New Year lies in week 53", "2026-12-31T23:30:00Z", "2026-12-31T23:31:00Z", "31 0 * * 5", "@odd"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			now, err := time.Parse(time.RFC3339, test.now)
			if err != nil {
				t.Fatal(err)
			}
			a, err := appoint(now, 75*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			got := a.config.Spec.Schedule
			if s := a.start.UTC().Format(time.RFC3339); s != test.start || got.Cron != test.cron || got.ISOWeek != test.week {
				t.Errorf("got %s, %q in weeks %q, want %s, %q in weeks %q", s, got.Cron, got.ISOWeek, test.start, test.cron, test.week)
			}
			s, err := schedule.Parse(got.Cron, got.ISOWeek, got.Location)
			if err != nil {
				t.Fatal(err)
			}
			if next, err := s.Next(now); err != nil || !next.Equal(a.start) {
				t.Errorf("the schedule starts at %s (%v), the demo says %s", next, err, a.start)
			}
			if create := a.start.Add(-a.config.Spec.PinVersionWindow.Duration); create.Sub(now) < scheduled || a.start.Sub(now) > 2*time.Minute {
				t.Errorf("the job is created after %s and starts after %s", create.Sub(now), a.start.Sub(now))
			}
			job := a.config.Spec.JobTemplate.Spec.Config
			if delay := job.MachineConfigPools[0].DelayUpgrade.Min(); delay != 75*time.Second || job.UpgradeTimeout.Duration <= delay {
				t.Errorf("the pools follow after %s, in an upgrade of %s", delay, job.UpgradeTimeout)
			}
			if said := a.changes[len(a.changes)-1]; said != "machineConfigPools[0].delayUpgrade.delayMin: 1m15s instead of 2h0m0s" {
				t.Errorf("of the delay it says %q", said)
			}
		})
	}
}

func TestDelayAt(t *testing.T) {
	for speed, want := range map[float64]time.Duration{1: 75 * time.Second, 2: 53 * time.Second, 0.5: 120 * time.Second} {
		if got := delayAt(speed); got != want {
			t.Errorf("at speed %v: got %s, want %s", speed, got, want)
		}
	}
}
