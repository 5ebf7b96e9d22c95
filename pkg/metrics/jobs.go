// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/hooks"
	"github.com/appuio/managed-upgrade-operator/pkg/lifecycle"
	"github.com/appuio/managed-upgrade-operator/pkg/notify"
)

// judgeJobs tells where each job stands.
func judgeJobs(s *series, w *world) {
	for i := range w.jobs.Items {
		job := &w.jobs.Items[i]
		judgeJob(s, w, job)
		judgeTimes(s, job)
		judgeHookRuns(s, job)
		judgeNotifications(s, job)
		judgeHeld(s, job)
		if !job.Status.Phase.Finished() {
			judgeBlockers(s, job)
		}
	}
	for _, job := range withSteps(w.jobs.Items) {
		judgeSteps(s, w, job)
	}
}

// judgeJob tells the state of a job, and what it upgrades from and to.
func judgeJob(s *series, w *world, job *v1beta1.UpgradeJob) {
	config, upgrader := lifecycle.ConfigOf(job), lifecycle.UpgraderOf(&job.Spec.Config)
	state := strings.ToLower(string(cmp.Or(job.Status.Phase, v1beta1.PhasePending)))
	s.add(jobState, 1, job.Namespace, job.Name, config, upgrader, state, reasonOf(job, w))
	var desired v1beta1.DesiredVersion
	if job.Spec.DesiredVersion != nil {
		desired = *job.Spec.DesiredVersion
	}
	if !w.unread[kindHook] {
		s.add(jobInfo, 1, job.Namespace, job.Name, config, upgrader, job.Status.FromVersion, desired.Version, desired.Image,
			strconv.FormatBool(matchesDisruptiveHooks(job, w.hooks.Items)))
	}
	healthy := meta.FindStatusCondition(job.Status.Conditions, v1beta1.ConditionPreflightHealthy)
	if healthy != nil && !job.Status.Phase.Finished() {
		s.add(jobPreflightHealthy, number(healthy.Status == metav1.ConditionTrue), job.Namespace, job.Name)
	}
}

// reasonOf says in a word why the job is in its state.
func reasonOf(job *v1beta1.UpgradeJob, w *world) string {
	switch job.Status.Phase {
	case v1beta1.PhaseSucceeded, v1beta1.PhaseFailed, v1beta1.PhaseSkipped:
		return reason(job.Status.Conditions, string(job.Status.Phase))
	case v1beta1.PhaseActive, v1beta1.PhasePaused:
		for _, step := range stepsOf(job, w) {
			if step.State != lifecycle.StepCompleted {
				return step.Reason
			}
		}
	case v1beta1.PhasePending:
	}
	return reason(job.Status.Conditions, v1beta1.ConditionStarted)
}

func reason(conditions []metav1.Condition, conditionType string) string {
	if c := meta.FindStatusCondition(conditions, conditionType); c != nil {
		return c.Reason
	}
	return ""
}

// matchesDisruptiveHooks tells whether a hook of the job is disruptive.
func matchesDisruptiveHooks(job *v1beta1.UpgradeJob, all []v1beta1.UpgradeJobHook) bool {
	return slices.ContainsFunc(all, func(h v1beta1.UpgradeJobHook) bool {
		return h.Spec.Disruptive && h.Namespace == job.Namespace && h.DeletionTimestamp.IsZero() && hooks.Selects(&h, job)
	})
}

func judgeTimes(s *series, job *v1beta1.UpgradeJob) {
	s.addTime(jobStartAfter, &job.Spec.StartAfter, job.Namespace, job.Name)
	s.addTime(jobStartBefore, &job.Spec.StartBefore, job.Namespace, job.Name)
	s.addTime(jobStarted, job.Status.StartTime, job.Namespace, job.Name)
	s.addTime(jobCommenced, job.Status.CommenceTime, job.Namespace, job.Name)
	s.addTime(jobCompleted, job.Status.CompletionTime, job.Namespace, job.Name)
	if !job.Status.Phase.Finished() {
		s.add(jobDeadline, seconds(lifecycle.Deadline(job)), job.Namespace, job.Name)
	}
}

// judgeBlockers counts what holds a job up.
func judgeBlockers(s *series, job *v1beta1.UpgradeJob) {
	codes, checks := map[string]int{}, map[string]int{}
	for i := range job.Status.Blockers {
		b := &job.Status.Blockers[i]
		codes[b.Code]++
		if b.Check != "" {
			checks[b.Check]++
		}
	}
	for code, count := range codes {
		s.add(jobBlockers, float64(count), job.Namespace, job.Name, code)
	}
	for check, count := range checks {
		s.add(jobFindings, float64(count), job.Namespace, job.Name, check)
	}
}

func judgeHookRuns(s *series, job *v1beta1.UpgradeJob) {
	type runs struct{ hook, event, status string }
	counts := map[runs]int{}
	for i := range job.Status.HookTracker {
		run := &job.Status.HookTracker[i]
		counts[runs{run.UpgradeJobHook, string(run.HookEvent), strings.ToLower(string(run.Status))}]++
	}
	for r, count := range counts {
		s.add(jobHookRuns, float64(count), job.Namespace, job.Name, r.hook, r.event, r.status)
	}
}

// judgeNotifications tells what receivers have yet to get.
func judgeNotifications(s *series, job *v1beta1.UpgradeJob) {
	config := &job.Spec.Config
	if len(config.Notifications) == 0 {
		return
	}
	count, oldest := 0, (*metav1.Time)(nil)
	for i := range config.Notifications {
		cursor := notify.ReceiverStatus(job, config.ReceiverName(i)).Cursor
		pending := notify.Pending(job, &config.Notifications[i], cursor)
		count += len(pending)
		if len(pending) > 0 && (oldest == nil || pending[0].Time.Before(oldest)) {
			oldest = &pending[0].Time
		}
	}
	s.add(notificationsPending, float64(count), job.Namespace, job.Name)
	s.addTime(notificationsOldest, oldest, job.Namespace, job.Name)
}

// judgeHeld tells what a job holds, and whether it has given it back.
func judgeHeld(s *series, job *v1beta1.UpgradeJob) {
	for i := range job.Status.MaintenanceWindows {
		window := &job.Status.MaintenanceWindows[i]
		s.add(jobSilences, float64(len(window.Silences)), job.Namespace, job.Name, string(window.Name))
	}
	if extra := job.Status.ExtraMachines; extra != nil {
		s.add(jobExtraMachines, float64(extra.Wanted), job.Namespace, job.Name, "wanted")
		s.add(jobExtraMachines, float64(extra.Ready), job.Namespace, job.Name, "ready")
	}
	if c := meta.FindStatusCondition(job.Status.Conditions, v1beta1.ConditionGivenBack); c != nil {
		s.add(jobGivenBack, number(c.Status == metav1.ConditionTrue), job.Namespace, job.Name)
	}
}
