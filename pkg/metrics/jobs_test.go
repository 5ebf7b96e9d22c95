// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// metricCase is what there is, and the series of some metrics that come of it.
type metricCase struct {
	reason  string
	objects []client.Object
	metrics string
	want    string
}

func runCases(t *testing.T, cases []metricCase) {
	t.Helper()
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			expect(t, newTestCollector(newReader(tc.objects...), nil), tc.metrics, tc.want)
		})
	}
}

func TestJobState(t *testing.T) {
	const state = "upgradejob_state"
	fresh := func(job *v1beta1.UpgradeJob) { job.Status = v1beta1.UpgradeJobStatus{} }
	paused := func(job *v1beta1.UpgradeJob) { job.Status.Phase = v1beta1.PhasePaused }
	custom := func(job *v1beta1.UpgradeJob) { job.Spec.Config.Upgrader = "custom" }
	runCases(t, []metricCase{
		{"nobody has looked at it yet", []client.Object{newJob("j", fresh)}, state,
			`upgradejob_state{namespace="upgrades",reason="",state="pending",upgradeconfig="weekly",upgradejob="j",upgrader="OpenShift"} 1`},
		{"it waits for its start", []client.Object{newJob("j")}, state,
			`upgradejob_state{namespace="upgrades",reason="WaitingForStart",state="pending",upgradeconfig="weekly",upgradejob="j",upgrader="OpenShift"} 1`},
		{"active, in a step", []client.Object{newJob("j", running)}, state,
			`upgradejob_state{namespace="upgrades",reason="ControlPlaneUpdating",state="active",upgradeconfig="weekly",upgradejob="j",upgrader="OpenShift"} 1`},
		{"paused, of an upgrader that is not known", []client.Object{newJob("j", running, paused, custom)}, state,
			`upgradejob_state{namespace="upgrades",reason="ControlPlaneUpdating",state="paused",upgradeconfig="weekly",upgradejob="j",upgrader="custom"} 1`},
		{"made by hand, succeeded", []client.Object{newJob("j", ended(-7200, v1beta1.Succeeded(v1beta1.ReasonUpgraded, "")), madeByHand)}, state,
			`upgradejob_state{namespace="upgrades",reason="Upgraded",state="succeeded",upgradeconfig="",upgradejob="j",upgrader="OpenShift"} 1`},
		{"failed", []client.Object{newJob("j", ended(-7200, v1beta1.Failed(v1beta1.ReasonTimedOut, "")))}, state,
			`upgradejob_state{namespace="upgrades",reason="TimedOut",state="failed",upgradeconfig="weekly",upgradejob="j",upgrader="OpenShift"} 1`},
		{"skipped", []client.Object{newJob("j", ended(-7200, v1beta1.Skipped(v1beta1.ReasonExpired, "")))}, state,
			`upgradejob_state{namespace="upgrades",reason="Expired",state="skipped",upgradeconfig="weekly",upgradejob="j",upgrader="OpenShift"} 1`},
	})
}

func TestJobTimes(t *testing.T) {
	const times = "upgradejob_start_after_timestamp_seconds upgradejob_start_before_timestamp_seconds upgradejob_started_timestamp_seconds " +
		"upgradejob_commenced_timestamp_seconds upgradejob_completed_timestamp_seconds upgradejob_deadline_timestamp_seconds"
	resumed := func(job *v1beta1.UpgradeJob) {
		job.Status.ResumedRequests = []v1beta1.ResumedRequest{{Request: "again", Time: at(-60), Reopened: "Failed(TimedOut)"}}
	}
	runCases(t, []metricCase{
		{"before the start", []client.Object{newJob("j")}, times, `
			upgradejob_deadline_timestamp_seconds{namespace="upgrades",upgradejob="j"} 8.64396e+07
			upgradejob_start_after_timestamp_seconds{namespace="upgrades",upgradejob="j"} 8.64036e+07
			upgradejob_start_before_timestamp_seconds{namespace="upgrades",upgradejob="j"} 8.64072e+07`},
		{"running", []client.Object{newJob("j", running)}, times, `
			upgradejob_commenced_timestamp_seconds{namespace="upgrades",upgradejob="j"} 8.63994e+07
			upgradejob_deadline_timestamp_seconds{namespace="upgrades",upgradejob="j"} 8.64348e+07
			upgradejob_start_after_timestamp_seconds{namespace="upgrades",upgradejob="j"} 8.63988e+07
			upgradejob_start_before_timestamp_seconds{namespace="upgrades",upgradejob="j"} 8.64024e+07
			upgradejob_started_timestamp_seconds{namespace="upgrades",upgradejob="j"} 8.63988e+07`},
		{"a job that was resumed has its time again", []client.Object{newJob("j", running, resumed)}, "upgradejob_deadline_timestamp_seconds",
			`upgradejob_deadline_timestamp_seconds{namespace="upgrades",upgradejob="j"} 8.643594e+07`},
		{"ended", []client.Object{newJob("j", ended(-7200, v1beta1.Skipped(v1beta1.ReasonExpired, "")))}, times, `
			upgradejob_completed_timestamp_seconds{namespace="upgrades",upgradejob="j"} 8.63964e+07
			upgradejob_start_after_timestamp_seconds{namespace="upgrades",upgradejob="j"} 8.63928e+07
			upgradejob_start_before_timestamp_seconds{namespace="upgrades",upgradejob="j"} 8.63964e+07`},
	})
}

func TestJobInfo(t *testing.T) {
	const info = "upgradejob_info"
	hook := func(override func(*v1beta1.UpgradeJobHook)) *v1beta1.UpgradeJobHook {
		h := &v1beta1.UpgradeJobHook{ObjectMeta: metav1.ObjectMeta{Namespace: "upgrades", Name: "h"}}
		h.Spec.Disruptive = true
		override(h)
		return h
	}
	const of = `upgradejob_info{desired_image="quay.io/release@sha256:2",desired_version="4.18.2",from_version="",`
	const calm = of + `matches_disruptive_hooks="false",namespace="upgrades",upgradeconfig="weekly",upgradejob="j",upgrader="OpenShift"} 1`
	runCases(t, []metricCase{
		{"without hooks", []client.Object{newJob("j")}, info, calm},
		{"a disruptive hook", []client.Object{newJob("j"), hook(func(*v1beta1.UpgradeJobHook) {})}, info,
			of + `matches_disruptive_hooks="true",namespace="upgrades",upgradeconfig="weekly",upgradejob="j",upgrader="OpenShift"} 1`},
		{"of a hook that is not", []client.Object{newJob("j"), hook(func(h *v1beta1.UpgradeJobHook) { h.Spec.Disruptive = false })}, info, calm},
		{"of another namespace", []client.Object{newJob("j"), hook(func(h *v1beta1.UpgradeJobHook) { h.Namespace = "elsewhere" })}, info, calm},
		{"that selects others", []client.Object{newJob("j"), hook(func(h *v1beta1.UpgradeJobHook) { h.Spec.Selector.MatchLabels = map[string]string{"a": "b"} })}, info, calm},
		{"without a version", []client.Object{newJob("j", running, func(j *v1beta1.UpgradeJob) { j.Spec.DesiredVersion = nil })}, info,
			`upgradejob_info{desired_image="",desired_version="",from_version="4.18.1",matches_disruptive_hooks="false",namespace="upgrades",upgradeconfig="weekly",upgradejob="j",upgrader="OpenShift"} 1`},
	})
}

func TestJobPreflight(t *testing.T) {
	const healthy = "upgradejob_preflight_healthy"
	with := func(c metav1.Condition) func(*v1beta1.UpgradeJob) {
		return func(job *v1beta1.UpgradeJob) { job.Status.Conditions = append(job.Status.Conditions, c) }
	}
	runCases(t, []metricCase{
		{"not looked at yet", []client.Object{newJob("j")}, healthy, ``},
		{"healthy", []client.Object{newJob("j", with(v1beta1.PreflightHealthy("")))}, healthy,
			`upgradejob_preflight_healthy{namespace="upgrades",upgradejob="j"} 1`},
		{"unhealthy", []client.Object{newJob("j", with(v1beta1.PreflightUnhealthy("")))}, healthy,
			`upgradejob_preflight_healthy{namespace="upgrades",upgradejob="j"} 0`},
		{"not known", []client.Object{newJob("j", with(v1beta1.PreflightUnknown(v1beta1.ReasonUnknownUpgrader, "")))}, healthy,
			`upgradejob_preflight_healthy{namespace="upgrades",upgradejob="j"} 0`},
	})
}

func TestJobBlockers(t *testing.T) {
	const blockers = "upgradejob_blockers upgradejob_health_findings"
	blocked := func(job *v1beta1.UpgradeJob) {
		job.Status.Blockers = []v1beta1.Blocker{
			{Code: "AlertFiring", Check: "CriticalAlerts", Object: "Alert/a"}, {Code: "AlertFiring", Check: "CriticalAlerts", Object: "Alert/b"},
			{Code: "HealthCheckUnanswered", Check: "CriticalAlerts"}, {Code: "HookRunning", Object: "UpgradeJobHook/backup"},
		}
	}
	runCases(t, []metricCase{
		{"nothing in the way", []client.Object{newJob("j")}, blockers, ``},
		{"held up", []client.Object{newJob("j", blocked)}, blockers, `
			upgradejob_blockers{code="AlertFiring",namespace="upgrades",upgradejob="j"} 2
			upgradejob_blockers{code="HealthCheckUnanswered",namespace="upgrades",upgradejob="j"} 1
			upgradejob_blockers{code="HookRunning",namespace="upgrades",upgradejob="j"} 1
			upgradejob_health_findings{check="CriticalAlerts",namespace="upgrades",upgradejob="j"} 3`},
		{"what held up a job that has ended is history", []client.Object{newJob("j", blocked, ended(-7200, v1beta1.Skipped(v1beta1.ReasonExpired, "")))}, blockers, ``},
	})
}

func TestJobHookRuns(t *testing.T) {
	run := func(hook string, event v1beta1.HookEvent, key string, status v1beta1.HookRunStatus) v1beta1.HookRun {
		return v1beta1.HookRun{UpgradeJobHook: hook, HookEvent: event, TrackingKey: key, Status: status}
	}
	runCases(t, []metricCase{{"of two hooks", []client.Object{newJob("j", func(j *v1beta1.UpgradeJob) {
		j.Status.HookTracker = []v1beta1.HookRun{
			run("backup", v1beta1.HookEventStart, "", v1beta1.HookRunSucceeded),
			run("tell", v1beta1.HookEventMachineConfigPoolUnpause, "app", v1beta1.HookRunFailed),
			run("tell", v1beta1.HookEventMachineConfigPoolUnpause, "db", v1beta1.HookRunFailed),
			run("tell", v1beta1.HookEventMachineConfigPoolUnpause, "gpu", v1beta1.HookRunActive),
		}
	})}, "upgradejob_hook_runs", `
		upgradejob_hook_runs{event="MachineConfigPoolUnpause",namespace="upgrades",status="active",upgradejob="j",upgradejobhook="tell"} 1
		upgradejob_hook_runs{event="MachineConfigPoolUnpause",namespace="upgrades",status="failed",upgradejob="j",upgradejobhook="tell"} 2
		upgradejob_hook_runs{event="Start",namespace="upgrades",status="succeeded",upgradejob="j",upgradejobhook="backup"} 1`}})
}

func TestJobNotifications(t *testing.T) {
	const pending = "upgradejob_notifications_pending upgradejob_notifications_oldest_pending_timestamp_seconds"
	told := func(cursor int64) func(*v1beta1.UpgradeJob) {
		return func(job *v1beta1.UpgradeJob) {
			job.Spec.Config.Notifications = []v1beta1.NotificationReceiver{
				{URL: "http://all"}, {Name: "ends", URL: "http://ends", Events: []v1beta1.NotificationFilter{"job.succeeded"}},
			}
			job.Status.Notifications = &v1beta1.NotificationsStatus{
				Sequence: 3,
				Outbox: []v1beta1.Notice{
					{Sequence: 1, Type: v1beta1.NotificationJobCreated, Time: at(-30)},
					{Sequence: 2, Type: v1beta1.NotificationJobStarted, Time: at(-20)},
					{Sequence: 3, Type: v1beta1.NotificationJobSucceeded, Time: at(-10)},
				},
				Receivers: []v1beta1.NotificationReceiverStatus{{Name: "receiver-1", Cursor: cursor}, {Name: "ends", Cursor: cursor}},
			}
		}
	}
	runCases(t, []metricCase{
		{"without receivers", []client.Object{newJob("j")}, pending, ``},
		{"nobody has got any yet", []client.Object{newJob("j", told(0))}, pending, `
			upgradejob_notifications_oldest_pending_timestamp_seconds{namespace="upgrades",upgradejob="j"} 8.639997e+07
			upgradejob_notifications_pending{namespace="upgrades",upgradejob="j"} 4`},
		{"the end is yet to be told", []client.Object{newJob("j", told(2))}, pending, `
			upgradejob_notifications_oldest_pending_timestamp_seconds{namespace="upgrades",upgradejob="j"} 8.639999e+07
			upgradejob_notifications_pending{namespace="upgrades",upgradejob="j"} 2`},
		{"all told", []client.Object{newJob("j", told(3))}, pending, `upgradejob_notifications_pending{namespace="upgrades",upgradejob="j"} 0`},
	})
}

func TestJobHeld(t *testing.T) {
	const held = "upgradejob_silences upgradejob_extra_machines upgradejob_given_back"
	runCases(t, []metricCase{
		{"nothing", []client.Object{newJob("j", running)}, held, ``},
		{"in an upgrade of OSD", []client.Object{newJob("j", running, func(j *v1beta1.UpgradeJob) {
			j.Status.MaintenanceWindows = []v1beta1.MaintenanceWindowStatus{
				{Name: "ControlPlane", Silences: []v1beta1.SilenceStatus{{ID: "1"}, {ID: "2"}}}, {Name: "Workers"},
			}
			j.Status.ExtraMachines = &v1beta1.ExtraMachinesStatus{Wanted: 3, Ready: 1}
		})}, held, `
			upgradejob_extra_machines{namespace="upgrades",state="ready",upgradejob="j"} 1
			upgradejob_extra_machines{namespace="upgrades",state="wanted",upgradejob="j"} 3
			upgradejob_silences{maintenance_window="ControlPlane",namespace="upgrades",upgradejob="j"} 2
			upgradejob_silences{maintenance_window="Workers",namespace="upgrades",upgradejob="j"} 0`},
		{"giving back takes long", []client.Object{newJob("j", ended(-7200, v1beta1.Failed(v1beta1.ReasonTimedOut, "")), func(j *v1beta1.UpgradeJob) {
			j.Status.Conditions = append(j.Status.Conditions, v1beta1.StepHolds(v1beta1.ConditionGivenBack, false, v1beta1.ReasonGivingBack, ""))
		})}, held, `upgradejob_given_back{namespace="upgrades",upgradejob="j"} 0`},
		{"it is given back", []client.Object{newJob("j", ended(-7200, v1beta1.Failed(v1beta1.ReasonTimedOut, "")), func(j *v1beta1.UpgradeJob) {
			j.Status.Conditions = append(j.Status.Conditions, v1beta1.StepHolds(v1beta1.ConditionGivenBack, true, v1beta1.ReasonReleased, ""))
		})}, held, `upgradejob_given_back{namespace="upgrades",upgradejob="j"} 1`},
	})
}

func TestSteps(t *testing.T) {
	const all = "upgradejob_step_state upgradejob_step_start_timestamp_seconds upgradejob_step_completion_timestamp_seconds"
	const states = "upgradejob_step_state"
	hooksHold := func(job *v1beta1.UpgradeJob) { // the step itself has not begun
		job.Status.Steps = job.Status.Steps[:2]
		job.Status.Conditions[3] = v1beta1.StepNotDone(stepList[2], v1beta1.ReasonHooksRunning, "")
	}
	undone := func(job *v1beta1.UpgradeJob) {
		job.Status.Steps[1].CompletionTime = nil
		job.Status.Conditions[2] = v1beta1.StepNotDone(stepList[1], "NoUpdate", "")
	}
	failing := func(job *v1beta1.UpgradeJob) { job.Status.Phase = v1beta1.PhaseFailed }
	resumed := func(job *v1beta1.UpgradeJob) {
		job.Status.Phase = v1beta1.PhasePending
		job.Status.Conditions[3] = v1beta1.StepNotDone(stepList[2], v1beta1.ReasonResumed, "")
	}
	holding := func(job *v1beta1.UpgradeJob) { // done, and its condition tells that it holds nothing
		job.Status.Conditions[1] = v1beta1.StepHolds(stepList[0], false, v1beta1.ReasonNoManagedPools, "")
	}
	custom := func(job *v1beta1.UpgradeJob) { job.Spec.Config.Upgrader = "custom" }
	runCases(t, []metricCase{
		{"before the start all are pending", []client.Object{newJob("j")}, all, `
			upgradejob_step_state{namespace="upgrades",reason="",state="pending",step="ClusterHealthyBeforeUpgrade",upgradejob="j"} 1
			upgradejob_step_state{namespace="upgrades",reason="",state="pending",step="ControlPlaneUpgraded",upgradejob="j"} 1
			upgradejob_step_state{namespace="upgrades",reason="",state="pending",step="UpgradeCommenced",upgradejob="j"} 1`},
		{"running", []client.Object{newJob("j", running)}, all, `
			upgradejob_step_completion_timestamp_seconds{namespace="upgrades",step="ClusterHealthyBeforeUpgrade",upgradejob="j"} 8.639939e+07
			upgradejob_step_completion_timestamp_seconds{namespace="upgrades",step="UpgradeCommenced",upgradejob="j"} 8.63994e+07
			upgradejob_step_start_timestamp_seconds{namespace="upgrades",step="ClusterHealthyBeforeUpgrade",upgradejob="j"} 8.63988e+07
			upgradejob_step_start_timestamp_seconds{namespace="upgrades",step="ControlPlaneUpgraded",upgradejob="j"} 8.63994e+07
			upgradejob_step_start_timestamp_seconds{namespace="upgrades",step="UpgradeCommenced",upgradejob="j"} 8.639939e+07
			upgradejob_step_state{namespace="upgrades",reason="Completed",state="completed",step="ClusterHealthyBeforeUpgrade",upgradejob="j"} 1
			upgradejob_step_state{namespace="upgrades",reason="Completed",state="completed",step="UpgradeCommenced",upgradejob="j"} 1
			upgradejob_step_state{namespace="upgrades",reason="ControlPlaneUpdating",state="waiting",step="ControlPlaneUpgraded",upgradejob="j"} 1`},
		{"hooks hold a step", []client.Object{newJob("j", running, hooksHold)}, states, `
			upgradejob_step_state{namespace="upgrades",reason="Completed",state="completed",step="ClusterHealthyBeforeUpgrade",upgradejob="j"} 1
			upgradejob_step_state{namespace="upgrades",reason="Completed",state="completed",step="UpgradeCommenced",upgradejob="j"} 1
			upgradejob_step_state{namespace="upgrades",reason="HooksRunning",state="waiting",step="ControlPlaneUpgraded",upgradejob="j"} 1`},
		{"a step was undone: those behind it wait for their turn", []client.Object{newJob("j", running, undone)}, states, `
			upgradejob_step_state{namespace="upgrades",reason="Completed",state="completed",step="ClusterHealthyBeforeUpgrade",upgradejob="j"} 1
			upgradejob_step_state{namespace="upgrades",reason="ControlPlaneUpdating",state="pending",step="ControlPlaneUpgraded",upgradejob="j"} 1
			upgradejob_step_state{namespace="upgrades",reason="NoUpdate",state="waiting",step="UpgradeCommenced",upgradejob="j"} 1`},
		{"the upgrader is not known, a step has failed", []client.Object{newJob("j", running, failing, custom)}, states, `
			upgradejob_step_state{namespace="upgrades",reason="Completed",state="completed",step="ClusterHealthyBeforeUpgrade",upgradejob="j"} 1
			upgradejob_step_state{namespace="upgrades",reason="Completed",state="completed",step="UpgradeCommenced",upgradejob="j"} 1
			upgradejob_step_state{namespace="upgrades",reason="ControlPlaneUpdating",state="failed",step="ControlPlaneUpgraded",upgradejob="j"} 1`},
		{"resumed, and a step that holds nothing", []client.Object{newJob("j", running, resumed, holding)}, states, `
			upgradejob_step_state{namespace="upgrades",reason="Completed",state="completed",step="UpgradeCommenced",upgradejob="j"} 1
			upgradejob_step_state{namespace="upgrades",reason="NoManagedPools",state="completed",step="ClusterHealthyBeforeUpgrade",upgradejob="j"} 1
			upgradejob_step_state{namespace="upgrades",reason="Resumed",state="pending",step="ControlPlaneUpgraded",upgradejob="j"} 1`},
	})
}

// Of the jobs that have ended the newest of each config tells its steps: that is what people look at in the morning.
func TestStepsOfEndedJobs(t *testing.T) {
	upgraded := v1beta1.Succeeded(v1beta1.ReasonUpgraded, "")
	custom := func(job *v1beta1.UpgradeJob) {
		job.Spec.Config.Upgrader = "custom"
		job.Status.Steps = []v1beta1.StepStatus{{Condition: "A", StartTime: job.Spec.StartAfter, CompletionTime: &job.Spec.StartAfter}}
	}
	other := func(job *v1beta1.UpgradeJob) { job.OwnerReferences[0].UID = "other" }
	runCases(t, []metricCase{{"of three configs", []client.Object{
		newJob("oldest", ended(-30000, upgraded), custom), newJob("newest", ended(-10000, upgraded), custom), newJob("middle", ended(-20000, upgraded), custom),
		newJob("others", ended(-40000, upgraded), custom, other),
		newJob("by-hand-1", ended(-50000, upgraded), custom, madeByHand), newJob("by-hand-2", ended(-49000, upgraded), custom, madeByHand),
	}, "upgradejob_step_state", `
		upgradejob_step_state{namespace="upgrades",reason="",state="completed",step="A",upgradejob="by-hand-2"} 1
		upgradejob_step_state{namespace="upgrades",reason="",state="completed",step="A",upgradejob="newest"} 1
		upgradejob_step_state{namespace="upgrades",reason="",state="completed",step="A",upgradejob="others"} 1`}})
}
