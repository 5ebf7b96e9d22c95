// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"crypto/tls"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// profileMaxAge is how old the cluster's TLS profile may be when a connection is opened. It is not watched: it hardly ever changes.
	profileMaxAge = 5 * time.Minute
	// profileRetry is how long nobody asks again after the profile could not be read.
	profileRetry = 10 * time.Second
	// profileTimeout bounds how long a connection waits for it.
	profileTimeout = 2 * time.Second
)

// tlsProfile follows which TLS versions and ciphers the cluster allows its components to serve with: spec.tlsSecurityProfile of APIServer/cluster.
type tlsProfile struct {
	clock clock.PassiveClock
	log   logr.Logger

	mutex  sync.Mutex
	reader client.Reader // set before the first connection
	asked  time.Time
	failed bool        // whether it could not be read when it was asked for
	config *tls.Config // what holds at present
}

// follow lets each connection be opened as the profile says at that moment.
func (p *tlsProfile) follow(base *tls.Config) {
	apply(base, *configv1.TLSProfiles[configv1.TLSProfileIntermediateType])
	base.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return p.current(base), nil }
}

// current returns the settings for a connection. What was read last holds while the profile cannot be read.
// Connections that are opened meanwhile wait: what one of them may use is not known yet either.
func (p *tlsProfile) current(base *tls.Config) *tls.Config {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	now, maxAge := p.clock.Now(), profileMaxAge
	if p.failed {
		maxAge = profileRetry
	}
	if p.config != nil && now.Sub(p.asked) < maxAge && !now.Before(p.asked) {
		return p.config
	}
	spec, err := p.fetch()
	p.asked = now
	switch {
	case err == nil:
		p.failed = false
	case !p.failed: // once, not every ten seconds
		p.failed = true
		p.log.Info("The cluster's TLS profile cannot be read; the last one that was, or else Intermediate, holds", "error", err.Error())
	}
	if err != nil && p.config != nil {
		return p.config
	}
	p.config = base.Clone()
	p.config.GetConfigForClient = nil
	apply(p.config, spec)
	return p.config
}

// fetch reads the profile; Intermediate with an error. It has a context of its own: the answer is for all, and whose connection asks may be gone by then.
func (p *tlsProfile) fetch() (configv1.TLSProfileSpec, error) {
	ctx, cancel := context.WithTimeout(context.Background(), profileTimeout)
	defer cancel()
	server := &configv1.APIServer{}
	if err := p.reader.Get(ctx, types.NamespacedName{Name: "cluster"}, server); err != nil {
		return specOf(nil), fmt.Errorf("get APIServer/cluster: %w", err)
	}
	return specOf(server.Spec.TLSSecurityProfile), nil
}

// specOf returns what the profile stands for: Intermediate if it is absent, or one that is not known.
func specOf(profile *configv1.TLSSecurityProfile) configv1.TLSProfileSpec {
	intermediate := *configv1.TLSProfiles[configv1.TLSProfileIntermediateType]
	switch {
	case profile == nil:
		return intermediate
	case profile.Type == configv1.TLSProfileCustomType && profile.Custom != nil:
		return profile.Custom.TLSProfileSpec
	case configv1.TLSProfiles[profile.Type] != nil:
		return *configv1.TLSProfiles[profile.Type]
	}
	return intermediate
}

var tlsVersions = map[configv1.TLSProtocolVersion]uint16{
	configv1.VersionTLS10: tls.VersionTLS10, configv1.VersionTLS11: tls.VersionTLS11,
	configv1.VersionTLS12: tls.VersionTLS12, configv1.VersionTLS13: tls.VersionTLS13,
}

// cipherSuites are the suites that Go has, up to TLS 1.2, by OpenSSL's names. Those of TLS 1.3 cannot be chosen.
var cipherSuites = map[string]uint16{
	"ECDHE-ECDSA-CHACHA20-POLY1305": tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
	"ECDHE-RSA-CHACHA20-POLY1305":   tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	"ECDHE-ECDSA-AES128-GCM-SHA256": tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
	"ECDHE-ECDSA-AES256-GCM-SHA384": tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
	"ECDHE-RSA-AES128-GCM-SHA256":   tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
	"ECDHE-RSA-AES256-GCM-SHA384":   tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	"ECDHE-ECDSA-AES128-SHA256":     tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256,
	"ECDHE-RSA-AES128-SHA256":       tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256,
	"ECDHE-ECDSA-AES128-SHA":        tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA,
	"ECDHE-ECDSA-AES256-SHA":        tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA,
	"ECDHE-RSA-AES128-SHA":          tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA,
	"ECDHE-RSA-AES256-SHA":          tls.TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA,
	"AES128-GCM-SHA256":             tls.TLS_RSA_WITH_AES_128_GCM_SHA256,
	"AES256-GCM-SHA384":             tls.TLS_RSA_WITH_AES_256_GCM_SHA384,
	"AES128-SHA256":                 tls.TLS_RSA_WITH_AES_128_CBC_SHA256,
	"AES128-SHA":                    tls.TLS_RSA_WITH_AES_128_CBC_SHA,
	"AES256-SHA":                    tls.TLS_RSA_WITH_AES_256_CBC_SHA,
	"DES-CBC3-SHA":                  tls.TLS_RSA_WITH_3DES_EDE_CBC_SHA,
}

// apply sets what the profile allows. One that allows no cipher that Go has before TLS 1.3 leaves TLS 1.3: Go's own choice would be more than is allowed.
func apply(config *tls.Config, spec configv1.TLSProfileSpec) {
	config.MinVersion = tls.VersionTLS12
	if version, ok := tlsVersions[spec.MinTLSVersion]; ok {
		config.MinVersion = version
	}
	config.CipherSuites = nil
	for _, name := range spec.Ciphers {
		if suite, ok := cipherSuites[name]; ok {
			config.CipherSuites = append(config.CipherSuites, suite)
		}
	}
	if len(config.CipherSuites) == 0 {
		config.MinVersion = tls.VersionTLS13
	}
}
