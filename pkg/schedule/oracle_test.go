// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package schedule_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// oracle is what Schedule is tested against: it walks the wall clock minute by minute
// and asks for each one whether it matches. It shares no code and no idea with the
// implementation; its expression is given as plain lists of values, so that not even
// the parser is shared.
type oracle struct {
	minute, hour, dayOfMonth, month, dayOfWeek field
	week                                       string
}

// field is a field of a cron expression, as it is written and as it is meant.
type field struct {
	text   string
	values []int
}

func (f field) isStar() bool           { return f.text == "*" || f.text == "?" }
func (f field) matches(value int) bool { return slices.Contains(f.values, value) }
func star(lowest, highest int) field   { return field{"*", numbers(lowest, highest, 1)} }
func list(values ...int) field         { return field{joined(values), values} }
func numbers(from, to, step int) []int {
	var values []int
	for n := from; n <= to; n += step {
		values = append(values, n)
	}
	return values
}

func joined(values []int) string {
	words := make([]string, len(values))
	for i, value := range values {
		words[i] = strconv.Itoa(value)
	}
	return strings.Join(words, ",")
}

func (o *oracle) cron() string {
	return strings.Join([]string{o.minute.text, o.hour.text, o.dayOfMonth.text, o.month.text, o.dayOfWeek.text}, " ")
}

func (o *oracle) String() string {
	return fmt.Sprintf("cron %q, week %q", o.cron(), o.week)
}

// matchesDate tells whether starts are wanted on a date.
func (o *oracle) matchesDate(date time.Time) bool {
	_, week := date.ISOWeek()
	switch o.week {
	case "":
	case "@odd":
		if week%2 == 0 {
			return false
		}
	case "@even":
		if week%2 == 1 {
			return false
		}
	default:
		if o.week != strconv.Itoa(week) {
			return false
		}
	}
	if !o.month.matches(int(date.Month())) {
		return false
	}
	byMonth, byWeek := o.dayOfMonth.matches(date.Day()), o.dayOfWeek.matches(int(date.Weekday()))
	if o.dayOfMonth.isStar() || o.dayOfWeek.isStar() {
		return byMonth && byWeek
	}
	return byMonth || byWeek
}

const (
	minuteSeconds  = int64(60)
	quarterSeconds = 15 * minuteSeconds
	daySeconds     = 24 * 60 * minuteSeconds
)

// wallRecord is what the clock of a location showed from begin on: its distance from
// UTC in each quarter of an hour. In the years of the tests, clocks are changed at
// those moments only.
type wallRecord struct {
	location *time.Location
	from, to time.Time
	begin    int64
	offsets  []int64
}

// recordWall watches a clock between two instants, and for some days before, to know
// what it had shown already.
func recordWall(location *time.Location, from, to time.Time) *wallRecord {
	r := &wallRecord{location: location, from: from, to: to, begin: from.Unix()/quarterSeconds*quarterSeconds - 3*daySeconds}
	for instant := r.begin; instant <= to.Unix(); instant += quarterSeconds {
		_, offset := time.Unix(instant, 0).In(location).Zone()
		r.offsets = append(r.offsets, int64(offset))
	}
	return r
}

// starts walks through a record and returns all starts in it, without its first
// instant and with its last one. A start happens when the wall clock shows for the
// first time a wanted minute or, because it jumped, a later one.
func (o *oracle) starts(record *wallRecord) []time.Time {
	var wantedMinutes [24 * 60]bool
	var wantedQuarters [24 * 4]bool
	for _, h := range o.hour.values {
		for _, m := range o.minute.values {
			wantedMinutes[h*60+m] = true
			wantedQuarters[h*4+m/15] = true
		}
	}
	var (
		day        int64
		dayMatches bool
	)
	wanted := func(wall int64) bool {
		if !wantedMinutes[wall%daySeconds/minuteSeconds] {
			return false
		}
		if today := wall / daySeconds; today != day {
			day, dayMatches = today, o.matchesDate(time.Unix(wall, 0).UTC())
		}
		return dayMatches
	}

	var starts []time.Time
	latest := record.begin + record.offsets[0] // the latest minute that the wall clock has shown
	for i, offset := range record.offsets {
		instant := record.begin + int64(i)*quarterSeconds
		if wall := instant + offset; latest == wall-minuteSeconds && !wantedQuarters[wall%daySeconds/quarterSeconds] {
			latest += quarterSeconds
			continue
		}
		for now := instant; now < instant+quarterSeconds; now += minuteSeconds {
			started := false
			for latest < now+offset {
				latest += minuteSeconds
				started = wanted(latest) || started
			}
			if at := time.Unix(now, 0); started && at.After(record.from) && !at.After(record.to) {
				starts = append(starts, at.In(record.location))
			}
		}
	}
	return starts
}

// changes returns the instants at which the clock of a location is changed between two
// others, each found by bisection of a quarter of a day at whose ends the offsets differ.
func changes(location *time.Location, from, to time.Time) []time.Time {
	offset := func(t time.Time) int {
		_, seconds := t.In(location).Zone()
		return seconds
	}
	var found []time.Time
	const stride = 6 * time.Hour
	for t := from; t.Before(to); t = t.Add(stride) {
		before, after := t, t.Add(stride)
		if offset(before) == offset(after) {
			continue
		}
		for after.Sub(before) > time.Second {
			middle := before.Add(after.Sub(before) / 2).Truncate(time.Second)
			if offset(middle) == offset(t) {
				before = middle
			} else {
				after = middle
			}
		}
		found = append(found, after)
	}
	return found
}
