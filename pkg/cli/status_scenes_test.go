// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	o "github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

// scenes are the moments of an upgrade, one for each picture that people get to see.
func scenes() []scene {
	return slices.Concat(scenesBefore(), scenesDuring(), scenesAfter())
}

func scenesBefore() []scene {
	unhealthy := v1beta1.PreflightUnhealthy("2 findings: ClusterOperator dns is degraded: DNSDegraded; alert KubeAPIDown is firing.")
	return []scene{
		{"no-config", window.Add(-26 * time.Hour), cluster(o.Available())},
		{"idle", window.Add(-26 * time.Hour), append(cluster(), weekly(),
			upgradeJob(jobNamed("weekly-1794949200-abc1234", -7*24*time.Hour), started(-7*24*time.Hour, allSteps...),
				finished(v1beta1.Succeeded(v1beta1.ReasonUpgraded, "The cluster runs the desired version."), -7*24*time.Hour+80*time.Minute)))},
		{"managed", window.Add(-26 * time.Hour), append(cluster(), managedConfig())},
		{"suspended", window.Add(-26 * time.Hour), append(cluster(), weekly(func(c *v1beta1.UpgradeConfig) { c.Spec.Schedule.Suspend = true }),
			upgradeJob(), suspensionWindow("freeze", -48*time.Hour, 48*time.Hour))},
		{"pending-healthy", window.Add(-3 * time.Hour), append(cluster(), weekly(), upgradeJob(preflight(v1beta1.PreflightHealthy("No health check has a finding."))))},
		{"pending-unhealthy", window.Add(-20 * time.Minute), append(cluster(), weekly(), upgradeJob(preflight(unhealthy,
			blocker("ClusterOperatorDegraded", "ClusterOperator/dns", -30*time.Minute, "ClusterOperator dns is degraded: DNSDegraded", "the operator is not degraded any more"),
			blocker("AlertFiring", "Alert/KubeAPIDown", -5*time.Minute, "Alert KubeAPIDown is firing", "the alert is resolved"))))},
	}
}

func scenesDuring() []scene {
	controlPlane := []client.Object{
		updating("Working towards 4.18.2: 503 of 842 done (59% complete), waiting on kube-apiserver"),
		o.ClusterOperator("dns"), o.ClusterOperator("etcd", o.OperatorAt("4.18.2")),
		o.ClusterOperator("kube-apiserver", o.OperatorCondition(configv1.OperatorProgressing, configv1.ConditionTrue, "NodeInstaller", "2 nodes are at revision 7")),
		o.ClusterOperator("network", o.OperatorCondition(configv1.OperatorDegraded, configv1.ConditionTrue, "RolloutHung", "DaemonSet ovnkube-node rollout is not making progress")),
		o.Pool("master"), o.Pool("worker"), weekly(), suspensionWindow("freeze", 20*24*time.Hour, 40*24*time.Hour),
		upgradeJob(started(time.Minute, preflightSteps...), withHooks, withReceivers,
			waiting("ControlPlaneUpgraded", 11*time.Minute, v1beta1.ReasonControlPlaneUpdating, "Working towards 4.18.2: 503 of 842 done (59% complete), waiting on kube-apiserver",
				blocker("ClusterOperatorDegraded", "ClusterOperator/network", 20*time.Minute, "ClusterOperator network is degraded (RolloutHung): DaemonSet ovnkube-node rollout is not making progress", "ClusterOperator network is at 4.18.2 and healthy"),
				blocker("ClusterOperatorUpdating", "ClusterOperator/kube-apiserver", 15*time.Minute, "ClusterOperator kube-apiserver is updating: 2 nodes are at revision 7", "ClusterOperator kube-apiserver is at 4.18.2"))),
	}
	return []scene{
		{"control-plane", window.Add(45 * time.Minute), append(controlPlane, configs("4.18.1", "4.18.2")...)},
		{"workers", window.Add(95 * time.Minute), workers(o.Node("worker-0", "worker", o.NodeTowards("worker", "4.18.2"), o.NodeRebooting("4.18.2")))},
		{"stuck-drain", window.Add(2 * time.Hour), append(workers(o.Node("worker-0", "worker", o.NodeTowards("worker", "4.18.2"), o.NodeDraining("4.18.2"))),
			o.Pod("shop", "cart", 0, "worker-0"), o.Budget("shop", "cart", 1, 1, 1))},
		{"paused", window.Add(4 * time.Hour), append([]client.Object{
			upgraded(), o.ClusterOperator("dns", o.OperatorAt("4.18.2")), o.Pool("master", o.PoolAt("4.18.2")), o.Pool("worker", o.PoolAt("4.18.2")),
			o.Pool("night", o.PoolTowards("4.18.2", 0), o.PoolPausedBy("upgrades/weekly-1795554000-abc1234")), o.MachineConfig("night", "4.18.2"), weekly(),
			upgradeJob(started(time.Minute, allSteps[:9]...), pausedUntilNight),
		}, configs("4.18.1", "4.18.2")...)},
	}
}

// workers is the cluster while its workers follow.
func workers(nodes ...client.Object) []client.Object {
	return append(append([]client.Object{
		upgraded(), o.ClusterOperator("dns", o.OperatorAt("4.18.2")), o.ClusterOperator("kube-apiserver", o.OperatorAt("4.18.2")),
		o.Pool("master", o.PoolAt("4.18.2")), o.Pool("worker", o.PoolTowards("4.18.2", 1)), weekly(),
		o.Node("master-0", "master", atVersion("master", "4.18.2")),
		o.Node("worker-1", "worker", atVersion("worker", "4.18.2")), o.Node("worker-2", "worker"),
		upgradeJob(started(time.Minute, allSteps[:6]...), waiting("MachineConfigPoolsUpgraded", 85*time.Minute, v1beta1.ReasonMachineConfigPoolsUpdating,
			"worker: 1 of 3 machines updated, 1 unavailable",
			blocker("MachineConfigPoolUpdating", "MachineConfigPool/worker", 85*time.Minute, "Pool worker: 1 of 3 machines updated, 1 unavailable", "every machine of pool worker runs the new configuration")),
			workerInWork),
	}, nodes...), configs("4.18.1", "4.18.2")...)
}

func scenesAfter() []scene {
	failed := upgradeJob(started(time.Minute, allSteps[:6]...), waiting("MachineConfigPoolsUpgraded", 85*time.Minute, v1beta1.ReasonMachineConfigPoolsUpdating,
		"worker: 1 of 3 machines updated",
		blocker("DrainBlocked", "Pod/shop/cart-0", 2*time.Hour, "Node worker-0 of pool worker is draining and waits for pod shop/cart-0: PodDisruptionBudget shop/cart allows no disruption", "pod shop/cart-0 has left node worker-0")),
		finished(v1beta1.Failed(v1beta1.ReasonTimedOut, "The job did not end by 2026-11-25T09:00:00Z."), 12*time.Hour),
		func(job *v1beta1.UpgradeJob) {
			addCondition(job, v1beta1.StepNotDone(v1beta1.ConditionGivenBack, v1beta1.ReasonGivingBack, "Silences are not deleted yet: Alertmanager is away."), 12*time.Hour)
		})
	skipped := upgradeJob(preflight(v1beta1.PreflightHealthy("")), finished(v1beta1.Skipped(v1beta1.ReasonExpired,
		"The job could not start by 2026-11-24T22:00:00Z. The cluster is locked by UpgradeJob upgrades/other."), time.Hour))
	return []scene{
		{"failed", window.Add(20 * time.Hour), append([]client.Object{
			upgraded(), o.ClusterOperator("dns", o.OperatorAt("4.18.2")), o.Pool("master", o.PoolAt("4.18.2")),
			o.Pool("worker", o.PoolTowards("4.18.2", 1), o.PoolPausedBy(failed.LockKey())), weekly(), failed,
		}, configs("4.18.1", "4.18.2")...)},
		{"skipped", window.Add(20 * time.Hour), append(cluster(), weekly(), skipped)},
	}
}
