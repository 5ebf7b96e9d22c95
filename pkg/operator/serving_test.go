// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// metricsWorld is a server of metrics, with an API server that knows who may read them and which TLS the cluster allows.
type metricsWorld struct {
	t       *testing.T
	clock   *clocktesting.FakePassiveClock
	cluster client.WithWatch
	address string

	mutex sync.Mutex
	away  error // of the API server, for the TLS profile
	reads int
	log   []string
}

// sync does something while the server does not look.
func (w *metricsWorld) sync(do func()) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	do()
}

func newMetricsWorld(t *testing.T, o MetricsOptions) *metricsWorld {
	t.Helper()
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	w := &metricsWorld{t: t, clock: clocktesting.NewFakePassiveClock(time.Now()), address: freeAddress(t)}
	w.cluster = interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			var away error
			w.sync(func() {
				w.reads++
				away = w.away
			})
			if away != nil {
				return away
			}
			return c.Get(ctx, key, object, opts...)
		},
	})
	o.BindAddress = w.address
	profile := &tlsProfile{clock: w.clock, reader: w.cluster, log: funcr.New(func(_, args string) { w.sync(func() { w.log = append(w.log, args) }) }, funcr.Options{})}
	options, err := metricsServer(o, profile, w.clock)
	if err != nil {
		t.Fatal(err)
	}
	server, err := metricsserver.NewServer(options, &rest.Config{Host: serve(t, reviewer(t))}, http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error)
	go func() { stopped <- server.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			t.Errorf("the server stopped with %v", err)
		}
	})
	return w
}

// reviewer is an API server that knows the tokens of two users, of whom only prometheus may get /metrics.
func reviewer(t *testing.T) http.Handler {
	t.Helper()
	mux := http.NewServeMux()
	review := func(path string, object any, judge func()) {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			if err := json.NewDecoder(r.Body).Decode(object); err != nil {
				t.Errorf("%s: %v", path, err)
			}
			judge()
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			if err := json.NewEncoder(w).Encode(object); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		})
	}
	token, access := &authenticationv1.TokenReview{}, &authorizationv1.SubjectAccessReview{}
	review("/apis/authentication.k8s.io/v1/tokenreviews", token, func() {
		if user, ok := strings.CutPrefix(token.Spec.Token, "token-of-"); ok {
			token.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: user}}
		}
	})
	review("/apis/authorization.k8s.io/v1/subjectaccessreviews", access, func() {
		path := access.Spec.NonResourceAttributes
		access.Status.Allowed = access.Spec.User == "prometheus" && path != nil && path.Path == "/metrics" && path.Verb == "get"
	})
	return mux
}

// dial opens a connection, once somebody listens; the caller closes it.
func (w *metricsWorld) dial(config *tls.Config) (*tls.Conn, error) {
	w.t.Helper()
	config.InsecureSkipVerify = true
	for {
		conn, err := (&tls.Dialer{Config: config}).DialContext(w.t.Context(), "tcp", w.address)
		if errors.Is(err, syscall.ECONNREFUSED) {
			continue
		}
		if err != nil {
			return nil, err
		}
		w.t.Cleanup(func() { _ = conn.Close() })
		return conn.(*tls.Conn), nil
	}
}

// get asks for the metrics with a token, and returns the status and the protocol.
func (w *metricsWorld) get(path, token string) (status int, proto string) {
	w.t.Helper()
	if _, err := w.dial(&tls.Config{}); err != nil {
		w.t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, "https://"+w.address+path, http.NoBody)
	if err != nil {
		w.t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		w.t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode, response.Proto
}

func TestMetricsAreForWhomTheAPIServerLets(t *testing.T) {
	w := newMetricsWorld(t, MetricsOptions{Secure: true})
	for _, tc := range []struct {
		reason, token string
		want          int
	}{
		{"nobody", "", http.StatusUnauthorized},
		{"somebody unknown", "guessed", http.StatusInternalServerError}, // that is how the filter puts it
		{"somebody who may not", "token-of-tenant", http.StatusForbidden},
		{"Prometheus", "token-of-prometheus", http.StatusOK},
	} {
		if status, proto := w.get("/metrics", tc.token); status != tc.want || proto != "HTTP/1.1" {
			t.Errorf("%s got %d by %s, want %d by HTTP/1.1", tc.reason, status, proto, tc.want)
		}
	}
}

func TestMetricsWithoutProtection(t *testing.T) {
	w := newMetricsWorld(t, MetricsOptions{})
	expectProbe(t, "http://"+w.address+"/metrics", http.StatusOK)
}

func TestMetricsServerRefuses(t *testing.T) {
	profile, clock := &tlsProfile{}, clocktesting.NewFakePassiveClock(time.Now())
	for _, address := range []string{"", "0"} {
		if got, err := metricsServer(MetricsOptions{BindAddress: address, Secure: true, CertDir: "/gone"}, profile, clock); err != nil || got.BindAddress != "0" {
			t.Errorf("%q: got %q, %v, want no server", address, got.BindAddress, err)
		}
	}
	dir := t.TempDir()
	if _, err := metricsServer(MetricsOptions{BindAddress: ":1", Secure: true, CertDir: dir}, profile, clock); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a certificate got %v", err)
	}
}

// A Secret that is mounted changes as a whole: a link is moved to a folder with the new files.
func TestCertificateIsReadAnew(t *testing.T) {
	dir := t.TempDir()
	mount := func(version string) *x509.Certificate {
		t.Helper()
		certificate, err := selfSigned(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
		if err != nil {
			t.Fatal(err)
		}
		folder := filepath.Join(dir, version)
		err = errors.Join(
			os.Mkdir(folder, 0o700),
			os.WriteFile(filepath.Join(folder, "tls.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}), 0o600),
			os.WriteFile(filepath.Join(folder, "tls.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600),
			os.Symlink(version, filepath.Join(dir, "..data-"+version)),
			os.Rename(filepath.Join(dir, "..data-"+version), filepath.Join(dir, "..data")),
		)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := x509.ParseCertificate(certificate.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	first := mount("v1")
	for _, file := range []string{"tls.crt", "tls.key"} {
		if err := os.Symlink(filepath.Join("..data", file), filepath.Join(dir, file)); err != nil {
			t.Fatal(err)
		}
	}
	w := newMetricsWorld(t, MetricsOptions{Secure: true, CertDir: dir})
	if !w.shows(first) {
		t.Fatal("the server does not show its certificate")
	}
	second := mount("v2")
	if err := os.RemoveAll(filepath.Join(dir, "v1")); err != nil {
		t.Fatal(err)
	}
	for !w.shows(second) { // the test's own time is the limit
		if t.Context().Err() != nil {
			t.Fatal("the server does not show its new certificate")
		}
	}
}

// shows tells whether a new connection is made with the certificate.
func (w *metricsWorld) shows(certificate *x509.Certificate) bool {
	w.t.Helper()
	conn, err := w.dial(&tls.Config{})
	if err != nil {
		w.t.Fatal(err)
	}
	return conn.ConnectionState().PeerCertificates[0].Equal(certificate)
}
