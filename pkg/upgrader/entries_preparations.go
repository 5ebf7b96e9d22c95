// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package upgrader

import (
	"github.com/appuio/managed-upgrade-operator/pkg/healthcheck"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// preparations are the steps before the point of no return.
func preparations() []Entry {
	return []Entry{
		{
			Condition: "StartedNotificationSent",
			Summary:   "Tells that the upgrade has started, and waits until the receivers of notifications know it, but no longer than config.notificationTimeout.",
			Rules:     []Rule{StandsBefore("UpgradeCommenced", "people learn of an upgrade before it begins")},
			New:       preflight(steps.Once(steps.StartedNotificationSent())),
		},
		{
			Condition: "UpgradeNotDelayed",
			Summary:   "Tells once that the upgrade is delayed, if it has not commenced within config.upgradeWindow.delayTrigger, and holds nothing up.",
			Rules:     []Rule{StandsBefore("UpgradeCommenced", "an upgrade that has commenced is not delayed")},
			New:       always(steps.UpgradeNotDelayed()),
		},
		{
			Condition: "StartHooksCompleted",
			Summary:   "Runs the UpgradeJobHooks of the event Start, and waits for them.",
			Rules: []Rule{
				StandsBefore("UpgradeCommenced", "what hooks prepare is there before anything moves"),
				StandsBefore("MachineConfigPoolsPaused", "what hooks prepare is there before anything is changed"),
				StandsBefore("ComputeCapacityReserved", "what hooks prepare is there before anything is changed"),
			},
			New: preflight(steps.Once(steps.StartHooksCompleted())),
		},
		{
			Condition: "MachineConfigPoolsPaused",
			Summary:   "Pauses the machine config pools that config.machineConfigPools delays; its condition is True while the job holds any.",
			Rules: []Rule{
				StandsBefore("UpgradeCommenced", "machines that are to follow later are held before anything moves"),
				Needs("who holds machines back releases them", "DelayedPoolsUpgraded"),
			},
			Finally: []steps.Step{steps.MachineConfigPoolsGivenBack()},
			New:     always(steps.MachineConfigPoolsPaused()),
		},
		{
			Condition:  "IsClusterUpgradable",
			Summary:    "Waits until OpenShift itself would not refuse the upgrade.",
			Parameters: []Parameter{checksParameter(healthcheck.Upgradeable())},
			Rules: []Rule{
				StandsBefore("UpgradeCommenced", "what OpenShift refuses is not asked for"),
				StandsBefore("ComputeCapacityReserved", "what OpenShift refuses is not worth the machines"),
			},
			New: withChecks(steps.UntilCommenced, steps.IsClusterUpgradable),
		},
		{
			Condition:  "ClusterHealthyBeforeUpgrade",
			Summary:    "Waits until the cluster is healthy, as config.preUpgradeHealthChecks defines it, and skips the job if it does not become so in time.",
			Parameters: []Parameter{checksParameter(allChecks()...)},
			Rules: []Rule{
				IsInEveryList("no upgrade commences on a sick cluster"),
				StandsBefore("UpgradeCommenced", "a sick cluster is not touched"),
				StandsBefore("ComputeCapacityReserved", "machines that are on their way would count as sick"),
				StandsBefore("ControlPlaneMaintenanceWindowCreated", "alerts that are silenced would not count"),
			},
			New: withChecks(steps.UntilCommenced, steps.ClusterHealthyBeforeUpgrade),
		},
		{
			Condition: "UpdateAvailable",
			Summary:   "Sets config.channel if it is given, and waits until the cluster offers the desired version; skips the job if it is not offered any more.",
			Rules:     []Rule{StandsBefore("UpgradeCommenced", "a version that was withdrawn is not installed")},
			New:       preflight(steps.UpdateAvailable()),
		},
		{
			Condition: "ExternalDependenciesAvailable",
			Summary:   "Waits until the URLs of config.externalDependencies answer.",
			Rules: []Rule{
				StandsBefore("UpgradeCommenced", "machines that come up again will need them"),
				StandsBefore("ComputeCapacityReserved", "new machines will need them"),
			},
			New: preflight(steps.ExternalDependenciesAvailable()),
		},
		{
			Condition: "ComputeCapacityReserved",
			Summary:   "Adds machines as config.capacityReservation says, and waits until they are ready, but no longer than its timeOut.",
			Rules: []Rule{
				StandsBefore("UpgradeCommenced", "workloads find room before the first node is drained"),
				Needs("machines that were added cost money until they are removed", "ComputeCapacityRemoved"),
			},
			Finally: []steps.Step{steps.ComputeCapacityGivenBack()},
			New:     preflight(steps.ComputeCapacityReserved()),
		},
		{
			Condition: "ControlPlaneMaintenanceWindowCreated",
			Summary:   "Silences alerts as config.maintenance says while the control plane is upgraded; the silences are a lease that it renews.",
			Rules: []Rule{
				StandsBefore("UpgradeCommenced", "the first operator that restarts must wake nobody"),
				StandsAfter("StartHooksCompleted", "nothing is silenced while hooks are waited for"),
				StandsAfter("IsClusterUpgradable", "nothing is silenced while the cluster is waited for"),
				StandsAfter("UpdateAvailable", "nothing is silenced while the cluster is waited for"),
				StandsAfter("ExternalDependenciesAvailable", "nothing is silenced while others are waited for"),
				StandsAfter("ComputeCapacityReserved", "nothing is silenced while machines are waited for"),
				Needs("what is silenced is to be heard again once the control plane is upgraded", "ControlPlaneMaintenanceWindowRemoved"),
			},
			Finally: []steps.Step{steps.SilencesRemoved()},
			New:     always(steps.ControlPlaneMaintenanceWindowCreated()),
		},
	}
}
