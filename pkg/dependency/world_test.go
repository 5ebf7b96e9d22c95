// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package dependency_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

var noon = time.Date(2026, time.November, 24, 12, 0, 0, 0, time.UTC)

// environmentProxy is the proxy that the environment of these tests names. Nobody but a proxy can reach the host dependency.example.
var environmentProxy *proxy

// TestMain sets the proxy of the environment, which a process reads once. Requests to the loopback device are not for it.
func TestMain(m *testing.M) {
	environmentProxy = newProxy()
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		_ = os.Setenv(name, environmentProxy.URL)
	}
	_ = os.Unsetenv("NO_PROXY")
	_ = os.Unsetenv("no_proxy")
	code := m.Run()
	environmentProxy.Close()
	os.Exit(code)
}

// proxy answers for every host, and refuses to tunnel.
type proxy struct {
	*httptest.Server
	mutex sync.Mutex
	hosts []string
}

func newProxy() *proxy {
	p := &proxy{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		p.hosts = append(p.hosts, r.Method+" "+r.Host)
		if r.Method == http.MethodConnect {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	return p
}

func (p *proxy) asked() []string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.hosts
}

// instant is a clock whose timers fire at once. It notes for how long they were set.
type instant struct {
	clock.RealClock
	mutex  sync.Mutex
	waited []time.Duration
}

func (c *instant) NewTimer(d time.Duration) clock.Timer {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.waited = append(c.waited, d)
	fake := clocktesting.NewFakeClock(noon)
	timer := fake.NewTimer(d)
	fake.Step(d)
	return timer
}

// script is a server that answers each request with the next of its handlers, and any further one with the last.
type script struct {
	*httptest.Server
	asked atomic.Int64
}

func newScript(t *testing.T, start func(http.Handler) *httptest.Server, handlers ...http.HandlerFunc) *script {
	s := &script{}
	s.Server = start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := int(s.asked.Add(1)) - 1
		handlers[min(n, len(handlers)-1)](w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func to(address string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", address)
		w.WriteHeader(http.StatusFound)
	}
}

// hang answers nothing until whoever asks goes away.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// hangUp closes the connection instead of an answer.
func hangUp(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(fmt.Sprintf("take the connection over: %v", err))
	}
	_ = conn.Close()
}
