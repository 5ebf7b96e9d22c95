// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package schedule_test

import (
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/appuio/managed-upgrade-operator/pkg/schedule"
)

func TestNextN(t *testing.T) {
	for _, tc := range []struct {
		reason               string
		cron, week, location string
		after                string
		want                 []string
	}{
		// Cron.
		{"Tuesdays of odd weeks", "0 22 * * 2", "@odd", "Europe/Zurich", "2026-11-20T12:00:00Z",
			[]string{"2026-12-01T22:00:00+01:00", "2026-12-15T22:00:00+01:00", "2026-12-29T22:00:00+01:00", "2027-01-05T22:00:00+01:00"}},
		{"strictly after a start", "0 22 * * 2", "", "UTC", "2026-11-24T22:00:00Z",
			[]string{"2026-12-01T22:00:00Z"}},
		{"a nanosecond before a start", "0 22 * * 2", "", "UTC", "2026-11-24T21:59:59.999999999Z",
			[]string{"2026-11-24T22:00:00Z"}},
		{"a nanosecond after a start", "0 22 * * 2", "", "UTC", "2026-11-24T22:00:00.000000001Z",
			[]string{"2026-12-01T22:00:00Z"}},
		{"two restricted day fields: either matches", "0 0 13 * 5", "", "UTC", "2026-12-01T00:00:00Z",
			[]string{"2026-12-04T00:00:00Z", "2026-12-11T00:00:00Z", "2026-12-13T00:00:00Z", "2026-12-18T00:00:00Z"}},
		{"a stepped star restricts", "0 0 */10 12 5", "", "UTC", "2026-12-01T00:00:00Z",
			[]string{"2026-12-04T00:00:00Z", "2026-12-11T00:00:00Z", "2026-12-18T00:00:00Z", "2026-12-21T00:00:00Z"}},
		{"30 February or a Monday leaves the Mondays", "0 0 30 2 1", "", "UTC", "2026-02-10T00:00:00Z",
			[]string{"2026-02-16T00:00:00Z", "2026-02-23T00:00:00Z", "2027-02-01T00:00:00Z"}},
		{"@weekly is Sunday at midnight", "@weekly", "", "UTC", "2026-11-20T00:00:00Z",
			[]string{"2026-11-22T00:00:00Z"}},
		{"last minute of a year, first of the next", "59,0 23,0 31,1 12,1 *", "", "UTC", "2026-12-31T23:00:00Z",
			[]string{"2026-12-31T23:59:00Z", "2027-01-01T00:00:00Z"}},

		// Leap years.
		{"29 February", "0 0 29 2 *", "", "UTC", "2026-01-01T00:00:00Z",
			[]string{"2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"}},
		{"2100 is no leap year", "0 0 29 2 *", "", "UTC", "2096-02-29T00:00:00Z",
			[]string{"2104-02-29T00:00:00Z"}},
		{"29 February always lies in week 9", "0 0 29 2 *", "9", "UTC", "2026-01-01T00:00:00Z",
			[]string{"2028-02-29T00:00:00Z"}},

		// ISO weeks.
		{"around New Year two odd weeks follow each other", "0 0 * * 1", "@odd", "UTC", "2020-12-20T00:00:00Z",
			[]string{"2020-12-28T00:00:00Z", "2021-01-04T00:00:00Z", "2021-01-18T00:00:00Z"}},
		{"@even skips both", "0 0 * * 1", "@even", "UTC", "2020-12-20T00:00:00Z",
			[]string{"2020-12-21T00:00:00Z", "2021-01-11T00:00:00Z"}},
		{"1 January in week 53 of the year before", "0 0 1 1 *", "53", "UTC", "2020-01-01T00:00:00Z",
			[]string{"2021-01-01T00:00:00Z", "2027-01-01T00:00:00Z"}},
		{"1 January in week 52 of the year before", "0 0 1 1 *", "52", "UTC", "2020-01-01T00:00:00Z",
			[]string{"2022-01-01T00:00:00Z", "2023-01-01T00:00:00Z"}},
		{"29 December in week 1 of the year after", "0 0 29 12 *", "1", "UTC", "2020-01-01T00:00:00Z",
			[]string{"2025-12-29T00:00:00Z", "2031-12-29T00:00:00Z"}},
		{"week 53 only in years that have one", "0 0 * * 4", "53", "UTC", "2020-12-01T00:00:00Z",
			[]string{"2020-12-31T00:00:00Z", "2026-12-31T00:00:00Z", "2032-12-30T00:00:00Z"}},
		{"week 53 around 2100, which is no leap year", "0 0 * * 4", "53", "UTC", "2094-01-01T00:00:00Z",
			[]string{"2099-12-31T00:00:00Z", "2105-12-31T00:00:00Z", "2111-12-31T00:00:00Z"}},
		{"27 December in week 53 takes a leap year that ends on a Friday", "0 0 27 12 *", "53", "UTC", "2026-01-01T00:00:00Z",
			[]string{"2032-12-27T00:00:00Z", "2060-12-27T00:00:00Z", "2088-12-27T00:00:00Z", "2128-12-27T00:00:00Z"}},
		{"the week is that of the location, in UTC it is still Sunday", "0 1 * * 1", "@odd", "Pacific/Auckland", "2026-01-01T00:00:00Z",
			[]string{"2026-01-12T01:00:00+13:00"}},

		// Gaps.
		{"in a gap: first moment after it", "30 2 * * *", "", "Europe/Zurich", "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"}},
		{"several in a gap and one at its end are one", "*/15 2,3 * * *", "", "Europe/Zurich", "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-29T03:15:00+02:00", "2026-03-29T03:30:00+02:00"}},
		{"at the beginning of a gap", "0 2 * * *", "", "America/New_York", "2026-03-08T00:00:00-05:00",
			[]string{"2026-03-08T03:00:00-04:00"}},
		{"half an hour", "10 2 * * *", "", "Australia/Lord_Howe", "2026-10-03T12:00:00+10:30",
			[]string{"2026-10-04T02:30:00+11:00", "2026-10-05T02:10:00+11:00"}},
		{"two hours", "30 1,2 * * *", "", "Antarctica/Troll", "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-30T01:30:00+02:00", "2026-03-30T02:30:00+02:00"}},
		{"no midnight in Egypt", "0 0 * * 5", "", "Africa/Cairo", "2026-04-20T00:00:00Z",
			[]string{"2026-04-24T01:00:00+03:00", "2026-05-01T00:00:00+03:00"}},
		{"no midnight in Lebanon", "@weekly", "", "Asia/Beirut", "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T01:00:00+03:00", "2026-04-05T00:00:00+03:00"}},
		{"no midnight in Brazil, while it had summer time", "@daily", "", "America/Sao_Paulo", "2018-11-03T12:00:00Z",
			[]string{"2018-11-04T01:00:00-02:00", "2018-11-05T00:00:00-02:00"}},
		{"after Ramadan", "30 2 * * *", "", "Africa/Casablanca", "2026-03-21T12:00:00Z",
			[]string{"2026-03-22T03:00:00+01:00", "2026-03-23T02:30:00+01:00"}},
		{"a day that did not exist", "0 12 30 12 *", "", "Pacific/Apia", "2011-06-01T00:00:00Z",
			[]string{"2011-12-31T00:00:00+14:00", "2012-12-30T12:00:00+14:00"}},
		{"its weekday did not exist either", "0 12 * * 5", "", "Pacific/Apia", "2011-12-24T00:00:00Z",
			[]string{"2011-12-31T00:00:00+14:00", "2012-01-06T12:00:00+14:00"}},
		{"all starts of the lost day and the next midnight are one", "0 */6 * * *", "", "Pacific/Apia", "2011-12-30T03:00:00Z",
			[]string{"2011-12-29T18:00:00-10:00", "2011-12-31T00:00:00+14:00", "2011-12-31T06:00:00+14:00"}},
		{"wanted on Sunday of week 13, moved to Monday of week 14", "45 23 * 3 0", "13", "America/Toronto", "1919-01-01T00:00:00Z",
			[]string{"1919-03-31T00:30:00-04:00"}},
		{"asked for in week 14, not wanted then", "45 23 30 3 *", "14", "America/Toronto", "1919-01-01T00:00:00Z",
			[]string{"1920-03-30T23:45:00-05:00"}},

		// Overlaps.
		{"in an overlap: once, at the first", "30 2 * * *", "", "Europe/Zurich", "2026-10-24T12:00:00Z",
			[]string{"2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"}},
		{"from within the first hour", "30 2 * * *", "", "Europe/Zurich", "2026-10-25T02:29:59+02:00",
			[]string{"2026-10-25T02:30:00+02:00"}},
		{"from within the second hour", "30 2 * * *", "", "Europe/Zurich", "2026-10-25T02:00:00+01:00",
			[]string{"2026-10-26T02:30:00+01:00"}},
		{"at the end of an overlap", "0 3 * * *", "", "Europe/Zurich", "2026-10-25T02:30:00+02:00",
			[]string{"2026-10-25T03:00:00+01:00"}},
		{"every half hour", "*/30 1-3 * * *", "", "Europe/Zurich", "2026-10-25T01:30:00+02:00",
			[]string{"2026-10-25T02:00:00+02:00", "2026-10-25T02:30:00+02:00", "2026-10-25T03:00:00+01:00"}},
		{"overlap of half an hour", "45 1 * * *", "", "Australia/Lord_Howe", "2026-04-04T12:00:00+11:00",
			[]string{"2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30"}},
		{"overlap of two hours", "30 1 * * *", "", "Antarctica/Troll", "2026-10-24T12:00:00Z",
			[]string{"2026-10-25T01:30:00+02:00", "2026-10-26T01:30:00+00:00"}},
		{"overlap that brings back the day before", "30 23 * * *", "", "Africa/Cairo", "2026-10-29T12:00:00Z",
			[]string{"2026-10-29T23:30:00+03:00", "2026-10-30T23:30:00+02:00"}},

		// Beyond the tabulated changes.
		{"31 December of a leap year", "0 12 * * *", "", "Europe/Zurich", "2096-12-30T23:30:00Z",
			[]string{"2096-12-31T12:00:00+01:00", "2097-01-01T12:00:00+01:00"}},
		{"31 December of a leap year in summer time", "0 12 * * *", "", "Australia/Sydney", "2096-12-31T05:00:00Z",
			[]string{"2097-01-01T12:00:00+11:00", "2097-01-02T12:00:00+11:00"}},
		{"a gap in far years", "30 2 * * *", "", "Europe/Zurich", "2096-03-24T12:00:00Z",
			[]string{"2096-03-25T03:00:00+02:00", "2096-03-26T02:30:00+02:00"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			s := mustParse(t, tc.cron, tc.week, tc.location)
			after, err := time.Parse(time.RFC3339Nano, tc.after)
			if err != nil {
				t.Fatal(err)
			}
			starts, err := s.NextN(after, len(tc.want))
			if err != nil {
				t.Fatalf("NextN: %v", err)
			}
			if diff := cmp.Diff(tc.want, formatAll(starts)); diff != "" {
				t.Errorf("NextN (-want +got):\n%s", diff)
			}

			for i := len(starts) - 1; i > 0; i-- {
				got, err := s.Prev(starts[i])
				if err != nil {
					t.Fatalf("Prev: %v", err)
				}
				if !got.Equal(starts[i-1]) {
					t.Errorf("Prev(%s): got %s, want %s", starts[i], got, starts[i-1])
				}
			}
		})
	}
}

func formatAll(starts []time.Time) []string {
	words := make([]string, len(starts))
	for i, start := range starts {
		words[i] = start.Format("2006-01-02T15:04:05-07:00")
		if start.Location() == time.UTC {
			words[i] = start.Format(time.RFC3339)
		}
	}
	return words
}

func TestNever(t *testing.T) {
	for _, tc := range []struct{ cron, week, words string }{
		{"0 0 30 2 *", "", "30 February never occurs"},
		{"0 0 30,31 2 *", "@odd", "day 30 or 31 never occurs in February"},
		{"0 0 31 2,4,6,9,11 *", "", "day 31 never occurs in February or April or June or September or November"},
		{"0 0 29 2 *", "@even", "lies in an even ISO week"},
		{"0 0 29 2 *", "10", "lies in ISO week 10"},
		{"0 0 4 1 *", "53", "lies in ISO week 53"},
		{"0 0 4 1 *", "@even", "lies in an even ISO week"},
		{"0 0 28 12 *", "1", "lies in ISO week 1;"},
		{"0 0 26 12 *", "53", "lies in ISO week 53"},
		{"* * * 2-11 *", "53", "lies in ISO week 53"},
		{"0 0 * 7 1", "@odd", ""},
	} {
		t.Run(tc.cron+" "+tc.week, func(t *testing.T) {
			s := mustParse(t, tc.cron, tc.week, "Europe/Zurich")
			now := time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

			_, errNext := s.Next(now)
			_, errPrev := s.Prev(now)
			starts, errNextN := s.NextN(now, 10)
			for _, err := range []error{errNext, errPrev, errNextN} {
				if tc.words == "" {
					if err != nil {
						t.Errorf("got error %q, want none", err)
					}
					continue
				}
				if !errors.Is(err, schedule.ErrNoNextSchedule) || !strings.Contains(err.Error(), tc.words) {
					t.Errorf("got error %v, want ErrNoNextSchedule with %q", err, tc.words)
				}
			}
			if tc.words != "" && starts != nil {
				t.Errorf("NextN: got %v next to the error", starts)
			}
		})
	}
}

func TestEndsOfTheCalendar(t *testing.T) {
	const none = ""
	at := func(year int) time.Time { return time.Date(year, time.June, 1, 0, 0, 0, 0, time.UTC) }

	for _, tc := range []struct {
		reason     string
		location   string
		t          time.Time
		next, prev string
	}{
		{"zero time", "UTC", time.Time{}, "0001-01-01T06:00:00Z", none},
		{"zero time is in the year 0 of America", "America/New_York", time.Time{}, "0001-01-01T06:00:00-04:56", none},
		{"zero time is in the morning of Asia", "Asia/Tokyo", time.Time{}, "0001-01-01T18:00:00+09:18", "0001-01-01T06:00:00+09:18"},
		{"before the calendar", "Asia/Tokyo", at(-5000), "0001-01-01T06:00:00+09:18", none},
		{"the last day", "UTC", time.Date(9999, time.December, 31, 17, 59, 59, 0, time.UTC), "9999-12-31T18:00:00Z", "9999-12-31T06:00:00Z"},
		{"the last start", "Asia/Tokyo", time.Date(9999, time.December, 31, 9, 0, 0, 0, time.UTC), none, "9999-12-31T06:00:00+09:00"},
		{"the last minute", "UTC", time.Date(9999, time.December, 31, 23, 59, 59, 999, time.UTC), none, "9999-12-31T18:00:00Z"},
		{"after the calendar", "America/New_York", at(20000), none, "9999-12-31T18:00:00-05:00"},
		{"as early as a time can be", "UTC", time.Unix(math.MinInt64, 0), "0001-01-01T06:00:00Z", none},
		{"as late as a time can be", "UTC", time.Unix(math.MaxInt64, 0), none, "9999-12-31T18:00:00Z"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			s := mustParse(t, "0 6,18 * * *", "", tc.location)
			check := func(name string, got time.Time, err error, want string) {
				t.Helper()
				switch {
				case want == none:
					if !errors.Is(err, schedule.ErrNoNextSchedule) {
						t.Errorf("%s: got %s and error %v, want ErrNoNextSchedule", name, got, err)
					}
				case err != nil:
					t.Errorf("%s: %v", name, err)
				case got.Format(time.RFC3339) != want:
					t.Errorf("%s: got %s, want %s", name, got.Format(time.RFC3339), want)
				}
			}
			next, err := s.Next(tc.t)
			check("Next", next, err, tc.next)
			prev, err := s.Prev(tc.t)
			check("Prev", prev, err, tc.prev)
		})
	}
}

func TestNextNCounts(t *testing.T) {
	s := mustParse(t, "@yearly", "", "UTC")
	for _, tc := range []struct {
		reason  string
		year, n int
		want    int
	}{
		{"as many as asked for", 2026, 10, 10},
		{"none asked for", 2026, 0, 0},
		{"less than none asked for", 2026, -1, 0},
		{"fewer when the calendar ends", 9996, 10, 3},
		{"none asked for where none is", 9999, 0, 0},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			starts, err := s.NextN(time.Date(tc.year, time.June, 1, 0, 0, 0, 0, time.UTC), tc.n)
			if err != nil {
				t.Fatalf("NextN: %v", err)
			}
			if len(starts) != tc.want {
				t.Errorf("got %d starts, want %d: %v", len(starts), tc.want, starts)
			}
		})
	}
}

func TestLocationOfStarts(t *testing.T) {
	zurich := loadLocation(t, "Europe/Zurich")
	for name, want := range map[string]*time.Location{"": time.Local, "Local": time.Local, "UTC": time.UTC, "Europe/Zurich": zurich} {
		s := mustParse(t, "0 22 * * 2", "", name)
		next, err := s.Next(time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC))
		if err != nil {
			t.Fatalf("location %q: Next: %v", name, err)
		}
		if got := next.Location().String(); got != want.String() {
			t.Errorf("location %q: got a start in %s, want %s", name, got, want)
		}
		if next.Hour() != 22 || next.Weekday() != time.Tuesday {
			t.Errorf("location %q: got a start at %s, want Tuesday 22:00", name, next)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	s := mustParse(t, "30 2 * * *", "@odd", "Europe/Zurich")
	now := time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC)
	want, err := s.NextN(now, 50)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			got, err := s.NextN(now, 50)
			if err != nil || !cmp.Equal(want, got) {
				t.Errorf("got %v, %v; want %v", got, err, want)
			}
		})
	}
	group.Wait()
}

// mustParse serves tests, benchmarks and property tests alike.
func mustParse(tb rapid.TB, cron, week, location string) *schedule.Schedule {
	tb.Helper()
	s, err := schedule.Parse(cron, week, location)
	if err != nil {
		tb.Fatalf("Parse(%q, %q, %q): %v", cron, week, location, err)
	}
	return s
}
