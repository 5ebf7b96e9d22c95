// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"slices"
	"sync"
	"time"
)

// recordInterval is the time between two looks of a SilenceRecorder.
const recordInterval = 50 * time.Millisecond

// SilenceEventKind is what has become of a silence.
type SilenceEventKind string

// The kinds of a SilenceEvent.
const (
	// SilenceCreated is a silence that is known for the first time.
	SilenceCreated SilenceEventKind = "Created"
	// SilenceExtended is a silence that ends later than it did.
	SilenceExtended SilenceEventKind = "Extended"
	// SilenceShortened is a silence that ends earlier than it did, but has not ended yet.
	SilenceShortened SilenceEventKind = "Shortened"
	// SilenceEnded is a silence that has expired.
	SilenceEnded SilenceEventKind = "Ended"
)

// SilenceEvent tells what has become of a silence.
type SilenceEvent struct {
	Kind SilenceEventKind
	// Silence is as it was afterwards.
	Silence Silence
	// At is when that was: the time that Alertmanager gives, for an end the time of the
	// end. A silence that was changed several times between two looks has one event.
	At time.Time
	// Early says of an end that somebody made it: without that the silence would have
	// lasted longer.
	Early bool
}

// SilenceRecorder keeps book of the silences of an Alertmanager, by asking for them again and
// again. Its methods may be called from any goroutine.
type SilenceRecorder struct {
	alertmanager *Alertmanager
	stop         context.CancelFunc
	ended        chan struct{}

	mu     sync.Mutex // guards what follows
	known  map[string]Silence
	events []SilenceEvent
}

// RecordSilences keeps book from now on until Close is called or ctx ends. Silences that
// exist already are created as far as the book goes, and those that have expired have
// ended, too. What happens while Alertmanager is away is seen when it is back.
func (a *Alertmanager) RecordSilences(ctx context.Context) (*SilenceRecorder, error) {
	ctx, stop := context.WithCancel(ctx)
	r := &SilenceRecorder{alertmanager: a, stop: stop, ended: make(chan struct{}), known: map[string]Silence{}}
	if err := r.Look(ctx); err != nil {
		stop()
		return nil, err
	}
	go func() {
		defer close(r.ended)
		ticker := time.NewTicker(recordInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				_ = r.Look(ctx) // It may be away, and is asked again.
			}
		}
	}()
	return r, nil
}

// Look asks for the silences at once, so that all that has happened before is in the book
// when it returns nil.
func (r *SilenceRecorder) Look(ctx context.Context) error {
	r.mu.Lock() // Answers are taken in the order in which they are given.
	defer r.mu.Unlock()
	silences, err := r.alertmanager.Silences(ctx)
	if err != nil {
		return err
	}
	slices.Reverse(silences) // the oldest first
	for _, now := range silences {
		before, known := r.known[now.ID]
		r.known[now.ID] = now
		r.events = append(r.events, eventsOf(before, known, now)...)
	}
	return nil
}

// eventsOf returns what has become of a silence since it was as before, if it was known then.
func eventsOf(before Silence, known bool, now Silence) []SilenceEvent {
	expired := now.Status.State == SilenceExpired
	var events []SilenceEvent
	switch {
	case !known:
		events = append(events, SilenceEvent{Kind: SilenceCreated, Silence: now, At: now.StartsAt})
	case before.Status.State == SilenceExpired:
		return nil // It stays so.
	case now.EndsAt.After(before.EndsAt):
		events = append(events, SilenceEvent{Kind: SilenceExtended, Silence: now, At: now.UpdatedAt})
	case now.EndsAt.Before(before.EndsAt) && !expired:
		events = append(events, SilenceEvent{Kind: SilenceShortened, Silence: now, At: now.UpdatedAt})
	}
	if expired {
		early := now.UpdatedAt.Equal(now.EndsAt) // Alertmanager ends it by an update to that time.
		events = append(events, SilenceEvent{Kind: SilenceEnded, Silence: now, At: now.EndsAt, Early: early})
	}
	return events
}

// Events returns all that has been seen, the first one first.
func (r *SilenceRecorder) Events() []SilenceEvent {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// Of returns what has become of one silence.
func (r *SilenceRecorder) Of(id string) []SilenceEvent {
	return slices.DeleteFunc(r.Events(), func(e SilenceEvent) bool { return e.Silence.ID != id })
}

// ActiveAt returns the silences that suppressed alerts at a time, as far as has been seen.
func (r *SilenceRecorder) ActiveAt(t time.Time) []Silence {
	r.mu.Lock()
	defer r.mu.Unlock()
	latest := map[string]SilenceEvent{}
	var order []string
	for _, event := range r.events {
		id := event.Silence.ID
		if event.At.After(t) {
			continue
		}
		if _, seen := latest[id]; !seen {
			order = append(order, id)
		}
		latest[id] = event
	}
	var active []Silence
	for _, id := range order {
		if s := latest[id].Silence; latest[id].Kind != SilenceEnded && t.Before(s.EndsAt) {
			active = append(active, s)
		}
	}
	return active
}

// Close ends the book, which can be read on. Further calls do nothing.
func (r *SilenceRecorder) Close() {
	r.stop()
	<-r.ended
}
