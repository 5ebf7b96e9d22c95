// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTable(t *testing.T) {
	b := &bench{machine: "Machine: a fast one.", progress: io.Discard}
	b.add("time", "ms", 20, 12.34)
	b.add("requests", "requests", 12, 14)
	b.add("memory", "MiB", noTarget, 123.4)
	b.add("search", "µs", 5, 0.456)
	var got strings.Builder
	if err := b.print(&got); err != nil {
		t.Fatal(err)
	}
	want := `| measure | unit | target | measured | met |
|---|---|---:|---:|---|
| time | ms | ≤ 20 | 12.3 | yes |
| requests | requests | ≤ 12 | 14 | **no** |
| memory | MiB |  | 123 |  |
| search | µs | ≤ 5 | 0.46 | yes |

Machine: a fast one.
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestPercentile(t *testing.T) {
	for _, test := range []struct {
		values    []int
		p50, p100 int
		p90       int
	}{
		{[]int{7}, 7, 7, 7},
		{[]int{3, 1, 2}, 2, 3, 3},
		{[]int{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, 5, 10, 9},
	} {
		if p50, p90, p100 := percentile(test.values, 50), percentile(test.values, 90), percentile(test.values, 100); p50 != test.p50 ||
			p90 != test.p90 || p100 != test.p100 {
			t.Errorf("%v: got %d, %d, %d", test.values, p50, p90, p100)
		}
	}
}

func TestParse(t *testing.T) {
	for _, test := range []struct {
		args, says string
		err        error
	}{
		{"", "", nil},
		{"--runs 1 --config-runs 0 --nodes 0 --idle 0", "", nil},
		{"--help", "Measures the time", flag.ErrHelp},
		{"--bogus", "not defined", errUsage},
		{"--runs 0", "--runs must be", errUsage},
		{"--nodes 3", "--nodes must be", errUsage},
		{"--idle -1s", "must not be negative", errUsage},
		{"more", `unexpected argument "more"`, errUsage},
	} {
		var out strings.Builder
		if _, err := parse(strings.Fields(test.args), &out); !errors.Is(err, test.err) || !strings.Contains(out.String(), test.says) {
			t.Errorf("%q: got error %v, output %q", test.args, err, out.String())
		}
	}
}
