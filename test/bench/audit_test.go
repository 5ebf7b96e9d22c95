// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// line is a line of an audit log. Times are seconds after noon.
func line(stage, user, verb, resource, subresource string, code, received, answered int) string {
	const at = `"2026-11-20T12:00:%02d.000000Z"`
	return fmt.Sprintf(`{"stage":%q,"verb":%q,"user":{"username":%q},"objectRef":{"resource":%q,"subresource":%q},"responseStatus":{"code":%d},`+
		`"requestReceivedTimestamp":`+at+`,"stageTimestamp":`+at+"}\n", stage, verb, user, resource, subresource, code, received, answered)
}

func TestAuditLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	log := &auditReader{path: path}
	written := ""
	next := func(lines ...string) requests {
		t.Helper()
		for _, l := range lines {
			written += l
		}
		if err := os.WriteFile(path, []byte(written), 0o600); err != nil {
			t.Fatal(err)
		}
		read, err := log.next()
		if err != nil {
			t.Fatal(err)
		}
		return read
	}
	verbs := func(r requests) []string {
		var found []string
		for i := range r {
			found = append(found, r[i].Verb+" "+r[i].ObjectRef.Resource)
		}
		return found
	}
	half := line("ResponseComplete", operatorUser, "delete", "upgradejobs", "", 200, 9, 9)
	first := next(
		line("ResponseStarted", operatorUser, "watch", "upgradejobs", "", 200, 1, 1),
		line("ResponseComplete", operatorUser, "patch", "upgradejobs", "status", 200, 4, 5),
		line("ResponseComplete", "somebody", "get", "upgradejobs", "", 200, 2, 2),
		line("ResponseComplete", operatorUser, "create", "events", "", 201, 6, 6),
		line("ResponseComplete", operatorUser, "update", "leases", "", 200, 7, 7),
		line("ResponseComplete", operatorUser, "get", "clusterversions", "", 200, 3, 3),
		half[:20])
	if diff := cmp.Diff([]string{"get upgradejobs", "get clusterversions", "patch upgradejobs", "create events", "update leases"}, verbs(first)); diff != "" {
		t.Errorf("all requests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"get clusterversions", "patch upgradejobs"}, verbs(first.ofOperator())); diff != "" {
		t.Errorf("requests of the operator (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"delete upgradejobs"}, verbs(next(half[20:]))); diff != "" {
		t.Errorf("requests since (-want +got):\n%s", diff)
	}
}

func TestTimes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	ofCluster := func(resource string, received, answered int) string {
		return line("ResponseComplete", "admin", "patch", resource, "status", 200, received, answered)
	}
	log := "" +
		line("ResponseComplete", operatorUser, "patch", "clusterversions", "", 200, 11, 12) + // the lock
		line("ResponseComplete", operatorUser, "patch", "clusterversions", "", 409, 12, 12) +
		line("ResponseComplete", operatorUser, "patch", "clusterversions", "", 200, 13, 14) + // desiredUpdate
		ofCluster("machineconfigpools", 20, 21) +
		ofCluster("clusterversions", 22, 23) +
		line("ResponseComplete", operatorUser, "patch", "upgradejobs", "status", 200, 24, 26) + // the outcome
		line("ResponseComplete", operatorUser, "patch", "clusterversions", "", 200, 27, 28) // the lock again
	if err := os.WriteFile(path, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := (&auditReader{path: path}).next()
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if all[i].User.Username == "admin" {
			all[i].UserAgent = simulatorAgent
		}
	}
	noon := time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

	// Watches show a write before it is answered, or after.
	seen := marks{desired: at(13), complete: at(21), completedBy: "machineconfigpools", ended: at(27)}
	m := measurement{start: at(10)}
	if err := m.times(all, seen); err != nil {
		t.Fatal(err)
	}
	if m.commence != 4*time.Second || m.conclude != 5*time.Second || m.added() != 9*time.Second {
		t.Errorf("got %s to commence, %s to conclude", m.commence, m.conclude)
	}
	if err := m.times(all, marks{}); err == nil {
		t.Error("turns that were not seen are no error")
	}
}
