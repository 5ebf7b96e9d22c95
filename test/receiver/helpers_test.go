// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"

	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/appuio/managed-upgrade-operator/test/receiver"
)

// patience is how long a test waits for what takes milliseconds.
const patience = 30 * time.Second

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// start returns a receiver that lives as long as the test.
func start(t *testing.T, o receiver.Options) *receiver.Receiver {
	t.Helper()
	r, err := receiver.Start(o)
	must(t, err)
	t.Cleanup(r.Close)
	return r
}

// sender sends events to a receiver.
type sender struct {
	t      *testing.T
	url    string
	client *http.Client
	header http.Header
}

// to returns a sender that trusts the receiver and follows no redirects.
func to(t *testing.T, r *receiver.Receiver) *sender {
	t.Helper()
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(r.CA())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}
	t.Cleanup(transport.CloseIdleConnections)
	return &sender{t: t, url: r.URL(), header: http.Header{}, client: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// answer is what a sender gets.
type answer struct {
	status int
	header http.Header
}

// send sends an event of that id.
func (s *sender) send(ctx context.Context, id string) (answer, error) {
	s.t.Helper()
	e := event.New()
	e.SetID(id)
	e.SetType("io.example.test")
	e.SetSource("/tests")
	must(s.t, e.SetData(event.ApplicationJSON, map[string]string{"id": id}))
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, nil)
	must(s.t, err)
	must(s.t, cehttp.WriteRequest(binding.WithForceStructured(ctx), (*binding.EventMessage)(&e), request))
	for name, values := range s.header {
		request.Header[name] = values
	}
	return s.do(request)
}

// post sends any body.
func (s *sender) post(method, contentType, body string) (answer, error) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.url, strings.NewReader(body))
	must(s.t, err)
	request.Header = s.header.Clone()
	request.Header.Set("Content-Type", contentType)
	return s.do(request)
}

func (s *sender) do(request *http.Request) (answer, error) {
	response, err := s.client.Do(request)
	if err != nil {
		return answer{}, err
	}
	must(s.t, response.Body.Close())
	return answer{status: response.StatusCode, header: response.Header}, nil
}

// answered checks the status with which an event is answered.
func (s *sender) answered(id string, want int) answer {
	s.t.Helper()
	got, err := s.send(s.t.Context(), id)
	must(s.t, err)
	if got.status != want {
		s.t.Errorf("event %s is answered %d, want %d", id, got.status, want)
	}
	return got
}

// sent is how a request that was sent in the background has ended.
type sent struct {
	answer
	err error
}

// sendAside sends an event in the background.
func (s *sender) sendAside(ctx context.Context, id string) <-chan sent {
	done := make(chan sent, 1)
	go func() {
		got, err := s.send(ctx, id)
		done <- sent{got, err}
	}()
	return done
}

// ids wants exactly the events of these ids, in this order.
func ids(want ...string) func([]receiver.Received) error {
	return func(events []receiver.Received) error {
		var got []string
		for _, e := range events {
			got = append(got, e.Event.ID())
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			return fmt.Errorf("the events are %q, want %q", got, want)
		}
		return nil
	}
}

// has checks which events have been accepted, now.
func has(t *testing.T, r *receiver.Receiver, want ...string) {
	t.Helper()
	if err := ids(want...)(r.Events()); err != nil {
		t.Error(err)
	}
}
