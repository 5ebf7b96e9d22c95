// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
)

// bodyLimit is far above the size of an event; no sender is worth more memory.
const bodyLimit = 4 << 20

// serve answers a request that the server got.
func (r *Receiver) serve(s *server, w http.ResponseWriter, request *http.Request) {
	received, status, err := r.read(w, request)
	if err != nil {
		r.refuse(err)
		http.Error(w, err.Error(), status)
		return
	}
	f, released := r.judge(s, received, true)
	for f.kind == faultHang {
		select {
		case <-released:
		case <-request.Context().Done():
		}
		if request.Context().Err() != nil {
			panic(http.ErrAbortHandler) // nobody reads an answer
		}
		f, released = r.judge(s, received, false)
	}
	f.answer(w)
}

// read returns the event of a request, or why it has none for us and the status
// that says so.
func (r *Receiver) read(w http.ResponseWriter, request *http.Request) (Received, int, error) {
	// All of the body in any case: only then is it noticed that a sender hangs up.
	body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, bodyLimit))
	if err != nil {
		return Received{}, http.StatusBadRequest, fmt.Errorf("read the body: %w", err)
	}
	if request.Method != http.MethodPost {
		return Received{}, http.StatusMethodNotAllowed, fmt.Errorf("the method is %s, not POST", request.Method)
	}
	for name, value := range r.headers {
		if request.Header.Get(name) != value {
			return Received{}, http.StatusUnauthorized, fmt.Errorf("the header %s is not what it has to be", name)
		}
	}
	request.Body = io.NopCloser(bytes.NewReader(body))
	event, err := cehttp.NewEventFromHTTPRequest(request)
	if err == nil {
		err = event.Validate()
	}
	if err != nil {
		return Received{}, http.StatusBadRequest, errors.New("no CloudEvent: " + strings.TrimSpace(err.Error()))
	}
	return Received{Event: *event, Time: time.Now(), Header: request.Header.Clone()}, 0, nil
}

// refuse notes a request that has no event for us.
func (r *Receiver) refuse(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attempts++
	r.refusal = why.Error()
	r.tell()
}

// judge decides what becomes of an event, and accepts it unless a fault is in
// the way. The channel is closed when what hangs is released. first says that
// the request has just come in.
func (r *Receiver) judge(s *server, received Received, first bool) (fault, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.server != s {
		panic(http.ErrAbortHandler) // it was stopped meanwhile, and takes nothing more
	}
	if first {
		r.attempts++
	}
	f := r.fault.take()
	f.retry = r.retry
	if f.kind == faultNone || f.kind == faultCut {
		r.events = append(r.events, received)
	}
	r.tell()
	return f, r.released
}

// tell wakes those who wait for a request. The caller holds the lock.
func (r *Receiver) tell() {
	close(r.changed)
	r.changed = make(chan struct{})
}
