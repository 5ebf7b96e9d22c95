// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/lifecycle"
	"github.com/appuio/managed-upgrade-operator/pkg/notify"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// actionLifecycle is the action of Events that are about no step and no hook.
const actionLifecycle = "Lifecycle"

// maxNote is the longest note that the API accepts in an Event, in bytes.
const maxNote = 1024

// announcement is a turn in the job's life, to be published once it is recorded.
type announcement struct {
	eventType, reason, action, message string
	// hook that it is about; empty if it is about none.
	hook string
}

var outcomeNotices = map[string]v1beta1.NotificationType{
	v1beta1.ConditionSucceeded: v1beta1.NotificationJobSucceeded,
	v1beta1.ConditionFailed:    v1beta1.NotificationJobFailed,
	v1beta1.ConditionSkipped:   v1beta1.NotificationJobSkipped,
}

// announce notes a turn in the job's life: for the receivers of notifications in the status, in the same write as the
// turn itself, and for the log and an Event. It returns the sequence that it has for the receivers, 0 if none wants it.
func (p *pass) announce(n v1beta1.Notice) int64 {
	sequence := notify.Append(p.job, n, p.now)
	if n.Type == v1beta1.NotificationJobCreated {
		return sequence // who looks at the job knows that it was created
	}
	a := announcement{eventTypeOf(n.Type), n.Reason, cmp.Or(n.Condition, actionLifecycle), n.Message, n.Hook}
	switch {
	case n.Type == outcomeNotices[n.Condition]:
		a.reason, a.action, a.message = n.Condition, actionLifecycle, n.Reason+": "+n.Message
	case n.Reason == v1beta1.ReasonCompleted:
		a.reason = n.Condition // the API counts Events of one reason and action as one
	}
	p.news = append(p.news, a)
	return sequence
}

func eventTypeOf(t v1beta1.NotificationType) string {
	switch t {
	case v1beta1.NotificationJobPreflightUnhealthy, v1beta1.NotificationJobFailed, v1beta1.NotificationJobSkipped,
		v1beta1.NotificationStepFailed, v1beta1.NotificationHookFailed, v1beta1.NotificationUpgradeDelayed,
		v1beta1.NotificationUpgradeScaleSkipped, v1beta1.NotificationUpgradeSkipped, v1beta1.NotificationUpgradeFailed:
		return corev1.EventTypeWarning
	case v1beta1.NotificationJobCreated, v1beta1.NotificationJobPreflightHealthy, v1beta1.NotificationJobWaiting,
		v1beta1.NotificationJobStarted, v1beta1.NotificationJobResumed, v1beta1.NotificationJobSucceeded,
		v1beta1.NotificationStepStarted, v1beta1.NotificationStepWaiting, v1beta1.NotificationStepCompleted,
		v1beta1.NotificationHookSucceeded, v1beta1.NotificationUpgradeStarted, v1beta1.NotificationUpgradeControlPlaneStarted,
		v1beta1.NotificationUpgradeControlPlaneFinished, v1beta1.NotificationUpgradeWorkersFinished, v1beta1.NotificationUpgradeCompleted:
	}
	return corev1.EventTypeNormal
}

// stepTurned announces that the condition of a step has turned.
func (p *pass) stepTurned(t steps.Transition) {
	n := v1beta1.Notice{Type: t.Kind, Condition: t.Step, Reason: t.Reason, Message: t.Message}
	if t.Kind != v1beta1.NotificationStepCompleted {
		n.Blockers = p.job.Status.Blockers
	}
	p.announce(n)
}

// hookFinished announces the result of a hook.
func (p *pass) hookFinished(run v1beta1.HookRun) {
	n := v1beta1.Notice{
		Type: v1beta1.NotificationHookSucceeded, Condition: string(run.HookEvent), Hook: run.UpgradeJobHook, Reason: "HookSucceeded",
		Message: "UpgradeJobHook " + run.UpgradeJobHook + " succeeded at " + string(run.HookEvent) + ".",
	}
	if run.Status == v1beta1.HookRunFailed {
		n.Type, n.Reason, n.Message = v1beta1.NotificationHookFailed, v1beta1.ReasonHookFailed, steps.HookAborted(run)
	}
	p.announce(n)
}

// wait records that the job waits for its start, and announces what is in the way of a start whose time has come.
func (p *pass) wait(d lifecycle.Decision) {
	lifecycle.SetWaiting(p.job, d, p.now)
	told := meta.FindStatusCondition(p.base.Status.Conditions, v1beta1.ConditionStarted)
	if d.Reason == v1beta1.ReasonWaitingForStart || (told != nil && told.Reason == d.Reason) {
		return
	}
	p.announce(v1beta1.Notice{
		Type: v1beta1.NotificationJobWaiting, Condition: v1beta1.ConditionStarted, Reason: d.Reason, Message: d.Message, Blockers: p.job.Status.Blockers,
	})
}

// publish tells of what happened in the pass, in the log and by Events. It runs after the status is written, so that
// a pass that a conflict has undone tells nothing.
func (p *pass) publish(ctx context.Context) {
	for _, n := range p.news {
		log.FromContext(ctx).Info(n.message, "reason", n.reason, "action", n.action, "phase", p.job.Status.Phase)
		var related runtime.Object // Events of one reason and action count as one, unless they are related to different objects
		if n.hook != "" {
			related = &v1beta1.UpgradeJobHook{ObjectMeta: metav1.ObjectMeta{Namespace: p.job.Namespace, Name: n.hook}}
		}
		p.Events.Eventf(p.job, related, n.eventType, n.reason, n.action, "%s", v1beta1.Truncate(n.message, maxNote))
	}
	p.news = nil
}

// countSteps tells how long the steps took whose completion was written just now: each once, and none that a conflict has undone.
func (p *pass) countSteps() {
	if p.StepCompleted == nil {
		return
	}
	for _, step := range p.job.Status.Steps {
		known := slices.IndexFunc(p.base.Status.Steps, func(s v1beta1.StepStatus) bool { return s.Condition == step.Condition })
		if step.CompletionTime == nil || (known >= 0 && p.base.Status.Steps[known].CompletionTime != nil) {
			continue
		}
		p.StepCompleted(lifecycle.UpgraderOf(&p.job.Spec.Config), step.Condition, step.CompletionTime.Sub(step.StartTime.Time))
	}
}
