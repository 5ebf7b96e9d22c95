// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package muo_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/muo"
)

// withHistory gives the object entries.
func withHistory(entries ...v1alpha1.UpgradeHistory) func(*v1alpha1.UpgradeConfig) {
	return func(c *v1alpha1.UpgradeConfig) { c.Status.History = entries }
}

func entry(version string, phase v1alpha1.UpgradePhase, job string) v1alpha1.UpgradeHistory {
	return v1alpha1.UpgradeHistory{Version: version, Phase: phase, UpgradeJob: job}
}

// describe lists a history as version phase job.
func describe(config *v1alpha1.UpgradeConfig) []string {
	var lines []string
	for _, h := range config.Status.History {
		lines = append(lines, fmt.Sprintf("%s %s %s", h.Version, h.Phase, h.UpgradeJob))
	}
	return lines
}

func expectHistory(t *testing.T, config *v1alpha1.UpgradeConfig, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, describe(config)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
}

func TestEntryOfTheSpecStandsFirst(t *testing.T) {
	before := []v1alpha1.UpgradeHistory{entry("4.18.3", "Upgraded", "c"), entry("4.18.2", "Failed", "b"), entry("4.18.1", "Upgraded", "a")}
	for _, tc := range []struct {
		reason string
		object *v1alpha1.UpgradeConfig
		want   []string
	}{
		{"the first", newObject(), []string{"4.18.2 Pending "}},
		{"a new version", newObject(withHistory(before...), desiring("4.18.4", "stable-4.18", "")), []string{"4.18.4 Pending ", "4.18.3 Upgraded c", "4.18.2 Failed b", "4.18.1 Upgraded a"}},
		{"a version again", newObject(withHistory(before...)), []string{"4.18.2 Failed b", "4.18.3 Upgraded c", "4.18.1 Upgraded a"}},
		{"one that was not wanted any more", newObject(withHistory(entry("4.18.3", "Pending", "c"), entry("4.18.2", "New", "b"))), []string{"4.18.2 Pending b", "4.18.3 Pending c"}},
		{"an image", newObject(desiring("", "", offeredImage)), []string{offeredImage + " Pending "}},
		{"an image with its version", newObject(desiring("4.18.2", "", offeredImage), withHistory(entry(offeredImage, "Failed", "a"))), []string{"4.18.2 Failed a"}},
		{"nothing", newObject(desiring("", "", "")), []string{" Pending "}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got := muo.Current(tc.object)
			expectHistory(t, tc.object, tc.want...)
			if got != &tc.object.Status.History[0] {
				t.Error("what is returned is not the first entry")
			}
			if tc.object.Status.History = append([]v1alpha1.UpgradeHistory(nil), tc.object.Status.History...); len(before) != 3 || before[0].Version != "4.18.3" {
				t.Error("the history before was changed")
			}
		})
	}
}

func TestTidy(t *testing.T) {
	jobs := []v1beta1.UpgradeJob{{ObjectMeta: metav1.ObjectMeta{Name: "still-there"}}}
	underMUO := entry("4.18.4", "Upgrading", "")
	object := newObject(withHistory(
		entry("4.18.9", "Pending", ""), entry("4.18.8", "Pending", "gone"), entry("4.18.7", "Pending", "still-there"), entry("4.18.6", "Pending", ""), entry("", "Pending", ""),
		entry("4.18.5", "Upgrading", "running"), underMUO, entry("4.18.3", "Upgraded", ""), entry("4.18.2", "Failed", "")))
	muo.Tidy(object, jobs)
	expectHistory(t, object, "4.18.9 Pending ", "4.18.8 New gone", "4.18.7 Pending still-there", "4.18.5 Upgrading running", "4.18.4 Upgrading ", "4.18.3 Upgraded ", "4.18.2 Failed ")

	long := newObject()
	for i := range 40 {
		h := entry(fmt.Sprintf("4.17.%d", i), "Upgraded", "a")
		h.Conditions = []v1alpha1.UpgradeCondition{{Type: "A"}}
		long.Status.History = append(long.Status.History, h)
	}
	muo.Tidy(long, nil)
	withConditions := 0
	for _, h := range long.Status.History {
		withConditions += len(h.Conditions)
	}
	if len(long.Status.History) != 40 || withConditions != 32 {
		t.Errorf("%d entries are left, %d with conditions, want 40 and 32", len(long.Status.History), withConditions)
	}
	muo.Tidy(&v1alpha1.UpgradeConfig{}, nil) // has nothing to tidy
}

func TestAdopt(t *testing.T) {
	job := func(name, version string, phase v1beta1.Phase) v1beta1.UpgradeJob {
		j := newJob(phase, func(j *v1beta1.UpgradeJob) { j.Name = name })
		j.Spec.DesiredVersion = &v1beta1.DesiredVersion{Version: version, Image: "image:" + version}
		if phase == v1beta1.PhaseActive {
			started(j)
		}
		return *j
	}
	object := newObject(withHistory(entry("4.18.4", "Pending", ""), entry("image:4.18.3", "Pending", ""), entry("4.18.2", "Failed", "")))
	muo.Adopt(object, []v1beta1.UpgradeJob{
		job("unknown", "4.18.5", v1beta1.PhaseActive), job("pending", "4.18.6", v1beta1.PhasePending), job("current", "4.18.4", v1beta1.PhaseActive),
		job("by-image", "4.18.3", v1beta1.PhaseActive), job("again", "4.18.2", v1beta1.PhaseActive),
	}, "current")
	expectHistory(t, object, "4.18.5  unknown", "4.18.4 Pending ", "image:4.18.3 Pending by-image", "4.18.2 Failed ")
}

func TestRan(t *testing.T) {
	for _, tc := range []struct {
		reason string
		entry  v1alpha1.UpgradeHistory
		want   bool
	}{
		{"by this job", entry("v", "Upgraded", "job"), true},
		{"by this job, in vain", entry("v", "Failed", "job"), true},
		{"by another one", entry("v", "Failed", "other"), false},
		{"before there were jobs", entry("v", "Failed", ""), true},
		{"it has not", entry("v", "Pending", "job"), false},
		{"it does", entry("v", "Upgrading", ""), false},
	} {
		if got := muo.Ran(&tc.entry, "job"); got != tc.want {
			t.Errorf("%s: got %t", tc.reason, got)
		}
	}
}
