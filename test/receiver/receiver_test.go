// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/appuio/managed-upgrade-operator/test/receiver"
)

// structured is the content type of an event whose attributes are in the body.
const structured = "application/cloudevents+json"

func TestEventsAreAccepted(t *testing.T) {
	for name, o := range map[string]receiver.Options{
		"http":  {},
		"https": {TLS: true, Headers: map[string]string{"Authorization": "Bearer secret", "x-tenant": "one"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, o)
			if scheme, _, _ := strings.Cut(r.URL(), "://"); scheme != name || (r.CA() != nil) != o.TLS {
				t.Errorf("URL %s, CA %q", r.URL(), r.CA())
			}
			s := to(t, r)
			s.header.Set("X-Trace", "7")
			for header, value := range o.Headers {
				s.header.Set(header, value)
			}
			began := time.Now()
			s.answered("a", http.StatusNoContent)
			s.answered("b", http.StatusNoContent)
			s.answered("a", http.StatusNoContent)
			has(t, r, "a", "b", "a")
			first := r.Events()[0]
			if string(first.Event.Data()) != `{"id":"a"}` || first.Event.Type() != "io.example.test" {
				t.Errorf("event is %s", first.Event)
			}
			if first.Header.Get("X-Trace") != "7" || first.Time.Before(began) || first.Time.After(time.Now()) {
				t.Errorf("received at %s with %v", first.Time, first.Header)
			}
			if n := r.Attempts(); n != 3 {
				t.Errorf("%d attempts, want 3", n)
			}
		})
	}
}

func TestBinaryModeIsUnderstood(t *testing.T) {
	r := start(t, receiver.Options{})
	s := to(t, r)
	for name, value := range map[string]string{"Ce-Specversion": "1.0", "Ce-Id": "b", "Ce-Type": "t", "Ce-Source": "/s"} {
		s.header.Set(name, value)
	}
	if got, err := s.post(http.MethodPost, "application/json", "{}"); err != nil || got.status != http.StatusNoContent {
		t.Errorf("answer %v, %v", got, err)
	}
	has(t, r, "b")
}

func TestOtherRequestsAreRefused(t *testing.T) {
	const event = `{"specversion":"1.0","id":"a","type":"t","source":"/s"}`
	tests := []struct {
		reason              string
		method, kind, body  string
		authorization, says string
		want                int
	}{
		{reason: "all is well", method: http.MethodPost, kind: structured, body: event, authorization: "Bearer x", want: http.StatusNoContent},
		{reason: "no header", method: http.MethodPost, kind: structured, body: event, want: http.StatusUnauthorized, says: "Authorization"},
		{reason: "wrong header", method: http.MethodPost, kind: structured, body: event, authorization: "Bearer y", want: http.StatusUnauthorized, says: "Authorization"},
		{reason: "webhooks are posted", method: http.MethodPut, kind: structured, body: event, authorization: "Bearer x", want: http.StatusMethodNotAllowed, says: "PUT"},
		{reason: "no event at all", method: http.MethodPost, kind: "application/json", body: "{}", authorization: "Bearer x", want: http.StatusBadRequest, says: "no CloudEvent"},
		{reason: "no JSON", method: http.MethodPost, kind: structured, body: "{", authorization: "Bearer x", want: http.StatusBadRequest, says: "no CloudEvent"},
		{reason: "an event needs an id", method: http.MethodPost, kind: structured, body: `{"specversion":"1.0","type":"t","source":"/s"}`, authorization: "Bearer x", want: http.StatusBadRequest, says: "id"},
		{reason: "too large", method: http.MethodPost, kind: structured, body: strings.Repeat(" ", 5<<20), authorization: "Bearer x", want: http.StatusBadRequest, says: "too large"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			r := start(t, receiver.Options{Headers: map[string]string{"Authorization": "Bearer x"}})
			s := to(t, r)
			s.header.Set("Authorization", tt.authorization)
			got, err := s.post(tt.method, tt.kind, tt.body)
			must(t, err)
			if got.status != tt.want {
				t.Errorf("answer %d, want %d", got.status, tt.want)
			}
			if accepted := len(r.Events()) == 1; r.Attempts() != 1 || accepted != (tt.want == http.StatusNoContent) {
				t.Errorf("%d attempts, events %v", r.Attempts(), r.Events())
			}
			ended, end := context.WithCancel(t.Context())
			end()
			if err := r.AwaitEvents(ended, ids("never")); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("the wait's error is %v, want it to tell of %q", err, tt.says)
			}
		})
	}
}

func TestStrangersAreNotServed(t *testing.T) {
	r := start(t, receiver.Options{TLS: true})
	other := start(t, receiver.Options{TLS: true})
	s := to(t, other) // another authority
	s.url = r.URL()
	if _, err := s.send(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("send without trust: %v, want an error about the certificate", err)
	}
	if n := r.Attempts(); n != 0 {
		t.Errorf("%d attempts, want none", n)
	}
}

func TestStopAndRestart(t *testing.T) {
	r := start(t, receiver.Options{TLS: true})
	s, url := to(t, r), r.URL()
	s.answered("a", http.StatusNoContent)
	if err := r.Restart(); err == nil {
		t.Error("Restart while it listens: no error")
	}
	r.Hang(1)
	hanging := s.sendAside(t.Context(), "cut")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	must(t, r.AwaitAttempts(ctx, 2))
	for range 2 {
		r.Stop()
	}
	if end := <-hanging; end.err == nil {
		t.Errorf("the request under way got %d, want its connection cut", end.status)
	}
	fresh := to(t, r) // its client has no connection
	if _, err := fresh.send(t.Context(), "b"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("send while it is stopped: %v, want a refused connection", err)
	}
	r.Release() // what hung is gone, not accepted
	must(t, r.Restart())
	fresh.answered("b", http.StatusNoContent)
	has(t, r, "a", "b")
	if r.URL() != url {
		t.Errorf("moved from %s to %s", url, r.URL())
	}
	for range 2 {
		r.Close()
	}
	has(t, r, "a", "b")
	if err := r.Restart(); err == nil {
		t.Error("Restart after Close: no error")
	}
}

func TestAwaitSeesEveryEvent(t *testing.T) {
	r := start(t, receiver.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	const many = 40
	var group sync.WaitGroup
	for i := range many {
		group.Go(func() {
			if _, err := to(t, r).send(ctx, fmt.Sprintf("%02d", i)); err != nil {
				t.Error(err)
			}
		})
	}
	seen := 0
	must(t, r.AwaitEvents(ctx, func(events []receiver.Received) error {
		if len(events) < seen {
			t.Errorf("%d events after %d", len(events), seen)
		}
		if seen = len(events); seen < many {
			return fmt.Errorf("%d events", seen)
		}
		return nil
	}))
	group.Wait()
	distinct := map[string]bool{}
	for _, e := range r.Events() {
		distinct[e.Event.ID()] = true
	}
	if len(distinct) != many || len(r.Events()) != many {
		t.Errorf("%d events, %d of them distinct, want %d", len(r.Events()), len(distinct), many)
	}
}
