// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// auditPolicy logs who did what when, and how it ended, but no bodies. Omitting
// RequestReceived leaves one line for each request, and two for a watch: one when
// it begins (ResponseStarted), one when it ends.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// The stages of an AuditEvent.
const (
	// AuditResponseStarted is a watch, or another long answer, that has begun.
	AuditResponseStarted = "ResponseStarted"
	// AuditResponseComplete is a request that has been answered to the end.
	AuditResponseComplete = "ResponseComplete"
)

// AuditEvent is one line of the audit log: the part of audit.k8s.io/v1 Event that
// tells who asked for what, when, and what came of it.
type AuditEvent struct {
	AuditID    string `json:"auditID"` // the same in all lines of one request
	Stage      string `json:"stage"`
	Verb       string `json:"verb"` // as in RBAC rules: get, list, watch, create, patch, ...
	RequestURI string `json:"requestURI"`
	UserAgent  string `json:"userAgent"`
	User       struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct { // zero for a request that is not about a resource
		APIGroup    string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code   int32  `json:"code"`
		Reason string `json:"reason"`
	} `json:"responseStatus"`
	Annotations struct {
		// Decision is allow or forbid. What is allowed may be refused by admission still.
		Decision string `json:"authorization.k8s.io/decision"`
	} `json:"annotations"`
	// Both times are the API server's, in microseconds.
	RequestReceivedTimestamp metav1.MicroTime `json:"requestReceivedTimestamp"`
	StageTimestamp           metav1.MicroTime `json:"stageTimestamp"`
}

// AuditLog returns the path of the audit log, or "" without Options.Audit. It
// holds one JSON object a line, and goes on when the API server is restarted. A
// request's line is written about when the client gets the answer, which may be a
// moment later.
func (c *ControlPlane) AuditLog() string {
	if !c.options.Audit {
		return ""
	}
	return c.path("audit.log")
}

// AuditEvents reads the audit log from its beginning, in the order of the lines.
// A line that is being written is left out.
func (c *ControlPlane) AuditEvents() ([]AuditEvent, error) {
	if !c.options.Audit {
		return nil, errors.New("read the audit log: the control plane was started without Options.Audit")
	}
	content, err := os.ReadFile(c.AuditLog())
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	return parseAuditLog(content)
}

func parseAuditLog(content []byte) ([]AuditEvent, error) {
	var events []AuditEvent
	for number := 1; ; number++ {
		line, rest, complete := bytes.Cut(content, []byte("\n"))
		if !complete {
			return events, nil
		}
		var event AuditEvent
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("parse line %d of the audit log: %w", number, err)
		}
		events = append(events, event)
		content = rest
	}
}
