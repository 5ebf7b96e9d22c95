// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"time"

	"github.com/appuio/managed-upgrade-operator/test/certificates"
)

// Certificate is a choice of a certificate for a Gateway.
type Certificate int

const (
	// CertificateValid is what clients that trust Gateway.CA accept.
	CertificateValid Certificate = iota
	// CertificateOfAnotherCA is signed by somebody whom nobody trusts.
	CertificateOfAnotherCA
	// CertificateExpired was valid until a minute before the gateway was made.
	CertificateExpired
	// CertificateOfAnotherHost is valid, for another address.
	CertificateOfAnotherHost
)

// gatewayCertificates are all that a Gateway may choose from.
type gatewayCertificates struct {
	authority *certificates.Authority
	pairs     map[Certificate]tls.Certificate
}

func newGatewayCertificates() (*gatewayCertificates, error) {
	authority, err := certificates.NewAuthority("gateway-ca")
	if err != nil {
		return nil, err
	}
	stranger, err := certificates.NewAuthority("stranger-ca")
	if err != nil {
		return nil, err
	}
	result := &gatewayCertificates{authority: authority, pairs: map[Certificate]tls.Certificate{}}
	for _, one := range []struct {
		certificate Certificate
		authority   *certificates.Authority
		address     net.IP
		notAfter    time.Time
	}{
		{certificate: CertificateValid, authority: authority, address: net.IPv4(127, 0, 0, 1)},
		{certificate: CertificateOfAnotherCA, authority: stranger, address: net.IPv4(127, 0, 0, 1)},
		{certificate: CertificateExpired, authority: authority, address: net.IPv4(127, 0, 0, 1), notAfter: time.Now().Add(-time.Minute)},
		{certificate: CertificateOfAnotherHost, authority: authority, address: net.IPv4(192, 0, 2, 1)},
	} {
		pair, err := one.authority.Sign(&x509.Certificate{
			Subject:     pkix.Name{CommonName: "gateway"},
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
			IPAddresses: []net.IP{one.address},
			NotAfter:    one.notAfter,
		})
		if err != nil {
			return nil, err
		}
		if result.pairs[one.certificate], err = tls.X509KeyPair(pair.Certificate, pair.Key); err != nil {
			return nil, err
		}
	}
	return result, nil
}

func (c *gatewayCertificates) serverConfig(certificate Certificate) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{c.pairs[certificate]}, MinVersion: tls.VersionTLS12}
}
