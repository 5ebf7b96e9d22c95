// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package upgrader

import (
	"github.com/appuio/managed-upgrade-operator/pkg/healthcheck"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// OpenShift upgrades an OpenShift 4 cluster: the release by the cluster-version operator, the machines by the
// machine-config operator. It is the default.
func OpenShift() Upgrader { return openShift{} }

type openShift struct{}

func (openShift) Name() string { return "OpenShift" }

func (openShift) Steps() []steps.Step {
	return []steps.Step{
		// What has to happen before anything is touched: a backup, an approval.
		steps.UntilCommenced(steps.Once(steps.StartHooksCompleted())),
		// Machines that are to follow at night must not move with the others: they are held before anything moves.
		steps.MachineConfigPoolsPaused(),
		// A sick cluster is not touched: the update would begin, and hang half way.
		steps.UntilCommenced(steps.ClusterHealthyBeforeUpgrade(append(stateOfCluster(), obstacles()...)...)),
		// The version was pinned hours ago; by now its edge may be withdrawn, for a reason.
		steps.UntilCommenced(steps.UpdateAvailable()),
		// The point of no return: from here on the job is not skipped any more.
		steps.UpgradeCommenced(),
		// Operators and masters first: the cluster-version operator knows their order.
		steps.ControlPlaneUpgraded(),
		// The other machines are not waited for by the cluster-version operator.
		steps.MachineConfigPoolsUpgraded(),
		// An upgrade that left the cluster sick has not succeeded.
		steps.Once(steps.ClusterHealthyAfterUpgrade(stateOfCluster()...)),
		// What has to happen before users are told that all is well.
		steps.Once(steps.CompletionHooksCompleted()),
		// The machines that were held follow at their time, on to a release that has proved itself.
		steps.DelayedPoolsUpgraded(stateOfControlPlane()...),
	}
}

// stateOfCluster tells whether the cluster works as it should.
func stateOfCluster() []healthcheck.Check {
	return []healthcheck.Check{
		healthcheck.ClusterVersionHealthy(),
		healthcheck.DegradedOperators(),
		healthcheck.MachineConfigPools(),
		healthcheck.Nodes(),
		healthcheck.CriticalAlerts(),
		healthcheck.CustomQueries(),
	}
}

// stateOfControlPlane tells whether the cluster works but for the machines, of which some are on their way.
func stateOfControlPlane() []healthcheck.Check {
	return []healthcheck.Check{
		healthcheck.ClusterVersionHealthy(),
		healthcheck.DegradedOperators(),
		healthcheck.CriticalAlerts(),
		healthcheck.CustomQueries(),
	}
}

// obstacles tells what a cluster that works would not survive an upgrade with, or not get through it.
func obstacles() []healthcheck.Check {
	return []healthcheck.Check{
		healthcheck.Upgradeable(),
		healthcheck.RemovedAPIs(),
		healthcheck.PodDisruptionBudgets(),
	}
}

func (openShift) Finally() []steps.Step {
	return []steps.Step{
		// An update that was refused must not begin by itself later, outside of the window.
		steps.UnacceptedUpdateWithdrawn(),
		// No pool is left paused unsaid; after a failure none moves on outside of the window.
		steps.MachineConfigPoolsGivenBack(),
	}
}
