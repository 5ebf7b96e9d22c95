// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/pkg/upgrader"
)

// ours is an upgrader of somebody else.
type ours struct{ upgrader.Upgrader }

func (ours) Name() string { return "Ours" }

func (o ours) Steps() []steps.Step {
	return append([]steps.Step{coffee("Coffee")}, o.Upgrader.Steps()...)
}

type coffee string

func (c coffee) Condition() string { return string(c) }

func (coffee) Run(context.Context, *steps.Upgrade) (steps.Verdict, error) { return steps.Done(""), nil }

func entry(condition string) upgrader.Entry {
	return upgrader.Entry{Condition: condition, Summary: "Makes " + condition + ".", New: func(upgrader.Parameters) (steps.Step, error) { return coffee(condition), nil }}
}

// Administrators see without a cluster what a manager can do, also one that is not ours.
func TestPrintUpgraders(t *testing.T) {
	for _, tc := range []struct {
		reason      string
		o           Options
		says, never []string
	}{
		{"what is built in", Options{Upgraders: upgrader.BuiltIn()}, []string{
			"OpenShift\n   1  StartHooksCompleted ", "\nOSD\n   1  StartedNotificationSent ", "  17  CompletedNotificationSent ", "\nARO\n", "Tells that the upgrade has started",
			"oc get upgraders.managedupgrade.appuio.io",
		}, []string{"Further steps"}},
		{"one of one's own", Options{
			Upgraders: []upgrader.Upgrader{ours{upgrader.OpenShift()}}, Steps: []upgrader.Entry{entry("Coffee"), entry("Tea")},
		}, []string{
			"Ours\n   1  Coffee  ", "Makes Coffee.\n   2  StartHooksCompleted ", "  11  DelayedPoolsUpgraded ", "Further steps", "  Makes Tea.\n", "  UpgradeNotDelayed ",
		}, []string{"OSD"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if err := Run(t.Context(), []string{"upgraders"}, &stdout, &stderr, tc.o); err != nil || stderr.Len() > 0 {
				t.Fatalf("got error %v, on stderr %q", err, stderr.String())
			}
			for _, text := range tc.says {
				if !strings.Contains(stdout.String(), text) {
					t.Errorf("%q is not in:\n%s", text, stdout.String())
				}
			}
			for _, text := range tc.never {
				if strings.Contains(stdout.String(), text) {
					t.Errorf("%q is in:\n%s", text, stdout.String())
				}
			}
		})
	}
}

// A mistake in a main of one's own ends it before it looks for a cluster.
func TestRunRefusesWhatCannotBeAssembled(t *testing.T) {
	for says, o := range map[string]Options{
		`register upgrader "OSD": the name is taken`:                              {Upgraders: append(upgrader.BuiltIn(), upgrader.OSD())},
		`add step "UpgradeCommenced" to the catalogue: the condition is taken`:    {Steps: []upgrader.Entry{entry("UpgradeCommenced")}},
		`add step "Coffee" to the catalogue: want a summary and a function that `: {Steps: []upgrader.Entry{{Condition: "Coffee"}}},
	} {
		var stdout, stderr bytes.Buffer
		if err := Run(t.Context(), []string{"--version"}, &stdout, &stderr, o); err == nil || !strings.HasPrefix(err.Error(), says) || stdout.Len() > 0 {
			t.Errorf("got error %v and %q, want %q", err, stdout.String(), says)
		}
	}
	if err := Run(t.Context(), []string{"upgraders", "OSD"}, &bytes.Buffer{}, &bytes.Buffer{}, Options{}); err == nil || !strings.Contains(err.Error(), "unexpected argument") {
		t.Errorf("an argument too many: got %v", err)
	}
}

func TestVersion(t *testing.T) {
	for version, want := range map[string]string{"": "managed-upgrade-operator devel\n", "v7": "managed-upgrade-operator v7\n"} {
		var stdout bytes.Buffer
		if err := Run(t.Context(), []string{"--version"}, &stdout, &stdout, Options{Version: version}); err != nil || stdout.String() != want {
			t.Errorf("got %q and error %v, want %q", stdout.String(), err, want)
		}
	}
}
