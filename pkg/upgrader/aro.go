// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package upgrader

import (
	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// ARO upgrades an Azure Red Hat OpenShift cluster as the Managed Upgrade Operator does: as OSD, without UpgradeNotDelayed, IsClusterUpgradable and
// PostUpgradeTasksCompleted. A job that does not commence in its window is skipped.
func ARO() Upgrader { return aro{} }

type aro struct{}

func (aro) Name() string { return "ARO" }

func (aro) Steps() []steps.Step {
	return []steps.Step{
		// People learn that it begins before anything is touched.
		steps.UntilCommenced(steps.Once(steps.StartedNotificationSent())),
		// A sick cluster is not touched: the update would begin, and hang half way.
		steps.UntilCommenced(steps.ClusterHealthyBeforeUpgrade(append(stateOfCluster(), obstacles()...)...)),
		// What the machines will need when they come up again, and is not in the cluster.
		steps.UntilCommenced(steps.ExternalDependenciesAvailable()),
		// Workloads find room elsewhere before the first node is drained.
		steps.UntilCommenced(steps.ComputeCapacityReserved()),
		// Operators that restart must wake nobody. It stays in charge of its silences while the control plane is upgraded.
		steps.ControlPlaneMaintenanceWindowCreated(),
		// The point of no return: from here on nothing is skipped.
		steps.IfOffered(steps.Beginning(v1beta1.StageControlPlaneStarted, "The upgrade of the control plane begins.", steps.UpgradeCommenced())),
		// Operators and masters first: the cluster-version operator knows their order.
		steps.Finishing(v1beta1.StageControlPlaneFinished, "The control plane is upgraded.", steps.WithForcedDrains(steps.ControlPlaneUpgraded())),
		// What the control plane's silences hid is to be heard again at once.
		steps.ControlPlaneMaintenanceWindowRemoved(),
		// Nodes that restart must wake nobody either, for as long as their number makes likely.
		steps.WorkersMaintenanceWindowCreated(),
		// The other machines are not waited for by the cluster-version operator.
		steps.Finishing(v1beta1.StageWorkersFinished, "All machines are upgraded.", steps.WithForcedDrains(steps.WorkerNodesUpgraded())),
		// The extra machines cost money; their removal is a drain too, so the silences are kept until it is done.
		steps.Once(steps.ComputeCapacityRemoved()),
		// Before the cluster's health is judged, so that nobody is told that it is well by silences.
		steps.WorkersMaintenanceWindowRemoved(),
		// An upgrade that left the cluster sick has not succeeded.
		steps.Once(steps.ClusterHealthyAfterUpgrade(stateOfCluster()...)),
		// Last, because it is a promise.
		steps.Once(steps.CompletedNotificationSent()),
	}
}

func (aro) Finally() []steps.Step { return managedCleanup() }
