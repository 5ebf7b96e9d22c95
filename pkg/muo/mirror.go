// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package muo

import (
	"fmt"
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// Reasons of the condition UpgradeScheduled, and of FailedUpgrade.
const (
	// ReasonJobCreated: there is an UpgradeJob for the upgrade.
	ReasonJobCreated = "JobCreated"
	// ReasonUpgradeInProgress: the upgrade that the object wanted before goes on, and is waited for.
	ReasonUpgradeInProgress = "UpgradeInProgress"
	// ReasonJobReplaced: an UpgradeJob that is not up to date is being deleted, and is waited for.
	ReasonJobReplaced = "JobReplaced"
	// ReasonCreateFailed: the UpgradeJob could not be created.
	ReasonCreateFailed = "CreateFailed"
	// ReasonJobDeleted: the UpgradeJob was deleted before it had ended.
	ReasonJobDeleted = "JobDeleted"
)

// Begin makes the entry that of a job, which has just been made. What an earlier job for the same version has left is gone.
func Begin(entry *v1alpha1.UpgradeHistory, job *v1beta1.UpgradeJob) {
	if entry.UpgradeJob == job.Name {
		return
	}
	kept := slices.DeleteFunc(entry.Conditions, func(c v1alpha1.UpgradeCondition) bool { return c.Type != v1alpha1.ConditionValid })
	*entry = v1alpha1.UpgradeHistory{Version: entry.Version, Phase: v1alpha1.UpgradePhasePending, UpgradeJob: job.Name, Conditions: kept}
}

// Mirror tells in the entry how its job goes, as of now. The conditions that are not steps stay as they are.
func Mirror(entry *v1alpha1.UpgradeHistory, job *v1beta1.UpgradeJob, now time.Time) {
	entry.Phase = phases[job.Status.Phase]
	entry.PrecedingVersion = job.Status.FromVersion
	entry.StartTime, entry.CompleteTime = job.Status.StartTime, job.Status.CompletionTime
	entry.WorkerStartTime, entry.WorkerCompleteTime = nil, nil
	var conditions []v1alpha1.UpgradeCondition
	for i := range job.Status.Steps {
		step := &job.Status.Steps[i]
		switch step.Condition { // those that begin and end the upgrade of the machines that are not the control plane's
		case "WorkersMaintenanceWindowCreated":
			entry.WorkerStartTime = step.StartTime.DeepCopy()
		case "WorkerNodesUpgraded":
			entry.WorkerCompleteTime = step.CompletionTime
		}
		if c := meta.FindStatusCondition(job.Status.Conditions, step.Condition); c != nil {
			mirrored := mirroredCondition(c)
			mirrored.StartTime, mirrored.CompleteTime = step.StartTime.DeepCopy(), step.CompletionTime
			conditions = append(conditions, mirrored)
		}
	}
	if entry.Phase == v1alpha1.UpgradePhaseFailed {
		conditions = append(conditions, failure(job))
	}
	slices.Reverse(conditions)
	kept := slices.DeleteFunc(slices.Clone(entry.Conditions), func(c v1alpha1.UpgradeCondition) bool {
		return c.Type != v1alpha1.ConditionValid && c.Type != v1alpha1.ConditionScheduled
	})
	probe(conditions, entry.Conditions, now)
	entry.Conditions = append(conditions, kept...)
}

var phases = map[v1beta1.Phase]v1alpha1.UpgradePhase{
	"":                     v1alpha1.UpgradePhasePending,
	v1beta1.PhasePending:   v1alpha1.UpgradePhasePending,
	v1beta1.PhaseActive:    v1alpha1.UpgradePhaseUpgrading,
	v1beta1.PhasePaused:    v1alpha1.UpgradePhaseUpgrading,
	v1beta1.PhaseSucceeded: v1alpha1.UpgradePhaseUpgraded,
	v1beta1.PhaseFailed:    v1alpha1.UpgradePhaseFailed,
	v1beta1.PhaseSkipped:   v1alpha1.UpgradePhaseFailed,
}

func mirroredCondition(c *metav1.Condition) v1alpha1.UpgradeCondition {
	return v1alpha1.UpgradeCondition{
		Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message, LastTransitionTime: c.LastTransitionTime.DeepCopy(),
	}
}

// failure is the condition of an upgrade that was given up.
func failure(job *v1beta1.UpgradeJob) v1alpha1.UpgradeCondition {
	outcome := meta.FindStatusCondition(job.Status.Conditions, v1beta1.ConditionFailed)
	if job.Status.Phase == v1beta1.PhaseSkipped {
		outcome = meta.FindStatusCondition(job.Status.Conditions, v1beta1.ConditionSkipped)
	}
	failed := v1alpha1.UpgradeCondition{Status: metav1.ConditionTrue}
	if outcome != nil {
		failed = mirroredCondition(outcome)
	}
	failed.Type = v1alpha1.ConditionFailed
	failed.CompleteTime = job.Status.CompletionTime
	return failed
}

// Scheduled is the condition of an upgrade that has a job. While it waits for more than its time, it says for what.
func Scheduled(job *v1beta1.UpgradeJob) metav1.Condition {
	message := fmt.Sprintf("UpgradeJob %s, start at %s.", job.Name, job.Spec.StartAfter.UTC().Format(time.RFC3339))
	started := meta.FindStatusCondition(job.Status.Conditions, v1beta1.ConditionStarted)
	if !job.Status.Phase.Finished() && started != nil && started.Status == metav1.ConditionFalse && started.Reason != v1beta1.ReasonWaitingForStart {
		message += " It waits: " + started.Message
	}
	return metav1.Condition{Type: v1alpha1.ConditionScheduled, Status: metav1.ConditionTrue, Reason: ReasonJobCreated, Message: message}
}

// GiveUp tells in the entry that its job is gone.
func GiveUp(entry *v1alpha1.UpgradeHistory, now time.Time) {
	at := &metav1.Time{Time: now}
	entry.Phase, entry.CompleteTime = v1alpha1.UpgradePhaseFailed, at
	entry.Conditions = slices.DeleteFunc(entry.Conditions, func(c v1alpha1.UpgradeCondition) bool { return c.Type == v1alpha1.ConditionFailed })
	entry.Conditions = append([]v1alpha1.UpgradeCondition{{
		Type: v1alpha1.ConditionFailed, Status: metav1.ConditionTrue, Reason: ReasonJobDeleted,
		Message:      fmt.Sprintf("UpgradeJob %s was deleted before it had ended.", entry.UpgradeJob),
		CompleteTime: at, LastTransitionTime: at, LastProbeTime: at,
	}}, entry.Conditions...)
}

// SetCondition sets one of the conditions that are not steps. What is not as it should be stands first, where people look; the rest last, because it is the oldest.
func SetCondition(entry *v1alpha1.UpgradeHistory, c metav1.Condition, now time.Time) {
	set := mirroredCondition(&c)
	set.Message = v1beta1.Truncate(set.Message, v1beta1.MaxMessageLength)
	set.LastTransitionTime = &metav1.Time{Time: now}
	old := FindCondition(entry, c.Type)
	if old != nil && old.Status == set.Status {
		set.LastTransitionTime = old.LastTransitionTime
	}
	list := []v1alpha1.UpgradeCondition{set}
	probe(list, entry.Conditions, now)
	others := slices.DeleteFunc(slices.Clone(entry.Conditions), func(o v1alpha1.UpgradeCondition) bool { return o.Type == c.Type })
	if set.Status == metav1.ConditionTrue {
		entry.Conditions = append(others, list...)
		order(entry)
		return
	}
	entry.Conditions = append(list, others...)
}

// order has UpgradeConfigValid last if it is true: it was so before the upgrade was scheduled.
func order(entry *v1alpha1.UpgradeHistory) {
	last := func(c v1alpha1.UpgradeCondition) bool {
		return c.Type == v1alpha1.ConditionValid && c.Status == metav1.ConditionTrue
	}
	if i := slices.IndexFunc(entry.Conditions, last); i >= 0 {
		valid := entry.Conditions[i]
		entry.Conditions = append(slices.Delete(entry.Conditions, i, i+1), valid)
	}
}

// RemoveCondition takes a condition away.
func RemoveCondition(entry *v1alpha1.UpgradeHistory, conditionType string) {
	entry.Conditions = slices.DeleteFunc(slices.Clone(entry.Conditions), func(c v1alpha1.UpgradeCondition) bool { return c.Type == conditionType })
}

// FindCondition returns the condition of that type, or nil.
func FindCondition(entry *v1alpha1.UpgradeHistory, conditionType string) *v1alpha1.UpgradeCondition {
	i := slices.IndexFunc(entry.Conditions, func(c v1alpha1.UpgradeCondition) bool { return c.Type == conditionType })
	if i < 0 {
		return nil
	}
	return &entry.Conditions[i]
}

// probe sets when each condition was last seen to have changed: now, unless it is as it was before.
func probe(conditions, before []v1alpha1.UpgradeCondition, now time.Time) {
	for i := range conditions {
		c := &conditions[i]
		c.LastProbeTime = &metav1.Time{Time: now}
		for _, old := range before {
			same := *c
			same.LastProbeTime = old.LastProbeTime
			if old.Type == c.Type && apiequality.Semantic.DeepEqual(same, old) {
				c.LastProbeTime = old.LastProbeTime
			}
		}
	}
}
