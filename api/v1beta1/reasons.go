// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Types of the conditions that are not steps. The condition of a step is named by the step.
const (
	// ConditionReady tells on every kind but UpgradeJob whether the spec can be used.
	ConditionReady = "Ready"
	// ConditionScheduling tells on an UpgradeConfig whether jobs are being created.
	ConditionScheduling = "Scheduling"
	// ConditionPreflightHealthy tells on an UpgradeJob that has not started whether the cluster is healthy enough to be
	// upgraded. The start, or the end of a job that never started, removes it: from then on the step or the outcome tells.
	ConditionPreflightHealthy = "PreflightHealthy"
	// ConditionCreateHooksCompleted tells on an UpgradeJob whether the hooks of the event Create have finished.
	ConditionCreateHooksCompleted = "CreateHooksCompleted"
	// ConditionMachineConfigPoolsPaused tells on an UpgradeJob, as the condition of a step, whether the job holds pools
	// paused, and on an UpgradeConfig that jobs which are over have left pools paused.
	ConditionMachineConfigPoolsPaused = "MachineConfigPoolsPaused"
	// ConditionGivenBack tells on an UpgradeJob that has ended whether it has given back what it held. It is there only if that took long.
	ConditionGivenBack = "GivenBack"
	// ConditionStarted tells on an UpgradeJob whether it has started, and if not, why not.
	ConditionStarted = "Started"
	// ConditionSucceeded is True on an UpgradeJob that succeeded.
	ConditionSucceeded = "Succeeded"
	// ConditionFailed is True on an UpgradeJob that failed.
	ConditionFailed = "Failed"
	// ConditionSkipped is True on an UpgradeJob that was skipped: it never commenced the upgrade.
	ConditionSkipped = "Skipped"
)

// Reasons of Ready.
const (
	// ReasonValid: the spec can be used.
	ReasonValid = "Valid"
	// ReasonInvalidCron: schedule.cron is not a cron expression.
	ReasonInvalidCron = "InvalidCron"
	// ReasonInvalidISOWeek: schedule.isoWeek is not an ISO week rule.
	ReasonInvalidISOWeek = "InvalidISOWeek"
	// ReasonInvalidLocation: schedule.location is not a time zone.
	ReasonInvalidLocation = "InvalidLocation"
	// ReasonNoNextSchedule: the schedule never comes due.
	ReasonNoNextSchedule = "NoNextSchedule"
	// ReasonUnknownUpgrader: config.upgrader names no registered upgrader. Also of PreflightHealthy and Started.
	ReasonUnknownUpgrader = "UnknownUpgrader"
	// ReasonInvalidSelector: a label selector cannot be parsed.
	ReasonInvalidSelector = "InvalidSelector"
	// ReasonInvalidQuery: a custom query of the health checks is not PromQL, or returns no vector.
	ReasonInvalidQuery = "InvalidQuery"
	// ReasonInvalidTemplate: the API server refuses the Job of a hook.
	ReasonInvalidTemplate = "InvalidTemplate"
	// ReasonUnknownStep: a hook names a step that no upgrader has.
	ReasonUnknownStep = "UnknownStep"
	// ReasonSynced: OpenShift's ClusterVersion is as described.
	ReasonSynced = "Synced"
	// ReasonSyncFailed: OpenShift's ClusterVersion could not be written.
	ReasonSyncFailed = "SyncFailed"
	// ReasonPoolCannotBeDelayed: config.machineConfigPools delays a pool that the control plane needs. Also of Skipped.
	ReasonPoolCannotBeDelayed = "PoolCannotBeDelayed"
	// ReasonInvalidJQ: podJQSelector of a NodeForceDrain is no jq expression.
	ReasonInvalidJQ = "InvalidJQ"
	// ReasonInvalidPattern: a regular expression or glob cannot be parsed.
	ReasonInvalidPattern = "InvalidPattern"
	// ReasonInvalidSteps: the steps of an Upgrader are unknown, in an order that breaks a rule, or lack what they need.
	ReasonInvalidSteps = "InvalidSteps"
	// ReasonNameTaken: an upgrader that is built in has the name of the Upgrader.
	ReasonNameTaken = "NameTaken"
	// ReasonForbidden: the operator lacks the permission for what the spec asks for.
	ReasonForbidden = "Forbidden"
	// ReasonNotManaged: the object does not stand in the operator's namespace and has no effect.
	ReasonNotManaged = "NotManaged"
)

// Reasons of Scheduling, and of status.lastSkippedStart.
const (
	// ReasonScheduled: the next job is created at its time.
	ReasonScheduled = "Scheduled"
	// ReasonSuspended: schedule.suspend is set; on an UpgradeJob, a suspension window matches it.
	ReasonSuspended = "Suspended"
	// ReasonSuspensionWindow: an UpgradeSuspensionWindow matches the config.
	ReasonSuspensionWindow = "SuspensionWindow"
	// ReasonJobActive: a job of the config is not finished.
	ReasonJobActive = "JobActive"
	// ReasonNoUpdateAvailable: the cluster offers no update.
	ReasonNoUpdateAvailable = "NoUpdateAvailable"
	// ReasonMissed: the job could not be created within maxSchedulingDelay.
	ReasonMissed = "Missed"
	// ReasonCreateFailed: the job could not be created; it is tried again.
	ReasonCreateFailed = "CreateFailed"
	// ReasonInvalidConfig: the config cannot be used; see its condition Ready.
	ReasonInvalidConfig = "InvalidConfig"
)

// Codes of blockers that are not reasons of conditions too.
const (
	// ReasonHookRunning: a hook has not finished.
	ReasonHookRunning = "HookRunning"
)

// Reasons of Started.
const (
	// ReasonStarted: the job has started.
	ReasonStarted = "Started"
	// ReasonWaitingForStart: startAfter has not come.
	ReasonWaitingForStart = "WaitingForStart"
	// ReasonClusterLocked: another live job holds the cluster.
	ReasonClusterLocked = "ClusterLocked"
)

// Reasons of PreflightHealthy.
const (
	// ReasonHealthy: no health check has a finding.
	ReasonHealthy = "Healthy"
)

// Reasons of Skipped.
const (
	// ReasonExpired: the job could not start by startBefore, or not commence in its time.
	ReasonExpired = "Expired"
	// ReasonPreHealthCheckFailed: the cluster did not become healthy in time.
	ReasonPreHealthCheckFailed = "PreHealthCheckFailed"
	// ReasonUpgradeWithdrawn: the desired version is no longer offered.
	ReasonUpgradeWithdrawn = "UpgradeWithdrawn"
)

// Reasons of Failed.
const (
	// ReasonTimedOut: the job did not end within upgradeTimeout.
	ReasonTimedOut = "TimedOut"
	// ReasonPostHealthCheckFailed: the cluster was not healthy after the upgrade.
	ReasonPostHealthCheckFailed = "PostHealthCheckFailed"
	// ReasonUnpausingPoolsExpired: a delayed pool could not be released within delayMax.
	ReasonUnpausingPoolsExpired = "UnpausingPoolsExpired"
	// ReasonReleaseNotAccepted: the cluster-version operator did not accept the release within releaseAcceptTimeout.
	ReasonReleaseNotAccepted = "ReleaseNotAccepted"
	// ReasonHookFailed: a hook with failurePolicy Abort failed. Also of steps.
	ReasonHookFailed = "HookFailed"
	// ReasonUpgradeWindowBreached: the upgrade did not commence within upgradeWindow.timeOut.
	ReasonUpgradeWindowBreached = "UpgradeWindowBreached"
	// ReasonUpgradeSuperseded: somebody changed the cluster's desired update while the job ran.
	ReasonUpgradeSuperseded = "UpgradeSuperseded"
)

// Reasons of GivenBack.
const (
	// ReasonGivingBack: something that the job held is not given back yet; it is tried further, and no other job starts until then.
	ReasonGivingBack = "GivingBack"
)

// Reasons of MachineConfigPoolsPaused.
const (
	// ReasonDelaySet: pools are paused until their delay is over.
	ReasonDelaySet = "DelaySet"
	// ReasonNoManagedPools: there is no pool that the job pauses.
	ReasonNoManagedPools = "NoManagedPools"
	// ReasonReleased: no pool is paused by the job any more. Also of GivenBack: the job holds nothing any more.
	ReasonReleased = "Released"
	// ReasonLeftPaused: the job has failed, and pools that it paused stay paused. Also of an UpgradeConfig.
	ReasonLeftPaused = "LeftPaused"
	// ReasonPausedOnFailure: the job has failed, and pools were paused for that.
	ReasonPausedOnFailure = "PausedOnFailure"
)

// Reasons of Succeeded.
const (
	// ReasonUpgraded: the cluster runs the desired version.
	ReasonUpgraded = "Upgraded"
	// ReasonNothingToUpgrade: the job had no version.
	ReasonNothingToUpgrade = "NothingToUpgrade"
)

// Reasons of step conditions. A waiting step gives its own reason where it can be more precise.
const (
	// ReasonCompleted: the step is done.
	ReasonCompleted = "Completed"
	// ReasonError: the step met something unexpected and is tried again.
	ReasonError = "Error"
	// ReasonResumed: the job was reopened by a resume request and has not come here again.
	ReasonResumed = "Resumed"
	// ReasonHooksRunning: hooks hold the step. Also of Started and CreateHooksCompleted.
	ReasonHooksRunning = "HooksRunning"
	// ReasonUnhealthy: health checks have findings. Also of PreflightHealthy.
	ReasonUnhealthy = "Unhealthy"
	// ReasonNotUpgradeable: OpenShift would refuse the upgrade.
	ReasonNotUpgradeable = "NotUpgradeable"
	// ReasonUpdatesUnknown: the cluster does not know at present which updates are available.
	ReasonUpdatesUnknown = "UpdatesUnknown"
	// ReasonControlPlaneUpdating: the cluster-version operator takes the release up, or works towards it.
	ReasonControlPlaneUpdating = "ControlPlaneUpdating"
	// ReasonMachineConfigPoolsDelayed: the machine config pools that are left are paused until their time.
	ReasonMachineConfigPoolsDelayed = "MachineConfigPoolsDelayed"
	// ReasonChannelChanging: the cluster does not know the updates of the channel yet that it was set to.
	ReasonChannelChanging = "ChannelChanging"
	// ReasonNotificationPending: receivers have not got a notification yet.
	ReasonNotificationPending = "NotificationPending"
	// ReasonDelayed: the upgrade has not commenced within upgradeWindow.delayTrigger.
	ReasonDelayed = "Delayed"
	// ReasonAlertmanagerAway: no silence can be made at present.
	ReasonAlertmanagerAway = "AlertmanagerAway"
	// ReasonDependenciesUnavailable: external dependencies do not answer.
	ReasonDependenciesUnavailable = "DependenciesUnavailable"
	// ReasonCapacityScaling: extra machines are not ready yet.
	ReasonCapacityScaling = "CapacityScaling"
	// ReasonCapacityReady: extra machines are ready, or not waited for any more.
	ReasonCapacityReady = "CapacityReady"
	// ReasonCapacityRemoving: extra machines are not gone yet.
	ReasonCapacityRemoving = "CapacityRemoving"
	// ReasonMachineConfigPoolsUpdating: machine config pools are not on the configuration of the release yet.
	ReasonMachineConfigPoolsUpdating = "MachineConfigPoolsUpdating"
)
