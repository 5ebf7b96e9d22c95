// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/binding/format"
	"github.com/cloudevents/sdk-go/v2/event"
)

func TestSendDeliversTheEvent(t *testing.T) {
	plain := plainHook(t, nil)
	secure := tlsHook(t, answering(http.StatusOK))
	second := tlsHook(t, answering(http.StatusAccepted), func(s *httptest.Server) { s.EnableHTTP2 = true })
	headers := map[string]string{"authorization": "Bearer " + marker + "\n", "X-Tenant": " a,b "}
	for _, tc := range []struct {
		reason    string
		hook      *hook
		target    Target
		userAgent string
		protocol  string
	}{
		{"http", plain, Target{URL: secretly(plain.URL)}, "managed-upgrade-operator", "HTTP/1.1"},
		{"https", secure, Target{URL: secretly(secure.URL), Headers: headers, CA: secure.ca()}, "managed-upgrade-operator", "HTTP/1.1"},
		{"HTTP/2", second, Target{URL: secretly(second.URL), Headers: headers, CA: second.ca()}, "managed-upgrade-operator", "HTTP/2.0"},
		{"an URL from a file with a line break", plain, Target{URL: secretly(plain.URL) + "\n"}, "managed-upgrade-operator", "HTTP/1.1"},
		{"a user agent of one's own", secure, Target{URL: secretly(secure.URL), Headers: map[string]string{"User-Agent": "me"}, CA: secure.ca()}, "me", "HTTP/1.1"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			want := secretEvent(t)
			if err := newSender().Send(t.Context(), tc.target, want); err != nil {
				t.Fatal(err)
			}
			requests := tc.hook.received()
			got := requests[len(requests)-1]
			if got.protocol != tc.protocol || got.method != http.MethodPost || got.path != "/"+marker+"?token="+marker {
				t.Errorf("the receiver got %s %s by %s", got.method, got.path, got.protocol)
			}
			if mediaType := got.header.Get("Content-Type"); mediaType != "application/cloudevents+json" {
				t.Errorf("the content type is %q", mediaType)
			}
			if agent := got.header.Get("User-Agent"); agent != tc.userAgent {
				t.Errorf("the user agent is %q, want %q", agent, tc.userAgent)
			}
			for name, value := range tc.target.Headers {
				if got.header.Get(name) != strings.TrimSpace(value) {
					t.Errorf("header %s is %q, want %q", name, got.header.Get(name), value)
				}
			}
			var read event.Event
			if err := format.JSON.Unmarshal(got.body, &read); err != nil {
				t.Fatal(err)
			}
			if read.String() != want.String() {
				t.Errorf("the receiver got\n%s\nwant\n%s", read, want)
			}
		})
	}
}

func TestSendJudgesTheStatus(t *testing.T) {
	in := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	for _, tc := range []struct {
		code       int
		retryAfter string
		want       string // empty for a success
		wait       time.Duration
		denied     bool
	}{
		{code: 200},
		{code: 202},
		{code: 299},
		{code: 204, retryAfter: "60"},
		{code: 304, want: "the receiver answers 304 Not Modified"},
		{code: 307, want: "the receiver answers 307 Temporary Redirect"}, // to nowhere
		{code: 400, want: "the receiver answers 400 Bad Request"},
		{code: 401, want: "the receiver answers 401 Unauthorized", denied: true},
		{code: 403, want: "the receiver answers 403 Forbidden", denied: true},
		{code: 404, want: "the receiver answers 404 Not Found"},
		{code: 429, want: "the receiver answers 429 Too Many Requests"},
		{code: 429, retryAfter: "60", want: "the receiver answers 429 Too Many Requests", wait: time.Minute},
		{code: 429, retryAfter: in(90 * time.Second), want: "the receiver answers 429 Too Many Requests", wait: 90 * time.Second},
		{code: 429, retryAfter: in(-time.Hour), want: "the receiver answers 429 Too Many Requests"},
		{code: 429, retryAfter: in(1000 * time.Hour), want: "the receiver answers 429 Too Many Requests", wait: MaxRetryAfter},
		{code: 500, retryAfter: "60", want: "the receiver answers 500 Internal Server Error"},
		{code: 503, retryAfter: "86400", want: "the receiver answers 503 Service Unavailable", wait: MaxRetryAfter},
		{code: 503, retryAfter: "9223372036854775807", want: "the receiver answers 503 Service Unavailable", wait: MaxRetryAfter},
		{code: 503, retryAfter: "-5", want: "the receiver answers 503 Service Unavailable"},
		{code: 503, retryAfter: "soon " + marker, want: "the receiver answers 503 Service Unavailable"},
		{code: 599, want: "the receiver answers 599"},
	} {
		t.Run(fmt.Sprintf("%d, Retry-After %s", tc.code, tc.retryAfter), func(t *testing.T) {
			h := plainHook(t, func(w http.ResponseWriter, r *http.Request) {
				if tc.retryAfter != "" {
					w.Header().Set("Retry-After", tc.retryAfter)
				}
				answering(tc.code)(w, r)
			})
			err := newSender().Send(t.Context(), Target{URL: secretly(h.URL)}, secretEvent(t))
			if tc.want == "" {
				if err != nil {
					t.Errorf("got error %v", err)
				}
				return
			}
			expectFailure(t, err, tc.want)
			var failure *Failure
			if errors.As(err, &failure); failure.RetryAfter != tc.wait || failure.Denied != tc.denied {
				t.Errorf("the failure says wait %s, denied %t, want %s, %t", failure.RetryAfter, failure.Denied, tc.wait, tc.denied)
			}
			if got := len(h.received()); got != 1 {
				t.Errorf("the receiver got %d requests, want one for an attempt", got)
			}
		})
	}
}

func TestSendExplainsConnections(t *testing.T) {
	hanging := plainHook(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	secure := tlsHook(t, nil)
	expired := tlsHook(t, nil, withCertificate(t, time.Now().Add(-time.Minute)))
	old := tlsHook(t, nil, func(s *httptest.Server) {
		s.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	})
	plain := plainHook(t, nil)
	_, securePort, _ := net.SplitHostPort(secure.Listener.Addr().String())
	for _, tc := range []struct {
		reason string
		target Target
		want   string
	}{
		{"nobody listens", Target{URL: closedServer(t)}, "connection refused"},
		{"it hangs", Target{URL: hanging.URL}, "no answer within 100ms"},
		{"it hangs up", Target{URL: rawServer(t, "")}, "connection closed"},
		{"it hangs up in its answer", Target{URL: rawServer(t, "HTTP/1.1 200")}, "connection closed"},
		{"it speaks something else", Target{URL: rawServer(t, marker+" ready\r\n")}, "what answers does not speak HTTP"},
		{"it answers nonsense", Target{URL: rawServer(t, "HTTP/1.1 "+marker+"\r\n\r\n")}, "what answers does not speak HTTP"},
		{"its headers do not end", Target{URL: rawServer(t, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat(marker, 20000)+"\r\n\r\n")}, "the request failed"},
		{"it speaks no TLS", Target{URL: strings.Replace(plain.URL, "http:", "https:", 1)}, "what answers does not speak TLS"},
		{"its TLS is too old", Target{URL: old.URL, CA: old.ca()}, "the receiver refuses the connection: tls: protocol version not supported"},
		{"the system does not trust it", Target{URL: secure.URL}, "the receiver's certificate is not trusted: it is signed by an unknown authority"},
		{"another CA", Target{URL: secure.URL, CA: expired.ca()}, "the receiver's certificate is not trusted: it is signed by an unknown authority"},
		{"another name", Target{URL: "https://localhost:" + securePort, CA: secure.ca()}, "the receiver's certificate is not trusted: it is for another name"},
		{"expired", Target{URL: expired.URL, CA: expired.ca()}, "the receiver's certificate is not trusted: it has expired or is not yet valid"},
		{"not a CA", Target{URL: secure.URL, CA: []byte(marker)}, "there is no certificate in what caFrom names: it must be in PEM"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			s := newSender()
			s.timeout = 10 * time.Second
			if strings.HasPrefix(tc.want, "no answer") {
				s.timeout = 100 * time.Millisecond
			}
			tc.target.URL = secretly(tc.target.URL)
			err := s.Send(t.Context(), tc.target, secretEvent(t))
			again := s.Send(t.Context(), tc.target, secretEvent(t))
			expectFailure(t, err, tc.want)
			expectFailure(t, again, tc.want)
		})
	}
}

// Errors that cannot be had from a server on this machine.
func TestExplain(t *testing.T) {
	dial := func(err error) error {
		return &url.Error{Op: "Post", URL: "https://" + marker, Err: &net.OpError{Op: "dial", Net: "tcp", Err: err}}
	}
	for _, tc := range []struct {
		reason string
		err    error
		want   string
	}{
		{"no such host", dial(&net.DNSError{Err: "no such host", Name: marker, Server: marker, IsNotFound: true}), "no such host"},
		{"name servers away", dial(&net.DNSError{Err: "i/o timeout", Name: marker, Server: marker, IsTimeout: true}), "the name of the host cannot be looked up"},
		{"a connection that takes too long", dial(context.DeadlineExceeded), "no answer within 10s"},
		{"something new", dial(errors.New(marker)), "the request failed"},
		{"a server that goes away", dial(errors.New(`http2: server sent GOAWAY and closed the connection; debug="` + marker + `"`)), "connection closed"},
		{"a handshake that goes wrong", dial(errors.New("tls: server sent " + marker)), "the TLS handshake failed"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			expectFailure(t, explain(tc.err, Timeout), tc.want)
		})
	}
}

func TestSendUsesTheProxy(t *testing.T) {
	secure := tlsHook(t, nil)
	plain := plainHook(t, nil)
	refusing := rawServer(t, "HTTP/1.1 407 "+marker+"\r\n\r\n")
	forwarding := plainHook(t, nil)
	for _, tc := range []struct {
		reason, proxy string
		target        Target
		want          string
	}{
		{"it is away", closedServer(t), Target{URL: secure.URL, CA: secure.ca()}, "the proxy cannot be used: connection refused"},
		{"it refuses", refusing, Target{URL: secure.URL, CA: secure.ca()}, "the proxy answers 407 Proxy Authentication Required"},
		{"it forwards", forwarding.URL, Target{URL: plain.URL}, ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			s := newSender()
			s.proxy = func(*http.Request) (*url.URL, error) { return url.Parse(tc.proxy) }
			tc.target.URL = secretly(tc.target.URL)
			err := s.Send(t.Context(), tc.target, secretEvent(t))
			if tc.want != "" {
				expectFailure(t, err, tc.want)
			} else if err != nil || len(forwarding.received()) != 1 {
				t.Errorf("got error %v, and the proxy got %d requests, want 1", err, len(forwarding.received()))
			}
		})
	}
	if len(secure.received())+len(plain.received()) > 0 {
		t.Error("a receiver was reached past the proxy")
	}
}

// What a receiver says beyond its status costs neither memory nor the connection, unless it says a lot.
func TestSendDoesNotReadMuch(t *testing.T) {
	var written atomic.Int64
	endless := plainHook(t, func(w http.ResponseWriter, _ *http.Request) {
		chunk := bytes.Repeat([]byte(marker), 1000)
		for {
			n, err := w.Write(chunk)
			if written.Add(int64(n)); err != nil {
				return
			}
		}
	})
	if err := newSender().Send(t.Context(), Target{URL: endless.URL}, secretEvent(t)); err != nil {
		t.Error(err)
	}
	endless.Close() // waits for the handler
	if got := written.Load(); got > 64<<20 {
		t.Errorf("the receiver could write %d bytes", got)
	}
}

func TestSendKeepsConnections(t *testing.T) {
	var connections atomic.Int32
	h := tlsHook(t, answering(http.StatusOK), func(s *httptest.Server) {
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				connections.Add(1)
			}
		}
	})
	s := newSender()
	for range 5 {
		if err := s.Send(t.Context(), Target{URL: h.URL, CA: h.ca()}, secretEvent(t)); err != nil {
			t.Fatal(err)
		}
	}
	if got := connections.Load(); got != 1 {
		t.Errorf("five events took %d connections, want 1", got)
	}
}

func TestSendKeepsFewClients(t *testing.T) {
	h := tlsHook(t, nil)
	s := newSender()
	send := func(ca []byte) {
		t.Helper()
		if err := s.Send(t.Context(), Target{URL: h.URL, CA: ca}, secretEvent(t)); err != nil {
			t.Fatal(err)
		}
	}
	inUse := append([]byte("# in use all the time\n"), h.ca()...)
	send(inUse)
	first := s.clients[string(inUse)]
	for i := range 3 * maxClients {
		send(append(bytes.Repeat([]byte("\n"), i), h.ca()...))
		send(inUse)
	}
	if got := len(s.clients); got != maxClients {
		t.Errorf("%d clients are kept, want %d", got, maxClients)
	}
	newest := append(bytes.Repeat([]byte("\n"), 3*maxClients-1), h.ca()...)
	if s.clients[string(newest)] == nil || s.clients[string(inUse)] != first {
		t.Error("the newest client was dropped, or the one that is in use all the time")
	}
}

// The end of the process, or of a pass, is not the receiver's fault.
func TestSendToldToStop(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	h := plainHook(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	err := newSender().Send(ctx, Target{URL: secretly(h.URL)}, secretEvent(t))
	var failure *Failure
	if !errors.Is(err, context.Canceled) || errors.As(err, &failure) {
		t.Errorf("got error %v (%T), want that of the context", err, err)
	}
}
