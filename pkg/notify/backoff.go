// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package notify

import "time"

const (
	// minBackoff and maxBackoff bound the wait after a failed attempt, give or take jitter.
	minBackoff = time.Second
	maxBackoff = 5 * time.Minute
	// jitter is the part of a wait that is left to chance, so that what failed together is not tried again together.
	jitter = 0.2
)

// Backoff is the wait between attempts: it doubles with each one that fails in a row. The zero value has seen no failure.
type Backoff struct {
	failures int
	since    time.Time
	wait     time.Duration
}

// Failed notes an attempt that failed now. The next one is due after the backoff, or after atLeast if that is longer.
// chance is a random number in [0, 1).
func (b *Backoff) Failed(now time.Time, atLeast time.Duration, chance float64) {
	wait := minBackoff << min(b.failures, 16)
	b.failures++
	wait = time.Duration(float64(min(wait, maxBackoff)) * (1 - jitter + 2*jitter*chance))
	b.since, b.wait = now, max(wait, atLeast)
}

// Succeeded forgets all failures.
func (b *Backoff) Succeeded() { *b = Backoff{} }

// Left returns how long it is until the next attempt is due. When the clock is set back it waits anew, once, and not
// until the clock is where it was.
func (b *Backoff) Left(now time.Time) time.Duration {
	if now.Before(b.since) {
		b.since = now
	}
	return max(b.since.Add(b.wait).Sub(now), 0)
}
