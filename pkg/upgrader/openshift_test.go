// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package upgrader_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/pkg/upgrader"
)

func conditions(list []steps.Step) []string {
	var names []string
	for _, step := range list {
		names = append(names, step.Condition())
	}
	return names
}

// Users wait for these conditions by name, and read them in this order.
func TestOpenShift(t *testing.T) {
	u := upgrader.OpenShift()
	if got := u.Name(); got != v1beta1.DefaultUpgrader {
		t.Errorf("name: got %q, want the default of the API, %q", got, v1beta1.DefaultUpgrader)
	}
	if diff := cmp.Diff([]string{
		"StartHooksCompleted",
		"MachineConfigPoolsPaused",
		"ClusterHealthyBeforeUpgrade",
		"UpdateAvailable",
		"UpgradeCommenced",
		"ControlPlaneUpgraded",
		"MachineConfigPoolsUpgraded",
		"ClusterHealthyAfterUpgrade",
		"CompletionHooksCompleted",
		"DelayedPoolsUpgraded",
	}, conditions(u.Steps())); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"UnacceptedUpdateWithdrawn", "MachineConfigPoolsPaused"}, conditions(u.Finally())); diff != "" {
		t.Errorf("cleanup (-want +got):\n%s", diff)
	}
}
