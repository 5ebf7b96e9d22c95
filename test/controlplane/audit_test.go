// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"testing"
	"time"
)

func TestParseAuditLog(t *testing.T) {
	const patch = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"4d2","stage":"ResponseComplete",` +
		`"requestURI":"/apis/config.openshift.io/v1/clusterversions/version","verb":"patch","user":{"username":"operator"},` +
		`"objectRef":{"resource":"clusterversions","name":"version","apiGroup":"config.openshift.io","apiVersion":"v1"},` +
		`"responseStatus":{"metadata":{},"code":200},` +
		`"requestReceivedTimestamp":"2025-03-02T01:00:00.000125Z","stageTimestamp":"2025-03-02T01:00:00.004250Z"}` + "\n"
	tests := []struct {
		name    string
		content string
		events  int
		fails   bool
	}{
		{name: "empty", content: ""},
		{name: "two lines", content: patch + patch, events: 2},
		{name: "the last line is being written", content: patch + patch[:40], events: 1},
		{name: "a line that is no event", content: patch + "cheese\n", fails: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			events, err := parseAuditLog([]byte(test.content))
			if (err != nil) != test.fails {
				t.Fatalf("got error %v, want one: %t", err, test.fails)
			}
			if len(events) != test.events {
				t.Fatalf("got %d events, want %d", len(events), test.events)
			}
			for _, event := range events {
				if event.User.Username != "operator" || event.Verb != "patch" || event.ResponseStatus.Code != 200 ||
					event.ObjectRef.Resource != "clusterversions" || event.ObjectRef.Name != "version" {
					t.Errorf("got %+v", event)
				}
				if took := event.StageTimestamp.Sub(event.RequestReceivedTimestamp.Time); took != 4125*time.Microsecond {
					t.Errorf("the request took %s, want 4.125ms", took)
				}
			}
		})
	}
}
