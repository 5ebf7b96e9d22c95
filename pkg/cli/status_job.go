// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/lifecycle"
	"github.com/appuio/managed-upgrade-operator/pkg/notify"
	"github.com/appuio/managed-upgrade-operator/pkg/suspension"
	"github.com/appuio/managed-upgrade-operator/pkg/upgrader"
)

// jobOf tells all that is to be known of a job.
func jobOf(s *snapshot, job *v1beta1.UpgradeJob) jobReport {
	r := jobReport{
		jobSummary: summaryOf(job), Steps: stepsOf(s, job), Hooks: hooksOf(job), Notifications: notificationsOf(job), Deadlines: deadlinesOf(s, job),
	}
	for i := range r.Steps {
		if state := r.Steps[i].State; r.Step == 0 && (state == stepWaiting || state == stepFailed) {
			r.Step = i + 1
		}
	}
	if r.Step > 0 && lifecycle.InWork(job) && r.Reason == "" {
		r.Reason, r.Message = r.Steps[r.Step-1].Reason, r.Steps[r.Step-1].Message
	}
	r.addStatus(job)
	if job.Status.StartTime == nil && !job.Status.Phase.Finished() {
		r.SuspendedBy = suspendedBy(s, job)
	}
	return r
}

// addStatus adds what stands in the status of the job as it is.
func (r *jobReport) addStatus(job *v1beta1.UpgradeJob) {
	r.Preflight = conditionOf(job, v1beta1.ConditionPreflightHealthy)
	for _, t := range []string{v1beta1.ConditionCreateHooksCompleted, v1beta1.ConditionGivenBack} {
		if c := conditionOf(job, t); c != nil && c.Status != string(metav1.ConditionTrue) {
			r.Conditions = append(r.Conditions, *c)
		}
	}
	for _, b := range job.Status.Blockers {
		r.Blockers = append(r.Blockers, blockerReport{b.Code, b.Check, b.Object, b.Since, b.Message, b.ClearsWhen})
	}
	r.ExtraMachines = job.Status.ExtraMachines
	for _, w := range job.Status.MaintenanceWindows {
		r.Silences = append(r.Silences, silenceReport{string(w.Name), w.StartTime, w.Until, len(w.Silences), w.Warning})
	}
	for _, resumed := range job.Status.ResumedRequests {
		if resumed.Reopened != "" {
			r.Resumes = append(r.Resumes, resumeReport{resumed.Request, resumed.Time, resumed.Reopened})
		}
	}
}

// suspendedBy is the suspension window that keeps the job from starting at its time; empty if none does.
func suspendedBy(s *snapshot, job *v1beta1.UpgradeJob) string {
	at := job.Spec.StartAfter.Time
	if s.Now.After(at) {
		at = s.Now
	}
	if w := suspension.Active(s.windowsIn(job.Namespace), suspension.ForJobs, job, at); w != nil {
		return describeWindow(w)
	}
	return ""
}

func conditionOf(job *v1beta1.UpgradeJob, t string) *conditionReport {
	c := meta.FindStatusCondition(job.Status.Conditions, t)
	if c == nil {
		return nil
	}
	return &conditionReport{c.Type, string(c.Status), c.Reason, c.Message, c.LastTransitionTime}
}

// upgraderSteps are the conditions of the steps of the upgrader of that name; none if it is not known.
func upgraderSteps(s *snapshot, name string) []string {
	var names []string
	for _, u := range upgrader.BuiltIn() {
		if u.Name() != name {
			continue
		}
		for _, step := range u.Steps() {
			names = append(names, step.Condition())
		}
		return names
	}
	for i := range s.Upgraders {
		if s.Upgraders[i].Name == name {
			for _, step := range s.Upgraders[i].Spec.Steps {
				names = append(names, step.Step)
			}
		}
	}
	return names
}

// stepsOf tells how far each step of the job is, and how long it took.
func stepsOf(s *snapshot, job *v1beta1.UpgradeJob) []stepReport {
	var reports []stepReport
	for _, step := range lifecycle.Steps(job, upgraderSteps(s, lifecycle.UpgraderOf(&job.Spec.Config))) {
		r := stepReport{Name: step.Condition, State: string(step.State), Reason: step.Reason, Message: step.Message}
		if step.Begun != nil {
			r.addTimes(step.Begun, s.Now, job)
		}
		reports = append(reports, r)
	}
	return reports
}

// addTimes adds when the step began and ended, and how long it took, or has taken so far.
func (r *stepReport) addTimes(begun *v1beta1.StepStatus, now time.Time, job *v1beta1.UpgradeJob) {
	r.StartTime, r.CompletionTime, r.Attempts = &begun.StartTime, begun.CompletionTime, begun.Attempts
	from, end := begun.StartTime.Time, now
	switch {
	case begun.CompletionTime != nil:
		end = begun.CompletionTime.Time
	case job.Status.CompletionTime != nil:
		from, end = lifecycle.WaitingSince(job, begun), job.Status.CompletionTime.Time
	default:
		from = lifecycle.WaitingSince(job, begun)
	}
	r.DurationSeconds = new(int64(max(0, end.Sub(from)).Seconds()))
}

// hooksOf tells of the runs of hooks, the oldest first.
func hooksOf(job *v1beta1.UpgradeJob) []hookReport {
	var reports []hookReport
	for i := range job.Status.HookTracker {
		h := &job.Status.HookTracker[i]
		reports = append(reports, hookReport{
			Hook: h.UpgradeJobHook, Event: string(h.HookEvent), Key: h.TrackingKey, Status: string(h.Status), FailurePolicy: string(h.FailurePolicy),
			Job: h.Job, Message: h.Message, StartTime: h.StartTime, CompletionTime: h.CompletionTime,
		})
	}
	return reports
}

// notificationsOf tells how delivery to each receiver fares.
func notificationsOf(job *v1beta1.UpgradeJob) []notificationReport {
	var reports []notificationReport
	config := &job.Spec.Config
	for i := range config.Notifications {
		name := config.ReceiverName(i)
		st := notify.ReceiverStatus(job, name)
		reports = append(reports, notificationReport{
			Receiver: name, Delivered: st.Delivered, Pending: int64(len(notify.Pending(job, &config.Notifications[i], st.Cursor))),
			Lost: st.Lost, LastError: st.LastError, Last: st.LastDeliveryTime,
		})
	}
	return reports
}
