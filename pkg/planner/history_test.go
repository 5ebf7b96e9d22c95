// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package planner_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/planner"
)

func TestSuperfluous(t *testing.T) {
	// history returns a job for each letter, one a week: Succeeded, Failed, sKipped, Active, Pending, a new one, Terminating.
	history := func(phases string) []v1beta1.UpgradeJob {
		var jobs []v1beta1.UpgradeJob
		for i, letter := range phases {
			phase := map[rune]v1beta1.Phase{
				'S': v1beta1.PhaseSucceeded, 'F': v1beta1.PhaseFailed, 'K': v1beta1.PhaseSkipped,
				'A': v1beta1.PhaseActive, 'P': v1beta1.PhasePending, 'N': "", 'T': v1beta1.PhaseSucceeded,
			}[letter]
			job := newJob(string(rune('a'+i)), tuesday.AddDate(0, 0, 7*i), phase)
			if letter == 'T' {
				job.DeletionTimestamp = &metav1.Time{Time: tuesday}
			}
			jobs = append(jobs, job)
		}
		return jobs
	}
	for _, tc := range []struct {
		reason             string
		jobs               string
		successful, failed *int32
		want               []string
	}{
		{"none", "", nil, nil, nil},
		{"the default keeps four of each", "SSSSSFFFFF", nil, nil, []string{"a", "f"}},
		{"up to the limit all stay", "SSFF", ptr.To[int32](2), ptr.To[int32](2), nil},
		{"the oldest go", "SSSS", ptr.To[int32](1), nil, []string{"a", "b", "c"}},
		{"failed and skipped ones are counted together", "FKFKF", nil, ptr.To[int32](2), []string{"a", "b", "c"}},
		{"successes do not push failures out", "FSSSSSS", ptr.To[int32](2), ptr.To[int32](1), []string{"b", "c", "d", "e"}},
		{"zero keeps all", "SSSSSSFFFFFF", ptr.To[int32](0), ptr.To[int32](0), nil},
		{"a negative limit keeps all", "SSSSSSFFFFFF", ptr.To[int32](-1), ptr.To[int32](-1), nil},
		{"unfinished jobs are left alone and not counted", "AAAPPPNNNS", ptr.To[int32](1), ptr.To[int32](1), nil},
		{"jobs that are being deleted are left alone and not counted", "TSTST", ptr.To[int32](2), nil, nil},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			config := newConfig()
			config.Spec.SuccessfulJobsHistoryLimit, config.Spec.FailedJobsHistoryLimit = tc.successful, tc.failed
			jobs := history(tc.jobs)
			slices.Reverse(jobs) // a list from a cache has no order
			given := slices.Clone(jobs)
			var got []string
			for _, job := range planner.Superfluous(config, jobs) {
				got = append(got, job.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("superfluous jobs (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(given, jobs); diff != "" {
				t.Errorf("the list was changed (-before +after):\n%s", diff)
			}
		})
	}
}
