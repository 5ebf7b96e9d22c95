// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package schedule_test

import (
	"errors"
	"testing"
	"time"

	"github.com/appuio/managed-upgrade-operator/pkg/schedule"
)

// benchStart lies in years for which the time zone database has rules instead of a
// table, and which are not the current one, whose zone package time keeps at hand:
// the slowest case. It is the Wednesday of an odd week, so that the next Tuesday of an
// odd week is nearly two weeks away.
var benchStart = time.Date(2041, time.November, 6, 21, 30, 0, 0, time.UTC)

func BenchmarkNext(b *testing.B) {
	for _, bench := range []struct{ name, cron, week, location string }{
		{"odd weeks", "0 22 * * 2", "@odd", "Europe/Zurich"},
		{"every week", "0 22 * * 2", "", "America/New_York"},
		{"daily", "@daily", "", "UTC"},
		{"every minute", "* * * * *", "", "Australia/Lord_Howe"},
		{"one week of the year", "0 22 * * 2", "40", "Europe/Zurich"},
	} {
		b.Run(bench.name, func(b *testing.B) { benchmarkNext(b, bench.cron, bench.week, bench.location) })
	}
}

func BenchmarkNextRare(b *testing.B) {
	b.Run("29 February", func(b *testing.B) { benchmarkNext(b, "0 22 29 2 *", "", "Europe/Zurich") })
	b.Run("week 53", func(b *testing.B) { benchmarkNext(b, "0 22 * * *", "53", "Europe/Zurich") })
	b.Run("1 January in week 53", func(b *testing.B) { benchmarkNext(b, "0 0 1 1 *", "53", "Europe/Zurich") })
}

func benchmarkNext(b *testing.B, cron, week, location string) {
	b.ReportAllocs()
	s := mustParse(b, cron, week, location)
	for b.Loop() {
		if _, err := s.Next(benchStart); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNextTen(b *testing.B) {
	b.ReportAllocs()
	s := mustParse(b, "0 22 * * 2", "@odd", "Europe/Zurich")
	for b.Loop() {
		if _, err := s.NextN(benchStart, 10); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPrev(b *testing.B) {
	b.ReportAllocs()
	s := mustParse(b, "0 22 * * 2", "@odd", "Europe/Zurich")
	for b.Loop() {
		if _, err := s.Prev(benchStart); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		mustParse(b, "0 22 * * 2", "@odd", "Europe/Zurich")
	}
}

// BenchmarkImpossible includes Parse, which is where a schedule without any start is
// found out; the second case is the one with the most dates to look at.
func BenchmarkImpossible(b *testing.B) {
	for _, bench := range []struct{ name, cron, week string }{
		{"30 February", "0 0 30 2 *", ""},
		{"week 53 from February to November", "0 0 * 2-11 *", "53"},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s := mustParse(b, bench.cron, bench.week, "UTC")
				if _, err := s.Next(benchStart); !errors.Is(err, schedule.ErrNoNextSchedule) {
					b.Fatalf("Next: got error %v", err)
				}
			}
		})
	}
}
