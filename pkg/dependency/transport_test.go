// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package dependency_test

import (
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/appuio/managed-upgrade-operator/pkg/dependency"
)

func TestProbeFollowsRedirects(t *testing.T) {
	secure := newScript(t, httptest.NewTLSServer, status(200))
	plain := newScript(t, httptest.NewServer, status(200))
	p := &dependency.Prober{Clock: &instant{}, RootCAs: x509.NewCertPool()}
	p.RootCAs.AddCert(secure.Certificate())
	hops := func(n int) *httptest.Server {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if len(r.URL.Path) <= n { // "/" is no hop, "/xx" are two
				to(r.URL.Path+"x")(w, r)
			}
		}))
		t.Cleanup(server.Close)
		return server
	}
	for _, tc := range []struct {
		reason, address, want string
	}{
		{"from http to https", newScript(t, httptest.NewServer, to(secure.URL)).URL, ""},
		{"from https to https", newScript(t, httptest.NewTLSServer, to(secure.URL)).URL, ""},
		{"from https to http", newScript(t, httptest.NewTLSServer, to(plain.URL+"/?token=secret")).URL, "redirects from https to http"},
		{"five times", hops(5).URL, ""},
		{"six times", hops(6).URL, "redirects more than five times"},
		{"to what is not there", newScript(t, httptest.NewServer, to(newScript(t, httptest.NewServer, status(404)).URL)).URL, "answers 404 Not Found"},
		{"to nonsense", newScript(t, httptest.NewServer, to("http://user:secret@[/")).URL, "cannot be asked: the answer is not understood"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if got := probe(t, p, patient, tc.address); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	if plain.asked.Load() > 0 {
		t.Error("a redirect from https to http was followed")
	}
}

// What may be a secret does not get to whom a redirect leads, nor into a message.
func TestProbeKeepsSecrets(t *testing.T) {
	var referers []string
	other := newScript(t, httptest.NewServer, func(w http.ResponseWriter, r *http.Request) {
		referers = append(referers, r.Header.Values("Referer")...)
		w.WriteHeader(http.StatusTeapot)
	})
	first := newScript(t, httptest.NewServer, to(other.URL))
	address := strings.Replace(first.URL, "http://", "http://user:secret@", 1) + "/a%2Fb?token=secret#secret"
	p := &dependency.Prober{Clock: &instant{}}
	urls := []string{address, "http://127.0.0.1:1/?secret", "http://user:secret@%%", "https://user:secret@" + strings.TrimPrefix(first.URL, "http://")}
	failures, err := p.Probe(t.Context(), dependency.Request{URLs: urls, Timeout: patient}, noon, time.Second)
	want := []dependency.Failure{
		{URL: first.URL + "/a%2Fb", Message: "answers 418 I'm a teapot"},
		{URL: "http://127.0.0.1:1/", Message: "does not answer: connection refused"},
		{URL: "(not a URL)", Message: "is not a URL"},
		{URL: strings.Replace(first.URL, "http", "https", 1), Message: "cannot be asked: http: server gave HTTP response to HTTPS client"},
	}
	if diff := cmp.Diff(want, failures); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if len(referers) > 0 {
		t.Errorf("told where it came from: %q", referers)
	}
}

func TestProbeChecksCertificates(t *testing.T) {
	server := newScript(t, httptest.NewTLSServer, status(200))
	trusted := &dependency.Prober{Clock: &instant{}, RootCAs: x509.NewCertPool()}
	trusted.RootCAs.AddCert(server.Certificate())
	if got := probe(t, trusted, patient, server.URL); got != "" {
		t.Errorf("trusted: got %q", got)
	}
	if got, want := probe(t, &dependency.Prober{Clock: &instant{}}, patient, server.URL), "is not trusted: its certificate is signed by an unknown authority"; got != want {
		t.Errorf("not trusted: got %q, want %q", got, want)
	}
	elsewhere := strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	if got, want := probe(t, trusted, patient, elsewhere), "is not trusted: its certificate is for another host"; got != want {
		t.Errorf("for another host: got %q, want %q", got, want)
	}
}

func TestProbeGoesThroughTheProxyOfTheEnvironment(t *testing.T) {
	p := &dependency.Prober{Clock: &instant{}}
	if got := probe(t, p, patient, "http://dependency.example/registry"); got != "" {
		t.Errorf("http: got %q", got)
	}
	if got, want := probe(t, p, patient, "https://dependency.example/registry"), "cannot be asked: Forbidden"; got != want {
		t.Errorf("https, which the proxy refuses: got %q, want %q", got, want)
	}
	asked := environmentProxy.asked()
	if !slices.Contains(asked, "GET dependency.example") || !slices.Contains(asked, "CONNECT dependency.example:443") {
		t.Errorf("the proxy was asked for %q", asked)
	}
	away := &dependency.Prober{Clock: &instant{}, Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: "127.0.0.1:1"})}
	if got, want := probe(t, away, patient, "http://dependency.example/"), "is not reached: the proxy does not answer: connection refused"; got != want {
		t.Errorf("the proxy is away: got %q, want %q", got, want)
	}
}

// Messages that are the same each time.
func TestProbeMessagesAreStable(t *testing.T) {
	p := &dependency.Prober{Clock: &instant{}, Proxy: http.ProxyURL(nil)}
	server := newScript(t, httptest.NewServer, hangUp)
	for address, want := range map[string]string{
		"http://dependency..example/": "does not answer: its name is not known",
		server.URL:                    "does not answer: connection closed",
	} {
		for i := range 2 {
			failures, err := p.Probe(t.Context(), dependency.Request{URLs: []string{address}, Timeout: patient}, noon.Add(time.Duration(i)*time.Minute), time.Second)
			if err != nil || len(failures) != 1 || failures[0].Message != want {
				t.Errorf("%s: got %v, %v, want %q", address, failures, err, want)
			}
		}
	}
}
