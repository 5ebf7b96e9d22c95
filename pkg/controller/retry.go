// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// Bounds of the wait for the cache after a write met a newer object.
	minConflictDelay = 50 * time.Millisecond
	maxConflictDelay = 2 * time.Second
	// Bounds of the backoff after an error. The longest is short enough for a maintenance window.
	minBackoff = 100 * time.Millisecond
	maxBackoff = 10 * time.Second
	// maxSleep bounds every wait for a point in time. The timers of a process do not notice when the wall clock is
	// set, so a deadline is looked at anew this often; that costs no request.
	maxSleep = time.Minute
)

// retrier turns the result of a pass into that of a reconciler, so that no deadline is lost to a backoff:
// controller-runtime ignores RequeueAfter beside an error.
type retrier struct {
	errors, conflicts workqueue.TypedRateLimiter[ctrl.Request]
}

func newRetrier() *retrier {
	return &retrier{
		errors:    workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](minBackoff, maxBackoff),
		conflicts: workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](minConflictDelay, maxConflictDelay),
	}
}

// after returns when to reconcile again: after the given time (zero: not at all), or earlier because of err, which is
// logged here and nowhere else.
func (r *retrier) after(ctx context.Context, req ctrl.Request, after time.Duration, err error) ctrl.Result {
	switch {
	case err == nil:
		r.errors.Forget(req)
		r.conflicts.Forget(req)
	case onlyConflicts(err):
		log.FromContext(ctx).V(1).Info("The cache lags behind, trying again", "cause", err.Error())
		after = soonest(after, r.conflicts.When(req))
	default:
		delay := r.errors.When(req)
		log.FromContext(ctx).Error(err, "Reconciling failed, trying again", "after", delay.String())
		after = soonest(after, delay)
	}
	return ctrl.Result{RequeueAfter: min(after, maxSleep)}
}

// onlyConflicts tells whether the error is a conflict, and if it is several, whether each of them is.
func onlyConflicts(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(joined.Unwrap(), func(e error) bool { return !onlyConflicts(e) })
	}
	return apierrors.IsConflict(err)
}

// soonest returns the shorter of two waits, of which zero means none.
func soonest(a, b time.Duration) time.Duration {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}
