// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"
)

const doesNotAnswer = "does not answer in time"

// maxCause bounds what is quoted of an error, in bytes.
const maxCause = 160

// explain says why there is no answer, in words that have no addresses, times or secrets in them, and tells whether it may be worth while to ask again.
func explain(err error) (message string, again bool) {
	through := ""
	var operation *net.OpError
	if errors.As(err, &operation) && operation.Op == "proxyconnect" {
		through = "is not reached: the proxy "
	}
	switch {
	case errors.Is(err, errManyRedirects):
		return "redirects more than five times", false
	case errors.Is(err, errDowngrade):
		return "redirects from https to http", false
	case through != "":
		return through + why(err), true
	}
	return why(err), true
}

func why(err error) string {
	var network net.Error
	var dns *net.DNSError
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.As(err, &network) && network.Timeout():
		return doesNotAnswer
	case errors.As(err, &dns):
		return "does not answer: its name is not known"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "does not answer: connection refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "does not answer: no route to it"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "does not answer: connection closed"
	}
	if text := certificate(err); text != "" {
		return "is not trusted: " + text
	}
	return "cannot be asked: " + cause(err)
}

// certificate says what is wrong with the certificate of a server; nothing if that is not what is wrong.
func certificate(err error) string {
	var invalid x509.CertificateInvalidError
	var host x509.HostnameError
	var authority x509.UnknownAuthorityError
	var verification *tls.CertificateVerificationError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "its certificate has expired or is not yet valid"
	case errors.As(err, &host):
		return "its certificate is for another host"
	case errors.As(err, &authority):
		return "its certificate is signed by an unknown authority"
	case errors.As(err, &verification):
		return "its certificate is not valid"
	}
	return ""
}

// cause is the text of an error, unless there may be an address or a secret in it.
func cause(err error) string {
	var request *url.Error
	if errors.As(err, &request) {
		err = request.Err
	}
	var operation *net.OpError
	if errors.As(err, &operation) {
		err = operation.Err
	}
	if text := err.Error(); len(text) <= maxCause && !strings.ContainsAny(text, "/?@\"") {
		return text
	}
	return "the answer is not understood"
}
