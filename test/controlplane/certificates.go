// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"net"

	"github.com/appuio/managed-upgrade-operator/test/certificates"
)

// newServerCertificate makes the serving certificate of the loopback address.
func newServerCertificate(a *certificates.Authority) (certificates.KeyPair, error) {
	return a.Sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	})
}

// newClientCertificate makes the certificate that authenticates as the user and its groups.
func newClientCertificate(a *certificates.Authority, user string, groups ...string) (certificates.KeyPair, error) {
	return a.Sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}
