// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/appuio/managed-upgrade-operator/test/programs"
)

// Gateway stands in front of Prometheus or Alertmanager as kube-rbac-proxy does in
// OpenShift: it serves by TLS and lets through who has a bearer token with the right
// to. It can also misbehave. Its methods may be called from any goroutine.
type Gateway struct {
	backend      *httputil.ReverseProxy
	port         *programs.Port
	certificates *gatewayCertificates

	mu          sync.Mutex     // guards what follows
	server      *gatewayServer // nil while it is stopped
	closed      bool
	certificate Certificate
	answer      http.Handler // instead of the backend and the check of tokens, unless nil
	tokens      map[string]bool
	review      Review // instead of the tokens, unless nil
	requests    map[string]int

	closeOnce sync.Once
	closeErr  error
}

// Review decides about a request, as the authentication and the authorization of the cluster do: it returns 200 to let it
// through, or the status of the refusal. The token is empty for a request without one.
type Review func(token string, request *http.Request) (status int)

// gatewayServer is the server from Gateway.Start to Gateway.Stop.
type gatewayServer struct {
	http.Server
	ended chan struct{} // closed once it no longer listens
}

// StartGateway serves what is at the URL backend, at a loopback port, until Close is called
// or ctx ends. It lets nobody through before SetToken.
func StartGateway(ctx context.Context, backend string) (*Gateway, error) {
	target, err := url.Parse(backend)
	if err != nil {
		return nil, fmt.Errorf("start the gateway: %w", err)
	}
	certificates, err := newGatewayCertificates()
	if err != nil {
		return nil, fmt.Errorf("start the gateway: %w", err)
	}
	port, err := programs.LeasePort()
	if err != nil {
		return nil, fmt.Errorf("start the gateway: %w", err)
	}
	g := &Gateway{
		// No connection is kept: the backend may have been restarted since.
		backend:      &httputil.ReverseProxy{Transport: &http.Transport{DisableKeepAlives: true}, ErrorLog: silent},
		port:         port,
		certificates: certificates,
		tokens:       map[string]bool{},
		requests:     map[string]int{},
	}
	g.backend.Rewrite = func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Header.Del("Authorization") // it is for the gateway
	}
	if err := g.Start(ctx); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	context.AfterFunc(ctx, func() { _ = g.Close() })
	return g, nil
}

// silent drops what the servers would log of clients that hang up or trust nobody: tests
// make them do so.
var silent = log.New(io.Discard, "", 0)

// Start listens again after Stop, at the same address. It is an error when it listens.
func (g *Gateway) Start(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed:
		return errors.New("start the gateway: it has been closed")
	case g.server != nil:
		return errors.New("start the gateway: it listens already")
	}
	return g.listen(ctx)
}

// listen starts a server. The caller holds the lock.
func (g *Gateway) listen(ctx context.Context) error {
	listener, err := g.port.Listen(ctx)
	if err != nil {
		return fmt.Errorf("start the gateway: %w", err)
	}
	server := &gatewayServer{
		Server: http.Server{
			Handler:           http.HandlerFunc(g.serve),
			TLSConfig:         g.certificates.serverConfig(g.certificate),
			ReadHeaderTimeout: time.Minute,
			ErrorLog:          silent,
		},
		ended: make(chan struct{}),
	}
	g.server = server
	go func() {
		defer close(server.ended)
		_ = server.ServeTLS(lingeringListener{listener}, "", "") // until stop
	}()
	return nil
}

// Stop ends all connections, and refuses new ones until Start. It does nothing when the
// gateway does not listen.
func (g *Gateway) Stop() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stop()
}

func (g *Gateway) stop() error {
	if g.server == nil {
		return nil
	}
	server := g.server
	g.server = nil
	if err := server.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("stop the gateway: %w", err)
	}
	<-server.ended // from now on connections are refused
	return nil
}

// Close ends the gateway for good. Further calls do nothing and return the same result.
func (g *Gateway) Close() error {
	g.closeOnce.Do(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.closed = true
		g.closeErr = errors.Join(g.stop(), g.port.Release())
	})
	return g.closeErr
}

// URL is the address, which stays the same for good.
func (g *Gateway) URL() string {
	return "https://" + g.port.Address()
}

// CA is the PEM of the authority that clients have to trust.
func (g *Gateway) CA() []byte {
	return g.certificates.authority.Bundle()
}

// SetCertificate chooses the certificate of the gateway. One that listens is restarted with
// it, so that no client goes on with a connection that it has.
func (g *Gateway) SetCertificate(ctx context.Context, certificate Certificate) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.certificate = certificate
	if g.server == nil {
		return nil
	}
	if err := g.stop(); err != nil {
		return err
	}
	return g.listen(ctx)
}

// SetToken makes this the only token that is let through. Any other is answered with 401.
func (g *Gateway) SetToken(token string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tokens = map[string]bool{token: true}
}

// ForbidToken makes this the only token that is known, but it is the one of somebody who may
// not: it is answered with 403, any other with 401.
func (g *Gateway) ForbidToken(token string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tokens = map[string]bool{token: false}
}

// SetReview has the review decide about all requests, whatever tokens were set. Nil has the tokens decide again.
func (g *Gateway) SetReview(review Review) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.review = review
}

// SetAnswer has all requests answered like this, whatever their token: see AnswerStatus,
// AnswerBody and Hang. Nil lets them through to the backend again.
func (g *Gateway) SetAnswer(answer http.Handler) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answer = answer
}

// Requests is how many requests to the path have come in, whatever came of them.
func (g *Gateway) Requests(path string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.requests[path]
}

func (g *Gateway) serve(w http.ResponseWriter, r *http.Request) {
	g.handler(r).ServeHTTP(w, r)
}

// handler counts the request and decides what becomes of it.
func (g *Gateway) handler(r *http.Request) http.Handler {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.requests[r.URL.Path]++
	if g.answer != nil {
		return g.answer
	}
	if g.review != nil {
		return g.reviewed(g.review)
	}
	token, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	allowed, known := g.tokens[token]
	switch {
	case !isBearer || !known:
		return AnswerStatus(http.StatusUnauthorized)
	case !allowed:
		return AnswerStatus(http.StatusForbidden)
	default:
		return g.backend
	}
}

// reviewed is the backend for the requests that the review lets through. It asks without the lock: a review takes its time.
func (g *Gateway) reviewed(review Review) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !isBearer {
			token = ""
		}
		if status := review(token, r); status != http.StatusOK {
			AnswerStatus(status).ServeHTTP(w, r)
			return
		}
		g.backend.ServeHTTP(w, r)
	})
}

// AnswerStatus answers with the status and its name.
func AnswerStatus(status int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, http.StatusText(status), status)
	})
}

// AnswerBody answers with the status and the body.
func AnswerBody(status int, contentType string, body []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = w.Write(body) // a client that hangs up has its reasons
	})
}

// Hang answers nothing, until the client gives up or the gateway stops.
func Hang() http.Handler {
	return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then is it seen that the client hangs up
		<-r.Context().Done()
		panic(http.ErrAbortHandler) // no answer is given even now
	})
}
