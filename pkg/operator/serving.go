// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// MetricsOptions say how the metrics of the operator are served.
type MetricsOptions struct {
	// BindAddress serves /metrics; "0", or empty, for none.
	BindAddress string
	// Secure serves by HTTPS, to whoever the API server knows and lets get /metrics. Else anybody may read them, by HTTP.
	Secure bool
	// CertDir has the certificate, tls.crt, and its key, tls.key. They are read anew when they change. Empty for a self-signed certificate.
	CertDir string
}

// metricsServer returns how the metrics are served. tlsProfile says for each connection what the cluster allows.
func metricsServer(o MetricsOptions, profile *tlsProfile, clk clock.PassiveClock) (metricsserver.Options, error) {
	if o.BindAddress == "" || o.BindAddress == "0" {
		return metricsserver.Options{BindAddress: "0"}, nil
	}
	server := metricsserver.Options{BindAddress: o.BindAddress, SecureServing: o.Secure, CertDir: o.CertDir}
	if !o.Secure {
		return server, nil
	}
	server.FilterProvider = filters.WithAuthenticationAndAuthorization
	if o.CertDir == "" {
		certificate, err := selfSigned(clk.Now())
		if err != nil {
			return metricsserver.Options{}, fmt.Errorf("make a certificate for the metrics: %w", err)
		}
		server.TLSOpts = append(server.TLSOpts, func(config *tls.Config) {
			config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate, nil }
		})
	} else if _, err := tls.LoadX509KeyPair(filepath.Join(o.CertDir, "tls.crt"), filepath.Join(o.CertDir, "tls.key")); err != nil {
		// Else the server would choose a certificate of its own, which nobody trusts, and never look again.
		return metricsserver.Options{}, fmt.Errorf("read the certificate of the metrics: %w", err)
	}
	server.TLSOpts = append(server.TLSOpts, withoutHTTP2, profile.follow)
	return server, nil
}

// withoutHTTP2 keeps to HTTP/1.1: a client of HTTP/2 that opens and cancels streams makes the server work for nothing before it is
// known who it is (CVE-2023-44487, CVE-2023-39325), and a scrape gains nothing by it.
func withoutHTTP2(config *tls.Config) { config.NextProtos = []string{"http/1.1"} }

// selfSignedFor is how long a certificate is good that the operator makes for itself: longer than any process lives.
const selfSignedFor = 10 * 365 * 24 * time.Hour

// selfSigned makes a certificate for use outside of OpenShift, where nothing else gives one.
func selfSigned(now time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "managed-upgrade-operator"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(selfSignedFor),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{host, "localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
