// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/suspension"
)

// UpgradeSuspensionWindowReconciler shows on each window what it selects. The windows are enforced by those who ask
// them: UpgradeConfigReconciler and UpgradeJobReconciler.
type UpgradeSuspensionWindowReconciler struct {
	Client client.Client
	Clock  clock.PassiveClock

	retry *retrier
}

// Reconcile updates the status of one window.
func (r *UpgradeSuspensionWindowReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	window := &v1beta1.UpgradeSuspensionWindow{}
	if err := r.Client.Get(ctx, req.NamespacedName, window); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	base := window.DeepCopy()
	err := r.judge(ctx, window)
	if err == nil {
		window.Status.ObservedGeneration = window.Generation
		_, err = writeStatus(ctx, r.Client, base, window, suspensionWindowStatus)
	}
	return r.retry.after(ctx, req, 0, err), nil
}

func (r *UpgradeSuspensionWindowReconciler) judge(ctx context.Context, window *v1beta1.UpgradeSuspensionWindow) error {
	configs, jobs := &v1beta1.UpgradeConfigList{}, &v1beta1.UpgradeJobList{}
	for _, list := range []client.ObjectList{configs, jobs} {
		if err := r.Client.List(ctx, list, client.InNamespace(window.Namespace), client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("list %T: %w", list, err)
		}
	}
	window.Status.MatchingConfigs, window.Status.MatchingJobs = nil, nil
	for i := range configs.Items {
		if suspension.Matches(window, suspension.ForConfigs, &configs.Items[i]) {
			window.Status.MatchingConfigs = append(window.Status.MatchingConfigs, v1beta1.MatchingObject{Name: configs.Items[i].Name})
		}
	}
	for i := range jobs.Items {
		job := &jobs.Items[i]
		if suspension.Matches(window, suspension.ForJobs, job) && suspension.Covers(window, job.Spec.StartAfter.Time) {
			window.Status.MatchingJobs = append(window.Status.MatchingJobs, v1beta1.MatchingObject{Name: job.Name})
		}
	}
	byName := func(a, b v1beta1.MatchingObject) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortFunc(window.Status.MatchingConfigs, byName)
	slices.SortFunc(window.Status.MatchingJobs, byName)
	setCondition(&window.Status.Conditions, windowReady(window), window.Generation, r.Clock)
	return nil
}

func windowReady(window *v1beta1.UpgradeSuspensionWindow) metav1.Condition {
	for _, field := range []struct {
		name     string
		selector *metav1.LabelSelector
	}{{"configSelector", window.Spec.ConfigSelector}, {"jobSelector", window.Spec.JobSelector}} {
		if _, err := metav1.LabelSelectorAsSelector(field.selector); err != nil {
			return v1beta1.NotReady(v1beta1.ReasonInvalidSelector, fmt.Sprintf(
				"spec.%s cannot be parsed, so that it selects everything in this namespace: %v", field.name, err))
		}
	}
	return v1beta1.Ready(v1beta1.ReasonValid, "The window can be used.")
}

func suspensionWindowStatus(o client.Object) *v1beta1.UpgradeSuspensionWindowStatus {
	return &o.(*v1beta1.UpgradeSuspensionWindow).Status
}

// SetupWithManager registers the reconciler and its watches.
func (r *UpgradeSuspensionWindowReconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.retry = newRetrier()
	everyWindow := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []ctrl.Request {
		windows := &v1beta1.UpgradeSuspensionWindowList{}
		return requestsFor(ctx, r.Client, windows, o.GetNamespace(), func() []client.Object { return pointers(windows.Items) })
	})
	// What a window selects changes with labels and with the start of a job, not with any status.
	selection := builder.WithPredicates(predicate.Or(predicate.LabelChangedPredicate{}, predicate.GenerationChangedPredicate{}))
	return ctrl.NewControllerManagedBy(mgr).
		Named("upgradesuspensionwindow").
		For(&v1beta1.UpgradeSuspensionWindow{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1beta1.UpgradeConfig{}, everyWindow, selection).
		Watches(&v1beta1.UpgradeJob{}, everyWindow, selection).
		Complete(r)
}
