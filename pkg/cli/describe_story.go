// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// storyOf lists what happened to a job, by time. Times are known to the second only: what happened in the same one is told in the order in which one leads
// to the other.
func storyOf(job *v1beta1.UpgradeJob) []eventReport {
	e := &story{job: job, list: []eventReport{}, hooks: map[int]bool{}, notices: map[int]bool{}}
	e.add(&job.CreationTimestamp, "job", "created")
	e.addHooks(v1beta1.HookEventCreate)
	e.addNotices("", v1beta1.ConditionPreflightHealthy, v1beta1.ConditionStarted)
	e.add(job.Status.StartTime, "job", "started")
	e.addResumes()
	for i := range job.Status.Steps {
		e.addStep(&job.Status.Steps[i])
	}
	e.addBeside()
	e.addOutcome()
	e.addHooks(outcomeEvents...)
	slices.SortStableFunc(e.list, func(a, b eventReport) int { return a.Time.Compare(b.Time.Time) })
	return e.list
}

// outcomeEvents are those of hooks that run when a job has ended.
var outcomeEvents = []v1beta1.HookEvent{v1beta1.HookEventSuccess, v1beta1.HookEventFailure, v1beta1.HookEventSkipped, v1beta1.HookEventFinish}

// eventsOfSteps are the events of hooks that a step of the upgrader OpenShift emits, beside those of all steps.
var eventsOfSteps = map[string]v1beta1.HookEvent{
	steps.ConditionStartHooksCompleted:      v1beta1.HookEventStart,
	steps.ConditionCompletionHooksCompleted: v1beta1.HookEventUpgradeComplete,
	steps.ConditionDelayedPoolsUpgraded:     v1beta1.HookEventMachineConfigPoolUnpause,
}

type story struct {
	job  *v1beta1.UpgradeJob
	list []eventReport
	// hooks and notices that are in it, by their places in the status.
	hooks, notices map[int]bool
}

// add adds what happened at a time, unless that is not known.
func (e *story) add(at *metav1.Time, kind, format string, values ...any) {
	if at != nil && !at.IsZero() {
		e.list = append(e.list, eventReport{*at, kind, fmt.Sprintf(format, values...)})
	}
}

// addStep adds a step, and in it what the job did for it and waited for.
func (e *story) addStep(st *v1beta1.StepStatus) {
	again := ""
	if st.Attempts > 1 {
		again = fmt.Sprintf(", attempt %d", st.Attempts)
	}
	e.add(&st.StartTime, "step", "%s begins%s", st.Condition, again)
	e.addHooks(v1beta1.HookEventStepStarted(st.Condition))
	if event, ok := eventsOfSteps[st.Condition]; ok {
		e.addHooks(event)
	}
	e.addNotices(st.Condition)
	if st.Condition == steps.ConditionUpgradeCommenced {
		e.add(e.job.Status.CommenceTime, "job", "the upgrade commences: the cluster is asked for %s", cmp.Or(target(e.job), "nothing"))
	}
	if st.CompletionTime != nil {
		e.add(st.CompletionTime, "step", "%s is completed after %s", st.Condition, span(st.CompletionTime.Sub(st.StartTime.Time)))
	}
	e.addHooks(v1beta1.HookEventStepCompleted(st.Condition))
}

// addHooks adds the hooks of some events.
func (e *story) addHooks(events ...v1beta1.HookEvent) {
	for i := range e.job.Status.HookTracker {
		if h := &e.job.Status.HookTracker[i]; slices.Contains(events, h.HookEvent) {
			e.addHook(i, h)
		}
	}
}

func (e *story) addHook(place int, h *v1beta1.HookRun) {
	e.hooks[place] = true
	name := strings.TrimSuffix(h.UpgradeJobHook+" at "+string(h.HookEvent)+" "+h.TrackingKey, " ")
	e.add(&h.StartTime, "hook", "%s begins", name)
	if h.CompletionTime != nil {
		e.add(h.CompletionTime, "hook", "%s: %s", name, strings.TrimSuffix(strings.ToLower(string(h.Status))+": "+h.Message, ": "))
	}
}

// addBeside adds what goes beside the steps.
func (e *story) addBeside() {
	status := &e.job.Status
	commenced := func(st v1beta1.StepStatus) bool { return st.Condition == steps.ConditionUpgradeCommenced }
	if !slices.ContainsFunc(status.Steps, commenced) {
		e.add(status.CommenceTime, "job", "the upgrade commences: the cluster is asked for %s", cmp.Or(target(e.job), "nothing"))
	}
	for i := range status.Stages {
		e.add(&status.Stages[i].Time, "stage", "%s was told of", status.Stages[i].Stage)
	}
	for i := range status.MaintenanceWindows {
		w := &status.MaintenanceWindows[i]
		e.add(&w.StartTime, "silence", "window %s opens, until %s at most", w.Name, w.Until.UTC().Format(time.RFC3339))
	}
	// Of steps that the job has no record of.
	for i := range status.HookTracker {
		if h := &status.HookTracker[i]; !e.hooks[i] && !slices.Contains(outcomeEvents, h.HookEvent) {
			e.addHook(i, h)
		}
	}
	if status.Notifications != nil {
		for i := range status.Notifications.Outbox {
			e.addNotice(i, &status.Notifications.Outbox[i])
		}
	}
}

// addResumes adds the ends that the job had come to before, and from which it was resumed: its steps go on after that.
func (e *story) addResumes() {
	for i := range e.job.Status.ResumedRequests {
		if r := &e.job.Status.ResumedRequests[i]; r.Reopened != "" {
			e.add(&r.Time, "resume", "%s is taken back by request %q", r.Reopened, r.Request)
		}
	}
}

// addOutcome adds the end that the job has come to.
func (e *story) addOutcome() {
	if e.job.Status.CompletionTime != nil {
		summary := summaryOf(e.job)
		e.add(e.job.Status.CompletionTime, "job", "%s (%s): %s", summary.Phase, summary.Reason, summary.Message)
	}
}

// telling are the notices that say what is not recorded elsewhere.
var telling = []v1beta1.NotificationType{
	v1beta1.NotificationStepWaiting, v1beta1.NotificationStepFailed, v1beta1.NotificationJobWaiting,
	v1beta1.NotificationJobPreflightUnhealthy, v1beta1.NotificationJobPreflightHealthy,
}

// addNotices adds what the job waited for, or failed of, on these conditions: the rest stands elsewhere.
func (e *story) addNotices(conditions ...string) {
	if e.job.Status.Notifications == nil {
		return
	}
	for i := range e.job.Status.Notifications.Outbox {
		if n := &e.job.Status.Notifications.Outbox[i]; slices.Contains(conditions, n.Condition) {
			e.addNotice(i, n)
		}
	}
}

func (e *story) addNotice(place int, n *v1beta1.Notice) {
	if slices.Contains(telling, n.Type) && !e.notices[place] {
		e.notices[place] = true
		e.add(&n.Time, "notice", "%s: %s", strings.TrimSpace(n.Condition+" "+n.Reason), n.Message)
	}
}
