// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Package dependency asks whether what an upgrade needs outside of the cluster
// is available: it gets URLs and looks at the status of the answers.
//
// What is asked for may be a secret. No message has the query of a URL, a user or
// a password in it, and none is handed on to whom a redirect leads.
package dependency

import (
	"context"
	"crypto/x509"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/appuio/managed-upgrade-operator/pkg/poll"
)

const (
	// Attempts is how often a URL is asked that does not answer, or answers with a status of 500 or more.
	Attempts = 3
	// MaxDuration is how long a Probe takes at most.
	MaxDuration = time.Minute

	// memory is how long the answer of a URL is kept after somebody wanted it last.
	memory = time.Hour
)

// Failure is a dependency that is not available.
type Failure struct {
	// URL that was asked, without its query, which may be a secret.
	URL string
	// Message says what is wrong, in words that stay the same from one attempt to the next.
	Message string
}

// Request says what is asked.
type Request struct {
	// URLs to ask, by GET, in parallel. Those with a status below 400 are available.
	URLs []string
	// Timeout of one attempt. Required.
	Timeout time.Duration
	// Within is how long all of it may take; MaxDuration if that is shorter, or if it is zero.
	Within time.Duration
}

// Prober asks URLs. The zero value is ready for use. It may be used from several goroutines, and must not be copied.
type Prober struct {
	// Clock by which it waits between two attempts; nil for the real one.
	Clock clock.Clock
	// RootCAs are whom servers have to be certified by; nil for those of the system, which SSL_CERT_FILE and SSL_CERT_DIR in the environment say.
	RootCAs *x509.CertPool
	// Proxy returns the proxy of a request; nil for those that HTTP_PROXY, HTTPS_PROXY and NO_PROXY in the environment say.
	Proxy func(*http.Request) (*url.URL, error)

	once   sync.Once
	client *http.Client

	mutex   sync.Mutex // of what follows
	answers map[question]*answer
}

// question is what answers are shared by.
type question struct {
	url     string
	timeout time.Duration
}

type answer struct {
	poll.Question[string]
	wanted time.Time
	took   time.Duration // to get the last answer
}

// Probe asks all URLs and returns those that are not available, in their order. Answers may be as old as maxAge, less than half an hour, since they came.
// The error is that of ctx, if that ends before.
func (p *Prober) Probe(ctx context.Context, r Request, now time.Time, maxAge time.Duration) ([]Failure, error) {
	p.once.Do(p.build)
	within := MaxDuration
	if r.Within > 0 {
		within = min(within, r.Within)
	}
	deadline, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	messages := make([]string, len(r.URLs))
	var all sync.WaitGroup
	for i, u := range r.URLs {
		all.Go(func() { messages[i] = p.message(deadline, question{u, r.Timeout}, within == MaxDuration, now, maxAge) })
	}
	all.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var failures []Failure
	for i, message := range messages {
		if message != "" {
			failures = append(failures, Failure{URL: presentable(r.URLs[i]), Message: message})
		}
	}
	return failures, nil
}

// message returns what is wrong with a URL; nothing if it is available. That there was no answer while ctx lasted is an answer for others too if it lasted for
// the whole time.
func (p *Prober) message(ctx context.Context, q question, wholeTime bool, now time.Time, maxAge time.Duration) string {
	shared, took := p.about(q, now)
	// Who takes long to answer is left in peace for as long as others are.
	message, err := shared.Get(ctx, now, maxAge+took, func(ctx context.Context) (string, error) {
		began := p.Clock.Now()
		message := p.attempt(ctx, q.url, q.timeout)
		p.mutex.Lock()
		shared.took = p.Clock.Since(began)
		p.mutex.Unlock()
		over := errors.Is(ctx.Err(), context.DeadlineExceeded) && wholeTime
		if message != "" && ctx.Err() != nil && !over {
			return message, errCutShort
		}
		return message, nil
	})
	if err != nil && message == "" {
		return doesNotAnswer // somebody else asks at present
	}
	return message
}

// errCutShort means that there was no time to ask properly.
var errCutShort = errors.New("there was no time for an answer")

// about returns what is known of a question, and how long the answer took, and forgets those that nobody asks any more.
func (p *Prober) about(q question, now time.Time) (*answer, time.Duration) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for other, a := range p.answers {
		if now.Sub(a.wanted).Abs() >= memory {
			delete(p.answers, other)
		}
	}
	a := p.answers[q]
	if a == nil {
		if p.answers == nil {
			p.answers = map[question]*answer{}
		}
		a = &answer{}
		p.answers[q] = a
	}
	a.wanted = now
	return a, a.took
}

// presentable returns a URL without what may be a secret: query, fragment, user and password.
func presentable(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "(not a URL)" // it cannot be told where the secrets are
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}
