// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/appuio/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/cincinnati"
	"github.com/appuio/managed-upgrade-operator/pkg/muo"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// muoRecheck is how often an upgrade is judged anew that cannot be done because of what is outside of the cluster.
const muoRecheck = 5 * time.Minute

// MUOUpgradeConfigReconciler carries out the object of the Managed Upgrade Operator: it makes an UpgradeJob of it, and tells in its status how
// that goes.
type MUOUpgradeConfigReconciler struct {
	Client client.Client
	// Live reads past the cache.
	Live    client.Reader
	Cluster *openshift.Cluster
	// Graph asks the update service.
	Graph  *cincinnati.Client
	Clock  clock.PassiveClock
	Events events.EventRecorder

	retry     *retrier
	freshness *freshness
}

// Reconcile does one pass over an UpgradeConfig of the Managed Upgrade Operator.
func (r *MUOUpgradeConfigReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	config := &v1alpha1.UpgradeConfig{}
	if err := r.Client.Get(ctx, req.NamespacedName, config); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if wait := r.freshness.wait(config); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	if !config.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector deletes the jobs, and they clean up after themselves
	}
	base := config.DeepCopy()
	after, err := r.look(ctx, config)
	wrote, writeErr := writeStatus(ctx, r.Client, base, config, muoStatus)
	if wrote && writeErr == nil {
		r.freshness.wrote(config)
		r.tell(base, config)
	}
	return r.retry.after(ctx, req, after, errors.Join(err, writeErr)), nil
}

func muoStatus(o client.Object) *v1alpha1.UpgradeConfigStatus {
	return &o.(*v1alpha1.UpgradeConfig).Status
}

// look does what is to be done for the object, in memory as far as it is its status.
func (r *MUOUpgradeConfigReconciler) look(ctx context.Context, config *v1alpha1.UpgradeConfig) (time.Duration, error) {
	p := &muoPass{MUOUpgradeConfigReconciler: r, config: config, now: r.Clock.Now(), name: muo.JobName(config)}
	if config.Name != v1alpha1.UpgradeConfigName {
		p.entry = muo.Current(config)
		p.valid(metav1.ConditionFalse, muo.ReasonNotManaged, fmt.Sprintf("Only the UpgradeConfig named %s is carried out.", v1alpha1.UpgradeConfigName))
		muo.Tidy(config, nil)
		return 0, nil // an object keeps its name
	}
	if err := p.list(ctx); err != nil {
		return 0, err
	}
	muo.Adopt(config, p.jobs, p.name)
	p.entry = muo.Current(config)
	p.mirror()
	after, err := p.advance(ctx)
	muo.Tidy(config, p.jobs)
	return after, errors.Join(err, p.prune(ctx))
}

// tell publishes what has turned since base. It runs after the status is written, so that each turn is told once.
func (r *MUOUpgradeConfigReconciler) tell(base, config *v1alpha1.UpgradeConfig) {
	if len(config.Status.History) == 0 {
		return
	}
	before, after := &v1alpha1.UpgradeHistory{}, &config.Status.History[0]
	if len(base.Status.History) > 0 && base.Status.History[0].Version == after.Version {
		before = &base.Status.History[0]
	}
	for _, conditionType := range []string{v1alpha1.ConditionValid, v1alpha1.ConditionScheduled, v1alpha1.ConditionFailed} {
		old, c := muo.FindCondition(before, conditionType), muo.FindCondition(after, conditionType)
		eventType := muoEvent(c)
		if eventType == "" || (old != nil && old.Status == c.Status && old.Reason == c.Reason && old.Message == c.Message) {
			continue
		}
		r.Events.Eventf(config, nil, eventType, c.Reason, actionSchedule, "%s", v1beta1.Truncate(c.Message, maxNote))
	}
}

// muoEvent returns the type of the Event for a condition that turned; empty if it is not worth one. That there is a job is an Event of its own.
func muoEvent(c *v1alpha1.UpgradeCondition) string {
	switch {
	case c == nil:
		return ""
	case c.Type == v1alpha1.ConditionFailed:
		if c.Reason == muo.ReasonJobDeleted { // the rest is told by the job
			return corev1.EventTypeWarning
		}
		return ""
	case c.Status == metav1.ConditionFalse && c.Reason == muo.ReasonUpgradeInProgress, c.Status == metav1.ConditionUnknown,
		c.Status == metav1.ConditionTrue && c.Reason == muo.ReasonUpgraded:
		return corev1.EventTypeNormal
	case c.Status == metav1.ConditionFalse && c.Reason != muo.ReasonJobReplaced:
		return corev1.EventTypeWarning
	}
	return ""
}

// SetupWithManager registers the reconciler and its watches.
func (r *MUOUpgradeConfigReconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.retry = newRetrier()
	r.freshness = newFreshness()
	everyConfig := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []ctrl.Request {
		configs := &v1alpha1.UpgradeConfigList{}
		return requestsFor(ctx, r.Client, configs, "", func() []client.Object { return pointers(configs.Items) })
	})
	ofSettings := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []ctrl.Request {
		if o.GetName() != muo.ConfigMapName {
			return nil
		}
		return []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: v1alpha1.UpgradeConfigName}}}
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("muo-upgradeconfig").
		For(&v1alpha1.UpgradeConfig{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Owns(&v1beta1.UpgradeJob{}, builder.WithPredicates(muoJobChanged)).
		Watches(&configv1.ClusterVersion{}, everyConfig, builder.WithPredicates(muoVersionChanged)).
		Watches(&corev1.ConfigMap{}, ofSettings, builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Complete(r)
}
