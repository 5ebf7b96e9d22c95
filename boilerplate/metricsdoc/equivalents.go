// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

// predecessor is an operator before this one.
type predecessor struct {
	name    string
	metrics []equivalent
}

// equivalent says what there is instead of a metric: without the prefix, and with the labels that matter.
type equivalent struct {
	theirs string
	ours   []string
	note   string
}

var muo = predecessor{"Managed Upgrade Operator", []equivalent{
	{"upgradeoperator_upgradeconfig_validation_failed", []string{`ready{kind="UpgradeConfig.upgrade.managed.openshift.io"}`}, "0 means failed; the label `reason` says why"},
	{"upgradeoperator_scaling_failed", []string{"upgradejob_extra_machines", `upgradejob_step_state{step="ComputeCapacityReserved"}`}, "fewer ready than wanted"},
	{"upgradeoperator_upgrade_window_breached", []string{`upgradejob_state{reason="UpgradeWindowBreached"}`}, ""},
	{"upgradeoperator_controlplane_timeout", []string{`upgradejob_step_start_timestamp_seconds{step="ControlPlaneUpgraded"}`, `upgradejob_step_state{step="ControlPlaneUpgraded"}`}, "how long it may take is the alert's to say"},
	{"upgradeoperator_worker_timeout", []string{`upgradejob_step_start_timestamp_seconds{step="WorkerNodesUpgraded"}`, `upgradejob_step_state{step="WorkerNodesUpgraded"}`}, "as above"},
	{"upgradeoperator_healthcheck_failed", []string{"upgradejob_health_findings", "upgradejob_preflight_healthy"}, "before the start too; which step it holds up says `upgradejob_step_state{reason=\"Unhealthy\"}`"},
	{"upgradeoperator_node_drain_timeout", []string{`node_drain_state{state="draining"}`, `upgradejob_blockers{code="DrainBlocked"}`}, "with the pods that are in the way in `status.blockers`"},
	{"upgradeoperator_upgrade_notification", []string{"upgradejob_notifications_pending"}, "0 once all receivers have got all"},
	{"upgradeoperator_upgradeconfig_sync_timestamp", nil, "nothing is synced from elsewhere: the object is applied by whoever owns it"},
	{"upgradeoperator_upgrade_result", []string{`upgradejob_state{state="succeeded"}`, "upgradejob_info"}, "which alerts fired meanwhile says Prometheus's own series `ALERTS`; names of alerts are no labels here"},
	{"upgradeoperator_upgrade_started_timestamp", []string{"upgradejob_started_timestamp_seconds"}, ""},
	{"upgradeoperator_upgrade_completed_timestamp", []string{"upgradejob_completed_timestamp_seconds"}, ""},
	{"upgradeoperator_controlplane_upgrade_started_timestamp", []string{`upgradejob_step_start_timestamp_seconds{step="ControlPlaneUpgraded"}`, "upgradejob_commenced_timestamp_seconds"}, "it does not move while the step runs"},
	{"upgradeoperator_controlplane_upgrade_completed_timestamp", []string{`upgradejob_step_completion_timestamp_seconds{step="ControlPlaneUpgraded"}`}, ""},
	{"upgradeoperator_workernode_upgrade_started_timestamp", []string{`upgradejob_step_start_timestamp_seconds{step="WorkerNodesUpgraded"}`}, ""},
	{"upgradeoperator_workernode_upgrade_completed_timestamp", []string{`upgradejob_step_completion_timestamp_seconds{step="WorkerNodesUpgraded"}`}, ""},
	{"upgrade_notification_failed", []string{"upgradejob_notifications_oldest_pending_timestamp_seconds"}, "what failed, and why, is in `status.notifications`"},
	{"managed_upgrade_upgrade_start_timestamp", []string{"upgradejob_started_timestamp_seconds"}, "of the job that carries the object out"},
	{"managed_upgrade_upgrade_complete_timestamp", []string{"upgradejob_completed_timestamp_seconds"}, "as above"},
	{"managed_upgrade_upgrade_scheduled", []string{"muo_upgradeconfig_scheduled_timestamp_seconds", "muo_upgradeconfig_info"}, ""},
	{"managed_upgrade_upgrade_pdb_timeout_minutes", nil, "a setting; what came of it: `nodeforcedrain_pods_deleted_total`"},
	{"managed_upgrade_condition_<step>_timestamp", []string{"upgradejob_step_start_timestamp_seconds", "upgradejob_step_completion_timestamp_seconds", "upgradejob_step_state"}, "start and end apart, with the step as a label"},
}}

var appuio = predecessor{"APPUiO's openshift-upgrade-controller", []equivalent{
	{"openshift_upgrade_controller_cluster_upgrading", []string{"cluster_updating", "machine_config_pool_updating"}, "the release, and each pool, apart"},
	{"openshift_upgrade_controller_machine_config_pools_upgrading", []string{"machine_config_pool_updating"}, ""},
	{"openshift_upgrade_controller_machine_config_pools_paused", []string{"machine_config_pool_paused"}, "and by whom: `upgradejob`"},
	{"openshift_upgrade_controller_upgradejob_state", []string{"upgradejob_state", "upgradejob_info"}, "versions and hooks are labels of the second one; `skipped` is a state of its own, where theirs failed"},
	{"openshift_upgrade_controller_upgradejob_start_after_timestamp_seconds", []string{"upgradejob_start_after_timestamp_seconds"}, ""},
	{"openshift_upgrade_controller_upgradejob_start_before_timestamp_seconds", []string{"upgradejob_start_before_timestamp_seconds"}, ""},
	{"openshift_upgrade_controller_upgradesuspensionwindow_info", []string{"upgradesuspensionwindow_info"}, ""},
	{"openshift_upgrade_controller_upgradesuspensionwindow_start_timestamp_seconds", []string{"upgradesuspensionwindow_start_timestamp_seconds"}, ""},
	{"openshift_upgrade_controller_upgradesuspensionwindow_end_timestamp_seconds", []string{"upgradesuspensionwindow_end_timestamp_seconds"}, ""},
	{"openshift_upgrade_controller_upgradesuspensionwindow_matching_config", []string{"upgradesuspensionwindow_matching_config"}, "the label is `upgradeconfig`, where theirs is `config`"},
	{"openshift_upgrade_controller_upgradeconfig_info", []string{"upgradeconfig_info", "upgradeconfig_suspended"}, ""},
	{"openshift_upgrade_controller_upgradeconfig_pin_version_window_seconds", []string{"upgradeconfig_pin_version_window_seconds"}, ""},
	{"openshift_upgrade_controller_upgradeconfig_next_possible_schedule_timestamp_seconds", []string{"upgradeconfig_next_start_timestamp_seconds"}, "without the label `timestamp`, so that series last"},
	{"openshift_upgrade_controller_cluster_version_info", []string{"cluster_version_info"}, "of the cluster itself"},
	{"openshift_upgrade_controller_cluster_version_overlay_timestamp_seconds", []string{"clusterversion_overlay_timestamp_seconds", "clusterversion_overlay_applied"}, ""},
	{"openshift_upgrade_controller_node_draining", []string{`node_drain_state{state="draining"}`}, "only of nodes that are drained: absent, where theirs is 0"},
	{"openshift_upgrade_controller_machine_info", nil, "OpenShift exports `mapi_machine_created_timestamp_seconds` with the machine, its node, provider id and phase"},
	{"openshift_upgrade_controller_node_force_drain_pod_deletions_total", []string{"nodeforcedrain_pods_deleted_total"}, "one series an object; which pods these were is in `status.lastDeletedPods` and in Events"},
	{"openshift_upgrade_controller_node_force_drain_pod_terminations_total", []string{"nodeforcedrain_pods_force_deleted_total"}, "as above"},
}}
