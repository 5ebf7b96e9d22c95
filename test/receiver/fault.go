// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"net/http"
	"strconv"
	"time"
)

// faultKind is what goes wrong with a request.
type faultKind int

const (
	faultNone faultKind = iota
	faultStatus
	faultHang
	faultRedirect
	faultCut
)

// fault is what goes wrong, and for how many requests; a negative number is for
// all of them.
type fault struct {
	kind     faultKind
	times    int
	status   int
	location string
	retry    time.Duration
}

// take returns what goes wrong with the next request.
func (f *fault) take() fault {
	switch {
	case f.times == 0:
		return fault{}
	case f.times > 0:
		f.times--
	}
	return *f
}

// FailWith answers the next requests with that status, without taking the event:
// so many of them, or all when times is negative.
//
// There is one fault at a time: FailWith, Hang, RedirectTo and CloseConnections
// replace the one before, and Release ends it.
func (r *Receiver) FailWith(status, times int) {
	r.set(fault{kind: faultStatus, status: status, times: times})
}

// Hang does not answer the next requests until Release, or until the sender gives
// up: so many of them, or all when times is negative.
func (r *Receiver) Hang(times int) {
	r.set(fault{kind: faultHang, times: times})
}

// RedirectTo answers all requests with a redirect to the URL and that status,
// without taking the event.
func (r *Receiver) RedirectTo(url string, status int) {
	r.set(fault{kind: faultRedirect, location: url, status: status, times: -1})
}

// CloseConnections takes the event of the next requests and cuts the connection
// instead of answering: the sender cannot know that it arrived, and has to repeat
// it. So many of them, or all when times is negative.
func (r *Receiver) CloseConnections(times int) {
	r.set(fault{kind: faultCut, times: times})
}

// RetryAfter has the answers of FailWith, also those of later ones, ask for a
// pause, in seconds rounded up; zero asks for none.
func (r *Receiver) RetryAfter(pause time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.retry = pause
}

// Release ends the fault there is. Requests that hang are served as if they came
// in now.
func (r *Receiver) Release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fault = fault{}
	close(r.released)
	r.released = make(chan struct{})
}

func (r *Receiver) set(f fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fault = f
}

// answer writes what the sender gets.
func (f fault) answer(w http.ResponseWriter) {
	switch f.kind {
	case faultStatus:
		if f.retry > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int((f.retry+time.Second-1)/time.Second)))
		}
		http.Error(w, http.StatusText(f.status), f.status)
	case faultRedirect:
		w.Header().Set("Location", f.location)
		w.WriteHeader(f.status)
	case faultCut, faultHang:
		panic(http.ErrAbortHandler)
	case faultNone:
		w.WriteHeader(http.StatusNoContent)
	}
}
