// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"errors"
	"fmt"
	"time"
)

// ErrNoNextSchedule is returned, wrapped with the reason, by a valid schedule
// that has no start in the direction asked for: because its dates never occur
// (30 February), or because the calendar of this package ends (see the package's
// documentation).
var ErrNoNextSchedule = errors.New("schedule has no start")

// Schedule is a series of upgrade starts. Make one with Parse. It does not
// change, so it may be used by many goroutines at once.
type Schedule struct {
	wanted   recurrence
	location *time.Location
	// never says why there is no start at all; nil if there are some.
	never error
}

// Next returns the earliest start strictly after t, in the schedule's location,
// or an error that wraps ErrNoNextSchedule.
func (s *Schedule) Next(t time.Time) (time.Time, error) {
	if s.never != nil {
		return time.Time{}, s.never
	}
	// Starts lie on whole seconds: after t means after the second that t is in.
	shown := latestShown(s.location, clampToCalendar(t.Unix()))
	start, ok := s.wanted.next(shown + 1)
	if !ok {
		return time.Time{}, fmt.Errorf("%w until the end of the year %d", ErrNoNextSchedule, lastYear)
	}
	return s.startAt(start), nil
}

// Prev returns the latest start strictly before t, in the schedule's location,
// or an error that wraps ErrNoNextSchedule.
func (s *Schedule) Prev(t time.Time) (time.Time, error) {
	if s.never != nil {
		return time.Time{}, s.never
	}
	second := clampToCalendar(t.Unix())
	if t.Nanosecond() == 0 {
		second--
	}
	start, ok := s.wanted.prev(latestShown(s.location, second))
	if !ok {
		return time.Time{}, fmt.Errorf("%w since the beginning of the year %d", ErrNoNextSchedule, firstYear)
	}
	return s.startAt(start), nil
}

// NextN returns the next starts after t, in order and at most n of them: fewer
// where the calendar ends. Only if there is none at all it returns an error,
// which wraps ErrNoNextSchedule. With n < 1 nothing is asked for: no starts and
// no error.
func (s *Schedule) NextN(t time.Time, n int) ([]time.Time, error) {
	var starts []time.Time
	for len(starts) < n {
		next, err := s.Next(t)
		if err != nil {
			if len(starts) > 0 {
				break
			}
			return nil, err
		}
		starts = append(starts, next)
		t = next
	}
	return starts, nil
}

// startAt turns a wanted wall clock time into the start that it causes.
func (s *Schedule) startAt(wanted wallClock) time.Time {
	return time.Unix(firstShown(s.location, wanted), 0).In(s.location)
}
