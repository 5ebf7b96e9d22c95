// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package monitoring_test

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/appuio/managed-upgrade-operator/pkg/monitoring"
)

func TestNewRefuses(t *testing.T) {
	const secret = "hunter2"
	noCertificate := write(t, filepath.Join(t.TempDir(), "ca.crt"), "no certificate")
	for _, tc := range []struct {
		reason string
		with   monitoring.Options
		want   string
	}{
		{"a password in the URL", monitoring.Options{PrometheusURL: "https://admin:" + secret + "@prometheus"}, "reach Prometheus: the URL contains a user or a password: use a token file"},
		{"the same for the other", monitoring.Options{AlertmanagerURL: "https://admin:" + secret + "@am"}, "reach Alertmanager: the URL contains a user"},
		{"a URL that is none", monitoring.Options{PrometheusURL: "https://" + secret + ":%"}, "the URL cannot be parsed"},
		{"no scheme", monitoring.Options{PrometheusURL: "prometheus:9090"}, "the URL does not begin with http:// or https://"},
		{"another scheme", monitoring.Options{PrometheusURL: "ftp://prometheus"}, "the URL does not begin with http:// or https://"},
		{"no host", monitoring.Options{PrometheusURL: "https:///api"}, "the URL has no host"},
		{"a query", monitoring.Options{PrometheusURL: "https://prometheus?token=" + secret}, "the URL has a query or a fragment"},
		{"the token of a transport in clear", monitoring.Options{AlertmanagerURL: "http://alertmanager:9093", Transport: http.DefaultTransport}, "the token would be sent in clear"},
		{"a token in clear", monitoring.Options{PrometheusURL: "http://prometheus:9090", TokenFile: "/token"}, "the token would be sent in clear"},
		{"no CA file", monitoring.Options{PrometheusURL: "https://prometheus", CAFile: "/nonexistent/ca.crt"}, "/nonexistent/ca.crt"},
		{"a CA file that is none", monitoring.Options{PrometheusURL: "https://prometheus", CAFile: noCertificate}, "ca.crt"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			_, err := monitoring.New(tc.with)
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), secret) {
				t.Errorf("got %v, want %q and no secret", err, tc.want)
			}
		})
	}
}

func TestTokenIsReadAnew(t *testing.T) {
	s := serve(t, vector(""))
	file := write(t, filepath.Join(t.TempDir(), "token"), "first\n")
	c := newClient(t, monitoring.Options{PrometheusURL: s.URL, AlertmanagerURL: s.URL, TokenFile: file})
	ask := func(after time.Duration) error {
		_, err := c.Query(t.Context(), "up", noon.Add(after), time.Second)
		return err
	}
	if err := ask(0); err != nil {
		t.Fatal(err)
	}
	write(t, file, "second")
	if err := ask(time.Minute); err != nil {
		t.Fatal(err)
	}
	_, _ = c.SilencedAlerts(t.Context(), noon, time.Second)
	var got []string
	for _, r := range s.seen() {
		got = append(got, r.authorization)
	}
	if diff := cmp.Diff([]string{"Bearer first", "Bearer second", "Bearer second"}, got); diff != "" {
		t.Errorf("tokens (-want +got):\n%s", diff)
	}

	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := ask(2 * time.Minute); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("without the file: got %v, want that it is named", err)
	}
	if n := len(s.seen()); n != 3 {
		t.Errorf("%d requests: one was made without a token", n)
	}
}

func TestTokenIsNotHandedOn(t *testing.T) {
	other := serve(t, vector(""))
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
	})
	file := write(t, filepath.Join(t.TempDir(), "token"), "secret")
	c := newClient(t, monitoring.Options{PrometheusURL: s.URL, TokenFile: file})
	if _, err := c.Query(t.Context(), "up", noon, time.Second); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v, want an error without the token", err)
	}
	if seen := other.seen(); len(seen) > 0 {
		t.Errorf("the request went on to somebody else: %+v", seen)
	}
}

func TestCertificates(t *testing.T) {
	s := httptest.NewTLSServer(vector(""))
	t.Cleanup(s.Close)
	trusted := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	file := write(t, filepath.Join(t.TempDir(), "ca.crt"), trusted)
	ask := func(o monitoring.Options) error {
		_, err := newClient(t, o).Query(t.Context(), "up", noon, time.Second)
		return err
	}
	if err := ask(monitoring.Options{PrometheusURL: s.URL, CAFile: file}); err != nil {
		t.Errorf("a trusted certificate: %v", err)
	}
	expect(t, ask(monitoring.Options{PrometheusURL: s.URL}), "Prometheus cannot be asked: tls: failed to verify certificate: x509: certificate signed by unknown authority", false)
	_, port, _ := strings.Cut(s.URL, "127.0.0.1")
	expect(t, ask(monitoring.Options{PrometheusURL: "https://localhost" + port, CAFile: file}), "Prometheus cannot be asked: tls: failed to verify certificate: x509: certificate is valid for", false)
}

// write writes a file and returns its path.
func write(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
