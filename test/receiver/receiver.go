// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/appuio/managed-upgrade-operator/test/programs"
)

// Options of a receiver.
type Options struct {
	// TLS serves by https, with a certificate of the authority in CA.
	TLS bool
	// Headers must come with every request, with these values; any other
	// request is answered with 401.
	Headers map[string]string
}

// Received is an event that was accepted.
type Received struct {
	// Event that was sent.
	Event event.Event
	// Time is when it had arrived.
	Time time.Time
	// Header of the request.
	Header http.Header
}

// Receiver takes events. Its methods may be called from any goroutine.
type Receiver struct {
	headers map[string]string
	port    *programs.Port
	ca      []byte
	tls     *tls.Config // nil without TLS

	mu       sync.Mutex // guards what follows
	server   *server    // nil while it is stopped
	closed   bool
	fault    fault
	retry    time.Duration
	released chan struct{} // closed and replaced by Release
	changed  chan struct{} // closed and replaced by every request
	attempts int
	events   []Received
	refusal  string // the last request that was no event for us
}

// server is what listens from Start or Restart to Stop.
type server struct {
	http.Server
	ended chan struct{} // closed once it no longer listens
}

// Start serves at a loopback port until Close.
func Start(o Options) (*Receiver, error) {
	r := &Receiver{headers: o.Headers, released: make(chan struct{}), changed: make(chan struct{})}
	var err error
	if o.TLS {
		if r.ca, r.tls, err = newCertificate(); err != nil {
			return nil, fmt.Errorf("start the receiver: %w", err)
		}
	}
	if r.port, err = programs.LeasePort(); err != nil {
		return nil, fmt.Errorf("start the receiver: %w", err)
	}
	if err := r.Restart(); err != nil {
		return nil, errors.Join(err, r.port.Release())
	}
	return r, nil
}

// silent drops what the server would log of senders that hang up or trust nobody:
// tests make them do so.
var silent = log.New(io.Discard, "", 0)

// Restart listens again after Stop, on the same port. It is an error when the
// receiver listens already, and after Close.
func (r *Receiver) Restart() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return errors.New("start the receiver: it has been closed")
	case r.server != nil:
		return errors.New("start the receiver: it listens already")
	}
	listener, err := r.port.Listen(context.Background())
	if err != nil {
		return fmt.Errorf("start the receiver: %w", err)
	}
	s := &server{
		Server: http.Server{TLSConfig: r.tls, ReadHeaderTimeout: time.Minute, ErrorLog: silent},
		ended:  make(chan struct{}),
	}
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) { r.serve(s, w, request) })
	r.server = s
	go func() {
		defer close(s.ended)
		if r.tls != nil {
			_ = s.ServeTLS(listener, "", "") // until Stop
		} else {
			_ = s.Serve(listener)
		}
	}()
	return nil
}

// Stop cuts all connections and refuses new ones until Restart. What was
// received is kept, and nothing is added to it. It does nothing while the
// receiver is stopped.
func (r *Receiver) Stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stop()
}

func (r *Receiver) stop() {
	if r.server == nil {
		return
	}
	_ = r.server.Close() // connections may have ended by themselves
	<-r.server.ended     // from now on connections are refused
	r.server = nil
}

// Close ends the receiver for good. What was received can still be read.
func (r *Receiver) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.stop()
	_ = r.port.Release() // there is nobody who could do anything about it
}

// URL is where events are sent to. It stays the same for good.
func (r *Receiver) URL() string {
	if r.tls != nil {
		return "https://" + r.port.Address()
	}
	return "http://" + r.port.Address()
}

// CA is the PEM of the authority that senders have to trust; nil without TLS.
func (r *Receiver) CA() []byte { return r.ca }

// Events returns every event that was accepted, in the order of arrival. One
// that was sent twice is there twice.
func (r *Receiver) Events() []Received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// Attempts is how many requests have come in, whatever came of them.
func (r *Receiver) Attempts() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.attempts
}

// AwaitEvents waits until check, which is called with the events so far, finds
// no fault with them. When ctx ends before, the error is what check found last.
func (r *Receiver) AwaitEvents(ctx context.Context, check func([]Received) error) error {
	return r.await(ctx, func() error { return check(r.Events()) })
}

// AwaitAttempts waits until at least so many requests have come in.
func (r *Receiver) AwaitAttempts(ctx context.Context, attempts int) error {
	return r.await(ctx, func() error {
		if n := r.Attempts(); n < attempts {
			return fmt.Errorf("%d requests have come in, want %d", n, attempts)
		}
		return nil
	})
}

// await calls check after every request until it returns nil.
func (r *Receiver) await(ctx context.Context, check func() error) error {
	for {
		r.mu.Lock()
		changed := r.changed
		r.mu.Unlock()
		problem := check()
		if problem == nil {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for events: %w: %w%s", ctx.Err(), problem, r.story())
		}
	}
}

// story tells what else came in, for the error of a wait.
func (r *Receiver) story() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := fmt.Sprintf(" (of %d requests %d were accepted", r.attempts, len(r.events))
	if r.refusal != "" {
		text += "; the last one that was refused: " + r.refusal
	}
	return text + ")"
}
