// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package muo_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/appuio/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/muo"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

var plain = muo.Judgement{Release: openshift.Release{Version: "4.18.2"}, CheckAvailability: true}

func d(d time.Duration) *v1beta1.Duration { return &v1beta1.Duration{Duration: d} }

func TestJobOfDefaults(t *testing.T) {
	config := newObject()
	got := muo.Job(config, muo.DefaultSettings(), plain, start.Add(-time.Hour))
	alertsAndOperators := func(timeout time.Duration) v1beta1.HealthChecks {
		return v1beta1.HealthChecks{
			Timeout: d(timeout), CheckNodes: ptr.To(false), CheckMachineConfigPools: ptr.To(false), CheckPodDisruptionBudgets: ptr.To(false), CheckRemovedAPIs: ptr.To(false),
		}
	}
	want := &v1beta1.UpgradeJob{
		ObjectMeta: metav1.ObjectMeta{
			Name: got.Name, Namespace: "upgrades", Finalizers: []string{v1beta1.UpgradeJobFinalizer}, Annotations: got.Annotations,
			Labels: map[string]string{"upgrade.managed.openshift.io/upgradeconfig": "managed-upgrade-config"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "upgrade.managed.openshift.io/v1alpha1", Kind: "UpgradeConfig", Name: "managed-upgrade-config", UID: "object-uid",
				Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
			}},
		},
		Spec: v1beta1.UpgradeJobSpec{
			StartAfter: metav1.NewTime(start), StartBefore: metav1.NewTime(start.Add(2 * time.Hour)),
			DesiredVersion: &v1beta1.DesiredVersion{Version: "4.18.2"}, DesiredVersionCheckAvailability: ptr.To(true),
			Config: v1beta1.UpgradeJobConfig{
				Upgrader: "OSD", UpgradeTimeout: d(74 * time.Hour), Channel: "stable-4.18",
				PreUpgradeHealthChecks: alertsAndOperators(2 * time.Hour), PostUpgradeHealthChecks: alertsAndOperators(74 * time.Hour),
				UpgradeWindow:        &v1beta1.UpgradeWindow{TimeOut: d(2 * time.Hour), DelayTrigger: d(30 * time.Minute)},
				Maintenance:          &v1beta1.Maintenance{ControlPlaneTime: d(90 * time.Minute)},
				CapacityReservation:  &v1beta1.CapacityReservation{Enabled: true, TimeOut: d(30 * time.Minute)},
				NodeDrain:            &v1beta1.NodeDrain{TimeOut: d(45 * time.Minute), ExpectedNodeDrainTime: d(8 * time.Minute)},
				PDBForceDrainTimeout: d(2 * time.Hour), StageNotifications: v1beta1.StageNotificationsOutcome,
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("job (-want +got):\n%s", diff)
	}
}

func TestTunablesGetIntoTheJob(t *testing.T) {
	settings, err := muo.ParseSettings(everyKey)
	if err != nil {
		t.Fatal(err)
	}
	config := newObject(func(c *v1alpha1.UpgradeConfig) {
		c.Spec.Type, c.Spec.CapacityReservation, c.Spec.PDBForceDrainTimeout = v1alpha1.ARO, false, 0
	})
	job := muo.Job(config, settings, plain, start)
	checks := v1beta1.HealthChecks{ExcludeAlerts: []v1beta1.ExcludedAlert{{AlertName: "DNSErrors05MinSRE"}}, ExcludeNamespaces: []string{"openshift-logging"}}
	before, after := checks, checks
	before.Timeout, after.Timeout = d(121*time.Minute), d(121*time.Minute+72*time.Hour)
	want := v1beta1.UpgradeJobConfig{
		Upgrader: "ARO", UpgradeTimeout: d(121*time.Minute + 72*time.Hour), Channel: "stable-4.18", PreUpgradeHealthChecks: before, PostUpgradeHealthChecks: after,
		UpgradeWindow:        &v1beta1.UpgradeWindow{TimeOut: d(121 * time.Minute), DelayTrigger: d(32 * time.Minute)},
		Maintenance:          &v1beta1.Maintenance{ControlPlaneTime: d(91 * time.Minute), ControlPlaneCriticals: []string{"ClusterOperatorDown", "ClusterOperatorDegraded"}},
		CapacityReservation:  &v1beta1.CapacityReservation{TimeOut: d(31 * time.Minute), ExtraMachinePools: []string{"non-serving-*"}},
		ExternalDependencies: &v1beta1.ExternalDependencies{HTTP: &v1beta1.HTTPDependencies{Timeout: d(10 * time.Second), URLs: []string{"https://www.example.com/health"}}},
		NodeDrain: &v1beta1.NodeDrain{
			TimeOut: d(46 * time.Minute), ExpectedNodeDrainTime: d(9 * time.Minute), DisableDrainStrategies: true, IgnoredNamespacePatterns: []string{"example-.+"},
		},
		PDBForceDrainTimeout: d(0), PostUpgradeTasks: &v1beta1.PostUpgradeTasks{ReinitializeFileIntegrity: true},
		StageNotifications: v1beta1.StageNotificationsAll, Notifications: settings.Notifications,
	}
	if diff := cmp.Diff(want, job.Spec.Config); diff != "" {
		t.Errorf("config of the job (-want +got):\n%s", diff)
	}
	job.Spec.Config.NodeDrain.IgnoredNamespacePatterns[0], job.Spec.Config.PreUpgradeHealthChecks.ExcludeNamespaces[0] = "changed", "changed"
	if settings.IgnoredNamespacePatterns[0] == "changed" || job.Spec.Config.PostUpgradeHealthChecks.ExcludeNamespaces[0] == "changed" {
		t.Error("the job shares memory with the settings, or with itself")
	}
}

// Budgets that allow no disruption are what PDBForceDrainTimeout is for. They are an obstacle only where every check is wanted and nobody forces a drain.
func TestBudgetsAreAnObstacleWhereNoDrainIsForced(t *testing.T) {
	for _, tc := range []struct{ gate, disabled, want bool }{{false, false, false}, {true, false, false}, {false, true, false}, {true, true, true}} {
		settings := muo.DefaultSettings()
		settings.PreHealthCheck, settings.DisableDrainStrategies = tc.gate, tc.disabled
		checks := muo.Job(newObject(), settings, plain, start).Spec.Config.PreUpgradeHealthChecks
		if got := checks.CheckPodDisruptionBudgets == nil; got != tc.want {
			t.Errorf("gate %t, drains disabled %t: budgets are checked: %t", tc.gate, tc.disabled, got)
		}
	}
}

func TestWindowThatIsOff(t *testing.T) {
	settings := muo.DefaultSettings()
	settings.UpgradeWindow, settings.DelayTrigger = 0, 0
	spec := muo.Job(newObject(), settings, plain, start).Spec
	const year = 365 * 24 * time.Hour
	if got := spec.StartBefore.Sub(spec.StartAfter.Time); got != year {
		t.Errorf("may start within %s, want a year", got)
	}
	c := spec.Config
	if c.UpgradeTimeout.Duration != year || c.PreUpgradeHealthChecks.Timeout.Duration != year || c.UpgradeWindow.TimeOut.Duration != 0 || c.UpgradeWindow.DelayTrigger.Duration != 0 {
		t.Errorf("got timeouts %s, %s, window %+v", c.UpgradeTimeout, c.PreUpgradeHealthChecks.Timeout, c.UpgradeWindow)
	}
}

func TestStartOfTheJob(t *testing.T) {
	now := start.Add(30*time.Minute + time.Millisecond)
	seconds := now.Truncate(time.Second)
	for _, tc := range []struct {
		reason string
		at     string
		want   time.Time
	}{
		{"to come", "2026-11-25T01:00:00+01:00", start.Add(2 * time.Hour)},
		{"it came while the object was there", start.Format(time.RFC3339), start},
		{"in the second in which the object was created", start.Add(-24 * time.Hour).Format(time.RFC3339), start.Add(-24 * time.Hour)},
		{"before the object was there", start.Add(-24*time.Hour - time.Second).Format(time.RFC3339), seconds},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			config := newObject(at(tc.at))
			job := muo.Job(config, muo.DefaultSettings(), plain, now)
			if !job.Spec.StartAfter.Time.Equal(tc.want) || !job.Spec.StartBefore.Time.Equal(tc.want.Add(2*time.Hour)) {
				t.Errorf("starts from %s to %s, want from %s on", job.Spec.StartAfter, job.Spec.StartBefore, tc.want)
			}
			later := muo.Job(config, muo.DefaultSettings(), plain, now.Add(time.Hour))
			if later.Name != job.Name || job.Name != muo.JobName(config) || later.Annotations[muo.SettingsAnnotation] != job.Annotations[muo.SettingsAnnotation] {
				t.Errorf("name or hash depend on when the job is made: %s %v, %s %v", job.Name, job.Annotations, later.Name, later.Annotations)
			}
		})
	}
}

func TestNameOfTheJob(t *testing.T) {
	name := muo.JobName(newObject())
	if !regexp.MustCompile(`^managed-upgrade-config-1795557600-[0-9a-f]{7}$`).MatchString(name) || len(name) > 63 {
		t.Errorf("got %s", name)
	}
	for reason, change := range map[string]func(*v1alpha1.UpgradeConfig){
		"time": at("2026-11-24T22:00:01Z"), "version": desiring("4.18.3", "stable-4.18", ""), "type": func(c *v1alpha1.UpgradeConfig) { c.Spec.Type = v1alpha1.ARO },
		"timeout": func(c *v1alpha1.UpgradeConfig) { c.Spec.PDBForceDrainTimeout++ }, "name": func(c *v1alpha1.UpgradeConfig) { c.Name = "x" },
	} {
		if muo.JobName(newObject(change)) == name {
			t.Errorf("another %s has the same name", reason)
		}
	}
	if got := muo.JobName(newObject(accepting("*"))); got != name {
		t.Errorf("an annotation changes the name to %s", got)
	}
	if got := muo.JobName(newObject(func(c *v1alpha1.UpgradeConfig) { c.Name = strings.Repeat("a", 253) })); len(got) != 63 {
		t.Errorf("a long name becomes %s", got)
	}
	if got := muo.JobName(newObject(at("never"))); got != "" {
		t.Errorf("an object without a time has a job named %s", got)
	}
}

// What the job was made of tells it from what would be made now.
func TestHashOfTheSettings(t *testing.T) {
	hash := func(settings muo.Settings, judgement muo.Judgement) string {
		return muo.Job(newObject(), settings, judgement, start).Annotations[muo.SettingsAnnotation]
	}
	base := hash(muo.DefaultSettings(), plain)
	if len(base) != 16 || hash(muo.DefaultSettings(), plain) != base {
		t.Errorf("got %q, want the same 16 digits each time", base)
	}
	other := muo.DefaultSettings()
	other.IgnoredCriticals = []string{"X"}
	taken := plain
	taken.CheckAvailability = false
	if hash(other, plain) == base || hash(muo.DefaultSettings(), taken) == base {
		t.Error("other settings, or another release, have the same hash")
	}
}
