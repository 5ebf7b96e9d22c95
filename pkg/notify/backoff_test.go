// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestBackoffGrowsUpToACap(t *testing.T) {
	for _, tc := range []struct {
		reason string
		chance float64
		want   []time.Duration
	}{
		{"in the middle", 0.5, []time.Duration{
			1 * time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second, 64 * time.Second,
			128 * time.Second, 256 * time.Second, 300 * time.Second, 300 * time.Second, 300 * time.Second,
		}},
		{"the least jitter", 0, []time.Duration{800 * time.Millisecond, 1600 * time.Millisecond, 3200 * time.Millisecond}},
		{"the most jitter", 1, []time.Duration{1200 * time.Millisecond, 2400 * time.Millisecond, 4800 * time.Millisecond}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			b := Backoff{}
			var got []time.Duration
			for range tc.want {
				b.Failed(now, 0, tc.chance)
				got = append(got, b.Left(now).Round(time.Microsecond))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("waits (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBackoffNeverOverflows(t *testing.T) {
	b := Backoff{}
	for range 1000 {
		b.Failed(now, 0, 0.5)
	}
	if left := b.Left(now); left != maxBackoff {
		t.Errorf("after 1000 failures the wait is %s, want %s", left, maxBackoff)
	}
}

func TestBackoffLeft(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		atLeast time.Duration
		after   []time.Duration // looks at the clock, of which the last one counts
		want    time.Duration
	}{
		{"at once", 0, []time.Duration{0}, 2 * time.Second},
		{"later", 0, []time.Duration{500 * time.Millisecond}, 1500 * time.Millisecond},
		{"when it is over", 0, []time.Duration{2 * time.Second}, 0},
		{"long after", 0, []time.Duration{time.Hour}, 0},
		{"the receiver asks for longer", time.Minute, []time.Duration{time.Second}, 59 * time.Second},
		{"the receiver asks for less", time.Second, []time.Duration{0}, 2 * time.Second},
		{"the clock is set back", 0, []time.Duration{-time.Hour}, 2 * time.Second},
		{"the clock is set back, and goes on", 0, []time.Duration{-time.Hour, -time.Hour + time.Second}, time.Second},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			b := Backoff{}
			b.Failed(now, 0, 0.5)
			b.Failed(now, tc.atLeast, 0.5)
			var got time.Duration
			for _, after := range tc.after {
				got = b.Left(now.Add(after))
			}
			if got != tc.want {
				t.Errorf("%s are left, want %s", got, tc.want)
			}
			b.Succeeded()
			if left := b.Left(now); left != 0 {
				t.Errorf("%s are left after a success", left)
			}
			if b.Failed(now, 0, 0.5); b.Left(now) != time.Second {
				t.Errorf("the first wait after a success is %s, want 1s", b.Left(now))
			}
		})
	}
}
