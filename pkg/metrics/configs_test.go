// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// newWindow returns a window that began an hour ago, ends in an hour, and selects all configs.
func newWindow(override func(*v1beta1.UpgradeSuspensionWindow)) *v1beta1.UpgradeSuspensionWindow {
	window := &v1beta1.UpgradeSuspensionWindow{ObjectMeta: metav1.ObjectMeta{Namespace: "upgrades", Name: "freeze"}}
	window.Spec = v1beta1.UpgradeSuspensionWindowSpec{Start: at(-3600), End: at(3600), Reason: "Year end", ConfigSelector: &metav1.LabelSelector{}}
	if override != nil {
		override(window)
	}
	return window
}

func TestConfigs(t *testing.T) {
	const settings = "upgradeconfig_info upgradeconfig_scheduling upgradeconfig_pin_version_window_seconds"
	const suspended = "upgradeconfig_suspended"
	runCases(t, []metricCase{
		{"as it is made", []client.Object{newConfig(nil)}, settings, `
			upgradeconfig_info{cron="0 22 * * 2",iso_week="@odd",location="Europe/Zurich",namespace="upgrades",upgradeconfig="weekly",upgrader="OpenShift"} 1
			upgradeconfig_pin_version_window_seconds{namespace="upgrades",upgradeconfig="weekly"} 0
			upgradeconfig_scheduling{namespace="upgrades",reason="Scheduled",upgradeconfig="weekly"} 1`},
		{"of another upgrader, pinned, and held up", []client.Object{newConfig(func(c *v1beta1.UpgradeConfig) {
			c.Spec.JobTemplate.Spec.Config.Upgrader = "OSD"
			c.Spec.PinVersionWindow = &v1beta1.Duration{Duration: 4 * time.Hour}
			c.Status.Conditions = []metav1.Condition{v1beta1.NotScheduling(v1beta1.ReasonJobActive, "")}
		})}, settings, `
			upgradeconfig_info{cron="0 22 * * 2",iso_week="@odd",location="Europe/Zurich",namespace="upgrades",upgradeconfig="weekly",upgrader="OSD"} 1
			upgradeconfig_pin_version_window_seconds{namespace="upgrades",upgradeconfig="weekly"} 14400
			upgradeconfig_scheduling{namespace="upgrades",reason="JobActive",upgradeconfig="weekly"} 0`},
		{"starts", []client.Object{newConfig(func(c *v1beta1.UpgradeConfig) {
			c.Status.NextPossibleSchedules = []metav1.Time{at(100), at(200)}
			c.Status.LastScheduledUpgrade = ptrAt(-100)
			c.Status.LastSkippedStart = &v1beta1.SkippedStart{StartAfter: at(-200), Reason: v1beta1.ReasonMissed}
		})}, "upgradeconfig_next_start_timestamp_seconds upgradeconfig_last_scheduled_timestamp_seconds upgradeconfig_last_skipped_start_timestamp_seconds", `
			upgradeconfig_last_scheduled_timestamp_seconds{namespace="upgrades",upgradeconfig="weekly"} 8.63999e+07
			upgradeconfig_last_skipped_start_timestamp_seconds{namespace="upgrades",reason="Missed",upgradeconfig="weekly"} 8.63998e+07
			upgradeconfig_next_start_timestamp_seconds{n="0",namespace="upgrades",upgradeconfig="weekly"} 8.64001e+07
			upgradeconfig_next_start_timestamp_seconds{n="1",namespace="upgrades",upgradeconfig="weekly"} 8.64002e+07`},
		{"not suspended, though there are windows", []client.Object{
			newConfig(nil), newWindow(func(w *v1beta1.UpgradeSuspensionWindow) { w.Spec.Start = at(1) }),
		}, suspended, ``},
		{"suspended by its schedule", []client.Object{newConfig(func(c *v1beta1.UpgradeConfig) { c.Spec.Schedule.Suspend = true })}, suspended,
			`upgradeconfig_suspended{by="schedule",namespace="upgrades",upgradeconfig="weekly"} 1`},
		{"suspended by both", []client.Object{newConfig(func(c *v1beta1.UpgradeConfig) { c.Spec.Schedule.Suspend = true }), newWindow(nil)}, suspended, `
			upgradeconfig_suspended{by="schedule",namespace="upgrades",upgradeconfig="weekly"} 1
			upgradeconfig_suspended{by="window",namespace="upgrades",upgradeconfig="weekly"} 1`},
	})
}

func TestFailedJobsHistoryLimit(t *testing.T) {
	const limit = "upgradeconfig_failed_jobs_history_limit"
	const of = limit + `{namespace="upgrades",upgradeconfig="weekly"} `
	keeping := func(n int32) []client.Object {
		return []client.Object{newConfig(func(c *v1beta1.UpgradeConfig) { c.Spec.FailedJobsHistoryLimit = &n })}
	}
	runCases(t, []metricCase{
		{"the default", []client.Object{newConfig(nil)}, limit, of + "4"},
		{"one", keeping(1), limit, of + "1"},
		{"all", keeping(0), limit, ""},
	})
}

func TestSkippedInARow(t *testing.T) {
	skipped, upgraded := v1beta1.Skipped(v1beta1.ReasonExpired, ""), v1beta1.Succeeded(v1beta1.ReasonUpgraded, "")
	other := func(job *v1beta1.UpgradeJob) { job.OwnerReferences[0].UID = "other" }
	const row = "upgradeconfig_jobs_skipped_in_a_row"
	const of = `upgradeconfig_jobs_skipped_in_a_row{namespace="upgrades",upgradeconfig="weekly"} `
	runCases(t, []metricCase{
		{"no jobs yet", []client.Object{newConfig(nil)}, row, of + "0"},
		{"two since the last that succeeded, and one that runs", []client.Object{
			newConfig(nil), newJob("e", running),
			newJob("d", ended(-10000, skipped)), newJob("a", ended(-20000, skipped)), newJob("c", ended(-30000, upgraded)), newJob("b", ended(-40000, skipped)),
		}, row, of + "2"},
		{"the newest succeeded", []client.Object{newConfig(nil), newJob("a", ended(-20000, skipped)), newJob("b", ended(-10000, upgraded))}, row, of + "0"},
		{"all were", []client.Object{newConfig(nil), newJob("a", ended(-20000, skipped)), newJob("b", ended(-10000, skipped))}, row, of + "2"},
		{"those of others do not count", []client.Object{
			newConfig(nil), newJob("a", ended(-20000, skipped), other), newJob("b", ended(-10000, skipped), madeByHand),
		}, row, of + "0"},
	})
}

func TestWindows(t *testing.T) {
	const all = "upgradesuspensionwindow_info upgradesuspensionwindow_start_timestamp_seconds upgradesuspensionwindow_end_timestamp_seconds " +
		"upgradesuspensionwindow_active upgradesuspensionwindow_matching_configs upgradesuspensionwindow_matching_config upgradesuspensionwindow_matching_jobs"
	runCases(t, []metricCase{
		{"active", []client.Object{newWindow(func(w *v1beta1.UpgradeSuspensionWindow) {
			w.Status.MatchingConfigs = []v1beta1.MatchingObject{{Name: "daily"}, {Name: "weekly"}}
			w.Status.MatchingJobs = []v1beta1.MatchingObject{{Name: "weekly-1"}}
		})}, all, `
			upgradesuspensionwindow_active{namespace="upgrades",upgradesuspensionwindow="freeze"} 1
			upgradesuspensionwindow_end_timestamp_seconds{namespace="upgrades",upgradesuspensionwindow="freeze"} 8.64036e+07
			upgradesuspensionwindow_info{namespace="upgrades",reason="Year end",upgradesuspensionwindow="freeze"} 1
			upgradesuspensionwindow_matching_config{namespace="upgrades",upgradeconfig="daily",upgradesuspensionwindow="freeze"} 1
			upgradesuspensionwindow_matching_config{namespace="upgrades",upgradeconfig="weekly",upgradesuspensionwindow="freeze"} 1
			upgradesuspensionwindow_matching_configs{namespace="upgrades",upgradesuspensionwindow="freeze"} 2
			upgradesuspensionwindow_matching_jobs{namespace="upgrades",upgradesuspensionwindow="freeze"} 1
			upgradesuspensionwindow_start_timestamp_seconds{namespace="upgrades",upgradesuspensionwindow="freeze"} 8.63964e+07`},
		{"over at this moment", []client.Object{newWindow(func(w *v1beta1.UpgradeSuspensionWindow) { w.Spec.End = at(0) })}, "upgradesuspensionwindow_active",
			`upgradesuspensionwindow_active{namespace="upgrades",upgradesuspensionwindow="freeze"} 0`},
	})
}

func TestOverlays(t *testing.T) {
	version := &v1beta1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "upgrades", Name: "version"}}
	version.Spec.Template.Spec.Channel = "stable-4.18"
	version.Spec.Overlays = []v1beta1.ClusterVersionOverlay{
		{From: at(0), Overlay: v1beta1.ClusterVersionTemplate{Spec: v1beta1.DesiredClusterVersionSpec{Channel: "stable-4.19"}}}, {From: at(86400)},
	}
	version.Status.OverlayApplied = &v1beta1.AppliedOverlay{From: at(0)}
	runCases(t, []metricCase{{"two, of which one applies", []client.Object{version}, "clusterversion_overlay_timestamp_seconds clusterversion_overlay_applied", `
		clusterversion_overlay_applied{clusterversion="version",from="1972-09-27T00:00:00Z",namespace="upgrades"} 1
		clusterversion_overlay_timestamp_seconds{channel="stable-4.18",clusterversion="version",from="1972-09-28T00:00:00Z",namespace="upgrades"} 8.64864e+07
		clusterversion_overlay_timestamp_seconds{channel="stable-4.19",clusterversion="version",from="1972-09-27T00:00:00Z",namespace="upgrades"} 8.64e+07`}})
}

func TestReady(t *testing.T) {
	conditions := []metav1.Condition{v1beta1.NotReady(v1beta1.ReasonInvalidSelector, "")}
	meta := metav1.ObjectMeta{Namespace: "upgrades", Name: "x"}
	hook, drain, version := &v1beta1.UpgradeJobHook{ObjectMeta: meta}, &v1beta1.NodeForceDrain{ObjectMeta: meta}, &v1beta1.ClusterVersion{ObjectMeta: meta}
	upgrader := &v1beta1.Upgrader{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
	hook.Status.Conditions, drain.Status.Conditions, version.Status.Conditions, upgrader.Status.Conditions = conditions, conditions, conditions, conditions
	muo := &v1alpha1.UpgradeConfig{ObjectMeta: meta}
	muo.Status.History = []v1alpha1.UpgradeHistory{{Conditions: []v1alpha1.UpgradeCondition{
		{Type: v1alpha1.ConditionScheduled, Status: metav1.ConditionTrue}, {Type: v1alpha1.ConditionValid, Status: metav1.ConditionFalse, Reason: "Downgrade"},
	}}}
	runCases(t, []metricCase{{"of each kind", []client.Object{
		muo, newConfig(nil), newWindow(func(w *v1beta1.UpgradeSuspensionWindow) { w.Status.Conditions = conditions }), hook, drain, version, upgrader, newJob("j"),
		&v1beta1.UpgradeJobHook{ObjectMeta: metav1.ObjectMeta{Namespace: "upgrades", Name: "not-looked-at"}},
	}, "ready", `
		ready{kind="ClusterVersion",name="x",namespace="upgrades",reason="InvalidSelector"} 0
		ready{kind="NodeForceDrain",name="x",namespace="upgrades",reason="InvalidSelector"} 0
		ready{kind="UpgradeConfig",name="weekly",namespace="upgrades",reason="Valid"} 1
		ready{kind="UpgradeConfig.upgrade.managed.openshift.io",name="x",namespace="upgrades",reason="Downgrade"} 0
		ready{kind="UpgradeJobHook",name="x",namespace="upgrades",reason="InvalidSelector"} 0
		ready{kind="UpgradeSuspensionWindow",name="freeze",namespace="upgrades",reason="InvalidSelector"} 0
		ready{kind="Upgrader",name="x",namespace="",reason="InvalidSelector"} 0`}})
}

func TestMUO(t *testing.T) {
	config := func(override func(*v1alpha1.UpgradeConfig)) *v1alpha1.UpgradeConfig {
		c := &v1alpha1.UpgradeConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "upgrades", Name: v1alpha1.UpgradeConfigName}}
		c.Spec.Desired.Version, c.Spec.UpgradeAt = "4.18.2", "1972-09-27T01:00:00Z"
		override(c)
		return c
	}
	const all = "muo_upgradeconfig_info muo_upgradeconfig_scheduled_timestamp_seconds"
	runCases(t, []metricCase{
		{"pending", []client.Object{config(func(c *v1alpha1.UpgradeConfig) {
			c.Status.History = []v1alpha1.UpgradeHistory{{Phase: v1alpha1.UpgradePhasePending}, {Phase: v1alpha1.UpgradePhaseUpgraded}}
		})}, all, `
			muo_upgradeconfig_info{namespace="upgrades",phase="Pending",upgradeconfig="managed-upgrade-config",version="4.18.2"} 1
			muo_upgradeconfig_scheduled_timestamp_seconds{namespace="upgrades",upgradeconfig="managed-upgrade-config"} 8.64036e+07`},
		{"of an image, at no time", []client.Object{config(func(c *v1alpha1.UpgradeConfig) {
			c.Spec.Desired, c.Spec.UpgradeAt = v1alpha1.Update{Image: "quay.io/release@sha256:2"}, "tomorrow"
		})}, all, `muo_upgradeconfig_info{namespace="upgrades",phase="",upgradeconfig="managed-upgrade-config",version="quay.io/release@sha256:2"} 1`},
	})
}
