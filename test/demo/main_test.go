// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

func TestParse(t *testing.T) {
	for _, test := range []struct {
		args, says string
		err        error
	}{
		{"", "", nil},
		{"--keep --speed 2 --timeout 1m", "", nil},
		{"--help", "Shows a whole upgrade", flag.ErrHelp},
		{"--bogus", "not defined", errUsage},
		{"--speed 0", "--speed must be", errUsage},
		{"--timeout -1s", "--timeout must be", errUsage},
		{"more", `unexpected argument "more"`, errUsage},
	} {
		var out strings.Builder
		o, err := parse(strings.Fields(test.args), &out)
		if !errors.Is(err, test.err) || !strings.Contains(out.String(), test.says) {
			t.Errorf("%q: got error %v, output %q", test.args, err, out.String())
		}
		if err == nil && filepath.Base(o.manager) != "manager" {
			t.Errorf("%q: the manager is %q", test.args, o.manager)
		}
	}
}

// A demo that cannot begin says so at once.
func TestRunWithoutManager(t *testing.T) {
	out, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	code := run(t.Context(), []string{"--manager", filepath.Join(t.TempDir(), "none")}, out, out)
	said, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	if code != exitFailure || !strings.Contains(string(said), "make build") {
		t.Errorf("got exit code %d, output %q", code, said)
	}
}

func TestScenario(t *testing.T) {
	parse := func(text string) sim.Scenario {
		t.Helper()
		file := filepath.Join(t.TempDir(), "scenario.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := scenario(file, 2)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := parse("timings: {drain: 1h}\n")
	if s.Version != "4.18.1" || s.Timings.Operator.String() != "1s" || s.Timings.Drain.String() != "1h0m0s" {
		t.Errorf("got version %s, timings %+v", s.Version, s.Timings)
	}
	night := sim.CustomPool{Name: "night", Labels: map[string]string{"maintenance": "night"}, Pool: sim.Pool{Size: 2}}
	if diff := cmp.Diff([]sim.CustomPool{night}, s.CustomPools); diff != "" {
		t.Errorf("pools of a file that has none (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]sim.CustomPool{{Name: "infra"}}, parse("customPools: [{name: infra}]\n").CustomPools); diff != "" {
		t.Errorf("pools of a file that has one (-want +got):\n%s", diff)
	}
	if pools := parse("customPools: []\n").CustomPools; len(pools) > 0 {
		t.Errorf("a file that wants no pools got %+v", pools)
	}
	if _, err := scenario(filepath.Join(t.TempDir(), "none"), 1); err == nil {
		t.Error("a missing file is no error")
	}
}
