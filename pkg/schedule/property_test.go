// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package schedule_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/appuio/managed-upgrade-operator/pkg/schedule"
)

var (
	oracleFrom = time.Date(2015, time.January, 1, 0, 0, 0, 0, time.UTC)
	oracleTo   = time.Date(2035, time.January, 1, 0, 0, 0, 0, time.UTC)
)

// oracleLocations are the zones with unusual changes, and some with usual ones.
var oracleLocations = []string{
	"Europe/Zurich",
	"UTC",
	"America/New_York",
	"Australia/Lord_Howe",  // half an hour
	"Antarctica/Troll",     // two hours
	"Africa/Casablanca",    // around Ramadan
	"Africa/Cairo",         // gap at midnight, not in all years
	"Asia/Beirut",          // gap at midnight
	"America/Sao_Paulo",    // gap at midnight, until 2018
	"America/Asuncion",     // until 2024
	"America/Havana",       // gap at midnight, overlap at 1:00
	"America/Santiago",     // gap at midnight, overlap into the day before
	"America/Scoresbysund", // gap at midnight, change of zone in 2024
	"Asia/Pyongyang",       // half an hour for good, twice
	"Asia/Gaza",            // changes by decree
	"Asia/Tehran",          // by half hours, gap at midnight, until 2022
	"Asia/Kathmandu",
	"Atlantic/Azores",
	"Europe/Dublin", // winter time is the exception
	"Europe/Volgograd",
	"Pacific/Apia",
	"Pacific/Chatham", // by three quarters of an hour
	"Pacific/Norfolk",
}

func loadLocation(tb rapid.TB, name string) *time.Location {
	tb.Helper()
	location, err := time.LoadLocation(name)
	if err != nil {
		tb.Fatalf("load location: %v", err)
	}
	return location
}

// TestTwentyYears compares all starts of twenty years with those of the oracle.
func TestTwentyYears(t *testing.T) {
	oracles := []oracle{
		// What people write.
		{list(0), list(22), star(1, 31), star(1, 12), list(2), "@odd"},
		// In the gaps and overlaps of most zones, at their ends, and in between.
		{list(0, 30), numbered(0, 3), star(1, 31), star(1, 12), list(0, 1), "@even"},
		{list(0), list(0), star(1, 31), star(1, 12), star(0, 6), ""},
		{list(45), list(23), list(1, 29, 30, 31), star(1, 12), list(0), ""},
		// At the ends of years.
		{list(30), star(0, 23), star(1, 31), list(1, 12), list(1, 4), "53"},
	}
	for _, name := range oracleLocations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			record := recordWall(loadLocation(t, name), oracleFrom, oracleTo)
			for _, o := range oracles {
				compareWithOracle(t, &o, record)
			}
		})
	}
}

// TestEveryChange compares the starts of each minute and of each hour around all
// changes of clocks.
func TestEveryChange(t *testing.T) {
	oracles := []oracle{
		{star(0, 59), star(0, 23), star(1, 31), star(1, 12), star(0, 6), ""},
		{list(0), star(0, 23), star(1, 31), star(1, 12), star(0, 6), "@odd"},
		{list(59), numbered(1, 2), star(1, 31), star(1, 12), star(0, 6), ""},
	}
	// Early enough for the day that Samoa left out.
	from := time.Date(2011, time.June, 1, 0, 0, 0, 0, time.UTC)
	for _, name := range oracleLocations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			location := loadLocation(t, name)
			for _, change := range changes(location, from, oracleTo) {
				record := recordWall(location, change.Add(-3*time.Hour), change.Add(5*time.Hour))
				for _, o := range oracles {
					compareWithOracle(t, &o, record)
				}
			}
		})
	}
}

// TestAnySchedule compares the starts of arbitrary schedules over some weeks with
// those of the oracle.
func TestAnySchedule(t *testing.T) {
	changesOf := map[string][]time.Time{}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(oracleLocations).Draw(t, "location")
		location := loadLocation(t, name)
		if _, known := changesOf[name]; !known {
			changesOf[name] = changes(location, oracleFrom, oracleTo)
		}
		o := oracle{
			minute:     drawField(0, 59).Draw(t, "minute"),
			hour:       drawField(0, 23).Draw(t, "hour"),
			dayOfMonth: drawField(1, 31).Draw(t, "day of month"),
			month:      drawField(1, 12).Draw(t, "month"),
			dayOfWeek:  drawField(0, 6).Draw(t, "day of week"),
			week:       drawWeek().Draw(t, "week"),
		}
		from := drawInstant(changesOf[name]).Draw(t, "from")
		span := time.Duration(rapid.Int64Range(0, int64(30*24*time.Hour)).Draw(t, "span"))
		compareWithOracle(t, &o, recordWall(location, from, from.Add(span)))
	})
}

// TestRareDates compares with a walk over the dates of 400 years, which show all that
// can ever occur.
func TestRareDates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		day := rapid.IntRange(1, 31)
		o := oracle{
			minute:     list(0),
			hour:       list(12),
			dayOfMonth: list(rapid.OneOf(day, rapid.SampledFrom([]int{1, 3, 4, 26, 27, 28, 29, 30, 31})).Draw(t, "day of month")),
			month:      list(rapid.OneOf(rapid.IntRange(1, 12), rapid.SampledFrom([]int{1, 2, 12})).Draw(t, "month")),
			dayOfWeek:  star(0, 6),
			week:       drawWeek().Draw(t, "week"),
		}
		year := rapid.IntRange(1, 9000).Draw(t, "year")
		from := time.Date(year, time.January, 1, 0, 0, 0, 0, time.UTC)

		var want []time.Time
		for ; year < from.Year()+400; year++ {
			noon := time.Date(year, time.Month(o.month.values[0]), o.dayOfMonth.values[0], 12, 0, 0, 0, time.UTC)
			if o.matchesDate(noon) {
				want = append(want, noon)
			}
		}
		s := mustParse(t, o.cron(), o.week, "UTC")
		if len(want) == 0 {
			if got, err := s.Next(from); !errors.Is(err, schedule.ErrNoNextSchedule) {
				t.Fatalf("%s: got %s and error %v, want ErrNoNextSchedule", &o, got, err)
			}
			return
		}
		got, err := s.NextN(from, len(want))
		if err != nil {
			t.Fatalf("%s: NextN: %v", &o, err)
		}
		if !slices.EqualFunc(want, got, time.Time.Equal) {
			t.Fatalf("%s: got %v, want %v", &o, got, want)
		}
	})
}

// TestPrevAfterNext holds for all years, in which no oracle walks.
func TestPrevAfterNext(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cron := fmt.Sprintf("%s %s %s %s %s", drawField(0, 59).Draw(t, "minute").text, drawField(0, 23).Draw(t, "hour").text,
			drawField(1, 31).Draw(t, "day of month").text, drawField(1, 12).Draw(t, "month").text, drawField(0, 6).Draw(t, "day of week").text)
		s := mustParse(t, cron, drawWeek().Draw(t, "week"), rapid.SampledFrom(oracleLocations).Draw(t, "location"))
		from := time.Unix(rapid.Int64Range(-62135596800, 253402300799).Draw(t, "from"), rapid.Int64Range(0, 1).Draw(t, "nanosecond"))

		next, err := s.Next(from)
		if errors.Is(err, schedule.ErrNoNextSchedule) {
			return
		}
		if err != nil || !next.After(from) {
			t.Fatalf("Next(%s): got %s, %v; want a later time", from, next, err)
		}
		if got, err := s.Prev(next.Add(time.Nanosecond)); err != nil || !got.Equal(next) {
			t.Errorf("Prev just after %s: got %s, %v", next, got, err)
		}
		if got, err := s.Next(next.Add(-time.Nanosecond)); err != nil || !got.Equal(next) {
			t.Errorf("Next just before %s: got %s, %v", next, got, err)
		}
		if prev, err := s.Prev(next); err == nil {
			if prev.After(from) {
				t.Errorf("Prev(%s): got %s, which Next(%s) left out", next, prev, from)
			}
			if got, err := s.Next(prev); err != nil || !got.Equal(next) {
				t.Errorf("Next(%s): got %s, %v; want %s, of which it is Prev", prev, got, err, next)
			}
		}
	})
}

// compareWithOracle checks that Next and Prev find exactly the starts that the oracle
// finds in a record.
func compareWithOracle(tb rapid.TB, o *oracle, record *wallRecord) {
	tb.Helper()
	location := record.location
	s := mustParse(tb, o.cron(), o.week, location.String())

	previous := record.from
	for _, want := range o.starts(record) {
		if got, err := s.Next(previous); err != nil || !got.Equal(want) {
			tb.Fatalf("%s: Next(%s): got %s and error %v, want %s", o, previous.In(location), got, err, want)
		}
		if got, err := s.Prev(want); previous != record.from && (err != nil || !got.Equal(previous)) {
			tb.Fatalf("%s: Prev(%s): got %s and error %v, want %s", o, want, got, err, previous)
		}
		previous = want
	}
	if got, err := s.Next(previous); err == nil && !got.After(record.to) {
		tb.Fatalf("%s: Next(%s): got %s, want none until %s", o, previous.In(location), got, record.to)
	}
}

// numbered is a range, such as 0-3.
func numbered(from, to int) field {
	return field{fmt.Sprintf("%d-%d", from, to), numbers(from, to, 1)}
}

// drawField generates fields of all kinds that cron knows.
func drawField(lowest, highest int) *rapid.Generator[field] {
	return rapid.Custom(func(t *rapid.T) field {
		value := rapid.IntRange(lowest, highest)
		switch rapid.SampledFrom([]string{"star", "question mark", "list", "range", "step", "range with step"}).Draw(t, "kind") {
		case "star":
			return star(lowest, highest)
		case "question mark":
			return field{"?", numbers(lowest, highest, 1)}
		case "list":
			return list(rapid.SliceOfN(value, 1, 4).Draw(t, "values")...)
		case "range":
			from := value.Draw(t, "from")
			return numbered(from, rapid.IntRange(from, highest).Draw(t, "to"))
		case "step":
			step := rapid.IntRange(2, highest).Draw(t, "step")
			return field{fmt.Sprintf("*/%d", step), numbers(lowest, highest, step)}
		default:
			from, step := value.Draw(t, "from"), rapid.IntRange(1, highest).Draw(t, "step")
			return field{fmt.Sprintf("%d/%d", from, step), numbers(from, highest, step)}
		}
	})
}

func drawWeek() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{"", "@odd", "@even", "1", "9", "52", "53"}),
		rapid.Map(rapid.IntRange(1, 53), func(week int) string { return fmt.Sprint(week) }),
	)
}

// drawInstant generates instants in the years of the oracle, many of them shortly
// before a change of the clock.
func drawInstant(changes []time.Time) *rapid.Generator[time.Time] {
	anywhere := rapid.Map(rapid.Int64Range(oracleFrom.Unix(), oracleTo.Unix()), func(second int64) time.Time {
		return time.Unix(second, 0)
	})
	if len(changes) == 0 {
		return anywhere
	}
	return rapid.OneOf(anywhere, rapid.Custom(func(t *rapid.T) time.Time {
		change := rapid.SampledFrom(changes).Draw(t, "change")
		return change.Add(time.Duration(rapid.Int64Range(-int64(48*time.Hour), int64(3*time.Hour)).Draw(t, "distance")))
	}))
}
