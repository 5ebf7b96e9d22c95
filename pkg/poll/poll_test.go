// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package poll_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/appuio/managed-upgrade-operator/pkg/poll"
)

var noon = time.Date(2026, time.November, 24, 12, 0, 0, 0, time.UTC)

// counter answers with how often it was asked.
type counter struct {
	asked int
	err   error
}

func (c *counter) ask(context.Context) (int, error) {
	c.asked++
	return c.asked, c.err
}

func TestAnswersAreSharedForTheirTime(t *testing.T) {
	away := errors.New("away")
	for _, tc := range []struct {
		reason string
		after  time.Duration
		err    error
		want   int
	}{
		{"the same moment", 0, nil, 1},
		{"just young enough", 30*time.Second - 1, nil, 1},
		{"too old", 30 * time.Second, nil, 2},
		{"whoever began a little earlier shares it too", -time.Second, nil, 1},
		{"the clock was set back", -30 * time.Second, nil, 2},
		{"who does not answer is not asked again at once", time.Second, away, 1},
		{"but is later", 30 * time.Second, away, 2},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			var q poll.Question[int]
			c := &counter{err: tc.err}
			for _, now := range []time.Time{noon, noon.Add(tc.after)} {
				if got, err := q.Get(t.Context(), now, 30*time.Second, c.ask); got != c.asked || !errors.Is(err, tc.err) {
					t.Errorf("at %s: got %d, %v, want answer %d, %v", now, got, err, c.asked, tc.err)
				}
			}
			if c.asked != tc.want {
				t.Errorf("asked %d times, want %d", c.asked, tc.want)
			}
		})
	}
}

func TestEachMayWantAnotherAge(t *testing.T) {
	var q poll.Question[int]
	c := &counter{}
	for _, ask := range []struct {
		after, maxAge time.Duration
		want          int
	}{{0, time.Hour, 1}, {time.Minute, time.Hour, 1}, {time.Minute, time.Second, 2}, {2 * time.Minute, time.Hour, 2}} {
		if got, err := q.Get(t.Context(), noon.Add(ask.after), ask.maxAge, c.ask); got != ask.want || err != nil {
			t.Errorf("%s after, at most %s old: got answer %d, %v, want %d", ask.after, ask.maxAge, got, err, ask.want)
		}
	}
}

func TestThoseWhoComeMeanwhileWaitForTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q poll.Question[int]
		answer := make(chan int)
		asked := 0
		ask := func(context.Context) (int, error) {
			asked++
			return <-answer, nil
		}
		got := make(chan int)
		for range 5 {
			go func() {
				value, _ := q.Get(t.Context(), noon, time.Minute, ask)
				got <- value
			}()
		}
		synctest.Wait()
		answer <- 42
		for range 5 {
			if value := <-got; value != 42 {
				t.Errorf("got %d, want 42", value)
			}
		}
		if asked != 1 {
			t.Errorf("asked %d times, want once", asked)
		}
	})
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q poll.Question[int]
		hang := func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 0, context.Cause(ctx)
		}
		asking, stop := context.WithCancel(t.Context())
		go func() { _, _ = q.Get(asking, noon, time.Minute, hang) }()
		synctest.Wait()

		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := q.Get(impatient, noon, time.Minute, hang); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while another asks: got %v, want that the time is over", err)
		}
		stop()
		synctest.Wait()
		// Whoever asked has gone: that is no answer, and the next one asks anew.
		c := &counter{}
		if got, err := q.Get(t.Context(), noon, time.Minute, c.ask); got != 1 || err != nil {
			t.Errorf("after another gave up: got %d, %v, want an answer", got, err)
		}
	})
}
