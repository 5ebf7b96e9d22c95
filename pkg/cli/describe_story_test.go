// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// Times are known to the second, in which much can happen.
func TestStoryOfOneSecondIsToldInOrder(t *testing.T) {
	second := at(0)
	job := upgradeJob()
	job.CreationTimestamp = second
	job.Status.Phase = v1beta1.PhaseFailed
	job.Status.StartTime, job.Status.CommenceTime, job.Status.CompletionTime = &second, &second, &second
	for _, condition := range []string{steps.ConditionStartHooksCompleted, steps.ConditionUpgradeCommenced, steps.ConditionControlPlaneUpgraded} {
		job.Status.Steps = append(job.Status.Steps, v1beta1.StepStatus{Condition: condition, StartTime: second, CompletionTime: &second, Attempts: 1})
	}
	job.Status.Steps[2].CompletionTime = nil
	job.Status.Conditions = []metav1.Condition{v1beta1.Failed(v1beta1.ReasonTimedOut, "Late.")}
	for _, event := range []v1beta1.HookEvent{
		v1beta1.HookEventFinish, v1beta1.HookEventStart, v1beta1.HookEventStepCompleted(steps.ConditionUpgradeCommenced), v1beta1.HookEventCreate,
		v1beta1.HookEventStepStarted(steps.ConditionUpdateAvailable),
	} {
		job.Status.HookTracker = append(job.Status.HookTracker, v1beta1.HookRun{HookEvent: event, UpgradeJobHook: "h", StartTime: second, Status: v1beta1.HookRunActive})
	}
	job.Status.Notifications = &v1beta1.NotificationsStatus{Outbox: []v1beta1.Notice{
		{Type: v1beta1.NotificationStepWaiting, Condition: steps.ConditionControlPlaneUpgraded, Reason: "R", Message: "M", Time: second},
		{Type: v1beta1.NotificationJobWaiting, Condition: v1beta1.ConditionStarted, Reason: "R", Message: "M", Time: second},
	}}
	var got []string
	for _, event := range storyOf(job) {
		got = append(got, event.Text)
	}
	want := []string{
		"created", "h at Create begins", "Started R: M", "started",
		"StartHooksCompleted begins", "h at Start begins", "StartHooksCompleted is completed after 0s",
		"UpgradeCommenced begins", "the upgrade commences: the cluster is asked for 4.18.2", "UpgradeCommenced is completed after 0s",
		"h at StepCompleted/UpgradeCommenced begins",
		"ControlPlaneUpgraded begins", "ControlPlaneUpgraded R: M",
		"h at StepStarted/UpdateAvailable begins", // of a step that the job has no record of
		"Failed (TimedOut): Late.", "h at Finish begins",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("story (-want +got):\n%s", diff)
	}
}
