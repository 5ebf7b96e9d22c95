// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import "time"

// stopwatch tells how long things have been as they are. It is the only memory
// of the simulator that is not in the API: losing it starts the times again.
type stopwatch struct {
	now   time.Time
	wake  time.Time
	marks map[string]mark
}

// mark is a state and when it was first seen.
type mark struct {
	state string
	since time.Time
}

func newStopwatch() *stopwatch {
	return &stopwatch{marks: map[string]mark{}}
}

// begin starts a pass over the cluster at now.
func (s *stopwatch) begin(now time.Time) {
	s.now = now
	s.wake = time.Time{}
}

// passed reports whether the thing called key has been in state for at least d.
// When not, the next pass is due by then at the latest.
func (s *stopwatch) passed(key, state string, d time.Duration) bool {
	m, seen := s.marks[key]
	if !seen || m.state != state {
		m = mark{state: state, since: s.now}
		s.marks[key] = m
	}
	return s.reached(m.since.Add(d))
}

// reached reports whether it is due already. When not, the next pass is due by
// then at the latest.
func (s *stopwatch) reached(due time.Time) bool {
	if !s.now.Before(due) {
		return true
	}
	if s.wake.IsZero() || due.Before(s.wake) {
		s.wake = due
	}
	return false
}

// share returns how much of d the thing called key has been in state, from 0 to 1.
func (s *stopwatch) share(key, state string, d time.Duration) float64 {
	m, seen := s.marks[key]
	if !seen || m.state != state || d <= 0 {
		return 0
	}
	return min(1, float64(s.now.Sub(m.since))/float64(d))
}

// forget starts the time of key again.
func (s *stopwatch) forget(key string) { delete(s.marks, key) }
