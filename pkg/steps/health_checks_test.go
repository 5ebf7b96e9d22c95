// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/appuio/managed-upgrade-operator/pkg/healthcheck"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

func TestHealthChecksOfAList(t *testing.T) {
	list := []steps.Step{
		steps.UntilCommenced(steps.IsClusterUpgradable(healthcheck.Upgradeable())),
		steps.UntilCommenced(steps.ClusterHealthyBeforeUpgrade(healthcheck.Nodes(), healthcheck.Upgradeable())),
		steps.UpgradeCommenced(),
		steps.Once(steps.ClusterHealthyAfterUpgrade(healthcheck.MachineConfigPools())),
	}
	for _, tc := range []struct {
		reason     string
		conditions []string
		want       []string
	}{
		{"one step", []string{"ClusterHealthyBeforeUpgrade"}, []string{"Nodes", "Upgradeable"}},
		{"each once, in the order of the list", []string{"ClusterHealthyBeforeUpgrade", "IsClusterUpgradable"}, []string{"Upgradeable", "Nodes"}},
		{"after", []string{"ClusterHealthyAfterUpgrade"}, []string{"MachineConfigPools"}},
		{"a step that makes none", []string{"UpgradeCommenced", "Unknown"}, nil},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			var got []string
			for _, check := range steps.HealthChecks(list, tc.conditions...) {
				got = append(got, check.Name())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("checks (-want +got):\n%s", diff)
			}
		})
	}
}
