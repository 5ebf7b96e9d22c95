// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/appuio/managed-upgrade-operator/test/controlplane"
)

// OperatorUser is the name under which the API server knows the operator.
const OperatorUser = "system:serviceaccount:" + Namespace + ":managed-upgrade-operator"

// AuditMark is a place in the audit log.
type AuditMark int64

// MarkAudit returns the present end of the audit log. The environment must have been started with Options.Audit.
func (e *Environment) MarkAudit() (AuditMark, error) {
	info, err := os.Stat(e.AuditLog())
	if err != nil {
		return 0, fmt.Errorf("mark the audit log: %w", err)
	}
	return AuditMark(info.Size()), nil
}

// OperatorRequests returns the operator's requests in the audit log from a mark on, in the order of the lines. A line
// that is being written is left out.
func (e *Environment) OperatorRequests(since AuditMark) ([]controlplane.AuditEvent, error) {
	file, err := os.Open(e.AuditLog())
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	defer file.Close()
	if _, err := file.Seek(int64(since), io.SeekStart); err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	content, err := io.ReadAll(file)
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	var requests []controlplane.AuditEvent
	for {
		line, rest, complete := bytes.Cut(content, []byte("\n"))
		if !complete {
			return requests, nil
		}
		content = rest
		if !bytes.Contains(line, []byte(OperatorUser)) { // most lines are other people's, and decoding is slow
			continue
		}
		var event controlplane.AuditEvent
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
		if event.User.Username == OperatorUser {
			requests = append(requests, event)
		}
	}
}
