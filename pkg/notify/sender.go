// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"k8s.io/utils/clock"
)

const (
	// Timeout is how long an attempt may take in all: name lookup, connection, redirects, response.
	Timeout = 10 * time.Second
	// MaxRetryAfter bounds how long a receiver may ask to be left alone.
	MaxRetryAfter = 30 * time.Minute

	// maxResponseBytes is how much of a response is read, and thrown away, so that the connection can be used again.
	maxResponseBytes = 64 << 10
)

// Target is where and how to reach a receiver. All of it may be secret.
type Target struct {
	// URL to send to.
	URL string
	// Headers to send along, over https only.
	Headers map[string]string
	// CA is what the receiver's certificate is checked with, in PEM; empty for the certificates of the system.
	CA []byte
}

// Sender sends events to receivers. It keeps connections, so there is one for all of them. It may be used from several
// goroutines.
type Sender struct {
	clock   clock.PassiveClock
	timeout time.Duration
	proxy   func(*http.Request) (*url.URL, error)

	mutex   sync.Mutex // of what follows
	clients map[string]*caClient
	uses    uint64
}

// NewSender returns a sender. It reaches receivers through the proxy that the environment names, if it does.
func NewSender(clk clock.PassiveClock) *Sender {
	return &Sender{clock: clk, timeout: Timeout, proxy: http.ProxyFromEnvironment, clients: map[string]*caClient{}}
}

// Send makes one attempt to hand the event over. Every error is a *Failure, but for that of a context that ends before
// the attempt does: that says nothing of the receiver.
func (s *Sender) Send(ctx context.Context, target Target, e event.Event) error {
	attempt, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	request, err := newRequest(attempt, target, e)
	if err != nil {
		return err
	}
	client, err := s.client(target.CA)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("send an event: %w", context.Cause(ctx))
		}
		return explain(err, s.timeout)
	}
	defer response.Body.Close()
	// Not more than the status counts: a success is one however its body ends, and what is in a body is for nobody.
	_, _ = io.CopyN(io.Discard, response.Body, maxResponseBytes)
	return s.judge(response)
}

// newRequest returns the request that hands the event over.
func newRequest(ctx context.Context, target Target, e event.Event) (*http.Request, error) {
	address, err := parseURL(target.URL)
	if err != nil {
		return nil, err
	}
	headers, err := parseHeaders(target.Headers, address)
	if err != nil {
		return nil, err
	}
	body, mediaType, err := encode(e)
	if err != nil {
		return nil, failf("the event cannot be encoded")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address.String(), bytes.NewReader(body))
	if err != nil {
		return nil, failf("the URL cannot be used")
	}
	request.Header = headers
	request.Header.Set("Content-Type", mediaType)
	if request.Header.Get("User-Agent") == "" {
		request.Header.Set("User-Agent", "managed-upgrade-operator")
	}
	return request, nil
}

// judge turns the status of a response into an error, unless it is a success.
func (s *Sender) judge(response *http.Response) error {
	code := response.StatusCode
	if code >= 200 && code < 300 {
		return nil
	}
	failure := answered(code)
	switch code {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		failure.RetryAfter = s.retryAfter(response.Header.Get("Retry-After"))
	case http.StatusUnauthorized, http.StatusForbidden:
		failure.Denied = true
	}
	return failure
}

// retryAfter returns for how long a receiver asks to be left alone: in seconds, or until a date.
func (s *Sender) retryAfter(header string) time.Duration {
	if seconds, err := strconv.Atoi(header); err == nil {
		return time.Duration(min(max(seconds, 0), int(MaxRetryAfter/time.Second))) * time.Second
	}
	if date, err := http.ParseTime(header); err == nil {
		return min(max(date.Sub(s.clock.Now()), 0), MaxRetryAfter)
	}
	return 0
}
