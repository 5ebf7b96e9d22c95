// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/lifecycle"
	"github.com/appuio/managed-upgrade-operator/pkg/suspension"
)

// judgeConfigs tells when upgrades are scheduled, and what keeps them from being.
func judgeConfigs(s *series, w *world) {
	for i := range w.configs.Items {
		config := &w.configs.Items[i]
		schedule := &config.Spec.Schedule
		s.add(configInfo, 1, config.Namespace, config.Name, schedule.Cron, schedule.ISOWeek, schedule.Location, lifecycle.UpgraderOf(&config.Spec.JobTemplate.Spec.Config))
		if c := meta.FindStatusCondition(config.Status.Conditions, v1beta1.ConditionScheduling); c != nil {
			s.add(configScheduling, number(c.Status == metav1.ConditionTrue), config.Namespace, config.Name, c.Reason)
		}
		if schedule.Suspend {
			s.add(configSuspended, 1, config.Namespace, config.Name, "schedule")
		}
		if suspension.Active(w.windows.Items, suspension.ForConfigs, config, w.now) != nil {
			s.add(configSuspended, 1, config.Namespace, config.Name, "window")
		}
		for n := range config.Status.NextPossibleSchedules {
			s.addTime(configNextStart, &config.Status.NextPossibleSchedules[n], config.Namespace, config.Name, strconv.Itoa(n))
		}
		s.add(configPinWindow, config.Spec.PinVersionWindow.Or(0).Seconds(), config.Namespace, config.Name)
		s.addTime(configLastScheduled, config.Status.LastScheduledUpgrade, config.Namespace, config.Name)
		if kept := ptr.Deref(config.Spec.FailedJobsHistoryLimit, v1beta1.DefaultJobsHistoryLimit); kept > 0 {
			s.add(configKept, float64(kept), config.Namespace, config.Name)
		}
		if !w.unread[kindJob] {
			s.add(configSkippedInARow, float64(skippedInARow(config, w.jobs.Items)), config.Namespace, config.Name)
		}
		if skipped := config.Status.LastSkippedStart; skipped != nil {
			s.addTime(configLastSkipped, &skipped.StartAfter, config.Namespace, config.Name, skipped.Reason)
		}
	}
}

// skippedInARow counts how many of the newest jobs of the config that have ended were skipped, one after the other.
func skippedInARow(config *v1beta1.UpgradeConfig, jobs []v1beta1.UpgradeJob) int {
	var ended []*v1beta1.UpgradeJob
	for i := range jobs {
		if job := &jobs[i]; configUID(job) == config.UID && job.Status.Phase.Finished() {
			ended = append(ended, job)
		}
	}
	slices.SortFunc(ended, lifecycle.NewerFirst)
	for i, job := range ended {
		if job.Status.Phase != v1beta1.PhaseSkipped {
			return i
		}
	}
	return len(ended)
}

// judgeWindows tells when upgrades are suspended, and whose.
func judgeWindows(s *series, w *world) {
	for i := range w.windows.Items {
		window := &w.windows.Items[i]
		s.add(windowInfo, 1, window.Namespace, window.Name, window.Spec.Reason)
		s.addTime(windowStart, &window.Spec.Start, window.Namespace, window.Name)
		s.addTime(windowEnd, &window.Spec.End, window.Namespace, window.Name)
		s.add(windowActive, number(suspension.Covers(window, w.now)), window.Namespace, window.Name)
		s.add(windowConfigs, float64(len(window.Status.MatchingConfigs)), window.Namespace, window.Name)
		s.add(windowJobs, float64(len(window.Status.MatchingJobs)), window.Namespace, window.Name)
		for _, config := range window.Status.MatchingConfigs {
			s.add(windowConfig, 1, window.Namespace, window.Name, config.Name)
		}
	}
}
