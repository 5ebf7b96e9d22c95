// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Package poll shares the answers to questions that have to be asked again and
// again, because what they are about cannot be watched: however many want to know
// and however often, a question is asked once in an interval.
package poll

import (
	"context"
	"sync"
	"time"
)

// Question is something that is asked again and again. The zero value has not been asked yet. It may be used from
// several goroutines, and must not be copied.
type Question[T any] struct {
	mutex sync.Mutex
	// asking is closed when whoever asks at present has an answer; nil if nobody does.
	asking chan struct{}
	asked  bool
	asOf   time.Time
	answer T
	err    error
}

// Get returns an answer that is at most maxAge old at the time now. If there is none it asks, and whoever wants to know
// meanwhile waits for that answer. An error is an answer too: who does not answer is not asked again at once. It
// returns early when ctx ends.
func (q *Question[T]) Get(ctx context.Context, now time.Time, maxAge time.Duration, ask func(context.Context) (T, error)) (T, error) {
	for {
		q.mutex.Lock()
		if q.fresh(now, maxAge) {
			defer q.mutex.Unlock()
			return q.answer, q.err
		}
		if q.asking == nil {
			done := make(chan struct{})
			q.asking = done
			q.mutex.Unlock()
			return q.ask(ctx, now, done, ask)
		}
		asking := q.asking
		q.mutex.Unlock()
		select {
		case <-asking:
		case <-ctx.Done():
			var none T
			return none, context.Cause(ctx)
		}
	}
}

// fresh tells whether the last answer will do. It may be of a moment later than now, because whoever asked for it began
// later; one that is further ahead is of before the clock was set back.
func (q *Question[T]) fresh(now time.Time, maxAge time.Duration) bool {
	age := now.Sub(q.asOf)
	return q.asked && age.Abs() < maxAge
}

func (q *Question[T]) ask(ctx context.Context, now time.Time, done chan struct{}, ask func(context.Context) (T, error)) (T, error) {
	defer func() {
		q.mutex.Lock()
		defer q.mutex.Unlock()
		q.asking = nil
		close(done)
	}()
	answer, err := ask(ctx)
	if err != nil && ctx.Err() != nil {
		return answer, err // the time of whoever asked is over, which says nothing of who was asked
	}
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.asked, q.asOf, q.answer, q.err = true, now, answer, err
	return answer, err
}
