// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package dependency_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/appuio/managed-upgrade-operator/pkg/dependency"
)

const patient = 20 * time.Second

// probe asks one URL and returns what is wrong with it; nothing if it is available.
func probe(t *testing.T, p *dependency.Prober, timeout time.Duration, address string) string {
	t.Helper()
	failures, err := p.Probe(t.Context(), dependency.Request{URLs: []string{address}, Timeout: timeout}, noon, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if len(failures) == 0 {
		return ""
	}
	return failures[0].Message
}

// Which answers will do, and which are asked for again.
func TestProbeJudgesAnswers(t *testing.T) {
	for _, tc := range []struct {
		reason   string
		handlers []http.HandlerFunc
		want     string
		asked    int64
	}{
		{"fine", []http.HandlerFunc{status(200)}, "", 1},
		{"not modified", []http.HandlerFunc{status(304)}, "", 1},
		{"not there", []http.HandlerFunc{status(404)}, "answers 404 Not Found", 1},
		{"not allowed", []http.HandlerFunc{status(401)}, "answers 401 Unauthorized", 1},
		{"broken", []http.HandlerFunc{status(500)}, "answers 500 Internal Server Error", 3},
		{"broken once", []http.HandlerFunc{status(503), status(200)}, "", 2},
		{"broken twice", []http.HandlerFunc{status(503), hangUp, status(204)}, "", 3},
		{"broken, and not there", []http.HandlerFunc{status(503), status(403), status(200)}, "answers 403 Forbidden", 2},
		{"hangs up", []http.HandlerFunc{hangUp}, "does not answer: connection closed", 3},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			server := newScript(t, httptest.NewServer, tc.handlers...)
			if got := probe(t, &dependency.Prober{Clock: &instant{}}, patient, server.URL+"/path?token=secret"); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if got := server.asked.Load(); got != tc.asked {
				t.Errorf("asked %d times, want %d", got, tc.asked)
			}
		})
	}
}

// It waits for a second, then for two, and up to half as much again so that not all come at once.
func TestProbeBacksOff(t *testing.T) {
	server := newScript(t, httptest.NewServer, status(500))
	c := &instant{}
	probe(t, &dependency.Prober{Clock: c}, patient, server.URL)
	if len(c.waited) != 2 {
		t.Fatalf("waited %v, want twice", c.waited)
	}
	for i, least := range []time.Duration{time.Second, 2 * time.Second} {
		if most := least * 3 / 2; c.waited[i] < least || c.waited[i] > most {
			t.Errorf("wait %d was %s, want %s to %s", i+1, c.waited[i], least, most)
		}
	}
}

func TestProbeTimesOut(t *testing.T) {
	server := newScript(t, httptest.NewServer, hang)
	if got := probe(t, &dependency.Prober{Clock: &instant{}}, 50*time.Millisecond, server.URL); got != "does not answer in time" {
		t.Errorf("got %q", got)
	}
	if got := server.asked.Load(); got != 3 {
		t.Errorf("asked %d times, want 3", got)
	}
	once := newScript(t, httptest.NewServer, hang, status(200))
	if got := probe(t, &dependency.Prober{Clock: &instant{}}, 50*time.Millisecond, once.URL); got != "" {
		t.Errorf("once: got %q", got)
	}
}

// All are asked at the same time, and the failures come in the order of the URLs.
func TestProbeAsksInParallel(t *testing.T) {
	var waiting sync.WaitGroup
	waiting.Add(8)
	server := newScript(t, httptest.NewServer, func(w http.ResponseWriter, r *http.Request) {
		waiting.Done()
		waiting.Wait() // for all others: one after the other none gets an answer
		if r.URL.Path >= "/5" {
			w.WriteHeader(http.StatusGone)
		}
	})
	var urls []string
	for i := range 8 {
		urls = append(urls, fmt.Sprintf("%s/%d", server.URL, i))
	}
	p := &dependency.Prober{Clock: &instant{}}
	failures, err := p.Probe(t.Context(), dependency.Request{URLs: urls, Timeout: patient}, noon, time.Second)
	var want []dependency.Failure
	for _, u := range urls[5:] {
		want = append(want, dependency.Failure{URL: u, Message: "answers 410 Gone"})
	}
	if diff := cmp.Diff(want, failures); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// Within says how long all of it may take, whatever the timeout of an attempt.
func TestProbeIsDoneWithin(t *testing.T) {
	server := newScript(t, httptest.NewServer, hang)
	p := &dependency.Prober{} // also while it waits between two attempts
	broken := newScript(t, httptest.NewServer, status(502))
	began := time.Now()
	request := dependency.Request{URLs: []string{server.URL, broken.URL}, Timeout: time.Minute, Within: 100 * time.Millisecond}
	failures, err := p.Probe(t.Context(), request, noon, time.Hour/4)
	want := []dependency.Failure{{URL: server.URL, Message: "does not answer in time"}, {URL: broken.URL, Message: "answers 502 Bad Gateway"}}
	if diff := cmp.Diff(want, failures); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if took := time.Since(began); took > 900*time.Millisecond { // the shortest wait between two attempts is a second
		t.Errorf("it took %s", took)
	}
	// That is no answer for those who have more time.
	request.URLs = request.URLs[1:]
	if _, err := p.Probe(t.Context(), request, noon, time.Hour/4); err != nil || broken.asked.Load() != 2 {
		t.Errorf("asked %d times, want a second time: %v", broken.asked.Load(), err)
	}
}

func TestProbeEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("the pass is over")
	server := newScript(t, httptest.NewServer, func(_ http.ResponseWriter, r *http.Request) {
		cancel(over)
		<-r.Context().Done()
	}, status(200))
	p := &dependency.Prober{Clock: &instant{}}
	request := dependency.Request{URLs: []string{server.URL}, Timeout: time.Minute}
	if failures, err := p.Probe(ctx, request, noon, time.Second); !errors.Is(err, context.Canceled) || len(failures) > 0 {
		t.Errorf("got %v, %v", failures, err)
	}
	if failures, err := p.Probe(t.Context(), request, noon, time.Second); err != nil || len(failures) > 0 {
		t.Errorf("the next pass: got %v, %v", failures, err)
	}
}

// Answers are shared for their time: those of other timeouts are others.
func TestProbeSharesAnswers(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		after   time.Duration
		timeout time.Duration
		want    int64
	}{
		{"just young enough", 30*time.Second - 1, patient, 1},
		{"too old", time.Minute, patient, 2},
		{"long forgotten", 2 * time.Hour, patient, 2},
		{"another timeout", 0, patient + 1, 2},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			server := newScript(t, httptest.NewServer, status(404), status(200))
			p := &dependency.Prober{Clock: &instant{}}
			for i, now := range []time.Time{noon, noon.Add(tc.after)} {
				timeout := []time.Duration{patient, tc.timeout}[i]
				failures, err := p.Probe(t.Context(), dependency.Request{URLs: []string{server.URL}, Timeout: timeout}, now, 30*time.Second)
				if wrong := i == 0 || tc.want == 1; err != nil || (len(failures) > 0) != wrong {
					t.Errorf("at %s: got %v, %v", now, failures, err)
				}
			}
			if got := server.asked.Load(); got != tc.want {
				t.Errorf("asked %d times, want %d", got, tc.want)
			}
		})
	}
}

// slow is a clock by which all takes so long.
type slow struct {
	instant
	each time.Duration
	read atomic.Int64
}

func (c *slow) Now() time.Time                  { return noon.Add(time.Duration(c.read.Add(1)) * c.each) }
func (c *slow) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Who takes long to answer is not asked all the time.
func TestProbeLeavesTheSlowInPeace(t *testing.T) {
	server := newScript(t, httptest.NewServer, status(404))
	p := &dependency.Prober{Clock: &slow{each: 40 * time.Second}}
	request := dependency.Request{URLs: []string{server.URL}, Timeout: patient}
	for _, step := range []struct {
		after time.Duration
		asked int64
	}{{0, 1}, {69 * time.Second, 1}, {70 * time.Second, 2}} {
		if _, err := p.Probe(t.Context(), request, noon.Add(step.after), 30*time.Second); err != nil || server.asked.Load() != step.asked {
			t.Errorf("after %s: asked %d times, want %d (%v)", step.after, server.asked.Load(), step.asked, err)
		}
	}
}

// Connections are used again, of answers that are short. Of long ones no more is read than a little.
func TestProbeKeepsConnections(t *testing.T) {
	for _, tc := range []struct {
		reason string
		length int
		want   int64
	}{{"a page", 10_000, 1}, {"a video", 50_000_000, 5}} {
		t.Run(tc.reason, func(t *testing.T) {
			var connections atomic.Int64
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write(make([]byte, tc.length))
			}))
			server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
				if s == http.StateNew {
					connections.Add(1)
				}
			}
			server.Start()
			t.Cleanup(server.Close)
			p := &dependency.Prober{}
			for i := range 5 {
				failures, err := p.Probe(t.Context(), dependency.Request{URLs: []string{server.URL}, Timeout: patient}, noon.Add(time.Duration(i)*time.Minute), time.Millisecond)
				if err != nil || len(failures) > 0 {
					t.Fatalf("got %v, %v", failures, err)
				}
			}
			if got := connections.Load(); got != tc.want {
				t.Errorf("made %d connections, want %d", got, tc.want)
			}
		})
	}
}
