// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package monitoring_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/appuio/managed-upgrade-operator/pkg/monitoring"
)

var noon = time.Date(2026, time.November, 24, 12, 0, 0, 0, time.UTC)

// server answers every request alike, and keeps the requests.
type server struct {
	*httptest.Server
	mutex    sync.Mutex
	answer   http.HandlerFunc
	requests []request
}

// request is what is kept of a request.
type request struct {
	method, path, authorization string
	form                        map[string][]string
}

func serve(t testing.TB, answer http.HandlerFunc) *server {
	t.Helper()
	s := &server{answer: answer}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	s.mutex.Lock()
	s.requests = append(s.requests, request{r.Method, r.URL.Path, r.Header.Get("Authorization"), r.Form})
	answer := s.answer
	s.mutex.Unlock()
	answer(w, r)
}

// seen are the requests so far.
func (s *server) seen() []request {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return append([]request(nil), s.requests...)
}

// reply answers with a status and a body.
func reply(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// vector is a response of Prometheus with these samples, as JSON.
func vector(samples string) http.HandlerFunc {
	return reply(http.StatusOK, `{"status":"success","data":{"resultType":"vector","result":[`+samples+`]}}`)
}

func newClient(t testing.TB, o monitoring.Options) *monitoring.Client {
	t.Helper()
	c, err := monitoring.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
