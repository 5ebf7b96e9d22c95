// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

func TestCluster(t *testing.T) {
	const all = "cluster_version_info cluster_updating cluster_upgrade_progress_ratio cluster_locked cluster_available_updates cluster_highest_available_update_info"
	updating := func(message string) func(*configv1.ClusterVersion) {
		return func(v *configv1.ClusterVersion) {
			v.Spec.Capabilities = &configv1.ClusterVersionCapabilitiesSpec{BaselineCapabilitySet: configv1.ClusterVersionCapabilitySetCurrent}
			v.Annotations = map[string]string{v1beta1.UpgradeJobAnnotation: "upgrades/j"}
			v.Status.Desired.Version = "4.18.2"
			v.Status.History = append([]configv1.UpdateHistory{{State: configv1.PartialUpdate, Version: "4.18.2"}}, v.Status.History...)
			v.Status.Conditions = []configv1.ClusterOperatorStatusCondition{{Type: configv1.OperatorProgressing, Status: configv1.ConditionTrue, Message: message}}
		}
	}
	runCases(t, []metricCase{
		{"there is none", nil, all, ``},
		{"at rest, without updates", []client.Object{newVersion(nil)}, all, `
			cluster_available_updates{risk="conditional"} 0
			cluster_available_updates{risk="recommended"} 0
			cluster_updating 0
			cluster_version_info{baseline_capability_set="",channel="stable-4.18",cluster_id="c1",desired_version="4.18.1",upstream="https://updates",version="4.18.1"} 1`},
		{"with updates", []client.Object{newVersion(func(v *configv1.ClusterVersion) {
			v.Status.AvailableUpdates = []configv1.Release{{Version: "4.18.2"}, {Version: "4.18.10"}, {Version: "4.18.9"}}
			v.Status.ConditionalUpdates = []configv1.ConditionalUpdate{{Release: configv1.Release{Version: "4.18.11"}}}
		})}, "cluster_available_updates cluster_highest_available_update_info", `
			cluster_available_updates{risk="conditional"} 1
			cluster_available_updates{risk="recommended"} 3
			cluster_highest_available_update_info{version="4.18.10"} 1`},
		{"updating, for a job", []client.Object{newVersion(updating("Working towards 4.18.2: 421 of 842 done (50% complete), waiting on etcd"))}, all, `
			cluster_available_updates{risk="conditional"} 0
			cluster_available_updates{risk="recommended"} 0
			cluster_locked{upgradejob="upgrades/j"} 1
			cluster_updating 1
			cluster_upgrade_progress_ratio 0.5
			cluster_version_info{baseline_capability_set="vCurrent",channel="stable-4.18",cluster_id="c1",desired_version="4.18.2",upstream="https://updates",version="4.18.1"} 1`},
		{"more done than there is", []client.Object{newVersion(updating("Working towards 4.18.2: 843 of 842 done (100% complete)"))},
			"cluster_upgrade_progress_ratio", `cluster_upgrade_progress_ratio 1`},
		{"nothing of nothing", []client.Object{newVersion(updating("Working towards 4.18.2: 0 of 0 done"))}, "cluster_upgrade_progress_ratio", ``},
		{"no count", []client.Object{newVersion(updating("Working towards 4.18.2: downloading update"))}, "cluster_upgrade_progress_ratio", ``},
		{"the count of an update that is over", []client.Object{newVersion(func(v *configv1.ClusterVersion) {
			updating("421 of 842 done")(v)
			v.Status.Conditions[0].Status = configv1.ConditionFalse
		})}, "cluster_upgrade_progress_ratio", ``},
	})
}

func TestPools(t *testing.T) {
	failed := v1beta1.Failed(v1beta1.ReasonTimedOut, "")
	keeps := func(job *v1beta1.UpgradeJob) { // it has yet to give back the rest
		job.Finalizers = []string{v1beta1.UpgradeJobFinalizer}
		job.Status.Conditions = append(job.Status.Conditions, v1beta1.StepHolds(v1beta1.ConditionMachineConfigPoolsPaused, true, v1beta1.ReasonLeftPaused, ""))
	}
	givesBack := func(job *v1beta1.UpgradeJob) { job.Finalizers = []string{v1beta1.UpgradeJobFinalizer} }
	const paused = "machine_config_pool_paused machine_config_pool_left_paused"
	const held = `machine_config_pool_paused{pool="app",upgradejob="upgrades/j"} 1
	`
	const left = `machine_config_pool_left_paused{pool="app",upgradejob="upgrades/j"} 1
	` + held
	app := newPool("app", pausedBy("upgrades/j"))
	runCases(t, []metricCase{
		{"numbers", []client.Object{newPool("app", func(p *mcfgv1.MachineConfigPool) {
			p.Status.Conditions = []mcfgv1.MachineConfigPoolCondition{
				{Type: mcfgv1.MachineConfigPoolUpdated, Status: corev1.ConditionFalse}, {Type: mcfgv1.MachineConfigPoolUpdating, Status: corev1.ConditionTrue},
			}
		})}, "machine_config_pool_updating machine_config_pool_machines machine_config_pool_updated_machines machine_config_pool_unavailable_machines machine_config_pool_degraded_machines", `
			machine_config_pool_degraded_machines{pool="app"} 1
			machine_config_pool_machines{pool="app"} 10
			machine_config_pool_unavailable_machines{pool="app"} 2
			machine_config_pool_updated_machines{pool="app"} 7
			machine_config_pool_updating{pool="app"} 1`},
		{"not updating", []client.Object{newPool("app", func(p *mcfgv1.MachineConfigPool) {
			p.Status.Conditions = []mcfgv1.MachineConfigPoolCondition{
				{Type: mcfgv1.MachineConfigPoolUpdating, Status: corev1.ConditionFalse}, {Type: mcfgv1.MachineConfigPoolUpdated, Status: corev1.ConditionTrue},
			}
		})}, "machine_config_pool_updating", `machine_config_pool_updating{pool="app"} 0`},
		{"not paused; an annotation that was forgotten", []client.Object{newPool("app", func(p *mcfgv1.MachineConfigPool) {
			pausedBy("upgrades/gone")(p)
			p.Spec.Paused = false
		})}, paused, `machine_config_pool_paused{pool="app",upgradejob=""} 0`},
		{"paused by somebody", []client.Object{newPool("app", func(p *mcfgv1.MachineConfigPool) { p.Spec.Paused = true })}, paused,
			`machine_config_pool_paused{pool="app",upgradejob=""} 1`},
		{"paused by a job that runs", []client.Object{app, newJob("j", running)}, paused, held},
		{"by a job that is gone", []client.Object{app, newJob("k")}, paused, left},
		{"by a job of that name elsewhere, as it seems", []client.Object{app, newJob("j", running, func(j *v1beta1.UpgradeJob) { j.Namespace = "elsewhere" })}, paused, left},
		{"by a job that has ended, and means to keep it so", []client.Object{app, newJob("j", ended(-7200, failed), keeps)}, paused, left},
		{"by a job that has ended, and let go of everything else", []client.Object{app, newJob("j", ended(-7200, failed))}, paused, left},
		{"by a job that has ended, and is about to release it", []client.Object{app, newJob("j", ended(-7200, failed), givesBack)}, paused, held},
		{"by what is no job", []client.Object{newPool("app", pausedBy("hand"))}, paused, `machine_config_pool_paused{pool="app",upgradejob="hand"} 1`},
	})
}

func TestPoolsOfOtherNamespaces(t *testing.T) {
	c := newTestCollector(newReader(newPool("app", pausedBy("elsewhere/j")), newPool("db", pausedBy("upgrades/j"))), func(o *Options) { o.Namespace = "upgrades" })
	expect(t, c, "machine_config_pool_left_paused", `machine_config_pool_left_paused{pool="db",upgradejob="upgrades/j"} 1`)
}

func TestPoolDelays(t *testing.T) {
	delayed := func(job *v1beta1.UpgradeJob) {
		job.Status.Pools = []v1beta1.MachineConfigPoolStatus{
			{Name: "app", UnpauseAfter: ptrAt(100), UnpauseBefore: ptrAt(200)}, {Name: "db", UnpauseAfter: ptrAt(300)}, {Name: "worker"},
		}
	}
	const delays = "machine_config_pool_unpause_after_timestamp_seconds machine_config_pool_unpause_before_timestamp_seconds"
	runCases(t, []metricCase{
		{"of a job that runs", []client.Object{newJob("j", running, delayed)}, delays, `
			machine_config_pool_unpause_after_timestamp_seconds{pool="app",upgradejob="upgrades/j"} 8.64001e+07
			machine_config_pool_unpause_after_timestamp_seconds{pool="db",upgradejob="upgrades/j"} 8.64003e+07
			machine_config_pool_unpause_before_timestamp_seconds{pool="app",upgradejob="upgrades/j"} 8.64002e+07`},
		{"of a job that has ended", []client.Object{newJob("j", delayed, ended(-7200, v1beta1.Failed(v1beta1.ReasonTimedOut, "")))}, delays, ``},
	})
}

func TestNodes(t *testing.T) {
	worker := newPool("worker", nil)
	runCases(t, []metricCase{{"cordoned ones", []client.Object{
		worker,
		newNode("draining", "state", "Working", "desiredDrain", "drain-1", "lastAppliedDrain", "uncordon-0"),
		newNode("rebooting", "state", "Rebooting"),
		newNode("updating", "state", "Working", "desiredDrain", "drain-1", "lastAppliedDrain", "drain-1"),
		newNode("done", "state", "Done", "desiredDrain", "uncordon-1", "lastAppliedDrain", "drain-1"),
		newNode("degraded", "state", "Degraded", "reason", "disk full"),
		newNode("cordoned-by-hand", "state", "Done", "currentConfig", "a", "desiredConfig", "a"),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "poolless", Annotations: map[string]string{"machineconfiguration.openshift.io/state": "Rebooting"}}},
	}, "node_drain_state", `
		node_drain_state{node="degraded",pool="worker",state="degraded"} 1
		node_drain_state{node="done",pool="worker",state="done"} 1
		node_drain_state{node="draining",pool="worker",state="draining"} 1
		node_drain_state{node="poolless",pool="",state="rebooting"} 1
		node_drain_state{node="rebooting",pool="worker",state="rebooting"} 1
		node_drain_state{node="updating",pool="worker",state="updating"} 1`}})
}

func TestForceDrains(t *testing.T) {
	drain := &v1beta1.NodeForceDrain{ObjectMeta: metav1.ObjectMeta{Namespace: "upgrades", Name: "apps"}}
	drain.Status.PodsDeleted, drain.Status.PodsForceDeleted = 5, 2
	runCases(t, []metricCase{{"counts", []client.Object{drain}, "nodeforcedrain_pods_deleted_total nodeforcedrain_pods_force_deleted_total", `
		nodeforcedrain_pods_deleted_total{namespace="upgrades",nodeforcedrain="apps"} 5
		nodeforcedrain_pods_force_deleted_total{namespace="upgrades",nodeforcedrain="apps"} 2`}})
}
