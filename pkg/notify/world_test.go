// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// marker is in everything that is secret.
const marker = "s3cr3t"

// request is what a receiver got.
type request struct {
	protocol, method, path string
	header                 http.Header
	body                   []byte
}

// hook is a receiver. What answer does is its answer; without it the answer is 204.
type hook struct {
	*httptest.Server
	mutex    sync.Mutex
	requests []request
	answer   http.HandlerFunc
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	h.mutex.Lock()
	h.requests = append(h.requests, request{r.Proto, r.Method, r.RequestURI, r.Header, body})
	answer := h.answer
	h.mutex.Unlock()
	if answer == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	answer(w, r)
}

func (h *hook) received() []request {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.requests
}

// ca returns what a sender has to trust to reach the receiver.
func (h *hook) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw})
}

func plainHook(t *testing.T, answer http.HandlerFunc) *hook {
	h := &hook{answer: answer}
	h.Server = httptest.NewServer(h)
	t.Cleanup(h.Close)
	return h
}

func tlsHook(t *testing.T, answer http.HandlerFunc, settings ...func(*httptest.Server)) *hook {
	h := &hook{answer: answer}
	h.Server = httptest.NewUnstartedServer(h)
	h.Config.ErrorLog = log.New(io.Discard, "", 0) // failed handshakes are what is tested
	for _, set := range settings {
		set(h.Server)
	}
	h.StartTLS()
	t.Cleanup(h.Close)
	return h
}

// answering answers with a status, and with headers in pairs. The body is secret.
func answering(code int, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, marker)
	}
}

// rawServer answers each connection with those bytes, without looking at what it is sent.
func rawServer(t *testing.T, response string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = connection.Read(make([]byte, 1<<16))
			_, _ = io.WriteString(connection, response)
			_ = connection.Close()
		}
	}()
	return "http://" + listener.Addr().String()
}

// closedServer returns the address of nobody.
func closedServer(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(nil)
	server.Close()
	return server.URL
}

// withCertificate makes the server show a certificate of its own making that was valid until then.
func withCertificate(t *testing.T, until time.Time) func(*httptest.Server) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: until.Add(-time.Hour), NotAfter: until, IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return func(s *httptest.Server) {
		s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
	}
}

func newSender() *Sender { return NewSender(clocktesting.NewFakePassiveClock(now)) }

// secretEvent is an event with a secret in it.
func secretEvent(t *testing.T) event.Event {
	t.Helper()
	e, err := NewEvent(newJob(everything), &v1beta1.Notice{
		Sequence: 1, Type: v1beta1.NotificationJobFailed, Time: metav1.NewTime(now), Message: marker,
	}, "c0ffee")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// secretly adds a path and a query that are secret to an URL.
func secretly(url string) string { return url + "/" + marker + "?token=" + marker }

// expectFailure fails unless err is a Failure of those words that gives no secret away.
func expectFailure(t *testing.T, err error, want string) {
	t.Helper()
	var failure *Failure
	if !errors.As(err, &failure) {
		t.Fatalf("got error %v (%T), want a failure: %s", err, err, want)
	}
	if failure.Error() != want {
		t.Errorf("the failure is %q, want %q", failure.Error(), want)
	}
	for _, secret := range []string{marker, "127.0.0.1", "localhost", "://"} {
		if secret == "://" && strings.Contains(want, "begin with http://") {
			continue
		}
		if strings.Contains(failure.Error(), secret) {
			t.Errorf("the failure %q has %q in it", failure.Error(), secret)
		}
	}
}

// paths lists what was asked for, a line each.
func paths(requests []request) string {
	var list bytes.Buffer
	for _, r := range requests {
		list.WriteString(r.method + " " + r.path + "\n")
	}
	return list.String()
}
