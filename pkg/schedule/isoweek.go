// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// ErrInvalidISOWeek is wrapped by the errors of Parse that concern the ISO week.
var ErrInvalidISOWeek = errors.New("invalid ISO week")

// isoWeek is a rule on the ISO 8601 week of a date: the number of the only week
// that matches, or one of the constants below.
type isoWeek int

const (
	everyWeek isoWeek = 0
	oddWeeks  isoWeek = -1
	evenWeeks isoWeek = -2

	lastWeek = 53
)

// parseISOWeek reads "" (every week), "@odd", "@even", or a week from 1 to 53 that
// may be written with a leading zero.
func parseISOWeek(s string) (isoWeek, error) {
	switch s {
	case "":
		return everyWeek, nil
	case "@odd":
		return oddWeeks, nil
	case "@even":
		return evenWeeks, nil
	}
	const longest = len("53")
	if len(s) <= longest {
		if week, err := strconv.ParseUint(s, 10, 8); err == nil && week >= 1 && week <= lastWeek {
			return isoWeek(week), nil
		}
	}
	return 0, fmt.Errorf("%w %.20q: write a week from 1 to %d, @odd or @even, or leave it empty for every week",
		ErrInvalidISOWeek, s, lastWeek)
}

// matches tells whether the week of this number matches.
func (w isoWeek) matches(week int) bool {
	switch w {
	case everyWeek:
		return true
	case oddWeeks:
		return week%2 == 1
	case evenWeeks:
		return week%2 == 0
	default:
		return week == int(w)
	}
}

// inMonth returns the days of a month, given by its first day in UTC, whose week
// matches, as bits 1 to 31; the bits of days that the month does not have mean nothing.
func (w isoWeek) inMonth(first time.Time) uint64 {
	const daysPerWeek = 7
	var days uint64
	// Weeks begin on Mondays; that of the first day may have begun in the month before.
	monday := 1 - (int(first.Weekday())+6)%daysPerWeek
	for ; monday <= 31; monday += daysPerWeek {
		sinceFirst := time.Duration(monday-1) * 24 * time.Hour
		if _, week := first.Add(sinceFirst).ISOWeek(); w.matches(week) {
			days |= below(min(monday+daysPerWeek, 32)) & above(max(monday, 1)-1)
		}
	}
	return days
}

// String completes the sentence "in ...".
func (w isoWeek) String() string {
	switch w {
	case everyWeek:
		return "any ISO week"
	case oddWeeks:
		return "an odd ISO week"
	case evenWeeks:
		return "an even ISO week"
	default:
		return "ISO week " + strconv.Itoa(int(w))
	}
}
