// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
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
	if r.Step > 0 && inWork(job) && r.Reason == "" {
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

// stepNames are the conditions of the job's steps, in order: those of its upgrader, and any other that its status has.
func stepNames(s *snapshot, job *v1beta1.UpgradeJob) []string {
	names := upgraderSteps(s, cmp.Or(job.Spec.Config.Upgrader, v1beta1.DefaultUpgrader))
	for i := range job.Status.Steps {
		if name := job.Status.Steps[i].Condition; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
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

// stepsOf tells how far each step of the job is.
func stepsOf(s *snapshot, job *v1beta1.UpgradeJob) []stepReport {
	var reports []stepReport
	current := true // until a step that is not completed
	for _, name := range stepNames(s, job) {
		r := stepOf(s, job, name)
		if r.State != stepCompleted {
			if !current && r.State == stepWaiting { // it waits for its turn again, after an earlier one was undone
				r.State = stepPending
			}
			current = false
		}
		reports = append(reports, r)
	}
	return reports
}

func stepOf(s *snapshot, job *v1beta1.UpgradeJob, name string) stepReport {
	r := stepReport{Name: name, State: stepPending}
	c := meta.FindStatusCondition(job.Status.Conditions, name)
	if c != nil {
		r.Reason, r.Message = c.Reason, c.Message
	}
	i := slices.IndexFunc(job.Status.Steps, func(st v1beta1.StepStatus) bool { return st.Condition == name })
	if i < 0 {
		if c != nil { // hooks hold it before it begins
			r.State = unfinishedState(job)
		}
		return r
	}
	st := &job.Status.Steps[i]
	r.StartTime, r.CompletionTime, r.Attempts = &st.StartTime, st.CompletionTime, st.Attempts
	from, end := st.StartTime.Time, s.Now
	if st.CompletionTime != nil {
		r.State, end = stepCompleted, st.CompletionTime.Time
	} else {
		r.State = unfinishedState(job)
		if resume := job.LastResume(); resume != nil && resume.Time.After(from) {
			from = resume.Time.Time
		}
		if job.Status.CompletionTime != nil {
			end = job.Status.CompletionTime.Time
		}
	}
	r.DurationSeconds = new(int64(max(0, end.Sub(from)).Seconds()))
	return r
}

// unfinishedState is that of a step which has begun and is not done.
func unfinishedState(job *v1beta1.UpgradeJob) string {
	if job.Status.Phase.Finished() {
		return stepFailed
	}
	return stepWaiting
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
	for i := range job.Spec.Config.Notifications {
		receiver := &job.Spec.Config.Notifications[i]
		st := notify.ReceiverStatus(job, receiver.Name)
		reports = append(reports, notificationReport{
			Receiver: receiver.Name, Delivered: st.Delivered, Pending: int64(len(notify.Pending(job, receiver, st.Cursor))),
			Lost: st.Lost, LastError: st.LastError, Last: st.LastDeliveryTime,
		})
	}
	return reports
}
