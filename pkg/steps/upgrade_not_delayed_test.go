// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"testing"
	"time"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

func triggeredAfter(d time.Duration) jobOption {
	return func(job *v1beta1.UpgradeJob) {
		job.Spec.Config.UpgradeWindow = &v1beta1.UpgradeWindow{DelayTrigger: lasting(d)}
	}
}

func TestUpgradeNotDelayed(t *testing.T) {
	const (
		minute  = time.Minute
		delayed = "upgrade.delayed: The upgrade has not commenced within 30m0s."
		isLate  = "False(Delayed): The upgrade has not commenced within 30m0s."
	)
	for _, tc := range []struct {
		reason    string
		job       []jobOption
		version   []versionOption
		after     time.Duration
		condition string
		wake      time.Duration // zero for that of the step behind it, an hour
		told      []string
	}{
		{reason: "in time", condition: "True(Completed): The upgrade is not delayed: it has 30m0s to commence.", wake: 30 * minute},
		{reason: "just so", after: 30*minute - 1, condition: "True(Completed): The upgrade is not delayed: it has 30m0s to commence.", wake: 1},
		{reason: "delayed", after: 30 * minute, condition: isLate, told: []string{delayed}},
		{reason: "and what it waits for", job: []jobOption{waitedFor("Node worker-1 is sick.")}, after: 30 * minute, condition: isLate, told: []string{delayed + " It waits for: Node worker-1 is sick."}},
		{reason: "it was told of before", job: []jobOption{toldAt(v1beta1.StageDelayed, 30*minute)}, after: 31 * minute, condition: isLate},
		{reason: "its own trigger", job: []jobOption{triggeredAfter(5 * minute)}, after: 5 * minute, condition: "False(Delayed): The upgrade has not commenced within 5m0s.",
			told: []string{"upgrade.delayed: The upgrade has not commenced within 5m0s."}},
		{reason: "its own trigger, in time", job: []jobOption{triggeredAfter(50 * minute)}, after: 40 * minute, condition: "True(Completed): The upgrade is not delayed: it has 50m0s to commence.", wake: 10 * minute},
		{reason: "a window that does not name it", job: []jobOption{func(job *v1beta1.UpgradeJob) { job.Spec.Config.UpgradeWindow = &v1beta1.UpgradeWindow{} }}, after: 30 * minute, condition: isLate, told: []string{delayed}},
		{reason: "no trigger", job: []jobOption{triggeredAfter(0)}, after: 9 * time.Hour, condition: "True(Completed): No delay is told of: upgradeWindow.delayTrigger is 0."},
		{reason: "it counts from the resume", job: []jobOption{toldAt(v1beta1.StageDelayed, 30*minute), resumed(time.Hour)}, after: time.Hour, condition: "True(Completed): The upgrade is not delayed: it has 30m0s to commence.", wake: 30 * minute},
		{reason: "and is told of anew", job: []jobOption{toldAt(v1beta1.StageDelayed, 30*minute), resumed(time.Hour)}, after: 90 * minute, condition: isLate, told: []string{delayed}},
		{reason: "commenced in time", job: []jobOption{commenced}, after: 9 * time.Hour, condition: "True(Completed): Not needed any more: the upgrade has commenced."},
		{reason: "commenced late", job: []jobOption{toldAt(v1beta1.StageDelayed, 30*minute), commenced}, after: 40 * minute, condition: "False(Delayed): The upgrade had not commenced within 30m0s."},
		{reason: "a job without a version", job: []jobOption{withoutVersion}, after: 9 * time.Hour, condition: "True(Completed): "},
		{reason: "what runs already", version: []versionOption{upgraded()}, after: 9 * time.Hour, condition: "True(Completed): The cluster runs 4.18.2 already."},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newStageWorld(t, newJob(append(tc.job, receiver("pager"))...), openshifttest.ClusterVersion(tc.version...))
			wake := tc.wake
			if wake == 0 {
				wake = time.Hour
			}
			for range 2 { // another pass says the same, and tells nothing more
				result := w.pass(tc.after, steps.UpgradeNotDelayed(), answering(t, "Next", steps.Wait(time.Hour, "Busy", "It goes on.")))
				if result.Err != nil || result.Outcome != steps.Running || result.Reason != "Busy" || result.After != wake {
					t.Errorf("got %+v, want the next step to run, and a pass after %s", result, wake)
				}
				w.expectConditionBegins(steps.ConditionUpgradeNotDelayed, tc.condition)
				w.expectTold(tc.told...)
			}
		})
	}
}

// The condition turns once, at the trigger, and never says that a late upgrade was in time.
func TestUpgradeNotDelayedThroughAnUpgrade(t *testing.T) {
	w := newStageWorld(t, newJob(receiver("pager")), openshifttest.ClusterVersion())
	step := steps.UpgradeNotDelayed()
	for _, at := range []struct {
		after  time.Duration
		change jobOption
		want   string
	}{
		{0, nil, "True(Completed): The upgrade is not delayed"},
		{30 * time.Minute, nil, "False(Delayed): The upgrade has not commenced"},
		{50 * time.Minute, commenced, "False(Delayed): The upgrade had not commenced"},
		{9 * time.Hour, nil, "False(Delayed): The upgrade had not commenced"},
	} {
		if at.change != nil {
			w.edit(at.change)
		}
		w.pass(at.after, step)
		w.expectConditionBegins(step.Condition(), at.want)
	}
	w.expectTold("upgrade.delayed: The upgrade has not commenced within 30m0s.")
}
