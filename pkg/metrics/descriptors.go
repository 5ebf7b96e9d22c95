// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package metrics

// The groups of metrics, by the headings of the docs.
var (
	ofOperator = section{group: "The operator", everyReplica: true}
	ofJobs     = section{group: "UpgradeJobs"}
	ofCluster  = section{group: "The cluster"}
	ofPools    = section{group: "Machine config pools and nodes"}
	ofConfigs  = section{group: "UpgradeConfigs"}
	ofWindows  = section{group: "UpgradeSuspensionWindows"}
	ofOthers   = section{group: "Other objects"}
)

// Labels that identify an object.
const (
	labelNamespace = "namespace"
	labelJob       = "upgradejob"
	labelConfig    = "upgradeconfig"
	labelWindow    = "upgradesuspensionwindow"
	labelPool      = "pool"
)

var (
	buildInfo = ofOperator.gauge("build_info",
		"1 for the version of the operator, and of Go that it was built with.", "version", "go_version")
	leader = ofOperator.gauge("leader",
		"1 if this replica is the leader, which upgrades the cluster and tells of it; 0 if it is ready to become it.")
	collectErrors = ofOperator.counter("collect_errors_total",
		"Parts of scrapes that failed: objects of the kind could not be read from the cache, or judged. Their series are missing then.", "kind")
)

var (
	jobState = ofJobs.gauge("upgradejob_state",
		"1 for the state that the job is in: pending, active, paused, succeeded, failed or skipped. The reason is that of the outcome; before it, "+
			"that of the step that the job waits in, or why it has not started.",
		labelNamespace, labelJob, labelConfig, "upgrader", "state", "reason")
	jobInfo = ofJobs.gauge("upgradejob_info",
		"1 for what the job upgrades from and to. matches_disruptive_hooks is true if a hook that selects the job is disruptive.",
		labelNamespace, labelJob, labelConfig, "upgrader", "from_version", "desired_version", "desired_image", "matches_disruptive_hooks")
	jobStartAfter = ofJobs.gauge("upgradejob_start_after_timestamp_seconds",
		"Earliest start of the job, in seconds since 1970.", labelNamespace, labelJob)
	jobStartBefore = ofJobs.gauge("upgradejob_start_before_timestamp_seconds",
		"Latest start of the job, in seconds since 1970: if it could not start by then it is skipped.", labelNamespace, labelJob)
	jobStarted = ofJobs.gauge("upgradejob_started_timestamp_seconds",
		"When the job started, in seconds since 1970. Absent for a job that never did.", labelNamespace, labelJob)
	jobCommenced = ofJobs.gauge("upgradejob_commenced_timestamp_seconds",
		"When the job asked the cluster for the desired version, in seconds since 1970. Absent before.", labelNamespace, labelJob)
	jobCompleted = ofJobs.gauge("upgradejob_completed_timestamp_seconds",
		"When the job ended, in seconds since 1970. Absent before.", labelNamespace, labelJob)
	jobDeadline = ofJobs.gauge("upgradejob_deadline_timestamp_seconds",
		"When the job fails if it has not ended, in seconds since 1970: upgradeTimeout after startAfter, or after it was resumed. Absent once it has ended.",
		labelNamespace, labelJob)
	jobPreflightHealthy = ofJobs.gauge("upgradejob_preflight_healthy",
		"1 if nothing would hold the job up if it started now, else 0. Only while it waits for its start, from a few hours before it on.",
		labelNamespace, labelJob)
	stepState = ofJobs.gauge("upgradejob_step_state",
		"1 for the state that a step of the job is in: pending, waiting, completed or failed. Of jobs that have not ended, and of the newest of each config that has.",
		labelNamespace, labelJob, "step", "state", "reason")
	stepStarted = ofJobs.gauge("upgradejob_step_start_timestamp_seconds",
		"When the step was started last, in seconds since 1970. Of the same jobs as upgradejob_step_state.", labelNamespace, labelJob, "step")
	stepCompleted = ofJobs.gauge("upgradejob_step_completion_timestamp_seconds",
		"When the step was done, in seconds since 1970. Of the same jobs as upgradejob_step_state.", labelNamespace, labelJob, "step")
	stepDuration = ofJobs.histogram("step_duration_seconds",
		"How long steps took that this process saw completed, in seconds from their last start on.", "upgrader", "step")
	jobBlockers = ofJobs.gauge("upgradejob_blockers",
		"How many things of this code hold the job up, or would if it started now. The status of a job names at most 32 in all.", labelNamespace, labelJob, "code")
	jobFindings = ofJobs.gauge("upgradejob_health_findings",
		"How many of these things are findings of this health check.", labelNamespace, labelJob, "check")
	jobHookRuns = ofJobs.gauge("upgradejob_hook_runs",
		"How many runs of the hook at the event have this status for the job: pending, active, succeeded or failed.",
		labelNamespace, labelJob, "upgradejobhook", "event", "status")
	notificationsPending = ofJobs.gauge("upgradejob_notifications_pending",
		"How many notifications receivers of the job have not got yet, summed over the receivers. Absent for a job without receivers.", labelNamespace, labelJob)
	notificationsOldest = ofJobs.gauge("upgradejob_notifications_oldest_pending_timestamp_seconds",
		"Of when the oldest transition is that a receiver has not been told of, in seconds since 1970. Absent if there is none.", labelNamespace, labelJob)
	jobSilences = ofJobs.gauge("upgradejob_silences",
		"How many silences the job holds in Alertmanager for the maintenance window.", labelNamespace, labelJob, "maintenance_window")
	jobExtraMachines = ofJobs.gauge("upgradejob_extra_machines",
		"How many machines the job has added for the time of the upgrade: wanted, and of these ready.", labelNamespace, labelJob, "state")
	jobGivenBack = ofJobs.gauge("upgradejob_given_back",
		"1 if the job, which has ended, has given back what it held; 0 while it has not. Absent unless that takes long.", labelNamespace, labelJob)
)

// stepBuckets are from what is done at once to the night that a control plane with its pools may take.
var stepBuckets = []float64{1, 10, 30, 60, 5 * 60, 15 * 60, 30 * 60, 3600, 2 * 3600, 4 * 3600, 8 * 3600, 24 * 3600, 7 * 24 * 3600}

var (
	clusterInfo = ofCluster.gauge("cluster_version_info",
		"1 for the version that the cluster runs, and for the settings of its updates. desired_version is the one it is asked to be at.",
		"version", "desired_version", "channel", "cluster_id", "upstream", "baseline_capability_set")
	clusterUpdating = ofCluster.gauge("cluster_updating",
		"1 while the cluster is on its way to another release, else 0. The pools may follow later.")
	clusterProgress = ofCluster.gauge("cluster_upgrade_progress_ratio",
		"How much of the release the cluster-version operator has applied, from 0 to 1. Absent while it does not say so.")
	clusterLocked = ofCluster.gauge("cluster_locked",
		"1 for the job, as namespace/name, that holds the cluster's lock. Absent if none does.", labelJob)
	availableUpdates = ofCluster.gauge("cluster_available_updates",
		"How many updates the cluster offers: recommended, or conditional, which are known to have risks for some clusters.", "risk")
	highestUpdate = ofCluster.gauge("cluster_highest_available_update_info",
		"1 for the highest version among the recommended updates. Absent if there are none.", "version")
	overlayFrom = ofCluster.gauge("clusterversion_overlay_timestamp_seconds",
		"When the overlay of the ClusterVersion begins to apply, in seconds since 1970. The label channel is the one that the cluster has then.",
		labelNamespace, "clusterversion", "from", "channel")
	overlayApplied = ofCluster.gauge("clusterversion_overlay_applied",
		"1 for the overlay that applies at present. Absent if none does.", labelNamespace, "clusterversion", "from")
)

var (
	poolPaused = ofPools.gauge("machine_config_pool_paused",
		"1 if the pool is paused, else 0. The label upgradejob is the job, as namespace/name, that has paused it; empty if none has.", labelPool, labelJob)
	poolLeftPaused = ofPools.gauge("machine_config_pool_left_paused",
		"1 for a pool that is still paused by a job which has ended or is gone. The next job that gets through the control plane releases it.", labelPool, labelJob)
	poolUpdating = ofPools.gauge("machine_config_pool_updating",
		"1 while machines of the pool are moved to another configuration, else 0.", labelPool)
	poolMachines = ofPools.gauge("machine_config_pool_machines",
		"How many machines the pool has.", labelPool)
	poolUpdated = ofPools.gauge("machine_config_pool_updated_machines",
		"How many machines of the pool run its configuration.", labelPool)
	poolUnavailable = ofPools.gauge("machine_config_pool_unavailable_machines",
		"How many machines of the pool are not ready or take no pods.", labelPool)
	poolDegraded = ofPools.gauge("machine_config_pool_degraded_machines",
		"How many machines of the pool could not apply their configuration.", labelPool)
	poolUnpauseAfter = ofPools.gauge("machine_config_pool_unpause_after_timestamp_seconds",
		"When the job, as namespace/name, releases the pool at the earliest, in seconds since 1970. Of jobs that have not ended.", labelPool, labelJob)
	poolUnpauseBefore = ofPools.gauge("machine_config_pool_unpause_before_timestamp_seconds",
		"When the job, as namespace/name, fails if it could not release the pool, in seconds since 1970. Of jobs that have not ended.", labelPool, labelJob)
	nodeDrain = ofPools.gauge("node_drain_state",
		"1 for what the machine-config operator does with a cordoned node: pending, draining, updating, rebooting, done or degraded. Absent for the other nodes.",
		"node", labelPool, "state")
	podsDeleted = ofPools.counter("nodeforcedrain_pods_deleted_total",
		"Pods that were deleted because the drain of their node took too long.", labelNamespace, "nodeforcedrain")
	podsForceDeleted = ofPools.counter("nodeforcedrain_pods_force_deleted_total",
		"Pods that were deleted with a grace period of one second because they did not end.", labelNamespace, "nodeforcedrain")
)

var (
	configInfo = ofConfigs.gauge("upgradeconfig_info",
		"1 for the schedule of the config, and the upgrader of its jobs.", labelNamespace, labelConfig, "cron", "iso_week", "location", "upgrader")
	configScheduling = ofConfigs.gauge("upgradeconfig_scheduling",
		"1 if the config creates its next job in time, 0 if it does not, for the reason.", labelNamespace, labelConfig, "reason")
	configSuspended = ofConfigs.gauge("upgradeconfig_suspended",
		"1 if the config is suspended: by its schedule, or by a window. Absent if it is not.", labelNamespace, labelConfig, "by")
	configNextStart = ofConfigs.gauge("upgradeconfig_next_start_timestamp_seconds",
		"The next ten starts of the schedule, in seconds since 1970; n is 0 for the first of them.", labelNamespace, labelConfig, "n")
	configPinWindow = ofConfigs.gauge("upgradeconfig_pin_version_window_seconds",
		"How long before its start a job is created, in seconds.", labelNamespace, labelConfig)
	configLastScheduled = ofConfigs.gauge("upgradeconfig_last_scheduled_timestamp_seconds",
		"The latest start for which a job was created, in seconds since 1970.", labelNamespace, labelConfig)
	configSkippedInARow = ofConfigs.gauge("upgradeconfig_jobs_skipped_in_a_row",
		"How many of the newest jobs of the config that have ended were skipped, one after the other, of those that are kept.", labelNamespace, labelConfig)
	configKept = ofConfigs.gauge("upgradeconfig_failed_jobs_history_limit",
		"How many jobs that failed or were skipped the config keeps. Absent if it keeps all.", labelNamespace, labelConfig)
	configLastSkipped = ofConfigs.gauge("upgradeconfig_last_skipped_start_timestamp_seconds",
		"The latest start for which no job was created, in seconds since 1970, and why.", labelNamespace, labelConfig, "reason")
)

var (
	windowInfo = ofWindows.gauge("upgradesuspensionwindow_info",
		"1 for the window and its reason, of which the first 128 characters are given.", labelNamespace, labelWindow, "reason")
	windowStart = ofWindows.gauge("upgradesuspensionwindow_start_timestamp_seconds",
		"When the window begins, in seconds since 1970.", labelNamespace, labelWindow)
	windowEnd = ofWindows.gauge("upgradesuspensionwindow_end_timestamp_seconds",
		"When the window ends, in seconds since 1970.", labelNamespace, labelWindow)
	windowActive = ofWindows.gauge("upgradesuspensionwindow_active",
		"1 while the window holds, else 0.", labelNamespace, labelWindow)
	windowConfigs = ofWindows.gauge("upgradesuspensionwindow_matching_configs",
		"How many UpgradeConfigs the window selects.", labelNamespace, labelWindow)
	windowConfig = ofWindows.gauge("upgradesuspensionwindow_matching_config",
		"1 for an UpgradeConfig that the window selects.", labelNamespace, labelWindow, labelConfig)
	windowJobs = ofWindows.gauge("upgradesuspensionwindow_matching_jobs",
		"How many UpgradeJobs the window selects whose earliest start lies in it.", labelNamespace, labelWindow)
)

var (
	ready = ofOthers.gauge("ready",
		"1 if the object can be used as it is written, 0 if not, for the reason: its condition Ready. The namespace of a kind without one is empty.",
		"kind", labelNamespace, "name", "reason")
	muoInfo = ofOthers.gauge("muo_upgradeconfig_info",
		"1 for the UpgradeConfig of the Managed Upgrade Operator: the version that it asks for, and where that upgrade stands.",
		labelNamespace, labelConfig, "phase", "version")
	muoScheduled = ofOthers.gauge("muo_upgradeconfig_scheduled_timestamp_seconds",
		"When the UpgradeConfig of the Managed Upgrade Operator asks for the upgrade, in seconds since 1970.", labelNamespace, labelConfig)
)
