// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package monitoring_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/appuio/managed-upgrade-operator/pkg/monitoring"
	realmonitoring "github.com/appuio/managed-upgrade-operator/test/monitoring"
)

var matchers = []monitoring.Matcher{
	{Name: "severity", Value: "(warning|info)", IsRegex: true, IsEqual: true},
	{Name: "namespace", Value: "default", IsEqual: false},
}

// silencer is a client of a real Alertmanager.
type silencer struct {
	*monitoring.Client
	t      *testing.T
	server *realmonitoring.Alertmanager
}

func newSilencer(t *testing.T) *silencer {
	t.Helper()
	server, err := realmonitoring.StartAlertmanager(t.Context(), realmonitoring.AlertmanagerOptions{Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return &silencer{newClient(t, monitoring.Options{AlertmanagerURL: server.URL()}), t, server}
}

// all are the silences as Alertmanager has them by now, by id.
func (s *silencer) all() map[string]monitoring.Silence {
	s.t.Helper()
	list, err := s.Silences(s.t.Context(), time.Now(), 0)
	if err != nil {
		s.t.Fatal(err)
	}
	all := map[string]monitoring.Silence{}
	for _, one := range list {
		all[one.ID] = one
	}
	return all
}

func (s *silencer) post(silence monitoring.Silence) string {
	s.t.Helper()
	id, err := s.PostSilence(s.t.Context(), time.Now(), silence)
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

func (s *silencer) expire(id string) {
	s.t.Helper()
	if err := s.ExpireSilence(s.t.Context(), time.Now(), id); err != nil {
		s.t.Fatal(err)
	}
}

func TestSilences(t *testing.T) {
	s := newSilencer(t)
	if _, err := s.server.Silence(t.Context(), map[string]string{"a": "b"}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if all := s.all(); len(all) > 0 {
		t.Fatalf("the silence of somebody else is taken for one of ours: %v", all)
	}
	end := time.Now().Add(time.Hour).Truncate(time.Second)
	id := s.post(monitoring.Silence{Matchers: matchers, Comment: "For a test", EndsAt: end})
	made := s.all()[id]
	want := monitoring.Silence{ID: id, Matchers: matchers, Comment: "For a test", StartsAt: made.StartsAt, EndsAt: end, State: monitoring.SilenceActive}
	if diff := cmp.Diff(want, made); diff != "" {
		t.Errorf("a new silence (-want +got):\n%s", diff)
	}
	if age := time.Since(made.StartsAt); age < 0 || age > time.Minute {
		t.Errorf("it starts at %s, want now", made.StartsAt)
	}

	made.EndsAt, made.Comment = end.Add(time.Hour), "For two"
	if again := s.post(made); again != id {
		t.Errorf("it is prolonged as %s, want in place", again)
	}
	if diff := cmp.Diff(map[string]monitoring.Silence{id: made}, s.all()); diff != "" {
		t.Errorf("prolonged (-want +got):\n%s", diff)
	}

	other := made
	other.Matchers = matchers[:1]
	replaced := s.post(other)
	if all := s.all(); replaced == id || all[id].State != monitoring.SilenceExpired || all[replaced].State != monitoring.SilenceActive {
		t.Errorf("with other matchers: got %s: %v, want another one instead", replaced, all)
	}
	s.expire(replaced)
	s.expire(replaced)
	s.expire("00000000-0000-4000-8000-000000000000")
	if expired := s.all()[replaced]; expired.Live() || expired.State != monitoring.SilenceExpired || !expired.EndsAt.Before(made.EndsAt) {
		t.Errorf("got %+v, want it expired, and when", expired)
	}
}

func TestSilencesLost(t *testing.T) {
	s := newSilencer(t)
	id := s.post(monitoring.Silence{Matchers: matchers, Comment: "For a test", EndsAt: time.Now().Add(time.Hour)})
	lost := s.all()[id]
	if err := s.server.Stop(); err != nil {
		t.Fatal(err)
	}
	_, err := s.PostSilence(t.Context(), time.Now(), lost)
	expect(t, err, "Alertmanager does not answer: connection ", true) // refused, or closed where one was kept
	if err := os.RemoveAll(filepath.Join(s.server.Dir(), "data")); err != nil {
		t.Fatal(err)
	}
	if err := s.server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if all := s.all(); len(all) > 0 {
		t.Errorf("got %v, want none", all)
	}
	_, err = s.PostSilence(t.Context(), time.Now(), lost)
	expect(t, err, "Alertmanager answers 404 Not Found", false)
	past := monitoring.Silence{Matchers: matchers, Comment: "For a test", EndsAt: time.Now().Add(-time.Hour)}
	_, err = s.PostSilence(t.Context(), time.Now(), past)
	expect(t, err, "Alertmanager refuses the silence: ", false)
}

func TestSilencesRefused(t *testing.T) {
	silence := monitoring.Silence{Matchers: matchers, Comment: "For a test", EndsAt: noon.Add(time.Hour)}
	for _, tc := range []struct {
		reason      string
		answer      http.HandlerFunc
		list, write string // errors, as far as they are the same each time
		unavailable bool
		expires     bool // whatever the others do
	}{
		{reason: "no permission", answer: reply(403, ``), list: "Alertmanager answers 403 Forbidden: the operator's service account may not ask it"},
		{reason: "it is away", answer: reply(503, `"away"`), list: "Alertmanager answers 503 Service Unavailable", unavailable: true},
		{reason: "it is broken", answer: reply(500, `"broken"`), list: "Alertmanager answers 500 Internal Server Error"},
		{reason: "it says why", answer: reply(400, `"limit exceeded"`), list: "Alertmanager refuses the silence: limit exceeded"},
		{reason: "a page for people", answer: reply(400, `<html>`), list: "Alertmanager answers 400 Bad Request"},
		{reason: "too many words", answer: reply(400, `"`+strings.Repeat("x", 1000)+`"`), list: "Alertmanager answers 400 Bad Request"},
		{
			reason: "a success for people", answer: reply(200, `<html>`), list: "the answer of Alertmanager cannot be read: ",
			write: "the answer of Alertmanager cannot be read: it does not name the silence", expires: true,
		},
		{
			reason: "nothing", answer: reply(200, ``), list: "the answer of Alertmanager cannot be read: ",
			write: "the answer of Alertmanager cannot be read: it does not name the silence", expires: true,
		},
		{
			reason: "a redirect", list: "Alertmanager answers 307 Temporary Redirect",
			answer: func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
			},
		},
		{
			reason: "it hangs up", list: "Alertmanager does not answer: connection closed", unavailable: true,
			answer: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		},
		{
			reason: "it hangs", list: "Alertmanager does not answer in time", unavailable: true,
			answer: func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // only then is it seen that the client hangs up
				<-r.Context().Done()
			},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			s := serve(t, tc.answer)
			c := newClient(t, monitoring.Options{AlertmanagerURL: s.URL, Timeout: 100 * time.Millisecond})
			_, err := c.Silences(t.Context(), noon, time.Minute)
			expect(t, err, tc.list, tc.unavailable)
			if tc.write == "" {
				tc.write = tc.list
			}
			_, err = c.PostSilence(t.Context(), noon, silence)
			expect(t, err, tc.write, tc.unavailable)
			if err := c.ExpireSilence(t.Context(), noon, "x"); !tc.expires {
				expect(t, err, tc.write, tc.unavailable)
			} else if err != nil {
				t.Errorf("expire: got %v", err)
			}
			for _, r := range s.seen() {
				if r.path == "/elsewhere" {
					t.Error("a redirect was followed")
				}
			}
		})
	}
	for _, without := range []*monitoring.Client{nil, newClient(t, monitoring.Options{})} {
		_, err := without.Silences(t.Context(), noon, time.Minute)
		expect(t, err, "no Alertmanager is configured (--alertmanager-url)", true)
		_, err = without.PostSilence(t.Context(), noon, silence)
		expect(t, err, "no Alertmanager is configured (--alertmanager-url)", true)
		expect(t, without.ExpireSilence(t.Context(), noon, "x"), "no Alertmanager is configured (--alertmanager-url)", true)
	}
}

// An answer stands for as long as the caller says, but not beyond a write. A write that failed is an answer.
func TestSilencesAreAskedForSparingly(t *testing.T) {
	broken := reply(500, ``)
	works := func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			reply(200, `{"silenceID":"1"}`)(w, r)
			return
		}
		reply(200, `[]`)(w, r)
	}
	s := serve(t, works)
	c := newClient(t, monitoring.Options{AlertmanagerURL: s.URL})
	requests := 0
	asks := func(what string, want int, do func() error, fails bool) {
		t.Helper()
		err := do()
		if seen := len(s.seen()); seen != requests+want || (err != nil) != fails {
			t.Errorf("%s: got %d requests and the error %v, want %d", what, seen-requests, err, want)
		}
		requests = len(s.seen())
	}
	list := func(after time.Duration) func() error {
		return func() error {
			_, err := c.Silences(t.Context(), noon.Add(after), 10*time.Second)
			return err
		}
	}
	post := func(after time.Duration) func() error {
		return func() error {
			_, err := c.PostSilence(t.Context(), noon.Add(after), monitoring.Silence{EndsAt: noon.Add(time.Hour)})
			return err
		}
	}
	asks("the first time", 1, list(0), false)
	asks("soon after", 0, list(9*time.Second), false)
	asks("later", 1, list(10*time.Second), false)
	asks("a silence", 1, post(11*time.Second), false)
	asks("after it", 1, list(11*time.Second), false)
	s.mutex.Lock()
	s.answer = broken
	s.mutex.Unlock()
	asks("a silence that fails", 1, post(12*time.Second), true)
	asks("after that", 0, list(21*time.Second), true)
	asks("later", 1, list(22*time.Second), true)
	asks("an end that fails", 1, func() error { return c.ExpireSilence(t.Context(), noon.Add(40*time.Second), "1") }, true)
	asks("after that", 0, list(41*time.Second), true)
	c.Forget()
	asks("once all is forgotten", 1, list(41*time.Second), true)
}
