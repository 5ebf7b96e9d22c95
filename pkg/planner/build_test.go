// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package planner_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/planner"
	"github.com/appuio/managed-upgrade-operator/pkg/schedule"
)

var (
	// created is when the config under test was created: a Friday.
	created = time.Date(2026, time.November, 20, 9, 0, 0, 0, time.UTC)
	// tuesday is the first start of the config under test; others follow week by week.
	tuesday = time.Date(2026, time.November, 24, 22, 0, 0, 0, time.UTC)

	update = &openshift.Release{Version: "4.18.2", Image: "quay.io/ocp/release@sha256:2"}
)

const week = 7 * 24 * time.Hour

// newConfig returns a config that starts an upgrade on Tuesdays at 22:00 UTC, changed by the overrides.
func newConfig(overrides ...func(*v1beta1.UpgradeConfig)) *v1beta1.UpgradeConfig {
	config := &v1beta1.UpgradeConfig{
		ObjectMeta: metav1.ObjectMeta{
			Name: "weekly", Namespace: "upgrades", UID: "config-uid",
			CreationTimestamp: metav1.NewTime(created), Labels: map[string]string{"tier": "prod"},
		},
		Spec:   v1beta1.UpgradeConfigSpec{Schedule: v1beta1.UpgradeConfigSchedule{Cron: "0 22 * * 2", Location: "UTC"}},
		Status: v1beta1.UpgradeConfigStatus{ScheduleObservedTime: &metav1.Time{Time: created}},
	}
	for _, override := range overrides {
		override(config)
	}
	return config
}

func withName(name string) func(*v1beta1.UpgradeConfig) {
	return func(c *v1beta1.UpgradeConfig) { c.Name = name }
}

func withCron(cron, location string) func(*v1beta1.UpgradeConfig) {
	return func(c *v1beta1.UpgradeConfig) { c.Spec.Schedule.Cron, c.Spec.Schedule.Location = cron, location }
}

func withPin(d time.Duration) func(*v1beta1.UpgradeConfig) {
	return func(c *v1beta1.UpgradeConfig) { c.Spec.PinVersionWindow = &v1beta1.Duration{Duration: d} }
}

func withSchedulingDelay(d time.Duration) func(*v1beta1.UpgradeConfig) {
	return func(c *v1beta1.UpgradeConfig) { c.Spec.MaxSchedulingDelay = &v1beta1.Duration{Duration: d} }
}

func withStartDelay(d time.Duration) func(*v1beta1.UpgradeConfig) {
	return func(c *v1beta1.UpgradeConfig) { c.Spec.MaxUpgradeStartDelay = &v1beta1.Duration{Duration: d} }
}

func withPolicy(p v1beta1.NoUpdatePolicy) func(*v1beta1.UpgradeConfig) {
	return func(c *v1beta1.UpgradeConfig) { c.Spec.NoUpdatePolicy = p }
}

func withScheduled(start time.Time) func(*v1beta1.UpgradeConfig) {
	return func(c *v1beta1.UpgradeConfig) { c.Status.LastScheduledUpgrade = &metav1.Time{Time: start} }
}

func withSkipped(start time.Time, reason string) func(*v1beta1.UpgradeConfig) {
	return func(c *v1beta1.UpgradeConfig) {
		c.Status.LastSkippedStart = &v1beta1.SkippedStart{StartAfter: metav1.NewTime(start), Reason: reason, Message: "As recorded."}
	}
}

func withObserved(at time.Time) func(*v1beta1.UpgradeConfig) {
	return func(c *v1beta1.UpgradeConfig) { c.Status.ScheduleObservedTime = &metav1.Time{Time: at} }
}

func suspend(c *v1beta1.UpgradeConfig) { c.Spec.Schedule.Suspend = true }

// newJob returns a job of the config under test.
func newJob(name string, start time.Time, phase v1beta1.Phase) v1beta1.UpgradeJob {
	return v1beta1.UpgradeJob{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "upgrades"},
		Spec:       v1beta1.UpgradeJobSpec{StartAfter: metav1.NewTime(start)},
		Status:     v1beta1.UpgradeJobStatus{Phase: phase},
	}
}

// newWindow returns a suspension window of every config in the namespace.
func newWindow(name string, start, end time.Time) v1beta1.UpgradeSuspensionWindow {
	return v1beta1.UpgradeSuspensionWindow{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "upgrades"},
		Spec: v1beta1.UpgradeSuspensionWindowSpec{
			Start: metav1.NewTime(start), End: metav1.NewTime(end), Reason: "Black Friday.", ConfigSelector: &metav1.LabelSelector{},
		},
	}
}

// plan makes a plan and fails the test if there is none.
func plan(t testing.TB, config *v1beta1.UpgradeConfig, facts planner.Facts, now time.Time) planner.Plan {
	t.Helper()
	p, err := planner.Make(config, parse(t, config), facts, now)
	if err != nil {
		t.Fatalf("make a plan at %s: %v", now, err)
	}
	return p
}

func parse(t testing.TB, config *v1beta1.UpgradeConfig) *schedule.Schedule {
	t.Helper()
	spec := config.Spec.Schedule
	s, err := schedule.Parse(spec.Cron, spec.ISOWeek, spec.Location)
	if err != nil {
		t.Fatalf("parse the schedule: %v", err)
	}
	return s
}
