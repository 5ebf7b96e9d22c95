// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxMessageLength bounds the message of a condition, in bytes. The API allows 32768, people read fewer.
const MaxMessageLength = 1024

// Ready is the condition of a spec that can be used.
func Ready(reason, message string) metav1.Condition {
	return condition(ConditionReady, metav1.ConditionTrue, reason, message)
}

// NotReady is the condition of a spec that cannot be used; message says how to mend it.
func NotReady(reason, message string) metav1.Condition {
	return condition(ConditionReady, metav1.ConditionFalse, reason, message)
}

// Scheduling is the condition of an UpgradeConfig that creates its next job in time.
func Scheduling(message string) metav1.Condition {
	return condition(ConditionScheduling, metav1.ConditionTrue, ReasonScheduled, message)
}

// NotScheduling is the condition of an UpgradeConfig that creates no job at present.
func NotScheduling(reason, message string) metav1.Condition {
	return condition(ConditionScheduling, metav1.ConditionFalse, reason, message)
}

// PreflightHealthy is the condition of a job that would find the cluster healthy if it started now.
func PreflightHealthy(message string) metav1.Condition {
	return condition(ConditionPreflightHealthy, metav1.ConditionTrue, ReasonHealthy, message)
}

// PreflightUnhealthy is the condition of a job that would be held up by the cluster's health if it started now.
func PreflightUnhealthy(message string) metav1.Condition {
	return condition(ConditionPreflightHealthy, metav1.ConditionFalse, ReasonUnhealthy, message)
}

// PreflightUnknown is the condition of a job of which cannot be told what would hold it up.
func PreflightUnknown(reason, message string) metav1.Condition {
	return condition(ConditionPreflightHealthy, metav1.ConditionUnknown, reason, message)
}

// CreateHooksDone is the condition of a job whose hooks of the event Create have finished.
func CreateHooksDone(message string) metav1.Condition {
	return condition(ConditionCreateHooksCompleted, metav1.ConditionTrue, ReasonCompleted, message)
}

// CreateHooksRunning is the condition of a job that waits for its hooks of the event Create.
func CreateHooksRunning(message string) metav1.Condition {
	return condition(ConditionCreateHooksCompleted, metav1.ConditionFalse, ReasonHooksRunning, message)
}

// CreateHooksFailed is the condition of a job that a hook of the event Create aborts.
func CreateHooksFailed(message string) metav1.Condition {
	return condition(ConditionCreateHooksCompleted, metav1.ConditionFalse, ReasonHookFailed, message)
}

// CreateHooksError is the condition of a job whose hooks of the event Create cannot be run at present.
func CreateHooksError(message string) metav1.Condition {
	return condition(ConditionCreateHooksCompleted, metav1.ConditionFalse, ReasonError, message)
}

// Started is the condition of a job that has started.
func Started(message string) metav1.Condition {
	return condition(ConditionStarted, metav1.ConditionTrue, ReasonStarted, message)
}

// NotStarted is the condition of a job that waits for its start.
func NotStarted(reason, message string) metav1.Condition {
	return condition(ConditionStarted, metav1.ConditionFalse, reason, message)
}

// Succeeded is the outcome of a job that did all of its steps.
func Succeeded(reason, message string) metav1.Condition {
	return condition(ConditionSucceeded, metav1.ConditionTrue, reason, message)
}

// Failed is the outcome of a job that could not do all of its steps.
func Failed(reason, message string) metav1.Condition {
	return condition(ConditionFailed, metav1.ConditionTrue, reason, message)
}

// Skipped is the outcome of a job that never commenced the upgrade.
func Skipped(reason, message string) metav1.Condition {
	return condition(ConditionSkipped, metav1.ConditionTrue, reason, message)
}

// StepDone is the condition of a step that is done.
func StepDone(step, message string) metav1.Condition {
	return condition(step, metav1.ConditionTrue, ReasonCompleted, message)
}

// StepHolds is the condition of a step that is done, and whose condition tells whether it holds something.
func StepHolds(step string, holds bool, reason, message string) metav1.Condition {
	if holds {
		return condition(step, metav1.ConditionTrue, reason, message)
	}
	return condition(step, metav1.ConditionFalse, reason, message)
}

// MachineConfigPoolsLeftPaused is the condition of an UpgradeConfig while jobs that are over have left pools paused.
func MachineConfigPoolsLeftPaused(message string) metav1.Condition {
	return condition(ConditionMachineConfigPoolsPaused, metav1.ConditionTrue, ReasonLeftPaused, message)
}

// StepNotDone is the condition of a step that waits, ended the job, or met an error.
func StepNotDone(step, reason, message string) metav1.Condition {
	return condition(step, metav1.ConditionFalse, reason, message)
}

func condition(conditionType string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{
		Type:    conditionType,
		Status:  status,
		Reason:  reason,
		Message: Truncate(message, MaxMessageLength),
	}
}

// Truncate cuts a text at a rune boundary to at most limit bytes and marks the cut.
func Truncate(text string, limit int) string {
	const mark = "..."
	if len(text) <= limit {
		return text
	}
	cut := limit - len(mark)
	for cut > 0 && text[cut]&0xC0 == 0x80 { // in the middle of a UTF-8 sequence
		cut--
	}
	return text[:cut] + mark
}
