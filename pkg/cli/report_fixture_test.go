// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

// night is when the jobs of the reports start, in a zone that is not UTC.
var night = time.Date(2026, 11, 22, 2, 0, 0, 0, time.FixedZone("CET", 3600))

// minute is a time so many minutes into the night, as the API tells it.
func minute(m float64) metav1.Time {
	return metav1.NewTime(night.Add(time.Duration(m * float64(time.Minute))).UTC())
}

// nightJob returns a job that started at minute 0, in a window of an hour.
func nightJob(name string, phase v1beta1.Phase, options ...func(*v1beta1.UpgradeJob)) *v1beta1.UpgradeJob {
	job := &v1beta1.UpgradeJob{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "managed-upgrade-operator", Name: name, CreationTimestamp: minute(-4), Generation: 1,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: v1beta1.GroupVersion.String(), Kind: "UpgradeConfig", Name: "weekly", Controller: ptr.To(true)}},
		},
		Spec: v1beta1.UpgradeJobSpec{
			StartAfter: minute(0), StartBefore: minute(60), DesiredVersion: &v1beta1.DesiredVersion{Version: "4.18.2", Image: openshifttest.Image("4.18.2")},
		},
		Status: v1beta1.UpgradeJobStatus{Phase: phase, FromVersion: "4.18.1", StartTime: ptr.To(minute(0.1))},
	}
	for _, option := range options {
		option(job)
	}
	return job
}

// step adds a step to a job: from and to in minutes of the night, to 0 for one that is not done.
func step(name string, from, to float64, reason, message string) func(*v1beta1.UpgradeJob) {
	return func(job *v1beta1.UpgradeJob) {
		s := v1beta1.StepStatus{Condition: name, StartTime: minute(from), Attempts: 1}
		c := v1beta1.StepNotDone(name, reason, message)
		if to != 0 {
			s.CompletionTime = ptr.To(minute(to))
			c = v1beta1.StepDone(name, message)
		}
		c.LastTransitionTime = minute(max(from, to))
		job.Status.Steps = append(job.Status.Steps, s)
		job.Status.Conditions = append(job.Status.Conditions, c)
	}
}

// hook adds a run of a hook: from and to in minutes, to 0 for one that runs.
func hook(name, event, key string, from, to float64, failed string) func(*v1beta1.UpgradeJob) {
	return func(job *v1beta1.UpgradeJob) {
		run := v1beta1.HookRun{
			HookEvent: v1beta1.HookEvent(event), TrackingKey: key, UpgradeJobHook: name, FailurePolicy: v1beta1.HookFailureIgnore,
			Job: name + "-7f2c1", Status: v1beta1.HookRunActive, StartTime: minute(from),
		}
		if to != 0 {
			run.CompletionTime, run.Status = ptr.To(minute(to)), v1beta1.HookRunSucceeded
		}
		if failed != "" {
			run.Status, run.Message = v1beta1.HookRunFailed, failed
		}
		job.Status.HookTracker = append(job.Status.HookTracker, run)
	}
}

// outcome ends a job.
func outcome(c metav1.Condition, at float64) func(*v1beta1.UpgradeJob) {
	return func(job *v1beta1.UpgradeJob) {
		c.LastTransitionTime = minute(at)
		job.Status.Conditions = append(job.Status.Conditions, c)
		job.Status.CompletionTime = ptr.To(minute(at))
	}
}

// poolSince sets since when a condition of a pool stands, and the count of machines.
func poolSince(t mcfgv1.MachineConfigPoolConditionType, at float64, machines, updated int32) func(*mcfgv1.MachineConfigPool) {
	return func(pool *mcfgv1.MachineConfigPool) {
		pool.Status.MachineCount, pool.Status.UpdatedMachineCount = machines, updated
		for i := range pool.Status.Conditions {
			if pool.Status.Conditions[i].Type == t {
				pool.Status.Conditions[i].LastTransitionTime = minute(at)
			}
		}
	}
}

// failedNight is a job of 17 steps, as the upgrader OSD has them, that failed in the middle of its workers.
func failedNight() (*snapshot, []nodeTimes) {
	job := nightJob("weekly-1795395600-3f9a1c2", v1beta1.PhaseFailed,
		func(job *v1beta1.UpgradeJob) {
			job.Spec.Config.Upgrader = "OSD"
			job.Spec.Config.UpgradeTimeout = &v1beta1.Duration{Duration: 3 * time.Hour}
			job.Spec.Config.Notifications = []v1beta1.NotificationReceiver{{Name: "on-call"}}
			job.Status.CommenceTime = ptr.To(minute(14))
			job.Status.Stages = []v1beta1.StageStatus{
				{Stage: v1beta1.StageStarted, Time: minute(0.1)}, {Stage: v1beta1.StageControlPlaneStarted, Time: minute(14)},
				{Stage: v1beta1.StageControlPlaneFinished, Time: minute(76)}, {Stage: v1beta1.StageFailed, Time: minute(180)},
			}
			job.Status.MaintenanceWindows = []v1beta1.MaintenanceWindowStatus{
				{Name: v1beta1.ControlPlaneWindow, StartTime: minute(13), Until: minute(76)},
				{Name: v1beta1.WorkersWindow, StartTime: minute(77), Until: minute(240)},
			}
		},
		step("StartedNotificationSent", 0.1, 0.2, "", "The receivers know."),
		step("UpgradeNotDelayed", 0.2, 0.2, "", "The upgrade is in time."),
		step("IsClusterUpgradable", 0.2, 0.3, "", "OpenShift would not refuse the upgrade."),
		step("ClusterHealthyBeforeUpgrade", 0.3, 8, "", "The cluster is healthy."),
		step("ExternalDependenciesAvailable", 8, 8.5, "", "All dependencies answer."),
		step("ComputeCapacityReserved", 8.5, 13, "", "2 extra machines are ready."),
		step("ControlPlaneMaintenanceWindowCreated", 13, 14, "", "Alerts are silenced."),
		step("UpgradeCommenced", 14, 14, "", "Asked for 4.18.2."),
		step("ControlPlaneUpgraded", 14, 76, "", "The control plane runs 4.18.2."),
		step("ControlPlaneMaintenanceWindowRemoved", 76, 76.5, "", "No alerts of the control plane are silenced any more."),
		step("WorkersMaintenanceWindowCreated", 76.5, 77, "", "Alerts are silenced."),
		step("WorkerNodesUpgraded", 77, 0, "MachineConfigPoolsUpdating", "Pool worker: 5 of 9 machines are updated."),
		hook("backup-etcd", "Create", "", -4, -1, ""),
		hook("tell-users", "StepStarted/UpgradeCommenced", "", 13.2, 14, ""),
		hook("smoke-test", "StepCompleted/ControlPlaneUpgraded", "", 76, 79, "Job smoke-test-7f2c1 failed: BackoffLimitExceeded: Job has reached the specified backoff limit"),
		hook("tell-users", "Failure", "", 180, 180.5, ""),
		outcome(v1beta1.Failed("TimedOut", "The job did not end within 3h. Last it waited for: Node worker-5 of pool worker is draining and waits for pod shop/cart-0: PodDisruptionBudget shop/cart allows no disruption"), 180),
		func(job *v1beta1.UpgradeJob) {
			job.Status.Blockers = []v1beta1.Blocker{{
				Code: "DrainBlocked", Object: "Pod/shop/cart-0", Since: minute(121),
				Message:    "Node worker-5 of pool worker is draining and waits for pod shop/cart-0: PodDisruptionBudget shop/cart allows no disruption",
				ClearsWhen: "pod shop/cart-0 has left node worker-5",
			}}
		},
	)
	s := &snapshot{
		Now: night.Add(200 * time.Minute),
		Version: openshifttest.ClusterVersion(
			openshifttest.History(configv1.UpdateHistory{State: configv1.CompletedUpdate, Version: "4.18.2", Image: openshifttest.Image("4.18.2")}, openshifttest.Completed("4.18.1"))),
		Pools: []mcfgv1.MachineConfigPool{
			*openshifttest.Pool("infra", openshifttest.PoolTowards("4.18.2", 0), openshifttest.PoolPausedBy(job.LockKey())),
			*openshifttest.Pool("master", openshifttest.PoolAt("4.18.2"), poolSince(mcfgv1.MachineConfigPoolUpdated, 75, 3, 3)),
			*openshifttest.Pool("storage", openshifttest.PoolAt("4.18.2"), poolSince(mcfgv1.MachineConfigPoolUpdated, 104, 4, 4)),
			*openshifttest.Pool("worker", openshifttest.PoolTowards("4.18.2", 5), poolSince(mcfgv1.MachineConfigPoolUpdating, 58, 9, 5)),
		},
		RenderedBy: map[string]string{"infra": "4.18.2", "master": "4.18.2", "storage": "4.18.2", "worker": "4.18.2"},
		Operators:  []configv1.ClusterOperator{*openshifttest.ClusterOperator("etcd", openshifttest.OperatorAt("4.18.2")), *openshifttest.ClusterOperator("ingress", openshifttest.OperatorAt("4.18.2"))},
		Jobs:       []v1beta1.UpgradeJob{*job},
	}
	job.Status.Pools = []v1beta1.MachineConfigPoolStatus{{Name: "infra", State: v1beta1.PoolStatePaused, Paused: true, PausedBy: job.LockKey(), Machines: 3}}
	s.Jobs[0].Status.Pools = job.Status.Pools
	var times []nodeTimes
	for i, at := range []float64{36, 55, 75} {
		times = append(times, nodeTimes{Name: fmt.Sprintf("master-%d", i), Pool: "master", Done: minute(at).Time})
	}
	for i, at := range []float64{66, 78, 91, 104} {
		times = append(times, nodeTimes{Name: fmt.Sprintf("storage-%d", i), Pool: "storage", Done: minute(at).Time})
	}
	for i, at := range []float64{69, 82, 94, 107, 119} {
		times = append(times, nodeTimes{Name: fmt.Sprintf("worker-%d", i), Pool: "worker", Done: minute(at).Time})
	}
	return s, times
}

// runningNight is a job in the middle of its workers, with a drain that a budget holds and a pool that comes later.
func runningNight() (*snapshot, []nodeTimes) {
	job := nightJob("weekly-1795395600-3f9a1c2", v1beta1.PhaseActive,
		func(job *v1beta1.UpgradeJob) {
			job.Status.CommenceTime = ptr.To(minute(12))
			job.Status.Pools = []v1beta1.MachineConfigPoolStatus{
				{Name: "infra", State: v1beta1.PoolStatePaused, Paused: true, PausedBy: "managed-upgrade-operator/weekly-1795395600-3f9a1c2", Machines: 3,
					UnpauseAfter: ptr.To(minute(150)), UnpauseBefore: ptr.To(minute(210))},
				{Name: "storage", State: v1beta1.PoolStateUpdating, Machines: 4, Updated: 1, UnpauseAfter: ptr.To(minute(60))},
			}
			job.Status.Blockers = []v1beta1.Blocker{
				{Code: "DrainBlocked", Object: "Pod/shop/cart-0", Since: minute(88), ClearsWhen: "pod shop/cart-0 has left node worker-5",
					Message: "Node worker-5 of pool worker is draining and waits for pod shop/cart-0: PodDisruptionBudget shop/cart allows no disruption"},
				{Code: "MachineConfigPoolUpdating", Object: "MachineConfigPool/worker", Since: minute(70), Message: "Pool worker: 2 of 9 machines are updated", ClearsWhen: "every machine of pool worker runs the new configuration"},
			}
			job.Status.Conditions = append(job.Status.Conditions, v1beta1.Started("The job has started."))
			job.Status.Conditions[0].LastTransitionTime = minute(0.1)
		},
		step("StartHooksCompleted", 0.1, 4, "", "1 hook has run."),
		step("MachineConfigPoolsPaused", 4, 4, "", "Paused: infra, storage."),
		step("ClusterHealthyBeforeUpgrade", 4, 11, "", "The cluster is healthy."),
		step("UpdateAvailable", 11, 11, "", "4.18.2 is offered."),
		step("UpgradeCommenced", 11, 12, "", "Asked for 4.18.2."),
		step("ControlPlaneUpgraded", 12, 70, "", "The control plane runs 4.18.2."),
		step("MachineConfigPoolsUpgraded", 70, 0, "MachineConfigPoolsUpdating", "Pool worker: 2 of 9 machines are updated; node worker-5 is draining"),
		hook("backup-etcd", "Start", "", 0.2, 4, ""),
		hook("smoke-test", "MachineConfigPoolUnpause", "storage", 70, 74, ""),
		hook("smoke-test", "MachineConfigPoolUnpause", "worker", 71, 76, ""),
		hook("rebalance", "StepCompleted/ControlPlaneUpgraded", "", 96, 0, ""),
	)
	s := &snapshot{
		Now: night.Add(100 * time.Minute),
		Version: openshifttest.ClusterVersion(
			openshifttest.History(configv1.UpdateHistory{State: configv1.CompletedUpdate, Version: "4.18.2", Image: openshifttest.Image("4.18.2")}, openshifttest.Completed("4.18.1"))),
		Pools: []mcfgv1.MachineConfigPool{
			*openshifttest.Pool("infra", openshifttest.PoolTowards("4.18.2", 0), openshifttest.PoolPausedBy(job.LockKey())),
			*openshifttest.Pool("master", openshifttest.PoolAt("4.18.2"), poolSince(mcfgv1.MachineConfigPoolUpdated, 68, 3, 3)),
			*openshifttest.Pool("storage", openshifttest.PoolTowards("4.18.2", 1), poolSince(mcfgv1.MachineConfigPoolUpdating, 75, 4, 1)),
			*openshifttest.Pool("worker", openshifttest.PoolTowards("4.18.2", 2), poolSince(mcfgv1.MachineConfigPoolUpdating, 58, 9, 2)),
		},
		RenderedBy: map[string]string{"infra": "4.18.2", "master": "4.18.2", "storage": "4.18.2", "worker": "4.18.2"},
		Operators:  []configv1.ClusterOperator{*openshifttest.ClusterOperator("etcd", openshifttest.OperatorAt("4.18.2"))},
		Jobs:       []v1beta1.UpgradeJob{*job},
		Nodes: []nodeInWork{
			{Name: "storage-1", Pool: "storage", Progress: openshift.NodeProgress{Phase: v1beta1.NodePhaseRebooting}, Since: ptr.To(minute(95))},
			{Name: "worker-5", Pool: "worker", Progress: openshift.NodeProgress{Phase: v1beta1.NodePhaseDraining}, Since: ptr.To(minute(82)), Held: []openshift.HeldEviction{
				{Namespace: "shop", Name: "cart-0", Reason: "PodDisruptionBudget", Budgets: []string{"shop/cart"}, Message: "PodDisruptionBudget shop/cart allows no disruption"},
			}},
		},
	}
	times := []nodeTimes{
		{Name: "master-0", Pool: "master", Done: minute(32).Time}, {Name: "master-1", Pool: "master", Done: minute(50).Time}, {Name: "master-2", Pool: "master", Done: minute(68).Time},
		{Name: "storage-0", Pool: "storage", Done: minute(86).Time},
		{Name: "storage-1", Pool: "storage", Stages: []nodeStage{{"preparing", minute(87).Time}, {"draining", minute(87.5).Time}, {"updating", minute(90).Time}, {"rebooting", minute(95).Time}}},
		{Name: "worker-0", Pool: "worker", Done: minute(70).Time}, {Name: "worker-1", Pool: "worker", Done: minute(81).Time},
		{Name: "worker-5", Pool: "worker", Stages: []nodeStage{{"preparing", minute(81).Time}, {"draining", minute(82).Time}}},
	}
	return s, times
}
