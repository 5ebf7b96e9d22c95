// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package upgrader

import (
	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/healthcheck"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// OSD upgrades an OpenShift Dedicated cluster as the Managed Upgrade Operator does: alerts are silenced, machines are added for the time of the
// upgrade, each stage is told of. A job that does not commence within config.upgradeWindow.timeOut fails.
func OSD() Upgrader { return osd{} }

type osd struct{}

func (osd) Name() string { return "OSD" }

// CommencesInWindow makes a job fail that does not commence in its window.
func (osd) CommencesInWindow() bool { return true }

func (osd) Steps() []steps.Step {
	return []steps.Step{
		// People learn that it begins before anything is touched.
		steps.UntilCommenced(steps.Once(steps.StartedNotificationSent())),
		// From here on somebody is waiting: they are told if it takes longer than they were told.
		steps.UpgradeNotDelayed(),
		// What OpenShift itself would refuse is not worth the preparations.
		steps.UntilCommenced(steps.IsClusterUpgradable(healthcheck.Upgradeable())),
		// A sick cluster is not touched: the update would begin, and hang half way.
		steps.UntilCommenced(steps.ClusterHealthyBeforeUpgrade(append(stateOfCluster(), obstacles()...)...)),
		// What the machines will need when they come up again, and is not in the cluster.
		steps.UntilCommenced(steps.ExternalDependenciesAvailable()),
		// Workloads find room elsewhere before the first node is drained.
		steps.UntilCommenced(steps.ComputeCapacityReserved()),
		// Operators that restart must wake nobody. It stays in charge of its silences while the control plane is upgraded.
		steps.ControlPlaneMaintenanceWindowCreated(),
		// The point of no return: from here on nothing is skipped, and the upgrade window does not matter any more.
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
		// What expects the machines to be as they were has to learn that they changed on purpose.
		steps.Once(steps.PostUpgradeTasksCompleted()),
		// Last, because it is a promise.
		steps.Once(steps.CompletedNotificationSent()),
	}
}

func (osd) Finally() []steps.Step { return managedCleanup() }

// managedCleanup gives back all that the steps of OSD and ARO may hold.
func managedCleanup() []steps.Step {
	return []steps.Step{
		// An update that was refused must not begin by itself later, outside of the window.
		steps.UnacceptedUpdateWithdrawn(),
		// After a failure no machine moves on outside of the window, if the job says so.
		steps.MachineConfigPoolsGivenBack(),
		// Nobody's pods are deleted in the name of an upgrade that is over.
		steps.ForcedDrainsEnded(),
		// Nobody pays for machines that are not needed any more.
		steps.ComputeCapacityGivenBack(),
		// What is wrong now is to be heard.
		steps.SilencesRemoved(),
	}
}
