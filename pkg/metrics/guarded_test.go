// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// A defect in one part must not end the process, and not hide the other parts.
func TestPanicsCostTheirPartOnly(t *testing.T) {
	c := newTestCollector(newReader(everything()...), func(o *Options) { o.Steps = func(context.Context, string) []string { panic("a defect") } })
	expect(t, c, "collect_errors_total machine_config_pool_machines upgradeconfig_pin_version_window_seconds", `
		collect_errors_total{kind="UpgradeJob"} 1
		machine_config_pool_machines{pool="worker"} 10
		upgradeconfig_pin_version_window_seconds{namespace="upgrades",upgradeconfig="weekly"} 0`)
}

// A defect has to be seen in a log of the default level, with the place of it, and must not fill that log scrape by scrape.
func TestPanicsAreLoggedOnceWithTheirStack(t *testing.T) {
	var logged []string
	ctx := log.IntoContext(t.Context(), funcr.NewJSON(func(line string) { logged = append(logged, line) }, funcr.Options{Verbosity: 0}))
	aDefect := func(context.Context, string) []string { panic("a defect") }
	c := newTestCollector(newReader(everything()...), func(o *Options) { o.Steps = aDefect })
	for range 3 {
		c.collect(ctx, newSeries())
	}
	c.guarded(ctx, kindPool, func() error { panic("another one") })
	c.guarded(ctx, kindHook, func() error { return errors.New("away for a moment") })
	if len(logged) != 2 {
		t.Fatalf("logged %d lines, want one of each kind that panicked:\n%s", len(logged), strings.Join(logged, "\n"))
	}
	for i, parts := range [][]string{
		{`"error":"panic: a defect"`, `"kind":"UpgradeJob"`, `"stack":"`, "TestPanicsAreLoggedOnceWithTheirStack.func", "guarded_test.go:"},
		{`"error":"panic: another one"`, `"kind":"MachineConfigPool"`, "TestPanicsAreLoggedOnceWithTheirStack.func"},
	} {
		for _, part := range parts {
			if !strings.Contains(logged[i], part) {
				t.Errorf("line %d lacks %s:\n%s", i, part, logged[i])
			}
		}
	}
	expect(t, c, "collect_errors_total", `
		collect_errors_total{kind="MachineConfigPool"} 1
		collect_errors_total{kind="UpgradeJob"} 4
		collect_errors_total{kind="UpgradeJobHook"} 1`)
}
