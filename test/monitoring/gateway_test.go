// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// bearer is a client that trusts the gateway.
type bearer struct {
	*http.Client
	gateway *Gateway
}

func newBearer(t *testing.T, gateway *Gateway) *bearer {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(gateway.CA()) {
		t.Fatal("the gateway's CA is no certificate")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &bearer{Client: &http.Client{Transport: transport}, gateway: gateway}
}

// get asks for the path with the header Authorization, unless it is empty.
func (b *bearer) get(ctx context.Context, path, authorization string) (status int, body string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.gateway.URL()+path, nil)
	if err != nil {
		return 0, "", err
	}
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	response, err := b.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, string(content), err
}

// startBackend serves one gauge.
func startBackend(t *testing.T) *Exporter {
	t.Helper()
	exporter, err := StartExporter(t.Context())
	must(t, err)
	must(t, exporter.Set("backend", nil, 1))
	return exporter
}

func startGateway(t *testing.T, backend string) (*Gateway, *bearer) {
	t.Helper()
	gateway, err := StartGateway(t.Context(), backend)
	must(t, err)
	t.Cleanup(func() { must(t, gateway.Close()) })
	return gateway, newBearer(t, gateway)
}

func TestGatewayAuthorizes(t *testing.T) {
	gateway, client := startGateway(t, "http://"+startBackend(t).Address())
	allow := func() { gateway.SetToken("secret") }
	tests := []struct {
		name          string
		prepare       func()
		authorization string
		status        int
	}{
		{name: "nobody is known yet", prepare: func() {}, authorization: "Bearer ", status: 401},
		{name: "the token", prepare: allow, authorization: "Bearer secret", status: 200},
		{name: "none", prepare: allow, status: 401},
		{name: "another token", prepare: allow, authorization: "Bearer other", status: 401},
		{name: "no scheme", prepare: allow, authorization: "secret", status: 401},
		{name: "another scheme", prepare: allow, authorization: "Basic secret", status: 401},
		{name: "the token has been rotated", prepare: func() { gateway.SetToken("new") }, authorization: "Bearer secret", status: 401},
		{name: "the new token", prepare: func() { gateway.SetToken("new") }, authorization: "Bearer new", status: 200},
		{name: "no right to", prepare: func() { gateway.ForbidToken("secret") }, authorization: "Bearer secret", status: 403},
		{name: "not even known", prepare: func() { gateway.ForbidToken("secret") }, authorization: "Bearer new", status: 401},
	}
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.prepare()
			status, body, err := client.get(t.Context(), "/metrics", test.authorization)
			must(t, err)
			if status != test.status {
				t.Errorf("status: got %d, want %d", status, test.status)
			}
			if passed := strings.Contains(body, "backend 1\n"); passed != (test.status == 200) {
				t.Errorf("got the answer of the backend: %t\n%s", passed, body)
			}
			if got, want := gateway.Requests("/metrics"), i+1; got != want {
				t.Errorf("requests: got %d, want %d", got, want)
			}
		})
	}
	if got := gateway.Requests("/elsewhere"); got != 0 {
		t.Errorf("requests to another path: got %d, want 0", got)
	}
}

func TestGatewayCertificates(t *testing.T) {
	gateway, client := startGateway(t, "http://"+startBackend(t).Address())
	gateway.SetToken("secret")
	tests := []struct {
		certificate Certificate
		says        string
	}{
		{certificate: CertificateOfAnotherCA, says: "signed by unknown authority"},
		{certificate: CertificateValid},
		{certificate: CertificateExpired, says: "certificate has expired"},
		{certificate: CertificateOfAnotherHost, says: "certificate is valid for 192.0.2.1, not 127.0.0.1"},
		{certificate: CertificateValid},
	}
	for _, test := range tests {
		must(t, gateway.SetCertificate(t.Context(), test.certificate))
		status, _, err := client.get(t.Context(), "/metrics", "Bearer secret")
		if test.says == "" {
			must(t, err)
			if status != 200 {
				t.Errorf("certificate %d: got status %d, want 200", test.certificate, status)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("certificate %d: got error %v, want one that says %q", test.certificate, err, test.says)
		}
	}
}

func TestGatewayAnswers(t *testing.T) {
	gateway, client := startGateway(t, "http://"+startBackend(t).Address())
	gateway.SetToken("secret")
	get := func() (int, string) {
		t.Helper()
		status, body, err := client.get(t.Context(), "/metrics", "Bearer secret")
		must(t, err)
		return status, body
	}

	gateway.SetAnswer(AnswerStatus(503))
	if status, _ := get(); status != 503 {
		t.Errorf("got status %d, want 503", status)
	}
	gateway.SetAnswer(AnswerBody(400, "application/json", []byte(`{"status":"error"}`)))
	if status, body := get(); status != 400 || body != `{"status":"error"}` {
		t.Errorf("got %d %s, want the body that was set", status, body)
	}
	gateway.SetAnswer(Hang())
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, _, err := client.get(ctx, "/metrics", ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("hang: got %v, want the deadline to be exceeded", err)
	}
	gateway.SetAnswer(nil)
	if status, body := get(); status != 200 || !strings.Contains(body, "backend 1\n") {
		t.Errorf("got %d %s, want the answer of the backend", status, body)
	}
}

func TestGatewayGoesAwayAndComesBack(t *testing.T) {
	exporter := startBackend(t)
	gateway, client := startGateway(t, "http://"+exporter.Address())
	gateway.SetToken("secret")
	url := gateway.URL()
	gateway.SetAnswer(Hang())
	hanging := make(chan error, 1)
	go func() {
		_, _, err := client.get(t.Context(), "/hang", "")
		hanging <- err
	}()
	must(t, await(t.Context(), func(context.Context) error {
		if gateway.Requests("/hang") == 0 {
			return errors.New("the request has not come in")
		}
		return nil
	}))

	for range 2 {
		must(t, gateway.Stop())
	}
	if err := <-hanging; err == nil {
		t.Error("the hanging request: no error")
	}
	if _, _, err := client.get(t.Context(), "/metrics", ""); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("while it is away: got %v, want a refused connection", err)
	}
	must(t, gateway.SetCertificate(t.Context(), CertificateValid)) // starts nothing
	gateway.SetAnswer(nil)
	must(t, gateway.Start(t.Context()))
	if gateway.URL() != url {
		t.Errorf("got address %s, want %s as before", gateway.URL(), url)
	}
	if err := gateway.Start(t.Context()); err == nil {
		t.Error("Start while it listens: no error")
	}
	status, _, err := client.get(t.Context(), "/metrics", "Bearer secret")
	must(t, err)
	if status != 200 {
		t.Errorf("got status %d, want 200", status)
	}

	must(t, exporter.Close())
	if status, _, err := client.get(t.Context(), "/metrics", "Bearer secret"); err != nil || status != 502 {
		t.Errorf("without a backend: got %d, %v, want 502", status, err)
	}
	must(t, gateway.Close())
	if err := gateway.Start(t.Context()); err == nil {
		t.Error("Start after Close: no error")
	}
}
