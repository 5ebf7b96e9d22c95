// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/hooks"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// SetCreateHooks records how far the hooks of the event Create are; nothing if there are none.
func SetCreateHooks(job *v1beta1.UpgradeJob, p hooks.Progress, now time.Time) {
	switch {
	case p.Aborted != nil:
		setCondition(job, v1beta1.CreateHooksFailed(steps.HookAborted(*p.Aborted)), now)
	case len(p.Running) > 0:
		setCondition(job, v1beta1.CreateHooksRunning(steps.HooksRunning(p)), now)
	case p.Succeeded+len(p.Ignored) > 0:
		setCondition(job, v1beta1.CreateHooksDone(steps.HooksRan(p)), now)
	default: // what could not be told before was that there are none
		meta.RemoveStatusCondition(&job.Status.Conditions, v1beta1.ConditionCreateHooksCompleted)
	}
}

// SetCreateHooksError records why the hooks of the event Create cannot be run at present.
func SetCreateHooksError(job *v1beta1.UpgradeJob, message string, now time.Time) {
	setCondition(job, v1beta1.CreateHooksError(message), now)
}

// AddBlockers adds as many blockers as there is room for.
func AddBlockers(job *v1beta1.UpgradeJob, blockers []v1beta1.Blocker) {
	job.Status.Blockers = append(job.Status.Blockers, blockers[:min(len(blockers), steps.MaxBlockers-len(job.Status.Blockers))]...)
}

// SetPreview records what the job would find if it started now, beside what it waits for.
func SetPreview(job *v1beta1.UpgradeJob, p steps.Preview, now time.Time) {
	AddBlockers(job, p.Blockers)
	setCondition(job, p.Condition, now)
}

// dropPreview takes back what the job would find: it has become clear, or does not matter any more. What it waited for
// stays.
func dropPreview(job *v1beta1.UpgradeJob) {
	if !meta.RemoveStatusCondition(&job.Status.Conditions, v1beta1.ConditionPreflightHealthy) {
		return
	}
	job.Status.Blockers = slices.DeleteFunc(job.Status.Blockers, func(b v1beta1.Blocker) bool {
		return b.Code != v1beta1.ReasonClusterLocked && b.Code != v1beta1.ReasonUnknownUpgrader && b.Code != v1beta1.ReasonHookRunning
	})
}

// UnknownUpgrader is what holds up a job whose upgrader this operator does not know, or cannot use.
func UnknownUpgrader(message string) v1beta1.Blocker {
	if message != "" {
		message = strings.ToUpper(message[:1]) + message[1:]
	}
	return v1beta1.Blocker{
		Code:       v1beta1.ReasonUnknownUpgrader,
		Message:    message,
		ClearsWhen: "an operator runs that has the upgrader, or an object of kind Upgrader with its name can be used",
	}
}

// SetBlocker records the one thing that the job waits for.
func SetBlocker(job *v1beta1.UpgradeJob, b v1beta1.Blocker, now time.Time) {
	b.Since = metav1.NewTime(now)
	for _, before := range job.Status.Blockers {
		if before.Code == b.Code && before.Object == b.Object {
			b.Since = before.Since
		}
	}
	job.Status.Blockers = []v1beta1.Blocker{b}
}
