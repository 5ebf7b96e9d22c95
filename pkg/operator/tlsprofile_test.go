// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestTLSProfileOfTheCluster(t *testing.T) {
	w := newMetricsWorld(t, MetricsOptions{Secure: true})
	old, modern := &tls.Config{MaxVersion: tls.VersionTLS12}, &tls.Config{MinVersion: tls.VersionTLS13}
	expect := func(reason string, config *tls.Config, want bool) {
		t.Helper()
		if _, err := w.dial(config.Clone()); (err == nil) != want {
			t.Errorf("%s: got error %v, want success %t", reason, err, want)
		}
	}
	expect("without a profile", old, true)
	expect("without a profile", modern, true)

	server := &configv1.APIServer{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
	server.Spec.TLSSecurityProfile = &configv1.TLSSecurityProfile{Type: configv1.TLSProfileModernType}
	if err := w.cluster.Create(t.Context(), server); err != nil {
		t.Fatal(err)
	}
	expect("it is not asked for on each connection", old, true)
	w.sync(func() {
		if w.reads != 1 {
			t.Errorf("it was asked for %d times", w.reads)
		}
	})
	w.clock.SetTime(w.clock.Now().Add(profileMaxAge))
	expect("five minutes later", old, false)
	expect("five minutes later", modern, true)

	w.sync(func() { w.away = errors.New("the API server is away") })
	for range 2 {
		w.clock.SetTime(w.clock.Now().Add(profileMaxAge))
		expect("while the API server is away", old, false)
	}
	w.sync(func() {
		if len(w.log) != 2 || !strings.Contains(w.log[0], "not found") || !strings.Contains(w.log[1], "is away") {
			t.Errorf("logged %v, want each time that it cannot be read any more once", w.log)
		}
		w.away = nil
	})
	server.Spec.TLSSecurityProfile = nil
	if err := w.cluster.Update(t.Context(), server); err != nil {
		t.Fatal(err)
	}
	w.clock.SetTime(w.clock.Now().Add(profileMaxAge))
	expect("the profile is taken back", old, true)
}

// An API server that is away for a moment must not make what the cluster forbids hold for minutes.
func TestTLSProfileThatCannotBeReadIsAskedForSoon(t *testing.T) {
	w := newMetricsWorld(t, MetricsOptions{Secure: true})
	old := &tls.Config{MaxVersion: tls.VersionTLS12}
	server := &configv1.APIServer{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
	server.Spec.TLSSecurityProfile = &configv1.TLSSecurityProfile{Type: configv1.TLSProfileModernType}
	if err := w.cluster.Create(t.Context(), server); err != nil {
		t.Fatal(err)
	}
	w.sync(func() { w.away = errors.New("the API server is away") })
	expect := func(reason string, want bool, reads int) {
		t.Helper()
		if _, err := w.dial(old.Clone()); (err == nil) != want {
			t.Errorf("%s: got error %v, want success %t", reason, err, want)
		}
		w.sync(func() {
			if w.reads != reads {
				t.Errorf("%s: it was asked for %d times, want %d", reason, w.reads, reads)
			}
		})
	}
	expect("Intermediate holds until it is known", true, 1)
	w.sync(func() { w.away = nil })
	w.clock.SetTime(w.clock.Now().Add(profileRetry - time.Second))
	expect("an API server that is away is not asked on each connection", true, 1)
	w.clock.SetTime(w.clock.Now().Add(time.Second))
	expect("seconds later", false, 2)
	w.clock.SetTime(w.clock.Now().Add(profileMaxAge - time.Second))
	expect("what was read holds for minutes", false, 2)
	w.clock.SetTime(w.clock.Now().Add(-time.Hour))
	expect("after the clock was set back", false, 3)
}

// Whoever goes away during the handshake must not leave behind that the profile cannot be read.
func TestTLSProfileOutlastsTheConnection(t *testing.T) {
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	server := &configv1.APIServer{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
	server.Spec.TLSSecurityProfile = &configv1.TLSSecurityProfile{Type: configv1.TLSProfileModernType}
	hangUp := func() {}
	reader := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(server).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			hangUp()
			if err := ctx.Err(); err != nil {
				return err
			}
			return c.Get(ctx, key, object, opts...)
		},
	})
	certificate, err := selfSigned(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	profile := &tlsProfile{clock: clocktesting.NewFakePassiveClock(time.Now()), reader: reader, log: logr.Discard()}
	config := &tls.Config{Certificates: []tls.Certificate{*certificate}}
	profile.follow(config)
	connect := func(ctx context.Context) (version uint16) {
		near, far := net.Pipe()
		defer func() { _ = far.Close() }()
		done := make(chan struct{})
		go func() {
			defer close(done)
			caller := tls.Client(near, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})
			_ = caller.HandshakeContext(t.Context())
			version = caller.ConnectionState().Version
			_ = near.Close()
		}()
		_ = tls.Server(far, config).HandshakeContext(ctx)
		_ = far.Close()
		<-done
		return version
	}
	ctx, cancel := context.WithCancel(t.Context())
	hangUp = cancel
	connect(ctx)
	if ctx.Err() == nil {
		t.Fatal("the profile was not read")
	}
	if version := connect(t.Context()); version != 0 {
		t.Errorf("the next one speaks %s, which the cluster forbids", tls.VersionName(version))
	}
}

func TestProfiles(t *testing.T) {
	custom := func(version configv1.TLSProtocolVersion, ciphers ...string) *configv1.TLSSecurityProfile {
		return &configv1.TLSSecurityProfile{Type: configv1.TLSProfileCustomType, Custom: &configv1.CustomTLSProfile{
			TLSProfileSpec: configv1.TLSProfileSpec{MinTLSVersion: version, Ciphers: ciphers},
		}}
	}
	const intermediate = 6 // that Go has
	for _, tc := range []struct {
		reason  string
		profile *configv1.TLSSecurityProfile
		version uint16
		suites  int
	}{
		{"none", nil, tls.VersionTLS12, intermediate},
		{"Intermediate", &configv1.TLSSecurityProfile{Type: configv1.TLSProfileIntermediateType}, tls.VersionTLS12, intermediate},
		{"Modern", &configv1.TLSSecurityProfile{Type: configv1.TLSProfileModernType}, tls.VersionTLS13, 0},
		{"Old", &configv1.TLSSecurityProfile{Type: configv1.TLSProfileOldType}, tls.VersionTLS10, 18},
		{"one that is not known", &configv1.TLSSecurityProfile{Type: "Quantum"}, tls.VersionTLS12, intermediate},
		{"a custom one", custom(configv1.VersionTLS12, "ECDHE-RSA-AES128-GCM-SHA256", "made-up"), tls.VersionTLS12, 1},
		{"custom without anything", &configv1.TLSSecurityProfile{Type: configv1.TLSProfileCustomType}, tls.VersionTLS12, intermediate},
		{"none that Go has before TLS 1.3", custom(configv1.VersionTLS12, "DHE-RSA-AES128-GCM-SHA256"), tls.VersionTLS13, 0},
		{"a version that is not known", custom("VersionTLS14", "AES128-SHA"), tls.VersionTLS12, 1},
	} {
		config := &tls.Config{}
		apply(config, specOf(tc.profile))
		if config.MinVersion != tc.version || len(config.CipherSuites) != tc.suites {
			t.Errorf("%s: got %s with %d suites, want %s with %d", tc.reason,
				tls.VersionName(config.MinVersion), len(config.CipherSuites), tls.VersionName(tc.version), tc.suites)
		}
	}
}
