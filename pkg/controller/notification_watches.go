// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"math/rand/v2"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/notify"
)

// notificationWorkers is how many receivers are served at a time. One that hangs occupies a worker for ten seconds, and
// then for ten of each five minutes.
const notificationWorkers = 8

// notification asks to tell a receiver of a job's transitions.
type notification struct {
	types.NamespacedName
	receiver string
}

// SetupWithManager registers the reconciler and its watch.
func (r *NotificationReconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.sender = notify.NewSender(r.Clock)
	r.secrets = notify.NewSecrets(r.Secrets, r.Clock)
	r.retry = workqueue.NewTypedItemExponentialFailureRateLimiter[notification](minConflictDelay, maxBackoff)
	r.delay = recordDelay
	r.chance = rand.Float64
	r.deliveries = map[notification]*delivery{}
	return builder.TypedControllerManagedBy[notification](mgr).
		Named("notification").
		Watches(&v1beta1.UpgradeJob{}, newNotices).
		WithOptions(controller.TypedOptions[notification]{MaxConcurrentReconciles: notificationWorkers}).
		WithLogConstructor(func(req *notification) logr.Logger {
			l := mgr.GetLogger().WithValues("controller", "notification")
			if req == nil {
				return l
			}
			return l.WithValues("namespace", req.Namespace, "name", req.Name, "receiver", req.receiver)
		}).
		Complete(r)
}

// newNotices asks to tell the receivers that have something to be told: once a job is seen first, which after a restart is
// any job, and whenever its outbox grows. What is recorded of the receivers is no news to them.
var newNotices = handler.TypedFuncs[client.Object, notification]{
	CreateFunc: func(_ context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[notification]) {
		enqueue(q, e.Object, behind)
	},
	UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[notification]) {
		before, after := e.ObjectOld.(*v1beta1.UpgradeJob), e.ObjectNew.(*v1beta1.UpgradeJob)
		if before.UID != after.UID || newestNotice(before) != newestNotice(after) {
			enqueue(q, after, behind)
		}
	},
	DeleteFunc: func(_ context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[notification]) {
		enqueue(q, e.Object, func(*v1beta1.UpgradeJob, int) bool { return true }) // to forget it
	},
}

// enqueue asks to tell those receivers of a job, by their place in its config, that which chooses.
func enqueue(q workqueue.TypedRateLimitingInterface[notification], o client.Object, which func(*v1beta1.UpgradeJob, int) bool) {
	job := o.(*v1beta1.UpgradeJob)
	for i := range job.Spec.Config.Notifications {
		if which(job, i) {
			q.Add(notification{client.ObjectKeyFromObject(job), job.Spec.Config.ReceiverName(i)})
		}
	}
}

// behind tells whether there is something to deliver to a receiver, or to record of it.
func behind(job *v1beta1.UpgradeJob, i int) bool {
	config := &job.Spec.Config
	cursor := notify.ReceiverStatus(job, config.ReceiverName(i)).Cursor
	return cursorIsDue(newestNotice(job)-cursor, job.Status.Phase.Finished()) ||
		len(notify.Pending(job, &config.Notifications[i], cursor)) > 0
}

func newestNotice(job *v1beta1.UpgradeJob) int64 {
	if job.Status.Notifications == nil {
		return 0
	}
	return job.Status.Notifications.Sequence
}
