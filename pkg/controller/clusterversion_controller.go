// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	configv1ac "github.com/openshift/client-go/config/applyconfigurations/config/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/overlay"
)

// specOwner is the field manager of what is synced. The API server remembers by it which fields are ours: one that
// the template does not give any more is removed, one that somebody else set is left alone.
const specOwner = client.FieldOwner("managed-upgrade-operator")

// ClusterVersionReconciler keeps the spec of OpenShift's ClusterVersion/version as our ClusterVersion describes it.
type ClusterVersionReconciler struct {
	Client  client.Client
	Cluster *openshift.Cluster
	Clock   clock.PassiveClock
	// Namespace in which the ClusterVersion must stand to have an effect: that of the operator.
	Namespace string

	// JobNamespace is where UpgradeJobs are watched; empty for all.
	JobNamespace string

	retry     *retrier
	freshness *freshness
}

// Reconcile syncs one ClusterVersion.
func (r *ClusterVersionReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cv := &v1beta1.ClusterVersion{}
	if err := r.Client.Get(ctx, req.NamespacedName, cv); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if wait := r.freshness.wait(cv); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	if !cv.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // what was synced stays: the cluster needs its channel
	}
	base := cv.DeepCopy()
	condition := v1beta1.NotReady(v1beta1.ReasonNotManaged, fmt.Sprintf(
		"Only the ClusterVersion in the operator's namespace, %s, is synced.", r.Namespace))
	var after time.Duration
	var err error
	if cv.Namespace == r.Namespace {
		after, err = r.sync(ctx, cv)
		condition = v1beta1.Ready(v1beta1.ReasonSynced, "OpenShift's ClusterVersion is as described.")
		if err != nil {
			condition = v1beta1.NotReady(v1beta1.ReasonSyncFailed, openshift.Describe(err))
		}
	}
	cv.Status.ObservedGeneration = cv.Generation
	setCondition(&cv.Status.Conditions, condition, cv.Generation, r.Clock)
	wrote, writeErr := writeStatus(ctx, r.Client, base, cv, clusterVersionStatus)
	if wrote && writeErr == nil {
		r.freshness.wrote(cv)
	}
	err = errors.Join(err, writeErr)
	return r.retry.after(ctx, req, after, err), nil
}

// sync makes the real object as described and returns when the next overlay begins.
func (r *ClusterVersionReconciler) sync(ctx context.Context, cv *v1beta1.ClusterVersion) (time.Duration, error) {
	now := r.Clock.Now()
	view, err := overlay.Resolve(&cv.Spec, now)
	if err != nil {
		return 0, err
	}
	upstream, err := r.Cluster.Version(ctx)
	if err != nil {
		return 0, err
	}
	if channel, err := r.channelOfJob(ctx, upstream); err != nil {
		return 0, err
	} else if channel != "" && view.Current.Channel != "" {
		view.Current.Channel = channel
	}
	synced := cv.Status.Current != nil && apiequality.Semantic.DeepEqual(*cv.Status.Current, view.Current)
	if !synced || !overlay.InSync(&upstream.Spec, &view.Current) {
		if err := r.apply(ctx, view.Current); err != nil {
			return 0, err
		}
		log.FromContext(ctx).Info("Synced OpenShift's ClusterVersion", "channel", view.Current.Channel, "drift", synced)
	}
	cv.Status.Current = &view.Current
	cv.Status.OverlayApplied = view.Applied
	cv.Status.Overlays = view.Previews
	if view.Next.IsZero() {
		return 0, nil
	}
	return view.Next.Sub(now), nil
}

// channelOfJob returns the channel that the job which holds the cluster asks for; empty if there is none. Until it is over that channel counts:
// else the two would set the channel back and forth.
func (r *ClusterVersionReconciler) channelOfJob(ctx context.Context, upstream *configv1.ClusterVersion) (string, error) {
	job, _, err := jobNamed(ctx, r.Client, r.JobNamespace, upstream.Annotations[v1beta1.UpgradeJobAnnotation])
	if err != nil || job == nil || job.Status.Phase.Finished() {
		return "", err
	}
	return job.Spec.Config.Channel, nil
}

// lockChanged passes that a job takes or releases the cluster.
var lockChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return e.ObjectOld.GetAnnotations()[v1beta1.UpgradeJobAnnotation] != e.ObjectNew.GetAnnotations()[v1beta1.UpgradeJobAnnotation]
}}

// apply is a server-side apply of the fields that are given, and of nothing else: desiredUpdate belongs to the jobs.
func (r *ClusterVersionReconciler) apply(ctx context.Context, spec v1beta1.DesiredClusterVersionSpec) error {
	data, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("encode the spec of ClusterVersion/%s: %w", v1beta1.ClusterVersionName, err)
	}
	applied := configv1ac.ClusterVersionSpec()
	if err := json.Unmarshal(data, applied); err != nil {
		return fmt.Errorf("decode the spec of ClusterVersion/%s: %w", v1beta1.ClusterVersionName, err)
	}
	object := configv1ac.ClusterVersion(v1beta1.ClusterVersionName).WithSpec(applied)
	if err := r.Client.Apply(ctx, object, specOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("apply the spec of ClusterVersion/%s: %w", v1beta1.ClusterVersionName, err)
	}
	return nil
}

func clusterVersionStatus(o client.Object) *v1beta1.ClusterVersionStatus {
	return &o.(*v1beta1.ClusterVersion).Status
}

// SetupWithManager registers the reconciler and its watches.
func (r *ClusterVersionReconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.retry = newRetrier()
	r.freshness = newFreshness()
	ours := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []ctrl.Request {
		list := &v1beta1.ClusterVersionList{}
		return requestsFor(ctx, r.Client, list, "", func() []client.Object { return pointers(list.Items) })
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("clusterversion").
		For(&v1beta1.ClusterVersion{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&configv1.ClusterVersion{}, ours, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, lockChanged))).
		Complete(r)
}
