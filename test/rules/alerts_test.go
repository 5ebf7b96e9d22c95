// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/appuio/managed-upgrade-operator/test/monitoring"
)

func TestRulesPassPromtool(t *testing.T) {
	path, err := File(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", "--lint=all", "--lint-fatal", path)
}

// Each file is the unit tests of one alert: when it fires, when it does not quite, what it says, and when it ends.
func TestAlertsFireWhenTheyShall(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("there are no tests")
	}
	dir := t.TempDir()
	if _, err := File(dir); err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		// Rule files are looked up beside the test.
		copied := filepath.Join(dir, filepath.Base(file))
		if err := os.WriteFile(copied, content, 0o600); err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			promtool(t, "test", "rules", copied)
		})
	}
}

// An alert without tests would be the first to be wrong.
func TestEachAlertHasTests(t *testing.T) {
	lacks := map[string]*regexp.Regexp{
		"what it says":               regexp.MustCompile(`exp_annotations:\n`),
		"that it fires":              regexp.MustCompile(`value: [1-9]`),
		"that it does not":           regexp.MustCompile(`exp_samples: \[\]`),
		"a gap of three minutes":     regexp.MustCompile(`_x3 `),
		"the next leader, pod \"b\"": regexp.MustCompile(`pod="b"`),
	}
	for _, rule := range alerts(t) {
		content, err := os.ReadFile(filepath.Join("testdata", rule.Alert+".yaml"))
		if err != nil {
			t.Error(err)
			continue
		}
		for what, pattern := range lacks {
			if !pattern.Match(content) {
				t.Errorf("the tests of %s lack %s", rule.Alert, what)
			}
		}
	}
}

func TestFileNeedsTheRepository(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, err := File(t.TempDir()); !errors.Is(err, ErrOutsideRepository) {
		t.Errorf("got %v", err)
	}
}

// promtool runs a command of the real one, and fails the test with what it printed.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	program, err := monitoring.Promtool(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	output, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	if err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}

// alerts are all alerts that are shipped.
func alerts(t *testing.T) []Rule {
	t.Helper()
	groups, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	var rules []Rule
	for _, group := range groups {
		rules = append(rules, group.Rules...)
	}
	if len(rules) == 0 {
		t.Fatal("there are no alerts")
	}
	return rules
}
