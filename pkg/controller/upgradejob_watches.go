// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	batchv1 "k8s.io/api/batch/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/pools"
)

// SetupWithManager registers the reconciler and its watches.
func (r *UpgradeJobReconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.retry = newRetrier()
	r.progress = newProgress()
	r.freshness = newFreshness()
	r.gaveBack = map[types.UID]bool{}
	r.forceDrains = newForceDrains(r.Client, r.Live)
	return ctrl.NewControllerManagedBy(mgr).
		Named("upgradejob").
		Owns(&batchv1.Job{}, builder.WithPredicates(hookJobTurned)).
		For(&v1beta1.UpgradeJob{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, phaseChanged, deletionRequested, awaitedDelivery))).
		Watches(&configv1.ClusterVersion{}, r.awaitingJobs(clusterVersionTurned)).
		Watches(&configv1.ClusterOperator{}, r.awaitingJobs(clusterOperatorTurned)).
		Watches(&mcfgv1.MachineConfigPool{}, r.awaitingJobs(poolTurned)).
		Watches(&mcfgv1.MachineConfigPool{}, r.formerHolder()).
		WatchesMetadata(openshift.NodeMetadata(), r.awaitingNodes()).
		Watches(&v1beta1.Upgrader{}, handler.EnqueueRequestsFromMapFunc(r.jobsOf), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(r)
}

// deletionRequested passes the moment in which an object is marked for deletion.
var deletionRequested = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
	},
}

// awaitingJobs maps an event of one of OpenShift's objects to the jobs that look at it. An update that is
// no turn, such as one more updated machine, is looked at within progressInterval: during the roll of a big pool that
// makes the difference between a pass in seconds and hundreds in each.
func (r *UpgradeJobReconciler) awaitingJobs(turn func(before, after client.Object) bool) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]
	atOnce := func(ctx context.Context, q queue) {
		for _, req := range r.awaiting(ctx, true) {
			q.Add(req)
		}
	}
	var nextLook time.Time // read and written by the one goroutine that an informer gives to a handler
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, _ event.CreateEvent, q queue) { atOnce(ctx, q) },
		DeleteFunc: func(ctx context.Context, _ event.DeleteEvent, q queue) { atOnce(ctx, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if turn(e.ObjectOld, e.ObjectNew) {
				atOnce(ctx, q)
				return
			}
			now := r.Clock.Now()
			if left := nextLook.Sub(now); left > 0 && left <= progressInterval {
				return // a look is on its way
			}
			nextLook = now.Add(progressInterval)
			for _, req := range r.awaiting(ctx, false) {
				q.AddAfter(req, progressInterval)
			}
		},
	}
}

// awaiting returns the jobs that are not finished and whose start has come; on request also those that tell meanwhile how
// they would find the cluster.
func (r *UpgradeJobReconciler) awaiting(ctx context.Context, early bool) []ctrl.Request {
	jobs := &v1beta1.UpgradeJobList{}
	now := r.Clock.Now()
	return requestsFor(ctx, r.Client, jobs, "", func() []client.Object {
		jobs.Items = slices.DeleteFunc(jobs.Items, func(job v1beta1.UpgradeJob) bool {
			return job.Status.Phase.Finished() || (!early && job.Spec.StartAfter.After(now))
		})
		return pointers(jobs.Items)
	})
}

// clusterVersionTurned tells whether more than the words of a ClusterVersion changed.
func clusterVersionTurned(before, after client.Object) bool {
	a, b := before.(*configv1.ClusterVersion), after.(*configv1.ClusterVersion)
	return a.Generation != b.Generation ||
		a.Annotations[v1beta1.UpgradeJobAnnotation] != b.Annotations[v1beta1.UpgradeJobAnnotation] ||
		availableUpdatesChanged.Update(event.UpdateEvent{ObjectOld: a, ObjectNew: b}) ||
		!apiequality.Semantic.DeepEqual(a.Status.History, b.Status.History) ||
		conditionsTurned(a.Status.Conditions, b.Status.Conditions)
}

// clusterOperatorTurned tells whether an operator became sick or well, or an obstacle or none. What it is working on is
// progress.
func clusterOperatorTurned(before, after client.Object) bool {
	a, b := before.(*configv1.ClusterOperator), after.(*configv1.ClusterOperator)
	sickness := func(conditions []configv1.ClusterOperatorStatusCondition) []configv1.ClusterOperatorStatusCondition {
		return slices.DeleteFunc(slices.Clone(conditions), func(c configv1.ClusterOperatorStatusCondition) bool {
			return c.Type != configv1.OperatorAvailable && c.Type != configv1.OperatorDegraded && c.Type != configv1.OperatorUpgradeable
		})
	}
	return conditionsTurned(sickness(a.Status.Conditions), sickness(b.Status.Conditions))
}

// conditionsTurned tells whether a condition came, went, or changed its status or reason.
func conditionsTurned(a, b []configv1.ClusterOperatorStatusCondition) bool {
	return !slices.EqualFunc(a, b, func(x, y configv1.ClusterOperatorStatusCondition) bool {
		return x.Type == y.Type && x.Status == y.Status && x.Reason == y.Reason
	})
}

// poolTurned tells whether more than the counts of a pool changed, or they became complete.
func poolTurned(before, after client.Object) bool {
	a, b := before.(*mcfgv1.MachineConfigPool), after.(*mcfgv1.MachineConfigPool)
	return a.Generation != b.Generation ||
		a.Status.ObservedGeneration != b.Status.ObservedGeneration ||
		a.Status.Configuration.Name != b.Status.Configuration.Name ||
		(a.Status.UpdatedMachineCount == a.Status.MachineCount) != (b.Status.UpdatedMachineCount == b.Status.MachineCount) ||
		a.Status.DegradedMachineCount != b.Status.DegradedMachineCount ||
		!slices.EqualFunc(a.Status.Conditions, b.Status.Conditions, func(x, y mcfgv1.MachineConfigPoolCondition) bool {
			return x.Type == y.Type && x.Status == y.Status && x.Reason == y.Reason
		})
}

// drainLook is how long after a turn of a node it is looked at: turns of many nodes become one look, and what a drain
// would wait for shows only then.
const drainLook = time.Second

// awaitingNodes maps an event of a cordoned node to the jobs that run. What turns, such as a drain that begins, is looked at soon,
// the rest within progressInterval.
func (r *UpgradeJobReconciler) awaitingNodes() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]
	looks := map[time.Duration]time.Time{} // used by the one goroutine that an informer gives to a handler
	look := func(ctx context.Context, q queue, within time.Duration) {
		now := r.Clock.Now()
		if left := looks[within].Sub(now); left > 0 && left <= within {
			return // a look is on its way
		}
		looks[within] = now.Add(within)
		for _, req := range r.awaiting(ctx, false) {
			q.AddAfter(req, within)
		}
	}
	turn := func(ctx context.Context, q queue, o client.Object) {
		if node, ok := o.(*metav1.PartialObjectMetadata); ok && needsLook(node) {
			look(ctx, q, drainLook)
			return
		}
		look(ctx, q, progressInterval)
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { turn(ctx, q, e.Object) },
		DeleteFunc: func(ctx context.Context, _ event.DeleteEvent, q queue) { look(ctx, q, progressInterval) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if !maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()) { // else it is the heartbeat of a kubelet
				turn(ctx, q, e.ObjectNew)
			}
		},
	}
}

// needsLook tells whether the node is where it may get stuck.
func needsLook(node *metav1.PartialObjectMetadata) bool {
	progress, ok := openshift.NodeInWork(node)
	return ok && (progress.Phase == v1beta1.NodePhaseDraining || progress.Phase == v1beta1.NodePhaseDegraded)
}

// formerHolder maps a pool that is not paused any more in the name of a job to that job, which may be over and tell that it is.
func (r *UpgradeJobReconciler) formerHolder() handler.EventHandler {
	enqueue := func(before string, q workqueue.TypedRateLimitingInterface[ctrl.Request]) {
		if namespace, name, isJob := strings.Cut(before, "/"); isJob {
			q.Add(ctrl.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}})
		}
	}
	holder := func(o client.Object) string { return pools.Holder(o.(*mcfgv1.MachineConfigPool)) }
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[ctrl.Request]) {
			if before := holder(e.ObjectOld); before != holder(e.ObjectNew) {
				enqueue(before, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[ctrl.Request]) {
			enqueue(holder(e.Object), q)
		},
	}
}
