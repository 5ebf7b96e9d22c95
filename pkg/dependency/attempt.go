// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
)

const (
	// maxRedirects is how many redirects are followed.
	maxRedirects = 5
	// maxBodyBytes is how much of a body is read so that the connection can be used again.
	maxBodyBytes = 64 << 10
	// maxHeaderBytes bounds the headers of an answer.
	maxHeaderBytes = 64 << 10
	// idleTimeout is how long a connection is kept that nobody uses: longer than steps wait before they ask again.
	idleTimeout = 90 * time.Second
	userAgent   = "managed-upgrade-operator"
)

// Errors of redirects that are not followed.
var (
	errManyRedirects = errors.New("too many redirects")
	errDowngrade     = errors.New("redirected from https to http")
)

// attempt asks a URL up to three times, and returns what is wrong with it; nothing if it is available.
func (p *Prober) attempt(ctx context.Context, address string, timeout time.Duration) string {
	backoff := wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.5, Steps: Attempts}
	for i := 1; ; i++ {
		message, again := p.get(ctx, address, timeout)
		if message == "" || !again || i == Attempts || !p.pause(ctx, backoff.Step()) {
			return message
		}
	}
}

// build makes the client, which keeps connections.
func (p *Prober) build() {
	if p.Clock == nil {
		p.Clock = clock.RealClock{}
	}
	if p.Proxy == nil {
		p.Proxy = http.ProxyFromEnvironment
	}
	// Whatever else takes long is bounded by the context of an attempt.
	p.client = &http.Client{CheckRedirect: redirect, Transport: &http.Transport{
		Proxy:                  p.Proxy,
		TLSClientConfig:        &tls.Config{RootCAs: p.RootCAs, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: maxHeaderBytes,
		IdleConnTimeout:        idleTimeout,
	}}
}

// redirect refuses redirects that lead too far, or out of the cover of https. Whoever is asked next does not learn by which query it got there.
func redirect(request *http.Request, via []*http.Request) error {
	request.Header.Del("Referer")
	switch {
	case len(via) > maxRedirects:
		return errManyRedirects
	case via[len(via)-1].URL.Scheme == "https" && request.URL.Scheme != "https":
		return errDowngrade
	}
	return nil
}

// get asks a URL once. It returns what is wrong with it, nothing if it is available, and whether it may be worth while to ask again.
func (p *Prober) get(ctx context.Context, address string, timeout time.Duration) (message string, again bool) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "is not a URL", false
	}
	request.Header.Set("User-Agent", userAgent)
	response, err := p.client.Do(request)
	if err != nil {
		return explain(err)
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, maxBodyBytes) // the connection is used again if that was all; the status is the answer
	if code := response.StatusCode; code >= http.StatusBadRequest {
		return fmt.Sprintf("answers %d %s", code, http.StatusText(code)), code >= http.StatusInternalServerError
	}
	return "", false
}

// pause waits; false if ctx ends before.
func (p *Prober) pause(ctx context.Context, d time.Duration) bool {
	timer := p.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
