// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"slices"

	"k8s.io/utils/ptr"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// Superfluous returns the finished jobs that the history limits of the config do not keep: those that succeeded and
// those that did not are counted apart, the newest of each are kept.
func Superfluous(config *v1beta1.UpgradeConfig, jobs []v1beta1.UpgradeJob) []v1beta1.UpgradeJob {
	sorted := slices.Clone(jobs)
	slices.SortFunc(sorted, func(a, b v1beta1.UpgradeJob) int { return a.Spec.StartAfter.Compare(b.Spec.StartAfter.Time) })

	var succeeded, others []v1beta1.UpgradeJob
	for _, job := range sorted {
		switch {
		case !job.Status.Phase.Finished() || !job.DeletionTimestamp.IsZero():
		case job.Status.Phase == v1beta1.PhaseSucceeded:
			succeeded = append(succeeded, job)
		default:
			others = append(others, job)
		}
	}
	return append(
		beyond(succeeded, ptr.Deref(config.Spec.SuccessfulJobsHistoryLimit, v1beta1.DefaultJobsHistoryLimit)),
		beyond(others, ptr.Deref(config.Spec.FailedJobsHistoryLimit, v1beta1.DefaultJobsHistoryLimit))...)
}

func beyond(jobs []v1beta1.UpgradeJob, limit int32) []v1beta1.UpgradeJob {
	if limit <= 0 {
		return nil
	}
	return jobs[:max(0, len(jobs)-int(limit))]
}
