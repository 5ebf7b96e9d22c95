// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	o "github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

// pastNight returns what is left of an upgrade that went through, by its name and start.
func pastNight(name string, start time.Duration) *v1beta1.UpgradeJob {
	return upgradeJob(jobNamed(name, start), started(start, allSteps...), finished(v1beta1.Succeeded(v1beta1.ReasonUpgraded, ""), start+90*time.Minute))
}

func TestHistoryIsNewestFirst(t *testing.T) {
	day := 24 * time.Hour
	// The one that started first was resumed, and ended last.
	resumed := pastNight("resumed", -3*day)
	resumed.Status.CompletionTime = new(at(-time.Hour))
	never := upgradeJob(jobNamed("never", -day), finished(v1beta1.Skipped(v1beta1.ReasonExpired, ""), -day+time.Hour))
	s := seen(0, pastNight("older", -2*day), resumed, never, upgradeJob(jobNamed("next", day)))
	r := historyOf(s)
	var names []string
	for _, j := range r.Jobs {
		names = append(names, j.Name)
	}
	if len(names) != 3 || names[0] != "resumed" || names[1] != "never" || names[2] != "older" {
		t.Fatalf("got %v, want resumed, never, older", names)
	}
	if never := r.Jobs[1]; never.DurationSeconds != nil || never.WaitedSeconds != nil {
		t.Errorf("a job that never started ran for %v, and waited %v", *never.DurationSeconds, *never.WaitedSeconds)
	}
	if older := r.Jobs[2]; older.DurationSeconds == nil || *older.DurationSeconds != 90*60 || *older.WaitedSeconds != 0 {
		t.Errorf("a job of 90 minutes has %v", older.DurationSeconds)
	}
}

func TestWhoseAnUpdateWas(t *testing.T) {
	// The jobs commence eight minutes after their start.
	first, second := pastNight("first", -24*time.Hour), pastNight("second", 0)
	entry := func(version string, start time.Duration) configv1.UpdateHistory {
		h := o.Completed(version)
		h.StartedTime = at(start)
		return h
	}
	imageOnly := pastNight("image", 0)
	imageOnly.Spec.DesiredVersion.Version = ""
	for _, tc := range []struct {
		reason string
		jobs   []*v1beta1.UpgradeJob
		h      configv1.UpdateHistory
		want   string
	}{
		{"it began when a job asked for it", []*v1beta1.UpgradeJob{first, second}, entry("4.18.2", 8*time.Minute), "upgrades/second"},
		{"the API server's clock is a little behind", []*v1beta1.UpgradeJob{first, second}, entry("4.18.2", 8*time.Minute-30*time.Second), "upgrades/second"},
		{"an earlier job had asked for the same", []*v1beta1.UpgradeJob{first, second}, entry("4.18.2", -24*time.Hour+10*time.Minute), "upgrades/first"},
		{"it began before any job asked for it", []*v1beta1.UpgradeJob{second}, entry("4.18.2", 0), ""},
		{"it began when the job was over", []*v1beta1.UpgradeJob{second}, entry("4.18.2", 2*time.Hour), ""},
		{"another version", []*v1beta1.UpgradeJob{second}, entry("4.18.3", 8*time.Minute), ""},
		{"a job that names the image alone", []*v1beta1.UpgradeJob{imageOnly}, entry("4.18.2", 8*time.Minute), "upgrades/image"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if got := whose(seen(0, tc.jobs...), &tc.h); got != tc.want {
				t.Errorf("it is of %q, want %q", got, tc.want)
			}
		})
	}
}
