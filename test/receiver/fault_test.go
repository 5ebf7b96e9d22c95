// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/appuio/managed-upgrade-operator/test/receiver"
)

func TestFailures(t *testing.T) {
	tests := []struct {
		reason string
		fault  func(*receiver.Receiver)
		want   []int // what the requests are answered
	}{
		{
			reason: "for some requests", want: []int{503, 503, 204, 204},
			fault: func(r *receiver.Receiver) { r.FailWith(http.StatusServiceUnavailable, 2) },
		}, {
			reason: "until changed", want: []int{500, 500, 500, 500},
			fault: func(r *receiver.Receiver) { r.FailWith(http.StatusInternalServerError, -1) },
		}, {
			reason: "for none", want: []int{204, 204},
			fault: func(r *receiver.Receiver) { r.FailWith(http.StatusInternalServerError, 0) },
		}, {
			reason: "the newest one counts", want: []int{404, 204},
			fault: func(r *receiver.Receiver) { r.FailWith(500, -1); r.Hang(-1); r.FailWith(http.StatusNotFound, 1) },
		}, {
			reason: "released", want: []int{204},
			fault: func(r *receiver.Receiver) { r.FailWith(500, -1); r.Release() },
		}, {
			reason: "a success of any kind takes nothing if it is asked for", want: []int{202, 204},
			fault: func(r *receiver.Receiver) { r.FailWith(http.StatusAccepted, 1) },
		},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			r := start(t, receiver.Options{})
			tt.fault(r)
			s := to(t, r)
			var accepted []string
			for i, want := range tt.want {
				id := string(rune('a' + i))
				s.answered(id, want)
				if want == http.StatusNoContent {
					accepted = append(accepted, id)
				}
			}
			has(t, r, accepted...)
			if n := r.Attempts(); n != len(tt.want) {
				t.Errorf("%d attempts, want %d", n, len(tt.want))
			}
		})
	}
}

func TestFaultsMeetOnlyWhatWouldBeAccepted(t *testing.T) {
	r := start(t, receiver.Options{Headers: map[string]string{"Authorization": "Bearer x"}})
	r.FailWith(http.StatusTeapot, 1)
	s := to(t, r)
	s.answered("a", http.StatusUnauthorized)
	s.header.Set("Authorization", "Bearer x")
	s.answered("a", http.StatusTeapot)
	s.answered("a", http.StatusNoContent)
}

func TestRetryAfter(t *testing.T) {
	r := start(t, receiver.Options{})
	r.FailWith(http.StatusTooManyRequests, 3)
	s := to(t, r)
	for _, tt := range []struct {
		pause time.Duration
		want  string
	}{
		{0, ""}, {1200 * time.Millisecond, "2"}, {time.Minute, "60"},
	} {
		r.RetryAfter(tt.pause)
		if got := s.answered("a", http.StatusTooManyRequests).header.Get("Retry-After"); got != tt.want {
			t.Errorf("Retry-After %q, want %q", got, tt.want)
		}
	}
	if got := s.answered("a", http.StatusNoContent).header.Get("Retry-After"); got != "" {
		t.Errorf("a success has Retry-After %q", got)
	}
}

func TestHang(t *testing.T) {
	for name, o := range map[string]receiver.Options{"http": {}, "https": {TLS: true}} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			r := start(t, o)
			s := to(t, r)
			r.Hang(1)
			hanging := s.sendAside(ctx, "a")
			must(t, r.AwaitAttempts(ctx, 1))
			s.answered("b", http.StatusNoContent) // the second is not held up
			has(t, r, "b")
			select {
			case end := <-hanging:
				t.Fatalf("answered before the release: %v", end)
			default:
			}
			r.Release()
			if end := <-hanging; end.err != nil || end.status != http.StatusNoContent {
				t.Errorf("after the release: %v", end)
			}
			has(t, r, "b", "a")
			if n := r.Attempts(); n != 2 {
				t.Errorf("%d attempts, want 2: the one that hung counts once", n)
			}
			r.Hang(-1)
			impatient, giveUp := context.WithCancel(ctx)
			hanging = s.sendAside(impatient, "c")
			must(t, r.AwaitAttempts(ctx, 3))
			giveUp()
			if end := <-hanging; !errors.Is(end.err, context.Canceled) {
				t.Errorf("the sender that gave up has %v", end)
			}
		})
	}
}

func TestRedirect(t *testing.T) {
	r, other := start(t, receiver.Options{}), start(t, receiver.Options{})
	r.RedirectTo(other.URL()+"/elsewhere", http.StatusTemporaryRedirect)
	s := to(t, r)
	if got := s.answered("a", http.StatusTemporaryRedirect).header.Get("Location"); got != other.URL()+"/elsewhere" {
		t.Errorf("Location %q", got)
	}
	has(t, r)
	s.client.CheckRedirect = nil // follow
	s.answered("b", http.StatusNoContent)
	has(t, other, "b")
	r.Release()
	s.answered("c", http.StatusNoContent)
	has(t, r, "c")
}

func TestConnectionsThatAreCutHaveDelivered(t *testing.T) {
	for name, o := range map[string]receiver.Options{"http": {}, "https": {TLS: true}} {
		t.Run(name, func(t *testing.T) {
			r := start(t, o)
			r.CloseConnections(1)
			s := to(t, r)
			if got, err := s.send(t.Context(), "a"); err == nil {
				t.Errorf("the sender got %d, want an error", got.status)
			}
			has(t, r, "a")
			s.answered("a", http.StatusNoContent)
			has(t, r, "a", "a")
		})
	}
}
