// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
)

// maxResponseBytes bounds what is read of a response: 50,000 alerts take about 25 MB.
const maxResponseBytes = 64 << 20

// bounded reads no more than maxResponseBytes of a response.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(request)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, maxResponseBytes)
	}
	return response, err
}

// strict refuses what client_golang lets pass: a response of Prometheus's API that is well-formed but does not say that
// it is a success. What is no response of that API becomes a statusError.
type strict struct{ api.Client }

func (s strict) Do(ctx context.Context, request *http.Request) (*http.Response, []byte, error) {
	response, body, err := s.Client.Do(ctx, request)
	if err != nil {
		return response, body, err
	}
	switch response.StatusCode {
	case http.StatusOK:
		if status, wrapped := statusOf(body); wrapped && status != "success" && status != "error" {
			return response, body, fmt.Errorf("the response has status %q, want success", status)
		}
		return response, body, nil
	case http.StatusBadRequest, http.StatusUnprocessableEntity: // how Prometheus answers a query that it cannot evaluate
		return response, body, nil
	case http.StatusInternalServerError, http.StatusServiceUnavailable:
		if own := ownError(body); own != nil { // Prometheus itself says so, and no gateway before it
			return response, body, own
		}
		return response, body, statusError(response.StatusCode)
	default: // client_golang looks at the response all the same, and tries again where POST is not allowed
		return response, body, statusError(response.StatusCode)
	}
}

// statusOf returns the status of a response of Prometheus's API; false for a list, which is how Alertmanager answers.
// Prometheus names it first, so that a long response is not read twice.
func statusOf(body []byte) (string, bool) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	if start, err := decoder.Token(); err != nil || start != json.Delim('{') {
		return "", err != nil || start != json.Delim('[')
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return "", true
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return "", true
		}
		if key == "status" {
			var status string
			_ = json.Unmarshal(value, &status) // what is no text is no success either
			return status, true
		}
	}
	return "", true
}

// ownError returns the error of Prometheus's API in a response, nil if there is none.
func ownError(body []byte) error {
	var answer struct {
		Status    string           `json:"status"`
		ErrorType promv1.ErrorType `json:"errorType"`
		Error     string           `json:"error"`
	}
	if err := json.Unmarshal(body, &answer); err == nil && answer.Status == "error" {
		return &promv1.Error{Type: answer.ErrorType, Msg: answer.Error}
	}
	return nil
}

// tooLong tells whether a response was cut off by bounded.
func tooLong(err error) bool {
	var cut *http.MaxBytesError
	return errors.As(err, &cut)
}
