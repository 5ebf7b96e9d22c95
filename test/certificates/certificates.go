// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Package certificates makes the keys and certificates of test servers, in memory.
package certificates

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const (
	// age of all certificates: leaves room for clocks that differ, and for a
	// certificate that has expired.
	age = time.Hour
	// lifetime outlives any test or demo.
	lifetime = 365 * 24 * time.Hour
)

// Authority signs certificates, which are trusted by whoever trusts its Bundle.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// KeyPair is a certificate with its private key, both in PEM.
type KeyPair struct {
	Certificate []byte
	Key         []byte
}

// NewAuthority makes a certificate authority of the name.
func NewAuthority(name string) (*Authority, error) {
	key, err := NewKey()
	if err != nil {
		return nil, err
	}
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name, NotBefore: time.Now().Add(-age)}, key)
	if err != nil {
		return nil, fmt.Errorf("make the certificate authority: %w", err)
	}
	return &Authority{certificate: certificate, key: key}, nil
}

// Bundle is the PEM of the certificate of the authority, for those who have to trust it.
func (a *Authority) Bundle() []byte {
	return encodeCertificate(a.certificate.Raw)
}

// Sign makes a key, and the certificate that the template describes. It is valid from
// an hour ago; and for longer than any test, unless the template says otherwise.
func (a *Authority) Sign(template *x509.Certificate) (KeyPair, error) {
	key, err := NewKey()
	if err != nil {
		return KeyPair{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return KeyPair{}, fmt.Errorf("choose a serial number: %w", err)
	}
	template.SerialNumber = serial
	template.NotBefore = a.certificate.NotBefore
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(lifetime)
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return KeyPair{}, fmt.Errorf("sign the certificate of %s: %w", template.Subject.CommonName, err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return KeyPair{}, fmt.Errorf("encode the key of %s: %w", template.Subject.CommonName, err)
	}
	return KeyPair{Certificate: encodeCertificate(der), Key: keyPEM}, nil
}

// NewKey generates a private key.
func NewKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate a key: %w", err)
	}
	return key, nil
}

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der})
}
