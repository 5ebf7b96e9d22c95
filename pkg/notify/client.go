// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// maxClients is for how many different CAs connections are kept.
	maxClients = 16
	// maxRedirects is how often an event is sent on.
	maxRedirects = 3
	// idleTimeout is shorter than what servers and firewalls between grant a connection on which nothing happens: one
	// that died unnoticed would cost an attempt.
	idleTimeout = 30 * time.Second
)

// caClient is a client that trusts one CA.
type caClient struct {
	client   *http.Client
	lastUsed uint64
}

// client returns the client for a CA. The one that was not used for longest makes room for a new one.
func (s *Sender) client(ca []byte) (*http.Client, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.uses++
	if known, ok := s.clients[string(ca)]; ok {
		known.lastUsed = s.uses
		return known.client, nil
	}
	client, err := newClient(ca, s.proxy)
	if err != nil {
		return nil, err
	}
	if len(s.clients) >= maxClients {
		s.dropClient()
	}
	s.clients[string(ca)] = &caClient{client, s.uses}
	return client, nil
}

func (s *Sender) dropClient() {
	var oldest string
	lastUsed := s.uses
	for ca, c := range s.clients {
		if c.lastUsed < lastUsed {
			oldest, lastUsed = ca, c.lastUsed
		}
	}
	s.clients[oldest].client.CloseIdleConnections()
	delete(s.clients, oldest)
}

func newClient(ca []byte, proxy func(*http.Request) (*url.URL, error)) (*http.Client, error) {
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(ca) > 0 {
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(ca) {
			return nil, failf("there is no certificate in what caFrom names: it must be in PEM")
		}
	}
	return &http.Client{
		CheckRedirect: checkRedirect,
		Transport: &http.Transport{
			Proxy:                  proxy,
			OnProxyConnectResponse: checkProxy,
			DialContext:            (&net.Dialer{Timeout: Timeout}).DialContext,
			TLSClientConfig:        settings,
			TLSHandshakeTimeout:    Timeout,
			ForceAttemptHTTP2:      true,
			DisableCompression:     true, // a small response stays small
			MaxResponseHeaderBytes: maxResponseBytes,
			MaxIdleConns:           64,
			MaxIdleConnsPerHost:    2,
			IdleConnTimeout:        idleTimeout,
		},
	}, nil
}

// checkRedirect follows a redirect only where it leads to the same server and repeats the event: another server would be
// handed the headers, and other kinds of redirects turn the POST into a GET.
func checkRedirect(next *http.Request, before []*http.Request) error {
	code := next.Response.StatusCode
	switch {
	case code != http.StatusTemporaryRedirect && code != http.StatusPermanentRedirect:
		return failf("the receiver redirects with %d %s: only 307 and 308 are followed", code, http.StatusText(code))
	case next.URL.User != nil || !strings.EqualFold(origin(next.URL), origin(before[0].URL)):
		return failf("the receiver redirects to another server, which is not followed")
	case len(before) > maxRedirects:
		return failf("the receiver redirects more than %d times", maxRedirects)
	}
	next.Header.Del("Referer") // the URL is between us and the first server
	return nil
}

// origin returns the scheme, host and port of an URL.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(u.Hostname(), port)
}

// checkProxy keeps what a proxy says out of the error of a request.
func checkProxy(_ context.Context, _ *url.URL, _ *http.Request, response *http.Response) error {
	if response.StatusCode != http.StatusOK {
		return failf("the proxy answers %s", status(response.StatusCode))
	}
	return nil
}
