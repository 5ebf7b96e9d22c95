// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/test/environment"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// stepsInOrder are the steps of an upgrade.
var stepsInOrder = []string{
	steps.ConditionStartHooksCompleted, steps.ConditionMachineConfigPoolsPaused,
	steps.ConditionClusterHealthyBeforeUpgrade, steps.ConditionUpdateAvailable, steps.ConditionUpgradeCommenced,
	steps.ConditionControlPlaneUpgraded, steps.ConditionMachineConfigPoolsUpgraded, steps.ConditionClusterHealthyAfterUpgrade,
	steps.ConditionCompletionHooksCompleted, steps.ConditionDelayedPoolsUpgraded,
}

// Events at steps that tests use.
var (
	aboutToCommence      = v1beta1.HookEventStepStarted(steps.ConditionUpgradeCommenced)
	controlPlaneUpgraded = v1beta1.HookEventStepCompleted(steps.ConditionControlPlaneUpgraded)
)

// eventsInOrder are the events of a job that succeeds.
func eventsInOrder() []v1beta1.HookEvent {
	events := []v1beta1.HookEvent{v1beta1.HookEventCreate}
	for _, step := range stepsInOrder {
		events = append(events, v1beta1.HookEventStepStarted(step))
		switch step {
		case steps.ConditionStartHooksCompleted:
			events = append(events, v1beta1.HookEventStart)
		case steps.ConditionCompletionHooksCompleted:
			events = append(events, v1beta1.HookEventUpgradeComplete)
		}
		events = append(events, v1beta1.HookEventStepCompleted(step))
	}
	return append(events, v1beta1.HookEventSuccess, v1beta1.HookEventFinish)
}

// aHook runs when a job starts, for all jobs, and succeeds at once.
func aHook(changes ...func(*v1beta1.UpgradeJobHook)) *v1beta1.UpgradeJobHook {
	hook := &v1beta1.UpgradeJobHook{
		ObjectMeta: metav1.ObjectMeta{Namespace: environment.Namespace, Name: "backup"},
		Spec: v1beta1.UpgradeJobHookSpec{
			Events: []v1beta1.HookEvent{v1beta1.HookEventStart},
			Template: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
				BackoffLimit: new(int32),
				Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
					RestartPolicy:                 corev1.RestartPolicyNever,
					TerminationGracePeriodSeconds: new(int64),
					Containers:                    []corev1.Container{{Name: "main", Image: "registry.example.com/backup:1", Args: []string{"$(EVENT_NAME)"}}},
				}},
			}},
		},
	}
	for _, change := range changes {
		change(hook)
	}
	return hook
}

func hookNamed(name string) func(*v1beta1.UpgradeJobHook) {
	return func(hook *v1beta1.UpgradeJobHook) { hook.Name = name }
}

// at has the hook run at these events.
func at(events ...v1beta1.HookEvent) func(*v1beta1.UpgradeJobHook) {
	return func(hook *v1beta1.UpgradeJobHook) { hook.Spec.Events = events }
}

// aborting ends the job when the hook fails.
func aborting(hook *v1beta1.UpgradeJobHook) {
	hook.Spec.FailurePolicy = v1beta1.HookFailureAbort
}

// forTheNextJob has the hook run for one job only.
func forTheNextJob(hook *v1beta1.UpgradeJobHook) { hook.Spec.Run = v1beta1.HookRunNext }

// ofJobsLabelled has the hook run for jobs with the label only.
func ofJobsLabelled(key, value string) func(*v1beta1.UpgradeJobHook) {
	return func(hook *v1beta1.UpgradeJobHook) {
		hook.Spec.Selector = metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
}

// labelled gives a job a label.
func labelled(key, value string) func(*v1beta1.UpgradeJob) {
	return func(job *v1beta1.UpgradeJob) { metav1.SetMetaDataLabel(&job.ObjectMeta, key, value) }
}

// removedWhenFinished has Kubernetes remove the hook's Jobs as soon as they have finished.
func removedWhenFinished(hook *v1beta1.UpgradeJobHook) {
	hook.Spec.Template.Spec.TTLSecondsAfterFinished = new(int32)
}

// hanging makes the hook's pods run on for ever.
func hanging(hook *v1beta1.UpgradeJobHook) { play(hook, sim.AnnotationOutcome, sim.OutcomeHang) }

// failing makes the hook's pods fail, with a last word.
func failing(message string) func(*v1beta1.UpgradeJobHook) {
	return func(hook *v1beta1.UpgradeJobHook) {
		play(hook, sim.AnnotationOutcome, sim.OutcomeFail)
		play(hook, sim.AnnotationMessage, message)
	}
}

// succeeding makes the hook's pods succeed.
func succeeding(hook *v1beta1.UpgradeJobHook) { play(hook, sim.AnnotationOutcome, sim.OutcomeSucceed) }

// play tells the kubelet what the pods of a hook do.
func play(hook *v1beta1.UpgradeJobHook, annotation, value string) {
	metav1.SetMetaDataAnnotation(&hook.Spec.Template.Spec.Template.ObjectMeta, annotation, value)
}
