// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/appuio/managed-upgrade-operator/test/controlplane"
	"github.com/appuio/managed-upgrade-operator/test/environment"
)

const (
	// operatorUser is whom the API server sees in the operator.
	operatorUser = "system:serviceaccount:" + environment.Namespace + ":managed-upgrade-operator"
	// simulatorAgent is how the simulated cluster introduces itself.
	simulatorAgent = "openshift-simulator"
)

// requests are requests that have been answered, in the order in which they came.
type requests []controlplane.AuditEvent

// auditReader reads an audit log piece by piece.
type auditReader struct {
	path   string
	offset int64
}

// next returns the requests that have been answered since the last call. Watches are left out.
func (a *auditReader) next() (requests, error) {
	file, err := os.Open(a.path)
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	defer file.Close()
	if _, err := file.Seek(a.offset, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	content, err := io.ReadAll(file)
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	content = content[:bytes.LastIndexByte(content, '\n')+1] // the last line may be incomplete
	a.offset += int64(len(content))

	var found requests
	for line := range bytes.Lines(content) {
		var event controlplane.AuditEvent
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
		if event.Stage == controlplane.AuditResponseComplete && event.Verb != "watch" {
			found = append(found, event)
		}
	}
	slices.SortStableFunc(found, func(a, b controlplane.AuditEvent) int {
		return a.RequestReceivedTimestamp.Compare(b.RequestReceivedTimestamp.Time)
	})
	return found, nil
}

// filter returns those requests for which keep holds.
func (r requests) filter(keep func(*controlplane.AuditEvent) bool) requests {
	var kept requests
	for i := range r {
		if keep(&r[i]) {
			kept = append(kept, r[i])
		}
	}
	return kept
}

// ofOperator returns the requests of the operator, its lease and its Events aside.
func (r requests) ofOperator() requests {
	return r.filter(func(e *controlplane.AuditEvent) bool {
		return e.User.Username == operatorUser && e.ObjectRef.Resource != "leases" && e.ObjectRef.Resource != "events"
	})
}

// lastWrite returns when the write was answered by which an object became what a watch showed at the given time: the
// last one that had come by then.
func (r requests) lastWrite(seen time.Time, by func(*controlplane.AuditEvent) bool) (time.Time, bool) {
	writes := r.filter(func(e *controlplane.AuditEvent) bool {
		return by(e) && slices.Contains([]string{"create", "update", "patch"}, e.Verb) && e.ResponseStatus.Code < 300 &&
			!e.RequestReceivedTimestamp.After(seen)
	})
	if len(writes) == 0 {
		return time.Time{}, false
	}
	return writes[len(writes)-1].StageTimestamp.Time, true
}

// list shows the requests, a line each, with the time since the given one.
func (r requests) list(since time.Time) string {
	var text strings.Builder
	for i := range r {
		e := &r[i]
		fmt.Fprintf(&text, "  %10.1f ms  %4.1f ms  %d %-6s %s\n", milliseconds(e.RequestReceivedTimestamp.Sub(since)),
			milliseconds(e.StageTimestamp.Sub(e.RequestReceivedTimestamp.Time)), e.ResponseStatus.Code, e.Verb, e.RequestURI)
	}
	return text.String()
}
