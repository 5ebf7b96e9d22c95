// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package upgrader

import (
	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// Steps that upgrade the machines that the cluster-version operator does not wait for: those of the pools that are not delayed.
var machineSteps = []string{"MachineConfigPoolsUpgraded", "WorkerNodesUpgraded"}

// followsMachines are the rules of a step that stands after all machines that are not delayed are upgraded. As every list has one of these steps, behind
// ControlPlaneUpgraded, it stands behind that too.
func followsMachines(why string) []Rule {
	var rules []Rule
	for _, step := range machineSteps {
		rules = append(rules, StandsAfter(step, why))
	}
	return rules
}

// upgrades are the steps from the point of no return until all machines are upgraded.
func upgrades() []Entry {
	ofDrains := []steps.Step{steps.ForcedDrainsEnded()}
	return []Entry{
		{
			Condition:  "UpgradeCommenced",
			Summary:    "Asks for the upgrade, if the cluster offers the desired version in config.channel: the point of no return.",
			Parameters: []Parameter{tellStage(v1beta1.StageControlPlaneStarted, "before")},
			Rules:      []Rule{IsInEveryList("without it nothing is upgraded")},
			Finally:    []steps.Step{steps.UnacceptedUpdateWithdrawn(), steps.MachineConfigPoolsGivenBack()},
			New:        telling(steps.IfOffered, controlPlaneStarts, steps.UpgradeCommenced()),
		},
		{
			Condition:  "ControlPlaneUpgraded",
			Summary:    "Waits until the cluster-version operator and the machines of the control plane are done.",
			Parameters: []Parameter{tellStage(v1beta1.StageControlPlaneFinished, "afterwards")},
			Rules: []Rule{
				IsInEveryList("a job that does not wait for the control plane cannot tell that it has succeeded"),
				StandsAfter("UpgradeCommenced", "it waits for what that asks for"),
				Needs("an upgrade is done when all machines are, and the cluster-version operator waits for some only", machineSteps...),
			},
			Finally: ofDrains,
			New:     telling(asItIs, controlPlaneFinishes, steps.WithForcedDrains(steps.ControlPlaneUpgraded())),
		},
		{
			Condition: "ControlPlaneMaintenanceWindowRemoved",
			Summary:   "Removes the silences of ControlPlaneMaintenanceWindowCreated.",
			Rules: []Rule{
				StandsAfter("ControlPlaneMaintenanceWindowCreated", "it removes what that has made"),
				StandsAfter("ControlPlaneUpgraded", "until then operators restart"),
				StandsBefore("MachineConfigPoolsUpgraded", "critical alerts are heard while the machines follow"),
				StandsBefore("WorkerNodesUpgraded", "critical alerts are heard while the machines follow"),
			},
			New: always(steps.ControlPlaneMaintenanceWindowRemoved()),
		},
		{
			Condition: "WorkersMaintenanceWindowCreated",
			Summary:   "Silences alerts for as long as the number of the machines that are left makes likely; the silences are a lease that it renews.",
			Rules: []Rule{
				StandsAfter("ControlPlaneUpgraded", "until then the machines that are left cannot be counted"),
				StandsBefore("MachineConfigPoolsUpgraded", "the first node that restarts must wake nobody"),
				StandsBefore("WorkerNodesUpgraded", "the first node that restarts must wake nobody"),
				Needs("what is silenced is to be heard again once the machines are upgraded", "WorkersMaintenanceWindowRemoved"),
			},
			Finally: []steps.Step{steps.SilencesRemoved()},
			New:     always(steps.WorkersMaintenanceWindowCreated()),
		},
		{
			Condition: "MachineConfigPoolsUpgraded",
			Summary:   "Waits until every machine of the pools that are not delayed is upgraded.",
			Rules:     []Rule{StandsAfter("ControlPlaneUpgraded", "OpenShift upgrades the control plane first")},
			Finally:   ofDrains,
			New:       always(steps.WithForcedDrains(steps.MachineConfigPoolsUpgraded())),
		},
		{
			Condition:  "WorkerNodesUpgraded",
			Summary:    "Waits until every machine of every pool is upgraded; it knows no delayed pools, and releases those that an earlier job left paused.",
			Parameters: []Parameter{tellStage(v1beta1.StageWorkersFinished, "afterwards")},
			Rules: []Rule{
				StandsAfter("ControlPlaneUpgraded", "OpenShift upgrades the control plane first"),
				Excludes("MachineConfigPoolsPaused", "it waits for all machines, also for those that would be held"),
			},
			Finally: ofDrains,
			New:     telling(asItIs, workersFinish, steps.WithForcedDrains(steps.WorkerNodesUpgraded())),
		},
	}
}

func controlPlaneStarts(step steps.Step) steps.Step {
	return steps.Beginning(v1beta1.StageControlPlaneStarted, "The upgrade of the control plane begins.", step)
}

func controlPlaneFinishes(step steps.Step) steps.Step {
	return steps.Finishing(v1beta1.StageControlPlaneFinished, "The control plane is upgraded.", step)
}

func workersFinish(step steps.Step) steps.Step {
	return steps.Finishing(v1beta1.StageWorkersFinished, "All machines are upgraded.", step)
}
