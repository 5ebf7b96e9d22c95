// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestNothingIsAcceptedFromTheGone calls the handler itself: a sender cannot know
// when the server has seen that it has hung up, nor stop it in the midst of a request.
func TestNothingIsAcceptedFromTheGone(t *testing.T) {
	tests := []struct {
		reason   string
		gone     func(*Receiver, context.CancelFunc)
		attempts int
	}{
		{"given up", func(r *Receiver, giveUp context.CancelFunc) { r.Hang(1); giveUp() }, 1},
		{"stopped", func(r *Receiver, _ context.CancelFunc) { r.Stop() }, 0},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			r, err := Start(Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(r.Close)
			ctx, giveUp := context.WithCancel(t.Context())
			defer giveUp()
			body := strings.NewReader(`{"specversion":"1.0","id":"a","type":"t","source":"/s"}`)
			request := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", body)
			request.Header.Set("Content-Type", "application/cloudevents+json")
			server := r.server
			tt.gone(r, giveUp)
			func() {
				defer func() {
					if got := recover(); got != http.ErrAbortHandler { //nolint:errorlint // A panic is no wrapped error.
						t.Errorf("the handler ended with %v, want it to cut the connection", got)
					}
				}()
				r.serve(server, httptest.NewRecorder(), request)
			}()
			if len(r.Events()) != 0 || r.Attempts() != tt.attempts {
				t.Errorf("%d attempts, want %d; events %v", r.Attempts(), tt.attempts, r.Events())
			}
		})
	}
}
