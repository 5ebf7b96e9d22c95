// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// OperatorConditionVariable is the environment variable in which the Operator Lifecycle Manager names the OperatorCondition
// of the operator. Without it the operator was not installed by that manager.
const OperatorConditionVariable = "OPERATOR_CONDITION_NAME"

// Reasons of the condition Upgradeable of the OperatorCondition.
const (
	// ReasonUpgradeInProgress: an UpgradeJob upgrades the cluster, or gives back what it held.
	ReasonUpgradeInProgress = "UpgradeInProgress"
	// ReasonNoUpgradeInProgress: no UpgradeJob does.
	ReasonNoUpgradeInProgress = "NoUpgradeInProgress"
)

// missingDelay is when an OperatorCondition that was not there is looked for again.
const missingDelay = time.Minute

// OperatorConditionReconciler tells the Operator Lifecycle Manager not to replace the operator while a job is in flight. Any version of the
// operator could go on with the job, but the one that began has been tried on this cluster.
// The manager copies spec.conditions into the status and decides by that; spec.overrides of an administrator go before both.
type OperatorConditionReconciler struct {
	Client client.Client
	// Live reads past the cache: the manager lets the operator get and patch the one object, but neither list nor watch it.
	Live client.Reader
	// Name and Namespace of the OperatorCondition. Required.
	Name, Namespace string
	// JobNamespace has the jobs that count; empty for all namespaces.
	JobNamespace string
	Clock        clock.PassiveClock

	retry *retrier
	// missing is whether it was logged that the object is not there.
	missing bool
}

// Reconcile updates the condition Upgradeable.
func (r *OperatorConditionReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	upgradeable, err := r.judge(ctx)
	if err == nil {
		err = r.tell(ctx, upgradeable)
	}
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		// It is made after the pod that is told its name, and nobody watches it.
		if !r.missing {
			log.FromContext(ctx).Info("The OperatorCondition is not there, looking for it again", "after", missingDelay.String(), "cause", err.Error())
		}
		r.missing = true
		return r.retry.after(ctx, req, missingDelay, nil), nil
	}
	r.missing = false
	return r.retry.after(ctx, req, 0, err), nil
}

// judge tells whether the operator may be replaced now.
func (r *OperatorConditionReconciler) judge(ctx context.Context) (metav1.Condition, error) {
	jobs := &v1beta1.UpgradeJobList{}
	if err := r.Client.List(ctx, jobs, client.InNamespace(r.JobNamespace), client.UnsafeDisableDeepCopy); err != nil {
		return metav1.Condition{}, fmt.Errorf("list UpgradeJobs: %w", err)
	}
	var names []string
	for i := range jobs.Items {
		if inFlight(&jobs.Items[i]) {
			names = append(names, client.ObjectKeyFromObject(&jobs.Items[i]).String())
		}
	}
	if len(names) == 0 {
		return metav1.Condition{
			Type: operatorsv2.Upgradeable, Status: metav1.ConditionTrue, Reason: ReasonNoUpgradeInProgress, Message: "No UpgradeJob is in progress.",
		}, nil
	}
	slices.Sort(names)
	return metav1.Condition{
		Type: operatorsv2.Upgradeable, Status: metav1.ConditionFalse, Reason: ReasonUpgradeInProgress,
		Message: v1beta1.Truncate("In progress: UpgradeJob "+strings.Join(names, ", "), maxNote),
	}, nil
}

// inFlight tells whether the job does something, or has ended and still holds something. What a job that waits for its start holds is nothing
// that another version of the operator would not know of.
func inFlight(job *v1beta1.UpgradeJob) bool {
	switch phase := job.Status.Phase; phase {
	case v1beta1.PhaseActive, v1beta1.PhasePaused:
		return true
	case v1beta1.PhaseSucceeded, v1beta1.PhaseFailed, v1beta1.PhaseSkipped:
		return job.Status.StartTime != nil && controllerutil.ContainsFinalizer(job, v1beta1.UpgradeJobFinalizer)
	case v1beta1.PhasePending:
	}
	return false
}

// tell writes the condition if it says something else. The other conditions are somebody else's.
func (r *OperatorConditionReconciler) tell(ctx context.Context, upgradeable metav1.Condition) error {
	condition := &operatorsv2.OperatorCondition{}
	key := client.ObjectKey{Namespace: r.Namespace, Name: r.Name}
	if err := r.Live.Get(ctx, key, condition); err != nil {
		return fmt.Errorf("read OperatorCondition %s: %w", key, err)
	}
	base := condition.DeepCopy()
	upgradeable.LastTransitionTime = metav1.NewTime(r.Clock.Now())
	if !meta.SetStatusCondition(&condition.Spec.Conditions, upgradeable) {
		return nil
	}
	patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, condition, patch); err != nil {
		return fmt.Errorf("write OperatorCondition %s: %w", key, err)
	}
	log.FromContext(ctx).Info("Told the Operator Lifecycle Manager whether the operator can be replaced",
		"upgradeable", upgradeable.Status, "reason", upgradeable.Reason, "message", upgradeable.Message)
	return nil
}

// SetupWithManager registers the reconciler and its watch.
func (r *OperatorConditionReconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.retry = newRetrier()
	request := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: r.Namespace, Name: r.Name}}
	theOne := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []ctrl.Request { return []ctrl.Request{request} })
	// A job may have gone while no operator ran, and then there is no event that would tell.
	once := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		queue.Add(request)
		return nil
	})
	turned := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return inFlight(e.ObjectOld.(*v1beta1.UpgradeJob)) != inFlight(e.ObjectNew.(*v1beta1.UpgradeJob))
	}}
	return ctrl.NewControllerManagedBy(mgr).
		Named("operatorcondition").
		Watches(&v1beta1.UpgradeJob{}, theOne, builder.WithPredicates(turned)).
		WatchesRawSource(once).
		Complete(r)
}
