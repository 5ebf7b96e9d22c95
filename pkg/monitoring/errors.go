// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
)

// ErrUnavailable is wrapped by every error that means that monitoring is not there: none is configured, nobody listens
// or answers in time, or a gateway says so. Errors that do not wrap it are answers, though not the ones asked for.
var ErrUnavailable = errors.New("not available")

// failure is why there is no answer, in words that stay the same from one request to the next: they end up in
// conditions. The original error has port numbers in it, and addresses.
type failure struct {
	text        string
	unavailable bool
}

func (f failure) Error() string { return f.text }

func (f failure) Is(target error) bool { return target == ErrUnavailable && f.unavailable }

// explain turns the error of a request to the named server into a failure.
func explain(server string, err error) error {
	var answer *promv1.Error
	var status statusError
	var network net.Error
	away := func(what string) error { return failure{server + " " + what, true} }
	no := func(format string, args ...any) error {
		return failure{server + " " + fmt.Sprintf(format, args...), false}
	}
	switch {
	case errors.As(err, &answer):
		return explainAnswer(server, answer)
	case errors.As(err, &status):
		return explainStatus(server, int(status))
	case tooLong(err):
		return no("answers with more than %d MiB", maxResponseBytes>>20)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return away("does not answer in time")
	case errors.Is(err, syscall.ECONNREFUSED):
		return away("does not answer: connection refused")
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return away("does not answer: connection closed")
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return away("does not answer: no route to it")
	case isNameUnknown(err):
		return away("does not answer: its name is not known")
	default: // a certificate, a token file, a response that is none
		return no("cannot be asked: %s", cause(err))
	}
}

// explainAnswer is for an answer of Prometheus's API that is an error.
func explainAnswer(server string, answer *promv1.Error) error {
	if answer.Type == promv1.ErrBadData {
		return failure{server + " does not understand the query: " + answer.Msg, false}
	}
	const notReady promv1.ErrorType = "unavailable"
	return failure{fmt.Sprintf("%s answers with an error (%s): %s", server, answer.Type, answer.Msg), answer.Type == notReady}
}

// statusError is the status of a response that is no success.
type statusError int

func (s statusError) Error() string { return fmt.Sprintf("HTTP status %d", int(s)) }

// explainStatus tells a gateway that has nobody behind it from a server that refuses.
func explainStatus(server string, code int) error {
	text := fmt.Sprintf("%s answers %d %s", server, code, http.StatusText(code))
	switch code {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return failure{text, true}
	case http.StatusUnauthorized, http.StatusForbidden:
		return failure{text + ": the operator's service account may not ask it", false}
	}
	return failure{text, false}
}

func isNameUnknown(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns)
}

// cause is the text of an error without what changes from one request to the next: addresses, ports, the time of day.
func cause(err error) string {
	var request *url.Error
	if errors.As(err, &request) {
		err = request.Err
	}
	var operation *net.OpError
	if errors.As(err, &operation) {
		err = operation.Err
	}
	var certificate x509.CertificateInvalidError
	if errors.As(err, &certificate) && certificate.Reason == x509.Expired {
		return "its certificate has expired or is not yet valid"
	}
	return err.Error()
}
