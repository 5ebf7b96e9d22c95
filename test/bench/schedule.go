// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/appuio/managed-upgrade-operator/pkg/schedule"
)

// usualSchedules are schedules as they are in use. The odd weeks are the slowest of them.
var usualSchedules = []struct{ what, cron, week, location string }{
	{"22:00 on Tuesdays of odd weeks, Europe/Zurich", "0 22 * * 2", "@odd", "Europe/Zurich"},
	{"22:00 on Tuesdays, America/New_York", "0 22 * * 2", "", "America/New_York"},
}

// searchFrom is where the search begins: in a year for which the time zone database has rules instead of a table, on
// the day after the Tuesday of an odd week.
var searchFrom = time.Date(2041, time.November, 6, 21, 30, 0, 0, time.UTC)

// measureSchedule measures the search for the next start.
func (b *bench) measureSchedule() error {
	for _, usual := range usualSchedules {
		s, err := schedule.Parse(usual.cron, usual.week, usual.location)
		if err != nil {
			return fmt.Errorf("parse the schedule %q: %w", usual.cron, err)
		}
		b.add("schedule.Next: "+usual.what, "µs", targetScheduledNext, perOperation(func() {
			if _, err = s.Next(searchFrom); err != nil {
				panic(err) // a weekly schedule without a next start
			}
		}))
	}
	return nil
}

// perOperation returns how many microseconds a call of do takes.
func perOperation(do func()) float64 {
	result := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			do()
		}
	})
	return float64(result.T.Nanoseconds()) / float64(result.N) / 1000
}
