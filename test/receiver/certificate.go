// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"

	"github.com/appuio/managed-upgrade-operator/test/certificates"
)

// newCertificate returns the PEM of a new authority, and a server's configuration
// with a certificate of it.
func newCertificate() ([]byte, *tls.Config, error) {
	authority, err := certificates.NewAuthority("receiver-ca")
	if err != nil {
		return nil, nil, err
	}
	pair, err := authority.Sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "receiver"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	})
	if err != nil {
		return nil, nil, err
	}
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		return nil, nil, fmt.Errorf("read the certificate of the receiver: %w", err)
	}
	return authority.Bundle(), &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}, nil
}
