// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"maps"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/lifecycle"
)

// lastResults returns the newest result of each event of the hook. What is known of jobs that are gone stays until there
// is something newer.
func lastResults(hook *v1beta1.UpgradeJobHook, jobs []v1beta1.UpgradeJob) []v1beta1.HookResult {
	newest := map[v1beta1.HookEvent]v1beta1.HookResult{}
	take := func(result v1beta1.HookResult) {
		known, ok := newest[result.Event]
		// Events that the hook had once are left out: the list would outgrow its bounds.
		if slices.Contains(hook.Spec.Events, result.Event) && (!ok || compareResults(result, known) >= 0) {
			newest[result.Event] = result
		}
	}
	for _, result := range hook.Status.LastResults {
		take(result)
	}
	for i := range jobs {
		for _, run := range jobs[i].Status.HookTracker {
			if run.UpgradeJobHook == hook.Name && run.Status.Finished() {
				take(resultOf(&jobs[i], run))
			}
		}
	}
	return slices.SortedFunc(maps.Values(newest), func(a, b v1beta1.HookResult) int { return cmp.Compare(a.Event, b.Event) })
}

func resultOf(job *v1beta1.UpgradeJob, run v1beta1.HookRun) v1beta1.HookResult {
	result := v1beta1.HookResult{
		Event: run.HookEvent, Key: run.TrackingKey, UpgradeJob: job.Name, Job: run.Job,
		Status: run.Status, Message: v1beta1.Truncate(run.Message, v1beta1.MaxMessageLength), Time: run.StartTime,
	}
	if run.CompletionTime != nil {
		result.Time = *run.CompletionTime
	}
	return result
}

// compareResults puts the newest last. Times are whole seconds: of runs that ended in the same one a failed one is last,
// and for the rest it matters only that the order is always the same.
func compareResults(a, b v1beta1.HookResult) int {
	failed := func(r v1beta1.HookResult) int {
		if r.Status == v1beta1.HookRunFailed {
			return 1
		}
		return 0
	}
	return cmp.Or(
		a.Time.Compare(b.Time.Time),
		cmp.Compare(failed(a), failed(b)),
		cmp.Compare(a.UpgradeJob, b.UpgradeJob),
		cmp.Compare(a.Key, b.Key),
	)
}

// isClaimed tells whether the job that has claimed the hook needs it, or has had it. One that was deleted has if the hook
// ran for it, at more than its creation if it is for more.
func isClaimed(hook *v1beta1.UpgradeJobHook, jobs []v1beta1.UpgradeJob) bool {
	claim := hook.Status.ClaimedBy
	for i := range jobs {
		if jobs[i].UID == claim.UID {
			return !hasNoUseFor(&jobs[i], hook.Name)
		}
	}
	return slices.ContainsFunc(hook.Status.LastResults, func(r v1beta1.HookResult) bool {
		return r.UpgradeJob == claim.Name && r.Job != "" && (r.Event != v1beta1.HookEventCreate || len(hook.Spec.Events) == 1)
	})
}

// hasNoUseFor tells whether a job that has claimed a hook can do without: it was skipped, and nothing of the hook runs for
// it any more.
func hasNoUseFor(job *v1beta1.UpgradeJob, hook string) bool {
	return wasLetGo(job) && !slices.ContainsFunc(job.Status.HookTracker, func(run v1beta1.HookRun) bool {
		return run.UpgradeJobHook == hook && !run.Status.Finished()
	})
}

// wasLetGo tells whether a job was skipped, has given back what it held, and is not about to be resumed.
func wasLetGo(job *v1beta1.UpgradeJob) bool {
	return job.Status.Phase == v1beta1.PhaseSkipped && !lifecycle.ResumeRequested(job) &&
		!controllerutil.ContainsFinalizer(job, v1beta1.UpgradeJobFinalizer)
}

// hookRunsTurned passes what may change the results of hooks, or set one free. What is known of a job outlives it.
var hookRunsTurned = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*v1beta1.UpgradeJob), e.ObjectNew.(*v1beta1.UpgradeJob)
		return !apiequality.Semantic.DeepEqual(before.Status.HookTracker, after.Status.HookTracker) || wasLetGo(before) != wasLetGo(after)
	},
}

// hookClaimed passes a hook that was claimed: its job may have been skipped before this cache knew of the claim.
var hookClaimed = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*v1beta1.UpgradeJobHook), e.ObjectNew.(*v1beta1.UpgradeJobHook)
		return after.Status.ClaimedBy != nil && !apiequality.Semantic.DeepEqual(before.Status.ClaimedBy, after.Status.ClaimedBy)
	},
}

// hooksOf returns the hooks that ran for a job, or may only run for it.
func (r *UpgradeJobHookReconciler) hooksOf(ctx context.Context, o client.Object) []ctrl.Request {
	job := o.(*v1beta1.UpgradeJob)
	ran := map[string]bool{}
	for _, run := range job.Status.HookTracker {
		ran[run.UpgradeJobHook] = true
	}
	list := &v1beta1.UpgradeJobHookList{}
	return requestsFor(ctx, r.Client, list, job.Namespace, func() []client.Object {
		list.Items = slices.DeleteFunc(list.Items, func(hook v1beta1.UpgradeJobHook) bool {
			claim := hook.Status.ClaimedBy
			return !ran[hook.Name] && (claim == nil || claim.UID != job.UID)
		})
		return pointers(list.Items)
	})
}
