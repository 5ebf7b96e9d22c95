// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"math/bits"
	"time"
)

const (
	firstYear = 1
	lastYear  = 9999
	// gregorianCycle is the number of years after which dates, days of the week and
	// ISO weeks repeat: 146,097 days, which is a whole number of weeks.
	gregorianCycle = 400

	minutesPerHour = 60
	minutesPerDay  = 24 * minutesPerHour
)

var (
	firstWall = wallAt(firstYear, time.January, 1, 0)
	lastWall  = wallAt(lastYear+1, time.January, 1, 0) - 1
)

// recurrence is the set of wall clock minutes that a cron expression and an ISO
// week rule name together.
type recurrence struct {
	days dayRule
	// hours and minutes are sets of bits; neither is empty.
	hours, minutes uint64
}

// next returns the earliest wanted minute at or after from. It finds each one that
// can occur up to the end of the last year; where there is none it searches up to
// there.
func (r *recurrence) next(from wallClock) (wallClock, bool) {
	// Rounded up to a whole minute.
	from = max(from, firstWall) + secondsPerMinute - 1
	if from > lastWall {
		return 0, false
	}
	year, month, day, earliest := splitWall(from)
	days := r.days.inMonth(year, month)
	if contains(days, day) {
		if minute, ok := r.minuteFrom(earliest); ok {
			return wallAt(year, month, day, minute), true
		}
	}
	days &= above(day)
	for days == 0 {
		if month++; month > time.December {
			year, month = year+1, time.January
			if year > lastYear {
				return 0, false
			}
		}
		days = r.days.inMonth(year, month)
	}
	minute, _ := r.minuteFrom(0)
	return wallAt(year, month, lowest(days), minute), true
}

// prev returns the latest wanted minute at or before until.
func (r *recurrence) prev(until wallClock) (wallClock, bool) {
	until = min(until, lastWall)
	if until < firstWall {
		return 0, false
	}
	year, month, day, latest := splitWall(until)
	days := r.days.inMonth(year, month)
	if contains(days, day) {
		if minute, ok := r.minuteUntil(latest); ok {
			return wallAt(year, month, day, minute), true
		}
	}
	days &= below(day)
	for days == 0 {
		if month--; month < time.January {
			year, month = year-1, time.December
			if year < firstYear {
				return 0, false
			}
		}
		days = r.days.inMonth(year, month)
	}
	minute, _ := r.minuteUntil(minutesPerDay - 1)
	return wallAt(year, month, highest(days), minute), true
}

// minuteFrom returns the first wanted minute of a day at or after minute, which
// counts from midnight.
func (r *recurrence) minuteFrom(minute int) (int, bool) {
	hour := minute / minutesPerHour
	if contains(r.hours, hour) {
		if rest := r.minutes & above(minute%minutesPerHour-1); rest != 0 {
			return hour*minutesPerHour + lowest(rest), true
		}
	}
	later := r.hours & above(hour)
	if later == 0 {
		return 0, false
	}
	return lowest(later)*minutesPerHour + lowest(r.minutes), true
}

// minuteUntil returns the last wanted minute of a day at or before minute, which
// counts from midnight.
func (r *recurrence) minuteUntil(minute int) (int, bool) {
	hour := minute / minutesPerHour
	if contains(r.hours, hour) {
		if rest := r.minutes & below(minute%minutesPerHour+1); rest != 0 {
			return hour*minutesPerHour + highest(rest), true
		}
	}
	earlier := r.hours & below(hour)
	if earlier == 0 {
		return 0, false
	}
	return highest(earlier)*minutesPerHour + highest(r.minutes), true
}

// dayRule is the set of dates that the day fields of a cron expression and an ISO
// week rule name together. The sets are bits, numbered as cron numbers the values
// (1 is January, 0 is Sunday); none is empty.
type dayRule struct {
	daysOfMonth, months, daysOfWeek uint64
	// eitherDay is cron's rule for two restricted day fields: a date matches if one
	// of them does. Otherwise both have to.
	eitherDay bool
	week      isoWeek
}

// inMonth returns the matching days of a month as bits 1 to 31.
func (r *dayRule) inMonth(year int, month time.Month) uint64 {
	if !contains(r.months, int(month)) {
		return 0
	}
	first := time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
	days := onWeekdays(r.daysOfWeek, first.Weekday())
	if r.eitherDay {
		days |= r.daysOfMonth
	} else {
		days &= r.daysOfMonth
	}
	days &= below(daysIn(year, month) + 1)
	if days == 0 || r.week == everyWeek {
		return days
	}
	return days & r.week.inMonth(first)
}

// everOccurs tells whether any date matches.
func (r *dayRule) everOccurs() bool {
	const start = 2000
	for year := start; year < start+gregorianCycle; year++ {
		for month := time.January; month <= time.December; month++ {
			if r.inMonth(year, month) != 0 {
				return true
			}
		}
	}
	return false
}

// onWeekdays returns the days 1 to 31 that fall on the weekdays in a month whose
// first day is a firstDay.
func onWeekdays(weekdays uint64, firstDay time.Weekday) uint64 {
	const everySeventh = 1 | 1<<7 | 1<<14 | 1<<21 | 1<<28 | 1<<35
	return weekdays * everySeventh >> firstDay << 1 & below(32)
}

func daysIn(year int, month time.Month) int {
	return time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// wallAt returns the time that is minute minutes after midnight of the date.
func wallAt(year int, month time.Month, day, minute int) wallClock {
	return wallClock(time.Date(year, month, day, 0, minute, 0, 0, time.UTC).Unix())
}

// splitWall is the inverse of wallAt, with seconds cut off.
func splitWall(w wallClock) (year int, month time.Month, day, minute int) {
	t := time.Unix(int64(w), 0).UTC()
	year, month, day = t.Date()
	return year, month, day, t.Hour()*minutesPerHour + t.Minute()
}

// clampToCalendar moves an instant that is outside of the calendar to just outside
// of it in any time zone: far enough to find the same starts, and near enough to
// calculate with.
func clampToCalendar(instant int64) int64 {
	return min(max(instant, int64(firstWall)-2*maxOffset), int64(lastWall)+2*maxOffset)
}

// Sets of small numbers as bits: number n is bit n.

func contains(set uint64, n int) bool { return set>>n&1 != 0 }

// above is the set of all numbers greater than n, below of those less than n; n is
// from -1 to 63.
func above(n int) uint64 { return ^uint64(0) << (n + 1) }
func below(n int) uint64 { return 1<<n - 1 }

// lowest and highest need a set that is not empty.
func lowest(set uint64) int  { return bits.TrailingZeros64(set) }
func highest(set uint64) int { return bits.Len64(set) - 1 }
