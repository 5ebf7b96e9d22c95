// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// Failure is why a receiver did not take an event, in words that stay the same from one attempt to the next. It never
// has the URL in it, not even its host, nor headers or anything that the receiver sent but the status: all of those may
// be secret, and the words end up in the status of the job.
type Failure struct {
	text string
	// RetryAfter is how long the receiver asks to be left alone; zero if it does not.
	RetryAfter time.Duration
	// Denied tells that the receiver does not accept who we say we are.
	Denied bool
}

// Error returns why the receiver did not take the event.
func (f *Failure) Error() string { return f.text }

func failf(format string, args ...any) *Failure { return &Failure{text: fmt.Sprintf(format, args...)} }

// answered is for a response that is no success.
func answered(code int) *Failure { return failf("the receiver answers %s", status(code)) }

func status(code int) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", code, http.StatusText(code)))
}

// shorten bounds a name that somebody else chose.
func shorten(name string) string { return v1beta1.Truncate(name, 64) }

// explain turns the error of a request into a Failure. What it does not know it does not repeat: the texts of errors
// have URLs in them, and what the other side sent.
func explain(err error, timeout time.Duration) *Failure {
	var known *Failure
	if errors.As(err, &known) {
		return known
	}
	text := explainTLS(err)
	if text == "" {
		text = explainConnection(err, timeout)
	}
	var operation *net.OpError
	if errors.As(err, &operation) && operation.Op == "proxyconnect" {
		text = "the proxy cannot be used: " + text
	}
	return failf("%s", text)
}

func explainConnection(err error, timeout time.Duration) string {
	var name *net.DNSError
	var network net.Error
	switch {
	case errors.As(err, &name) && name.IsNotFound:
		return "no such host"
	case errors.As(err, &name):
		return "the name of the host cannot be looked up"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return fmt.Sprintf("no answer within %s", timeout)
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "no route to the host"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF),
		errors.Is(err, io.ErrUnexpectedEOF), says(err, "server closed idle connection"), says(err, "http2: "):
		return "connection closed"
	case says(err, "malformed HTTP"):
		return "what answers does not speak HTTP"
	default:
		return "the request failed"
	}
}

// says is for errors that have no type. Their text is looked at and not repeated.
func says(err error, words string) bool { return strings.Contains(err.Error(), words) }

// explainTLS explains errors of the handshake; it returns nothing for others.
func explainTLS(err error) string {
	var authority x509.UnknownAuthorityError
	var hostname x509.HostnameError
	var invalid x509.CertificateInvalidError
	var unverified *tls.CertificateVerificationError
	var noTLS tls.RecordHeaderError
	var operation *net.OpError
	const untrusted = "the receiver's certificate is not trusted: "
	switch {
	case errors.As(err, &authority):
		return untrusted + "it is signed by an unknown authority"
	case errors.As(err, &hostname):
		return untrusted + "it is for another name"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return untrusted + "it has expired or is not yet valid"
	case errors.As(err, &invalid), errors.As(err, &unverified):
		return untrusted + "it cannot be verified"
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &noTLS):
		return "what answers does not speak TLS"
	case errors.As(err, &operation) && operation.Op == "remote error": // a TLS alert, of which there is a fixed list
		return "the receiver refuses the connection: " + operation.Err.Error()
	case says(err, "tls: "):
		return "the TLS handshake failed"
	default:
		return ""
	}
}
