// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package upgrader_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/appuio/managed-upgrade-operator/pkg/upgrader"
)

// Users of the Managed Upgrade Operator wait for these conditions by name, and read them in this order.
func TestOSDAndARO(t *testing.T) {
	for _, tc := range []struct {
		upgrader          upgrader.Upgrader
		name              string
		steps             []string
		commencesInWindow bool
	}{
		{upgrader.OSD(), "OSD", []string{
			"StartedNotificationSent",
			"UpgradeNotDelayed",
			"IsClusterUpgradable",
			"ClusterHealthyBeforeUpgrade",
			"ExternalDependenciesAvailable",
			"ComputeCapacityReserved",
			"ControlPlaneMaintenanceWindowCreated",
			"UpgradeCommenced",
			"ControlPlaneUpgraded",
			"ControlPlaneMaintenanceWindowRemoved",
			"WorkersMaintenanceWindowCreated",
			"WorkerNodesUpgraded",
			"ComputeCapacityRemoved",
			"WorkersMaintenanceWindowRemoved",
			"ClusterHealthyAfterUpgrade",
			"PostUpgradeTasksCompleted",
			"CompletedNotificationSent",
		}, true},
		{upgrader.ARO(), "ARO", []string{
			"StartedNotificationSent",
			"ClusterHealthyBeforeUpgrade",
			"ExternalDependenciesAvailable",
			"ComputeCapacityReserved",
			"ControlPlaneMaintenanceWindowCreated",
			"UpgradeCommenced",
			"ControlPlaneUpgraded",
			"ControlPlaneMaintenanceWindowRemoved",
			"WorkersMaintenanceWindowCreated",
			"WorkerNodesUpgraded",
			"ComputeCapacityRemoved",
			"WorkersMaintenanceWindowRemoved",
			"ClusterHealthyAfterUpgrade",
			"CompletedNotificationSent",
		}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.upgrader.Name(); got != tc.name {
				t.Errorf("name: got %q", got)
			}
			if diff := cmp.Diff(tc.steps, conditions(tc.upgrader.Steps())); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			cleanup := []string{"UnacceptedUpdateWithdrawn", "MachineConfigPoolsPaused", "ForcedDrainsEnded", "ComputeCapacityGivenBack", "SilencesRemoved"}
			if diff := cmp.Diff(cleanup, conditions(tc.upgrader.Finally())); diff != "" {
				t.Errorf("cleanup (-want +got):\n%s", diff)
			}
			if got := upgrader.CommencesInWindow(tc.upgrader); got != tc.commencesInWindow {
				t.Errorf("jobs that do not commence in their window fail: %t", got)
			}
		})
	}
}
