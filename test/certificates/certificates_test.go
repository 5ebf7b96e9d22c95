// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"
)

func TestSign(t *testing.T) {
	authority, err := NewAuthority("one")
	must(t, err)
	stranger, err := NewAuthority("two")
	must(t, err)
	now := time.Now()
	tests := []struct {
		name     string
		notAfter time.Time
		trusted  *Authority
		at       time.Time
		valid    bool
	}{
		{name: "now", trusted: authority, at: now, valid: true},
		{name: "by a clock that is behind", trusted: authority, at: now.Add(-30 * time.Minute), valid: true},
		{name: "next month", trusted: authority, at: now.AddDate(0, 1, 0), valid: true},
		{name: "expired", notAfter: now.Add(-time.Minute), trusted: authority, at: now},
		{name: "before it expired", notAfter: now.Add(-time.Minute), trusted: authority, at: now.Add(-2 * time.Minute), valid: true},
		{name: "trusting somebody else", trusted: stranger, at: now},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			pair, err := authority.Sign(&x509.Certificate{DNSNames: []string{"localhost"}, NotAfter: test.notAfter})
			must(t, err)
			parsed, err := tls.X509KeyPair(pair.Certificate, pair.Key)
			must(t, err)
			roots := x509.NewCertPool()
			if !roots.AppendCertsFromPEM(test.trusted.Bundle()) {
				t.Fatal("the bundle has no certificate")
			}
			_, err = parsed.Leaf.Verify(x509.VerifyOptions{DNSName: "localhost", Roots: roots, CurrentTime: test.at})
			if (err == nil) != test.valid {
				t.Errorf("got error %v, want it valid: %t", err, test.valid)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
