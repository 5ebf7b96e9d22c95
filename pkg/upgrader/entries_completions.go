// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package upgrader

import (
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// completions are the steps after the machines that follow at once are upgraded.
func completions() []Entry {
	return []Entry{
		{
			Condition: "ComputeCapacityRemoved",
			Summary:   "Removes the machines of ComputeCapacityReserved, and waits until they are gone.",
			Rules: append(followsMachines("workloads need the room until the last node was drained"),
				StandsAfter("ComputeCapacityReserved", "it removes what that has added"),
				StandsBefore("DelayedPoolsUpgraded", "machines that were added do not wait for another night")),
			New: once(steps.ComputeCapacityRemoved()),
		},
		{
			Condition: "WorkersMaintenanceWindowRemoved",
			Summary:   "Removes the silences of WorkersMaintenanceWindowCreated.",
			Rules: append(followsMachines("until then nodes restart"),
				StandsAfter("WorkersMaintenanceWindowCreated", "it removes what that has made"),
				StandsAfter("ComputeCapacityRemoved", "the removal of a machine is a drain too"),
				StandsBefore("DelayedPoolsUpgraded", "nothing is silenced until another night")),
			New: always(steps.WorkersMaintenanceWindowRemoved()),
		},
		{
			Condition:  "ClusterHealthyAfterUpgrade",
			Summary:    "Waits until the cluster is healthy, as config.postUpgradeHealthChecks defines it, and fails the job if it does not become so in time.",
			Parameters: []Parameter{checksParameter(stateOfCluster()...)},
			Rules: append(followsMachines("machines that are on their way would count as sick"),
				StandsAfter("ComputeCapacityRemoved", "machines that go would count as sick"),
				StandsAfter("ControlPlaneMaintenanceWindowRemoved", "alerts that are silenced would not count"),
				StandsAfter("WorkersMaintenanceWindowRemoved", "alerts that are silenced would not count")),
			New: withChecks(steps.Once, steps.ClusterHealthyAfterUpgrade),
		},
		{
			Condition: "CompletionHooksCompleted",
			Summary:   "Runs the UpgradeJobHooks of the event UpgradeComplete, and waits for them.",
			Rules: append(followsMachines("hooks are told that the upgrade is complete"),
				StandsAfter("ClusterHealthyAfterUpgrade", "an upgrade that left the cluster sick is not complete")),
			New: once(steps.CompletionHooksCompleted()),
		},
		{
			Condition:  "DelayedPoolsUpgraded",
			Summary:    "Releases each delayed pool at its time, if the cluster is healthy then, and waits until its machines are upgraded.",
			Parameters: []Parameter{checksParameter(stateOfControlPlane()...)},
			Rules: append(followsMachines("a release proves itself on the machines that follow at once"),
				Needs("nothing else holds machines back for it", "MachineConfigPoolsPaused")),
			Finally: []steps.Step{steps.MachineConfigPoolsGivenBack(), steps.ForcedDrainsEnded()},
			New:     withChecks(steps.WithForcedDrains, steps.DelayedPoolsUpgraded),
		},
		{
			Condition: "PostUpgradeTasksCompleted",
			Summary:   "Does the tasks of config.postUpgradeTasks.",
			Rules:     followsMachines("what expects the machines to be as they were learns that they changed once all have"),
			New:       once(steps.PostUpgradeTasksCompleted()),
		},
		{
			Condition: "CompletedNotificationSent",
			Summary:   "Tells that the upgrade is completed, and waits until the receivers of notifications know it, but no longer than config.notificationTimeout.",
			Rules:     []Rule{IsLast("it is a promise")},
			New:       once(steps.CompletedNotificationSent()),
		},
	}
}
