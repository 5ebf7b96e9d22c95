// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// replacements are what differs from run to run, and what stands for it in testdata, in the order in which they are made.
var replacements = []struct {
	what *regexp.Regexp
	with string
}{
	// Ids of objects and of the cluster.
	{regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), "UUID"},
	// Configurations that the machine-config operator rendered.
	{regexp.MustCompile(`\brendered-([a-z]+)-[0-9a-f]{32}\b`), "rendered-$1-HASH"},
	{regexp.MustCompile(`\bsha256:[0-9a-f]{64}\b`), "sha256:DIGEST"},
	// Jobs of a config: the start and a hash are in their names. Batch Jobs of hooks end in a hash.
	{regexp.MustCompile(`\b([a-z]+)-\d{10}-[0-9a-f]{7}\b`), "$1-START-HASH"},
	{regexp.MustCompile(`\b(backup-[a-z0-9.-]*-)[0-9a-f]{7,10}\b`), "${1}HASH"},
	// A window without a name has one of its start.
	{regexp.MustCompile(`\bfreeze-\d{8}-\d{4}\b`), "freeze-START"},
	// Where the API server and Prometheus of this run are.
	{regexp.MustCompile(`\b127\.0\.0\.1:\d+\b`), "SERVER"},
	{regexp.MustCompile(`/\S*/kubectl-managed_upgrade\b`), "PLUGIN"},
	// Times, with or without a weekday, seconds and a zone.
	{regexp.MustCompile(`\b((Mon|Tue|Wed|Thu|Fri|Sat|Sun),? )?\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z| UTC|[+-]\d\d:\d\d)?`), "TIME"},
	{regexp.MustCompile(`\b((Mon|Tue|Wed|Thu|Fri|Sat|Sun),? )?\d\d:\d\d(:\d\d)?( UTC)?\b`), "TIME"},
	// Ages and time left: 0s, 12s, 1m30s, 8d 17h.
	{regexp.MustCompile(`\b\d+(\.\d+)?(ms|[dhms])( ?\d+[hms])*\b`), "DURATION"},
	{regexp.MustCompile(`"(durationSeconds|seconds)": \d+`), `"$1": N`},
	// The width of columns goes by what is in them.
	{regexp.MustCompile(` {2,}`), "  "},
	{regexp.MustCompile(`(?m) +$`), ""},
}

// normalise replaces what differs from run to run.
func normalise(text string) string {
	for _, r := range replacements {
		text = r.what.ReplaceAllString(text, r.with)
	}
	return text
}

func TestNormalise(t *testing.T) {
	for in, want := range map[string]string{
		"weekly-1795557600-0a1b2c3  Active   in 8d 17h":   "weekly-START-HASH  Active  in DURATION",
		"since 2026-11-22 05:11 UTC, 3m12s ago":           "since TIME, DURATION ago",
		"Sun 2026-11-22 05:11:07+01:00 and 05:11 UTC":     "TIME and TIME",
		"at 2026-11-22T05:11:07Z":                         "at TIME",
		"6d26220a-7dca-47cb-ad87-895a77daec73":            "UUID",
		"rendered-infra-0123456789abcdef0123456789abcdef": "rendered-infra-HASH",
		"34 of 34 operators are at 4.18.2, 3 of 7 nodes":  "34 of 34 operators are at 4.18.2, 3 of 7 nodes",
		"kubelet 1.31.1 of node worker-0":                 "kubelet 1.31.1 of node worker-0",
		"dial tcp 127.0.0.1:6443: connect":                "dial tcp SERVER: connect",
		"a     b  \nc   ":                                 "a  b\nc",
	} {
		if got := normalise(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

const (
	// calm is how long an output must stay the same before it is written to testdata.
	calm = 1500 * time.Millisecond
	// settling is how long a test waits until an output is that of testdata: the operator and the cluster are on their way there.
	settling = 12 * time.Second
)

// prints wants what a call prints to become that of testdata, with the exit status. It is for calls that look: they are repeated until then.
func (u user) prints(file string, status int, args ...string) {
	u.t.Helper()
	call := func() string { return u.transcript(status, args...) }
	if *update {
		u.write(file, calm, call)
		return
	}
	want, deadline := u.testdata(file), time.Now().Add(settling)
	got := call()
	for got != want && time.Now().Before(deadline) {
		got = call()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		u.t.Errorf("kubectl managed-upgrade %s (-want +got):\n%s", strings.Join(args, " "), diff)
	}
}

// says is prints for calls that act: they are made once.
func (u user) says(file string, status int, args ...string) {
	u.t.Helper()
	got := u.transcript(status, args...)
	if *update {
		u.write(file, 0, func() string { return got })
		return
	}
	if diff := cmp.Diff(u.testdata(file), got); diff != "" {
		u.t.Errorf("kubectl managed-upgrade %s (-want +got):\n%s", strings.Join(args, " "), diff)
	}
}

// wrongStatus begins the transcript of a call that ends otherwise than wanted.
const wrongStatus = "exit status "

// transcript is what a call prints, normalised, with its exit status if that is not as wanted.
func (u user) transcript(status int, args ...string) string {
	u.t.Helper()
	a := u.runs(args...)
	if a.status == status {
		return normalise(a.stdout + a.stderr)
	}
	return fmt.Sprintf("%s%d\n%s", wrongStatus, a.status, normalise(a.stdout+a.stderr))
}

// testdata reads what is wanted.
func (u user) testdata(file string) string {
	u.t.Helper()
	want, err := os.ReadFile(filepath.Join("testdata", file+".txt"))
	if err != nil {
		u.t.Fatalf("%v: write it with -update", err)
	}
	return string(want)
}

// write writes an output to testdata once it stays the same for so long.
func (u user) write(file string, quiet time.Duration, call func() string) {
	u.t.Helper()
	path := filepath.Join("testdata", file+".txt")
	last, since := call(), time.Now()
	for time.Since(since) < quiet {
		if now := call(); now != last {
			last, since = now, time.Now()
		}
	}
	if strings.HasPrefix(last, wrongStatus) {
		u.t.Errorf("%s is not written: %s", path, last)
		return
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		u.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(last), 0o644); err != nil {
		u.t.Fatal(err)
	}
}
