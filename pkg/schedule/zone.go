// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"math"
	"time"
)

// wallClock is what a clock on the wall shows, date included: the seconds that
// would have passed since 1970-01-01 00:00 if the clock had never been changed.
// Instants are plain int64 Unix seconds.
type wallClock int64

const (
	secondsPerMinute = 60
	secondsPerDay    = minutesPerDay * secondsPerMinute
	// maxOffset bounds the distance of any zone from UTC. The largest of the time
	// zone database is 15 h 14 min (America/Metlakatla, until 1867).
	maxOffset = secondsPerDay
)

// firstShown returns the first instant at which the clock of the location shows
// wanted or a later time. It never decreases as wanted grows.
func firstShown(location *time.Location, wanted wallClock) int64 {
	// No zone is so far ahead of UTC that wanted could be shown before this instant.
	from := int64(wanted) - maxOffset
	for {
		offset, until := offsetFrom(location, from)
		instant := int64(wanted) - offset
		if instant < until {
			// An instant before from means that the change at from skipped wanted.
			return max(instant, from)
		}
		from = until
	}
}

// latestShown returns the latest time that the clock of the location has shown up
// to the instant. That differs from the time shown at the instant only in and
// after an overlap, until the clock has caught up with itself.
//
// It is the inverse of firstShown: firstShown(w) <= instant exactly if
// w <= latestShown(instant).
func latestShown(location *time.Location, instant int64) wallClock {
	// No change of the clock from before this instant could still be caught up with.
	from := instant - 2*maxOffset
	latest := wallClock(math.MinInt64)
	for {
		offset, until := offsetFrom(location, from)
		if instant < until {
			return max(latest, wallClock(instant+offset))
		}
		latest = max(latest, wallClock(until-1+offset))
		from = until
	}
}

// offsetFrom returns the seconds by which the location is ahead of UTC at the
// instant, and a later instant until which this stays so. The next period may
// have the same offset.
func offsetFrom(location *time.Location, instant int64) (offset, until int64) {
	t := time.Unix(instant, 0).In(location)
	_, seconds := t.Zone()
	offset = int64(seconds)

	_, end := t.ZoneBounds()
	if end.IsZero() {
		return offset, math.MaxInt64
	}
	if until = end.Unix(); until > instant {
		return offset, until
	}
	// For years beyond the tabulated changes ZoneBounds ends a period after 365 days
	// of the year (of UTC), which on 31 December of a leap year has already passed.
	// What it says about the offset holds until the year ends, that is, the day.
	// Such years are after 1970, so that the remainder is not negative.
	return offset, instant - instant%secondsPerDay + secondsPerDay
}
