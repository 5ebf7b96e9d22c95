// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Proxy stands between a client and the API server. It forwards every request with the credentials of the client,
// streams watches, and injects faults into writes.
type Proxy struct {
	server *httptest.Server

	mutex  sync.Mutex
	writes []*Write
	choose func(number int, w Write) *Fault
}

// Write is a request that changes something. Those about Leases and Events are none, because nobody depends on their
// order, and dry runs change nothing.
type Write struct {
	Method string
	// Path of the object, without the query.
	Path string
	Body string
	// Code is what the API server answered; 0 while it has not, and if it was not asked.
	Code int
}

// Fault is what goes wrong with a write.
type Fault struct {
	// Commit lets the API server carry the write out first. Without it the API server never sees the write.
	Commit bool
	// Then is called before the client gets its answer. May be nil.
	Then func()
	// Code is the HTTP status of the client's answer; 0 cuts its connection.
	Code int
}

// StartProxy starts a proxy in front of the API server of a configuration, of which only the address and the
// authority are used. It runs until Stop.
func StartProxy(upstream *rest.Config) (*Proxy, error) {
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(upstream))
	if err != nil {
		return nil, fmt.Errorf("start a proxy: %w", err)
	}
	target, err := url.Parse(upstream.Host)
	if err != nil {
		return nil, fmt.Errorf("start a proxy: %w", err)
	}
	p := &Proxy{}
	p.server = httptest.NewUnstartedServer(p.interpose(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // watches
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:      silent,
	}))
	p.server.EnableHTTP2 = true
	p.server.Config.ErrorLog = silent
	p.server.StartTLS()
	return p, nil
}

// silent drops what the server has to say of cut connections: that is its work.
var silent = log.New(io.Discard, "", 0)

// URL is the address of the proxy.
func (p *Proxy) URL() string { return p.server.URL }

// CA is the authority that a client of the proxy has to trust, in PEM.
func (p *Proxy) CA() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
}

// Stop ends the proxy and cuts all connections.
func (p *Proxy) Stop() {
	p.server.CloseClientConnections()
	p.server.Close()
}

// Interpose has choose decide about each write from now on. It gets the number of the write, counted from this call
// and from 1, and returns what goes wrong with it, nil for nothing. It is called for one write at a time. A choose that
// is nil lets everything pass. The writes seen so far are forgotten.
func (p *Proxy) Interpose(choose func(number int, w Write) *Fault) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.choose, p.writes = choose, nil
}

// Writes returns the writes since the last Interpose, in the order in which they came.
func (p *Proxy) Writes() []Write {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	writes := make([]Write, 0, len(p.writes))
	for _, w := range p.writes {
		writes = append(writes, *w)
	}
	return writes
}

func (p *Proxy) interpose(forward http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isWrite(r) {
			forward.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler) // the client is gone
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		answered, fault := p.note(&Write{Method: r.Method, Path: r.URL.Path, Body: string(body)})
		if fault == nil {
			forward.ServeHTTP(&statusRecorder{w, answered}, r)
			return
		}
		fault.apply(w, r, forward, answered)
	})
}

func isWrite(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodOptions &&
		!strings.Contains(r.URL.Path, "/leases") && !strings.Contains(r.URL.Path, "/events") && !r.URL.Query().Has("dryRun")
}

// note records a write and returns where to tell of its answer, and the fault chosen for it.
func (p *Proxy) note(w *Write) (answered func(code int), fault *Fault) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.writes = append(p.writes, w)
	if p.choose != nil {
		fault = p.choose(len(p.writes), *w)
	}
	return func(code int) {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		w.Code = code
	}, fault
}

func (f *Fault) apply(w http.ResponseWriter, r *http.Request, forward http.Handler, answered func(int)) {
	if f.Commit {
		answer := httptest.NewRecorder()
		forward.ServeHTTP(answer, r)
		answered(answer.Code)
	}
	if f.Then != nil {
		f.Then()
	}
	if f.Code == 0 {
		panic(http.ErrAbortHandler)
	}
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure,
		Reason:   reasonOf(f.Code),
		Message:  "a fault was injected",
		Code:     int32(f.Code),
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.Code)
	_ = json.NewEncoder(w).Encode(status) // fails if the client is gone
}

func reasonOf(code int) metav1.StatusReason {
	switch code {
	case http.StatusConflict:
		return metav1.StatusReasonConflict
	case http.StatusGatewayTimeout:
		return metav1.StatusReasonTimeout
	case http.StatusTooManyRequests:
		return metav1.StatusReasonTooManyRequests
	case http.StatusServiceUnavailable:
		return metav1.StatusReasonServiceUnavailable
	default:
		return metav1.StatusReasonInternalError
	}
}

// statusRecorder tells the status of an answer that passes.
type statusRecorder struct {
	http.ResponseWriter
	answered func(code int)
}

func (s *statusRecorder) WriteHeader(code int) {
	s.answered(code)
	s.ResponseWriter.WriteHeader(code)
}

// Unwrap gives http.ResponseController the way to flush.
func (s *statusRecorder) Unwrap() http.ResponseWriter { return s.ResponseWriter }
