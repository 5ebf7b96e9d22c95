// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cincinnati_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/appuio/managed-upgrade-operator/pkg/cincinnati"
)

var noon = time.Date(2026, time.November, 24, 12, 0, 0, 0, time.UTC)

// service is an update service that answers with the handler, and counts.
func service(t *testing.T, handler http.HandlerFunc) (*httptest.Server, *atomic.Int32) {
	t.Helper()
	asked := &atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		handler(w, r)
	}))
	t.Cleanup(server.Close)
	return server, asked
}

func answer(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}
}

func TestQuestionIsThatOfTheCluster(t *testing.T) {
	var got *http.Request
	server, _ := service(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		answer(`{"version":1,"nodes":[{"version":"4.18.1","payload":"image:1"}],"edges":[],"conditionalEdges":[]}`)(w, r)
	})
	graph, err := (&cincinnati.Client{}).Graph(t.Context(), noon, cincinnati.Query{
		Upstream: server.URL + "/graph?tenant=a", Channel: "fast-4.18", Arch: "multi", ClusterID: "the-cluster", Version: "4.18.1+a",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := url.Values{"tenant": {"a"}, "channel": {"fast-4.18"}, "arch": {"multi"}, "id": {"the-cluster"}, "version": {"4.18.1+a"}}
	if diff := cmp.Diff(want, got.URL.Query()); diff != "" || got.URL.Path != "/graph" || got.Method != http.MethodGet || got.Header.Get("Accept") != "application/json" {
		t.Errorf("asked by %s %s, Accept %q (-want +got):\n%s", got.Method, got.URL, got.Header.Get("Accept"), diff)
	}
	if release, ok := graph.Has("4.18.1"); !ok || release.Payload != "image:1" {
		t.Errorf("got %+v, %t", release, ok)
	}
}

func TestUnknownArchitectureIsLeftToTheService(t *testing.T) {
	server, _ := service(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("arch") {
			t.Errorf("asked for arch %q", r.URL.Query().Get("arch"))
		}
		answer(`{"nodes":[]}`)(w, r)
	})
	if _, err := (&cincinnati.Client{}).Graph(t.Context(), noon, cincinnati.Query{Upstream: server.URL, Channel: "c"}); err != nil {
		t.Error(err)
	}
}

// transport answers without a network.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestDefaultUpstream(t *testing.T) {
	var asked string
	client := &cincinnati.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		asked = r.URL.String()
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{"nodes":[]}`))}, nil
	})}
	if _, err := client.Graph(t.Context(), noon, cincinnati.Query{Channel: "c"}); err != nil || asked != "https://api.openshift.com/api/upgrades_info/v1/graph?channel=c" {
		t.Errorf("asked %s, error %v", asked, err)
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	redirectTo := func(target string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, target, http.StatusFound) }
	}
	for _, tc := range []struct {
		reason  string
		handler http.HandlerFunc
		want    string
	}{
		{"an error", status(http.StatusServiceUnavailable), "it answers with status 503"},
		{"not acceptable", status(http.StatusNotAcceptable), "it answers with status 406"},
		{"no content", status(http.StatusNoContent), "it answers with status 204"},
		{"a page", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = io.WriteString(w, "<html>log in</html>")
		}, "it answers with text/html"},
		{"something else", answer(`{"kind":"missing_params"}`), "its answer is no graph"},
		{"nothing", answer(`null`), "its answer is no graph"},
		{"half of it", answer(`{"nodes":[`), "its answer is no graph"},
		{"an edge with one end", answer(`{"nodes":[],"edges":["x"]}`), "its answer is no graph"},
		{"a connection that breaks", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "the connection to it broke"},
		{"a circle", redirectTo("/again"), "it redirects too often"},
		{"far too much", func(w http.ResponseWriter, _ *http.Request) {
			answer(`{"nodes":[{"version":"`)(w, nil)
			chunk := strings.Repeat("4", 1<<20)
			for range 33 {
				if _, err := io.WriteString(w, chunk); err != nil {
					return
				}
			}
		}, "its answer is longer than 32 MiB"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			server, _ := service(t, tc.handler)
			_, err := (&cincinnati.Client{}).Graph(t.Context(), noon, cincinnati.Query{Upstream: server.URL, Channel: "c"})
			if want := "the update service is not available: " + tc.want; err == nil || err.Error() != want || !errors.Is(err, cincinnati.ErrUnavailable) {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

func TestServicesThatCannotBeAsked(t *testing.T) {
	gone, _ := service(t, answer(`{}`))
	gone.Close()
	secure := httptest.NewTLSServer(answer(`{}`))
	t.Cleanup(secure.Close)
	for _, tc := range []struct{ reason, upstream, want string }{
		{"nobody listens", gone.URL, "it cannot be reached"},
		{"a certificate of its own", secure.URL, "its certificate cannot be trusted"},
		{"no URL", "graph", "its URL in ClusterVersion is none of http or https"},
		{"a file", "file:///etc/passwd", "its URL in ClusterVersion is none of http or https"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			_, err := (&cincinnati.Client{}).Graph(t.Context(), noon, cincinnati.Query{Upstream: tc.upstream, Channel: "c"})
			if err == nil || err.Error() != "the update service is not available: "+tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

func TestSecureServiceIsNotLeftForAnInsecureOne(t *testing.T) {
	insecure, asked := service(t, answer(`{"nodes":[]}`))
	secure := httptest.NewTLSServer(http.RedirectHandler(insecure.URL, http.StatusFound))
	t.Cleanup(secure.Close)
	client := &cincinnati.Client{Transport: secure.Client().Transport}
	if _, err := client.Graph(t.Context(), noon, cincinnati.Query{Upstream: secure.URL, Channel: "c"}); err == nil || !strings.Contains(err.Error(), "it redirects from https to http") {
		t.Errorf("got %v", err)
	}
	if asked.Load() > 0 {
		t.Error("the insecure service was asked")
	}
}

func TestRedirectsAreFollowed(t *testing.T) {
	target, _ := service(t, answer(`{"nodes":[]}`))
	server, _ := service(t, http.RedirectHandler(target.URL, http.StatusTemporaryRedirect).ServeHTTP)
	if _, err := (&cincinnati.Client{}).Graph(t.Context(), noon, cincinnati.Query{Upstream: server.URL, Channel: "c"}); err != nil {
		t.Error(err)
	}
}

func TestQuestionHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		client := &cincinnati.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, fmt.Errorf("dial tcp 127.0.0.1:54321: %w", context.Cause(r.Context()))
		})}
		_, err := client.Graph(t.Context(), noon, cincinnati.Query{Channel: "c"})
		if err == nil || err.Error() != "the update service is not available: it does not answer within 20s" {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took != 20*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

func TestAnswersAreShared(t *testing.T) {
	for _, tc := range []struct {
		reason string
		body   string
	}{{"a graph", `{"nodes":[]}`}, {"none", `{}`}} {
		t.Run(tc.reason, func(t *testing.T) {
			server, asked := service(t, answer(tc.body))
			client := &cincinnati.Client{}
			query := cincinnati.Query{Upstream: server.URL, Channel: "a"}
			ask := func(after time.Duration, want int32) {
				t.Helper()
				_, _ = client.Graph(t.Context(), noon.Add(after), query)
				if got := asked.Load(); got != want {
					t.Errorf("%s after: asked %d times, want %d", after, got, want)
				}
			}
			ask(0, 1)
			ask(59*time.Second, 1)
			ask(time.Minute, 2)
			query.Channel = "b"
			ask(time.Minute, 3)
		})
	}
}
