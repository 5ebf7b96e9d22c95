// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/monitoring"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

const (
	windowCreated  = steps.ConditionControlPlaneMaintenanceWindowCreated
	silenced       = "Alerts are silenced while the control plane is upgraded, until 2026-11-24T23:30:00Z at most."
	ofControlPlane = v1beta1.ControlPlaneWindow
)

func TestControlPlaneWindowIsALease(t *testing.T) {
	m := newMaintained(t, newJob(known, withMaintenance(withCriticals)))
	step := steps.ControlPlaneMaintenanceWindowCreated()
	m.want(m.pass(step), 10*time.Minute, "silence-1 until 22:25:00: "+controlPlane, "silence-2 until 22:25:00: "+criticals)
	m.says(windowCreated, true, silenced)
	m.records(ofControlPlane, "22:00:00 to 23:30:00, silence-1 until 22:25:00, silence-2 until 22:25:00 (critical)")
	if lock := m.version().Annotations[v1beta1.UpgradeJobAnnotation]; lock != me {
		t.Errorf("the lock is %q", lock)
	}
	got := []any{m.silences[0].Matchers, m.silences[1].Matchers, m.silences[0].CreatedBy}
	want := []any{
		[]monitoring.Matcher{
			{Name: "severity", Value: "(warning|info)", IsRegex: true, IsEqual: true},
			{Name: "namespace", Value: "(^openshift.*|^kube.*|^redhat.*|^default$)", IsRegex: true, IsEqual: true},
			{Name: "alertname", Value: "ManagedUpgrade.*", IsRegex: true, IsEqual: false},
		},
		[]monitoring.Matcher{{Name: "alertname", Value: `(EtcdDown|API.*Down)`, IsRegex: true, IsEqual: true}},
		"managed-upgrade-operator",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is silenced (-want +got):\n%s", diff)
	}
	m.asked()

	m.want(m.at(9*time.Minute).pass(step), time.Minute, "silence-1 until 22:25:00: "+controlPlane, "silence-2 until 22:25:00: "+criticals)
	if n := m.asked(); n != 0 {
		t.Errorf("%d requests while nothing is due", n)
	}
	m.restart()
	m.want(m.at(10*time.Minute).pass(step), 10*time.Minute, "silence-1 until 22:35:00: "+controlPlane, "silence-2 until 22:35:00: "+criticals)
}

func TestControlPlaneWindowEnds(t *testing.T) {
	m := newMaintained(t)
	step := steps.ControlPlaneMaintenanceWindowCreated()
	for after := time.Duration(0); after <= 70*time.Minute; after += 10 * time.Minute {
		m.at(after).pass(step)
	}
	m.records(ofControlPlane, "22:00:00 to 23:30:00, silence-1 until 23:30:00")
	m.want(m.at(89*time.Minute).pass(step), time.Minute, "silence-1 until 23:30:00: "+controlPlane)
	m.says(windowCreated, true, silenced)
	m.asked()
	m.want(m.at(90*time.Minute).pass(step), 0)
	m.want(m.at(5*time.Hour).pass(step), 0)
	const over = "The window was over at 2026-11-24T23:30:00Z: silences are not renewed any more."
	m.says(windowCreated, true, over)
	m.records(ofControlPlane, "22:00:00 to 23:30:00, silence-1 until 23:30:00; "+over)
	if n := m.asked(); n != 0 || m.made() != 1 {
		t.Errorf("%d requests after the end, %d silences made", n, m.made())
	}
}

// An Alertmanager that comes back when the window is over is not asked any more.
func TestControlPlaneWindowEndsUnused(t *testing.T) {
	m := newMaintained(t, newJob(known, commenced))
	m.say("", http.StatusServiceUnavailable)
	m.pass(steps.ControlPlaneMaintenanceWindowCreated())
	m.say("", 0)
	m.asked()
	m.want(m.at(90*time.Minute).pass(steps.ControlPlaneMaintenanceWindowCreated()), 0)
	if n := m.asked(); n != 0 {
		t.Errorf("%d requests after the end", n)
	}
}

func TestControlPlaneWindowIsAdopted(t *testing.T) {
	step := steps.ControlPlaneMaintenanceWindowCreated()
	for _, tc := range []struct {
		reason string
		before func(*maintained)
		after  time.Duration
		want   []string
		made   int
	}{
		{
			reason: "the process ended before it could record the silence", before: func(m *maintained) { m.killed(step) }, after: 5 * time.Minute,
			want: []string{"silence-1 until 22:25:00: " + controlPlane}, made: 1,
		},
		{
			reason: "it was long gone by then", before: func(m *maintained) { m.killed(step) }, after: 20 * time.Minute,
			want: []string{"silence-1 until 22:45:00: " + controlPlane}, made: 1,
		},
		{
			reason: "the answer was lost", before: func(m *maintained) { m.lost = true; m.pass(step) }, after: 10 * time.Second,
			want: []string{"silence-1 until 22:25:00: " + controlPlane}, made: 1,
		},
		{
			reason: "two of them", after: 5 * time.Minute,
			before: func(m *maintained) {
				m.killed(step)
				m.silences = append(m.silences, m.silences[0])
				m.silences[1].ID, m.silences[1].EndsAt = "later", start.Add(26*time.Minute)
			},
			want: []string{"later until 22:26:00: " + controlPlane}, made: 2,
		},
		{
			reason: "somebody has prolonged it", after: 10 * time.Minute,
			before: func(m *maintained) { m.pass(step); m.silences[0].EndsAt = start.Add(time.Hour) },
			want:   []string{"silence-1 until 23:00:00: " + controlPlane}, made: 1,
		},
		{
			reason: "somebody has prolonged it beyond the window", after: 10 * time.Minute,
			before: func(m *maintained) { m.pass(step); m.silences[0].EndsAt = start.Add(5 * time.Hour) },
			want:   []string{"silence-1 until 23:30:00: " + controlPlane}, made: 1,
		},
		{
			reason: "those of another job of that name, and of somebody else, are none of it",
			before: func(m *maintained) {
				m.killed(step)
				m.silences = append(m.silences, m.silences[0])
				m.silences[0].Comment, m.silences[1].CreatedBy = "Silence for OSD control plane upgrade to version 4.18.2 (UpgradeJob ns/job other)", "somebody"
			},
			want: []string{
				"silence-1 until 22:25:00: Silence for OSD control plane upgrade to version 4.18.2 (UpgradeJob ns/job other)",
				"silence-1 until 22:25:00: " + controlPlane, "silence-3 until 22:25:00: " + controlPlane,
			},
			made: 3,
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			m := newMaintained(t)
			tc.before(m)
			m.at(tc.after).pass(step)
			if got := m.all(); !slices.Equal(got, tc.want) || m.made() != tc.made {
				t.Errorf("%d were made, silenced are %q, want %d, %q", m.made(), got, tc.made, tc.want)
			}
			m.says(windowCreated, true, silenced)
			if w := m.job().Status.MaintenanceWindows[0]; !w.StartTime.Time.Equal(start) || len(w.Silences) != 1 {
				t.Errorf("recorded is %+v, want a window since the silence was made", w)
			}
		})
	}
}

func TestControlPlaneSilenceIsGone(t *testing.T) {
	step := steps.ControlPlaneMaintenanceWindowCreated()
	const byHand = "Somebody has deleted the silence of warnings, which is not made again."
	both := []string{"silence-1 until 22:35:00: " + controlPlane, "silence-2 until 22:35:00: " + criticals}
	for _, tc := range []struct {
		reason string
		before func(*maintained)
		after  time.Duration
		want   []string
		says   string
	}{
		{reason: "it is there", before: func(*maintained) {}, after: 10 * time.Minute, want: both, says: silenced},
		{
			reason: "somebody has deleted it", before: func(m *maintained) { m.at(time.Minute).deleteByHand("silence-1") }, after: 10 * time.Minute,
			want: both[1:], says: byHand,
		},
		{
			reason: "long ago", before: func(m *maintained) { m.at(time.Minute).deleteByHand("silence-1") }, after: 40 * time.Minute,
			want: []string{"silence-3 until 23:05:00: " + criticals}, says: byHand,
		},
		{
			reason: "Alertmanager has lost it", before: func(m *maintained) { m.forget() }, after: 10 * time.Minute,
			want: []string{both[0], both[1]}, says: silenced,
		},
		{
			reason: "it has lapsed while nobody ran the steps", before: func(*maintained) {}, after: 40 * time.Minute,
			want: []string{"silence-3 until 23:05:00: " + controlPlane, "silence-4 until 23:05:00: " + criticals}, says: silenced,
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			m := newMaintained(t, newJob(known, withMaintenance(withCriticals)))
			m.pass(step)
			tc.before(m)
			m.at(tc.after)
			for range 2 { // a process of its own each
				m.restart()
				m.want(m.pass(step), 10*time.Minute, tc.want...)
				m.says(windowCreated, true, tc.says)
			}
		})
	}
}

func TestControlPlaneWindowWithoutAlertmanager(t *testing.T) {
	const away = "Alertmanager answers 503 Service Unavailable"
	m := newMaintained(t)
	next := steps.UpgradeCommenced()
	step := steps.ControlPlaneMaintenanceWindowCreated()
	m.say("", http.StatusServiceUnavailable)
	for _, after := range []time.Duration{0, 10 * time.Second, 295 * time.Second} {
		m.want(m.at(after).pass(step, next), min(10*time.Second, 5*time.Minute-after))
		m.says(windowCreated, false, "Alerts cannot be silenced: "+away+".")
		blockers := m.job().Status.Blockers
		if len(blockers) != 1 || blockers[0].Code != "AlertmanagerAway" || blockers[0].ClearsWhen != "Alertmanager takes silences; without them the upgrade goes on at 2026-11-24T22:05:00Z" {
			t.Errorf("blockers: %+v", blockers)
		}
		if m.version().Spec.DesiredUpdate != nil {
			t.Fatal("the upgrade has commenced")
		}
	}
	m.want(m.at(5*time.Minute).pass(step, next), time.Minute)
	m.says(windowCreated, true, "Alerts are not silenced: "+away+".")
	m.records(ofControlPlane, "22:05:00 to 23:35:00; Alerts are not silenced: "+away+".")
	if m.version().Spec.DesiredUpdate == nil {
		t.Fatal("the upgrade has not commenced")
	}
	m.asked()
	m.want(m.at(5*time.Minute+30*time.Second).pass(step, next), time.Minute)
	if n := m.asked(); n != 0 {
		t.Errorf("%d requests within a minute", n)
	}
	m.say("", 0)
	m.want(m.at(6*time.Minute).pass(step, next), 10*time.Minute, "silence-1 until 22:31:00: "+controlPlane)
	m.says(windowCreated, true, "Alerts are silenced while the control plane is upgraded, until 2026-11-24T23:35:00Z at most.")

	m.say(http.MethodPost, http.StatusForbidden)
	const refuses = "Alertmanager answers 403 Forbidden: the operator's service account may not ask it."
	m.want(m.at(20*time.Minute).pass(step, next), time.Minute, "silence-1 until 22:31:00: "+controlPlane)
	m.says(windowCreated, true, "Silences are not renewed: "+refuses)
	m.want(m.at(32*time.Minute).pass(step, next), time.Minute)
	m.says(windowCreated, true, "Alerts are not silenced: "+refuses)
	m.say(http.MethodPost, 0)
	m.want(m.at(33*time.Minute).pass(step, next), 10*time.Minute, "silence-2 until 22:58:00: "+controlPlane)
}

// One of two silences is made: the other one is waited for, and neither is made twice.
func TestControlPlaneWindowInPart(t *testing.T) {
	m := newMaintained(t, newJob(known, withMaintenance(withCriticals)))
	step := steps.ControlPlaneMaintenanceWindowCreated()
	m.lost = true
	m.want(m.pass(step), 10*time.Second, "silence-1 until 22:25:00: "+controlPlane)
	m.says(windowCreated, false, "Alerts cannot be silenced: Alertmanager does not answer: connection closed.")
	m.want(m.at(10*time.Second).pass(step), 10*time.Minute-10*time.Second, "silence-1 until 22:25:00: "+controlPlane, "silence-2 until 22:25:10: "+criticals)
}

func TestControlPlaneWindowIsNotWaitedFor(t *testing.T) {
	impatient := withMaintenance(func(m *v1beta1.Maintenance) { m.Patience = &v1beta1.Duration{} })
	for _, tc := range []struct {
		reason  string
		job     []jobOption
		version []versionOption
		without bool // an Alertmanager
		after   time.Duration
		says    string
		window  bool
	}{
		{reason: "commenced", job: []jobOption{commenced}, after: time.Minute, says: "Alerts are not silenced: Alertmanager answers 503 Service Unavailable.", window: true},
		{reason: "no patience", job: []jobOption{impatient}, after: time.Minute, says: "Alerts are not silenced: Alertmanager answers 503 Service Unavailable.", window: true},
		{reason: "none is configured", without: true, says: "No alert is silenced: no Alertmanager is configured."},
		{reason: "no version", job: []jobOption{withoutVersion}, says: "The job has no version: nothing is upgraded."},
		{
			reason: "the control plane is upgraded", job: []jobOption{commenced}, version: []versionOption{openshifttest.Desired(target), completed},
			says: "The cluster runs 4.18.2 already.",
		},
		{
			reason: "the window was closed", job: []jobOption{commenced, done(steps.ConditionControlPlaneMaintenanceWindowRemoved, time.Minute)},
			says: "The window was closed before.",
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			m := newMaintained(t, newJob(append(tc.job, known)...))
			m.update(tc.version...)
			m.say("", http.StatusServiceUnavailable)
			if tc.without {
				m.client = nil
			}
			m.want(m.pass(steps.ControlPlaneMaintenanceWindowCreated()), tc.after)
			m.says(windowCreated, true, tc.says)
			if got := m.windowStatus(ofControlPlane) != ""; got != tc.window {
				t.Errorf("a window is recorded: %t", got)
			}
		})
	}
}

func TestControlPlaneWindowAfterAResume(t *testing.T) {
	m := newMaintained(t)
	step := steps.ControlPlaneMaintenanceWindowCreated()
	m.pass(step)
	m.at(time.Minute).deleteByHand("silence-1") // also what the cleanup of the job does
	job := m.job()
	resumed(2 * time.Hour)(job)
	if err := m.api.Status().Update(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	m.want(m.at(2*time.Hour).pass(step), 10*time.Minute, "silence-2 until 00:25:00: "+controlPlane)
	m.records(ofControlPlane, "00:00:00 to 01:30:00, silence-2 until 00:25:00")
}

func TestControlPlaneWindowWithoutTheLock(t *testing.T) {
	m := newMaintained(t)
	m.lockedBy = "ns/other"
	if result := m.pass(steps.ControlPlaneMaintenanceWindowCreated()); result.Err == nil || m.made() != 0 {
		t.Errorf("got %+v and %d silences, want an error and none: the cluster is somebody else's", result, m.made())
	}
}
