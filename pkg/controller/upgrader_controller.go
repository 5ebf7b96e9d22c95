// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/lifecycle"
	"github.com/appuio/managed-upgrade-operator/pkg/upgrader"
)

// UpgraderReconciler tells on each Upgrader whether jobs can use it. They ask for themselves: what this reconciler has written does not matter to them.
type UpgraderReconciler struct {
	Client client.Client
	// Upgraders judges the lists of steps.
	Upgraders *upgrader.Finder
	Clock     clock.PassiveClock

	retry *retrier
}

// Reconcile updates the status of one Upgrader.
func (r *UpgraderReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	variant := &v1beta1.Upgrader{}
	if err := r.Client.Get(ctx, req.NamespacedName, variant); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	base := variant.DeepCopy()
	setCondition(&variant.Status.Conditions, r.judge(variant), variant.Generation, r.Clock)
	variant.Status.ObservedGeneration = variant.Generation
	_, err := writeStatus(ctx, r.Client, base, variant, upgraderStatus)
	return r.retry.after(ctx, req, 0, err), nil
}

func (r *UpgraderReconciler) judge(variant *v1beta1.Upgrader) metav1.Condition {
	if reason, message := r.Upgraders.Judge(variant); reason != "" {
		return v1beta1.NotReady(reason, message)
	}
	return v1beta1.Ready(v1beta1.ReasonValid, "Jobs can use the upgrader.")
}

func upgraderStatus(o client.Object) *v1beta1.UpgraderStatus {
	return &o.(*v1beta1.Upgrader).Status
}

// SetupWithManager registers the reconciler and its watch.
func (r *UpgraderReconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.retry = newRetrier()
	return ctrl.NewControllerManagedBy(mgr).
		Named("upgrader").
		For(&v1beta1.Upgrader{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(r)
}

// jobsOf returns the jobs that are not finished and go, or are to go, by the Upgrader: it came, or went.
func (r *UpgradeJobReconciler) jobsOf(ctx context.Context, variant client.Object) []ctrl.Request {
	jobs := &v1beta1.UpgradeJobList{}
	return requestsFor(ctx, r.Client, jobs, "", func() []client.Object {
		jobs.Items = slices.DeleteFunc(jobs.Items, func(job v1beta1.UpgradeJob) bool {
			return job.Status.Phase.Finished() || lifecycle.UpgraderOf(&job.Spec.Config) != variant.GetName()
		})
		return pointers(jobs.Items)
	})
}

// configsOf returns the configs whose jobs go by the Upgrader.
func (r *UpgradeConfigReconciler) configsOf(ctx context.Context, variant client.Object) []ctrl.Request {
	configs := &v1beta1.UpgradeConfigList{}
	return requestsFor(ctx, r.Client, configs, "", func() []client.Object {
		configs.Items = slices.DeleteFunc(configs.Items, func(config v1beta1.UpgradeConfig) bool {
			return lifecycle.UpgraderOf(&config.Spec.JobTemplate.Spec.Config) != variant.GetName()
		})
		return pointers(configs.Items)
	})
}

// everyHook returns all hooks: one that names a step may have become usable, or not be any more.
func (r *UpgradeJobHookReconciler) everyHook(ctx context.Context, _ client.Object) []ctrl.Request {
	hooks := &v1beta1.UpgradeJobHookList{}
	return requestsFor(ctx, r.Client, hooks, "", func() []client.Object { return pointers(hooks.Items) })
}
