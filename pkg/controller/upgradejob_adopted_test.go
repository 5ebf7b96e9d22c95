// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// The jobs that the APPUiO upgrade controller leaves behind have conditions, but no phase.
func TestJobOfBeforeTheOperatorKeepsItsOutcome(t *testing.T) {
	for _, tc := range []struct {
		condition, reason string
		phase             v1beta1.Phase
	}{
		{v1beta1.ConditionSucceeded, "Succeeded", v1beta1.PhaseSucceeded},
		{v1beta1.ConditionSucceeded, "Skipped", v1beta1.PhaseSucceeded},
		{v1beta1.ConditionFailed, "Expired", v1beta1.PhaseFailed},
	} {
		t.Run(tc.condition+tc.reason, func(t *testing.T) {
			ended := metav1.NewTime(time.Date(2026, 1, 6, 22, 0, 0, 0, time.UTC))
			conditions := []metav1.Condition{
				{Type: "Started", Status: metav1.ConditionTrue, Reason: "Started", LastTransitionTime: ended},
				{Type: tc.condition, Status: metav1.ConditionTrue, Reason: tc.reason, LastTransitionTime: ended},
			}
			job := newJob("night", byHand, func(job *v1beta1.UpgradeJob) { job.Status.Conditions = conditions })
			hook := newHook("tell", withEvents(v1beta1.HookEventCreate, v1beta1.HookEventFinish, v1beta1.HookEventSuccess, v1beta1.HookEventFailure, v1beta1.HookEventSkipped))
			w := newWorld(t, newClusterVersion(), job, hook)
			w.elapse(30 * 24 * time.Hour)
			r := w.jobs()
			for range 3 {
				w.reconcile(r, job)
			}
			now := get(w, job)
			if now.Status.Phase != tc.phase || now.Status.CompletionTime != nil || now.Status.StartTime != nil {
				t.Errorf("the job has phase %q, began %v and ended %v", now.Status.Phase, now.Status.StartTime, now.Status.CompletionTime)
			}
			got := now.Status.Conditions
			for i := range got {
				got[i].LastTransitionTime = ended
			}
			if diff := cmp.Diff(conditions, got); diff != "" {
				t.Errorf("its conditions (-want +got):\n%s", diff)
			}
			if jobs := w.batchJobs(); len(jobs) > 0 {
				t.Errorf("%d hooks ran", len(jobs))
			}
			if events := w.events(); len(events) > 0 {
				t.Errorf("it was told of: %v", events)
			}
			if w.remove(now); !w.gone(now) {
				t.Error("it cannot be deleted")
			}
		})
	}
}
