// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

func (w *world) windows() *UpgradeSuspensionWindowReconciler {
	return setUp(w, &UpgradeSuspensionWindowReconciler{Client: w.client, Clock: w.clock})
}

func TestWindowShowsWhatItSelects(t *testing.T) {
	labelled := func(team string) map[string]string { return map[string]string{"team": team} }
	config := func(name, ns, team string) *v1beta1.UpgradeConfig {
		return newConfig(func(c *v1beta1.UpgradeConfig) { c.Name, c.Namespace, c.Labels = name, ns, labelled(team) })
	}
	job := func(name, team string, start time.Time) *v1beta1.UpgradeJob {
		return newJob(name, func(j *v1beta1.UpgradeJob) { j.Labels, j.Spec.StartAfter.Time = labelled(team), start })
	}
	objects := []client.Object{
		config("zulu", namespace, "a"), config("alpha", namespace, "a"), config("other", namespace, "b"), config("elsewhere", "elsewhere", "a"),
		job("first", "a", startAfter), job("last", "a", startAfter.Add(time.Hour-time.Nanosecond).Truncate(time.Second)),
		job("early", "a", startAfter.Add(-time.Second)), job("late", "a", startAfter.Add(time.Hour)), job("other", "b", startAfter),
	}
	teamA := &metav1.LabelSelector{MatchLabels: labelled("a")}
	broken := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: "Likes"}}}
	for _, tc := range []struct {
		reason        string
		configs, jobs *metav1.LabelSelector
		wantConfigs   []string
		wantJobs      []string
		ready         metav1.ConditionStatus
		because       string
		words         string
	}{
		{"nothing", nil, nil, nil, nil, metav1.ConditionTrue, v1beta1.ReasonValid, ""},
		{"everything", &metav1.LabelSelector{}, &metav1.LabelSelector{}, []string{"alpha", "other", "zulu"}, []string{"first", "last", "other"}, metav1.ConditionTrue, v1beta1.ReasonValid, ""},
		{"a team", teamA, teamA, []string{"alpha", "zulu"}, []string{"first", "last"}, metav1.ConditionTrue, v1beta1.ReasonValid, ""},
		{"configs that cannot be told", broken, nil, []string{"alpha", "other", "zulu"}, nil, metav1.ConditionFalse, v1beta1.ReasonInvalidSelector, "spec.configSelector cannot be parsed"},
		{"jobs that cannot be told", nil, broken, nil, []string{"first", "last", "other"}, metav1.ConditionFalse, v1beta1.ReasonInvalidSelector, "spec.jobSelector cannot be parsed"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			window := &v1beta1.UpgradeSuspensionWindow{
				ObjectMeta: metav1.ObjectMeta{Name: "freeze", Namespace: namespace, Generation: 3},
				Spec: v1beta1.UpgradeSuspensionWindowSpec{
					Start: metav1.NewTime(startAfter), End: metav1.NewTime(startAfter.Add(time.Hour)), ConfigSelector: tc.configs, JobSelector: tc.jobs,
				},
			}
			w := newWorld(t, window)
			for _, o := range objects {
				if err := w.client.Create(t.Context(), o.DeepCopyObject().(client.Object)); err != nil {
					t.Fatal(err)
				}
			}
			w.api.writes()
			r := w.windows()
			if result := w.reconcile(r, window); result.RequeueAfter != 0 {
				t.Errorf("looks again after %s, want only by a watch", result.RequeueAfter)
			}
			got := get(w, window).Status
			if diff := cmp.Diff(tc.wantConfigs, names(got.MatchingConfigs)); diff != "" {
				t.Errorf("configs (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantJobs, names(got.MatchingJobs)); diff != "" {
				t.Errorf("jobs (-want +got):\n%s", diff)
			}
			expectCondition(t, got.Conditions, v1beta1.ConditionReady, tc.ready, tc.because, tc.words)
			if got.ObservedGeneration != 3 {
				t.Errorf("observed generation is %d, want 3", got.ObservedGeneration)
			}
			w.api.writes()
			w.elapse(time.Hour)
			w.reconcile(r, window)
			if writes := w.api.writes(); len(writes) > 0 {
				t.Errorf("a pass without news wrote %v", writes)
			}
		})
	}
}

func names(objects []v1beta1.MatchingObject) []string {
	var list []string
	for _, o := range objects {
		list = append(list, o.Name)
	}
	return list
}

func TestWindowTriesAgain(t *testing.T) {
	window := &v1beta1.UpgradeSuspensionWindow{ObjectMeta: metav1.ObjectMeta{Name: "freeze", Namespace: namespace}}
	for _, call := range []string{"list UpgradeConfigList", "list UpgradeJobList", "patch UpgradeSuspensionWindow/status"} {
		t.Run(call, func(t *testing.T) {
			w := newWorld(t, window.DeepCopy())
			r := w.windows()
			w.api.fault = failing(call, 1, errBroken)
			if result := w.reconcile(r, window); result.RequeueAfter != minBackoff {
				t.Errorf("tries again after %s, want %s", result.RequeueAfter, minBackoff)
			}
			w.reconcile(r, window)
			expectCondition(t, get(w, window).Status.Conditions, v1beta1.ConditionReady, metav1.ConditionTrue, v1beta1.ReasonValid)
			w.remove(window)
			if result := w.reconcile(r, window); result.RequeueAfter != 0 {
				t.Errorf("a window that is gone is looked at again after %s", result.RequeueAfter)
			}
		})
	}
}
