// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	o "github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

// withHooks gives the job a hook that succeeded, one that failed and is ignored, and one that runs.
func withHooks(job *v1beta1.UpgradeJob) {
	job.Status.HookTracker = []v1beta1.HookRun{
		{UpgradeJobHook: "backup", HookEvent: v1beta1.HookEventStart, Status: v1beta1.HookRunSucceeded, Job: "backup-1", StartTime: at(time.Minute), CompletionTime: new(at(3 * time.Minute))},
		{UpgradeJobHook: "chat", HookEvent: v1beta1.HookEventStart, Status: v1beta1.HookRunFailed, FailurePolicy: v1beta1.HookFailureIgnore, Job: "chat-1",
			Message: "Job has reached the specified backoff limit", StartTime: at(time.Minute), CompletionTime: new(at(2 * time.Minute))},
		{UpgradeJobHook: "probe", HookEvent: v1beta1.HookEventStepStarted("ControlPlaneUpgraded"), Status: v1beta1.HookRunActive, Job: "probe-1", StartTime: at(11 * time.Minute)},
	}
}

// managedConfig is an object of the Managed Upgrade Operator's kind for the window.
func managedConfig() *v1alpha1.UpgradeConfig {
	config := &v1alpha1.UpgradeConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-managed-upgrade-operator", Name: "managed-upgrade-config"}}
	config.Spec = v1alpha1.UpgradeConfigSpec{Type: v1alpha1.OSD, UpgradeAt: "2026-11-24T21:00:00Z", Desired: v1alpha1.Update{Version: "4.18.2", Channel: "stable-4.18"}}
	config.Status.History = []v1alpha1.UpgradeHistory{{Version: "4.18.2", Phase: v1alpha1.UpgradePhasePending}, {Version: "4.18.1", Phase: v1alpha1.UpgradePhaseUpgraded}}
	return config
}

// withReceivers gives the job a receiver of notifications that does not answer.
func withReceivers(job *v1beta1.UpgradeJob) {
	job.Spec.Config.Notifications = []v1beta1.NotificationReceiver{{Name: "pager"}}
	job.Status.Notifications = &v1beta1.NotificationsStatus{
		Sequence: 2,
		Outbox: []v1beta1.Notice{
			{Sequence: 1, Type: v1beta1.NotificationJobStarted, Time: at(time.Minute), Phase: v1beta1.PhaseActive},
			{Sequence: 2, Type: v1beta1.NotificationStepWaiting, Time: at(11 * time.Minute), Condition: "ControlPlaneUpgraded", Reason: v1beta1.ReasonControlPlaneUpdating, Message: "Working towards 4.18.2"},
		},
		Receivers: []v1beta1.NotificationReceiverStatus{{Name: "pager", Cursor: 1, Delivered: 1, Pending: 1, LastError: "it answered with status 503"}},
	}
}

// pausedUntilNight has the job wait for the time of pool night.
func pausedUntilNight(job *v1beta1.UpgradeJob) {
	waiting("DelayedPoolsUpgraded", 2*time.Hour, v1beta1.ReasonMachineConfigPoolsDelayed, "night: paused until 2026-11-25T03:00:00Z.",
		blocker("MachineConfigPoolDelayed", "MachineConfigPool/night", 2*time.Hour, "Pool night is paused until 2026-11-25T03:00:00Z.", "it is 2026-11-25T03:00:00Z"))(job)
	job.Status.Phase = v1beta1.PhasePaused
	job.Status.Pools = []v1beta1.MachineConfigPoolStatus{{
		Name: "night", State: v1beta1.PoolStatePaused, Paused: true, PausedBy: job.LockKey(), UnpauseAfter: new(at(6 * time.Hour)), UnpauseBefore: new(at(8 * time.Hour)),
		Machines: 3,
	}}
}

// workerInWork has the job know since when worker-0 drains, and reboots.
func workerInWork(job *v1beta1.UpgradeJob) {
	job.Status.Pools = []v1beta1.MachineConfigPoolStatus{{
		Name: "worker", State: v1beta1.PoolStateUpdating, Machines: 3, Updated: 1, Unavailable: 1, NodesInWork: 1,
		Nodes: []v1beta1.NodeStatus{{Name: "worker-0", Phase: v1beta1.NodePhaseDraining, Since: at(90 * time.Minute)}},
	}}
}

// atVersion makes the node run the configuration of a release, and its kubelet.
func atVersion(pool, version string) func(*corev1.Node) {
	return func(node *corev1.Node) {
		o.NodeAnnotations(map[string]string{"currentConfig": o.RenderedConfig(pool, version), "desiredConfig": o.RenderedConfig(pool, version)})(node)
		node.Status.NodeInfo.KubeletVersion = "v1.31.6"
	}
}
