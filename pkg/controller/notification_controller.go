// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/notify"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

const (
	// maxBatch and maxBatchTime bound what is delivered before it is recorded. A crash repeats what is not recorded.
	maxBatch     = 32
	maxBatchTime = 30 * time.Second
	// recordDelay is how long what was delivered waits to be recorded: turns come in groups, and each write makes the job's
	// own reconciler wait for its cache, or conflicts with it.
	recordDelay = time.Second
	// maxCursorLag is how far the recorded cursor may fall behind by transitions that the receiver does not want: each
	// write makes the job's own reconciler wait for its cache.
	maxCursorLag = 16
	// notificationOwner is the field owner of what is recorded of a receiver, with its name behind.
	notificationOwner = "managed-upgrade-operator/notification-"
)

// NotificationReconciler delivers the transitions in the outbox of UpgradeJobs to their receivers, each receiver at its
// own pace.
type NotificationReconciler struct {
	Client client.Client
	// Secrets are read through this reader, which should not keep them.
	Secrets client.Reader
	Cluster *openshift.Cluster
	Clock   clock.PassiveClock
	// Jobs leads the jobs through their lives: its passes wait until the cache has what is recorded here. May be nil.
	Jobs *UpgradeJobReconciler

	sender  *notify.Sender
	secrets *notify.Secrets
	retry   workqueue.TypedRateLimiter[notification]
	chance  func() float64
	delay   time.Duration // of records

	mutex      sync.Mutex // of what follows
	deliveries map[notification]*delivery
}

// delivery is what this process knows of a receiver of a job. The cache may be behind it. It is used by one worker at a
// time, because it belongs to one request.
type delivery struct {
	job types.UID
	// status as it is, and as it is recorded.
	status, recorded v1beta1.NotificationReceiverStatus
	// newsSince is when there was something to be recorded first; zero if there is nothing.
	newsSince time.Time
	backoff   notify.Backoff
}

// Reconcile tells one receiver of what happened to one job.
func (r *NotificationReconciler) Reconcile(ctx context.Context, req notification) (ctrl.Result, error) {
	job := &v1beta1.UpgradeJob{}
	if err := r.Client.Get(ctx, req.NamespacedName, job); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(req)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	receiver := findReceiver(job, req.receiver)
	if receiver == nil {
		r.forget(req)
		return ctrl.Result{}, nil // of a job that had the same name once
	}
	d := r.delivery(req, job)
	after := d.backoff.Left(r.Clock.Now())
	if after == 0 {
		var err error
		if after, err = r.deliver(ctx, job, receiver, d); err != nil {
			return ctrl.Result{}, err
		}
	}
	after = soonest(after, r.record(ctx, job, req, d))
	return ctrl.Result{RequeueAfter: min(after, maxSleep)}, nil
}

// deliver hands over what the receiver is yet to get, in order, until an attempt fails. It returns when to go on; zero
// if there is nothing left. Errors are those of the cache: what is wrong with the receiver is in the status.
func (r *NotificationReconciler) deliver(ctx context.Context, job *v1beta1.UpgradeJob, receiver *v1beta1.NotificationReceiver, d *delivery) (time.Duration, error) {
	lost := notify.Lost(job, d.status.Cursor)
	d.status.Lost += lost
	d.status.Cursor += lost
	pending := notify.Pending(job, receiver, d.status.Cursor)
	var after time.Duration
	if len(pending) > 0 {
		clusterID, err := r.clusterID(ctx)
		if err != nil {
			return 0, err
		}
		failing := d.status.LastError != ""
		done, err := r.sendAll(ctx, job, receiver, d, pending, clusterID)
		pending = pending[done:]
		switch {
		case ctx.Err() != nil:
			return 0, fmt.Errorf("deliver notifications: %w", context.Cause(ctx)) // which is not the receiver's fault
		case err != nil:
			after = r.failed(ctx, job, receiver, d, err)
		case len(pending) > 0:
			after = time.Millisecond
		}
		if failing && d.status.LastError == "" {
			log.FromContext(ctx).Info("The receiver takes notifications again", "delivered", done)
		}
	}
	d.status.Pending = int64(len(pending))
	if len(pending) > 0 {
		d.status.Cursor = max(d.status.Cursor, pending[0].Sequence-1) // what stands before it is not wanted
	} else if job.Status.Notifications != nil {
		d.status.Cursor = max(d.status.Cursor, job.Status.Notifications.Sequence)
	}
	return after, nil
}

// sendAll sends notices until an attempt fails or the batch is full, and returns how many the receiver took.
func (r *NotificationReconciler) sendAll(ctx context.Context, job *v1beta1.UpgradeJob, receiver *v1beta1.NotificationReceiver, d *delivery,
	notices []*v1beta1.Notice, clusterID string,
) (int, error) {
	began := r.Clock.Now()
	target, err := r.secrets.Target(ctx, job.Namespace, receiver)
	if err != nil {
		return 0, err
	}
	for done, n := range notices {
		if done == maxBatch || r.Clock.Now().Sub(began).Abs() >= maxBatchTime {
			return done, nil
		}
		e, err := notify.NewEvent(job, n, clusterID)
		if err != nil {
			return done, err
		}
		if err := r.sender.Send(ctx, target, e); err != nil {
			return done, err
		}
		d.delivered(n, r.Clock.Now())
	}
	return len(notices), nil
}

// delivered notes that the receiver took a notice.
func (d *delivery) delivered(n *v1beta1.Notice, now time.Time) {
	d.backoff.Succeeded()
	d.status.Cursor = n.Sequence
	d.status.Delivered++
	d.status.LastError = ""
	d.status.LastDeliveryTime = new(metav1.NewTime(now).Rfc3339Copy())
}

// failed notes an attempt that failed, and returns when to try again.
func (r *NotificationReconciler) failed(ctx context.Context, job *v1beta1.UpgradeJob, receiver *v1beta1.NotificationReceiver, d *delivery, err error) time.Duration {
	var retryAfter time.Duration
	var failure *notify.Failure
	if errors.As(err, &failure) {
		retryAfter = failure.RetryAfter
		if failure.Denied {
			r.secrets.Forget(job.Namespace, receiver) // the credentials may have been changed meanwhile
		}
	}
	now := r.Clock.Now()
	d.backoff.Failed(now, retryAfter, r.chance())
	after := d.backoff.Left(now)
	text := v1beta1.Truncate(err.Error(), v1beta1.MaxMessageLength)
	if d.status.LastError != text {
		log.FromContext(ctx).Info("A notification could not be delivered, trying again", "cause", text, "after", after.String())
	}
	d.status.LastError = text
	return after
}

// clusterID returns the ID of the cluster, empty if it has none.
func (r *NotificationReconciler) clusterID(ctx context.Context) (string, error) {
	cv, err := r.Cluster.Version(ctx)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return string(cv.Spec.ClusterID), nil
}

// record writes how delivery fares into the job's status, if that is news, and returns when to try again if it failed.
func (r *NotificationReconciler) record(ctx context.Context, job *v1beta1.UpgradeJob, req notification, d *delivery) time.Duration {
	if !d.isNews(job.Status.Phase.Finished()) {
		d.newsSince = time.Time{}
		return 0
	}
	now := r.Clock.Now()
	if d.newsSince.IsZero() {
		d.newsSince = now
	}
	if wait := r.delay - now.Sub(d.newsSince); wait > 0 && wait <= r.delay {
		return wait
	}
	err := r.write(ctx, req, d)
	if err == nil {
		r.retry.Forget(req)
		d.recorded, d.newsSince = d.status, time.Time{}
		return 0
	}
	after := time.Duration(float64(r.retry.When(req)) * (0.5 + r.chance())) // receivers of one job meet in conflicts
	if apierrors.IsConflict(err) {
		log.FromContext(ctx).V(1).Info("The cache lags behind, trying again", "cause", err.Error())
	} else {
		log.FromContext(ctx).Error(err, "Recording deliveries failed, trying again", "after", after.String())
	}
	return after
}

// write is an apply to the job as it is now, unless that is gone: delivery may have taken long.
func (r *NotificationReconciler) write(ctx context.Context, req notification, d *delivery) error {
	job := &v1beta1.UpgradeJob{}
	if err := r.Client.Get(ctx, req.NamespacedName, job); err != nil {
		return client.IgnoreNotFound(err)
	}
	if job.UID != d.job {
		return nil // another job of the name; the watch tells of it
	}
	return client.IgnoreNotFound(r.apply(ctx, job, d.status))
}

// isNews tells whether what is recorded has to be written anew.
func (d *delivery) isNews(finished bool) bool {
	lag := d.status.Cursor - d.recorded.Cursor
	recorded := d.recorded
	recorded.Cursor = d.status.Cursor
	return !apiequality.Semantic.DeepEqual(recorded, d.status) || cursorIsDue(lag, finished)
}

// cursorIsDue tells whether a cursor has to be recorded that has moved without a delivery.
func cursorIsDue(lag int64, finished bool) bool {
	return lag >= maxCursorLag || (finished && lag > 0)
}

// apply is a server-side apply of the status of one receiver and of nothing else, so that it takes nothing back that
// the job's own reconciler or another receiver writes. It fails with a conflict if the job was changed since it was read:
// that keeps it off another job of the name, whose first transitions would pass for delivered. The UID would not, because
// the API server ignores it where a status is applied.
func (r *NotificationReconciler) apply(ctx context.Context, job *v1beta1.UpgradeJob, status v1beta1.NotificationReceiverStatus) error {
	receiver, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return fmt.Errorf("encode the status of receiver %s: %w", status.Name, err)
	}
	applied := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1beta1.GroupVersion.String(),
		"kind":       "UpgradeJob",
		"metadata":   map[string]any{"namespace": job.Namespace, "name": job.Name, "resourceVersion": job.ResourceVersion},
		"status":     map[string]any{"notifications": map[string]any{"receivers": []any{receiver}}},
	}}
	err = r.Client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(applied),
		client.FieldOwner(notificationOwner+status.Name), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("apply the status of receiver %s of UpgradeJob %s: %w", status.Name, client.ObjectKeyFromObject(job), err)
	}
	if r.Jobs != nil && !job.Status.Phase.Finished() { // nobody waits for the cache for a finished job
		applied.SetUID(job.UID)
		r.Jobs.freshness.wrote(applied)
	}
	return nil
}

// delivery returns what is known of a request. At first that is what the job's status says.
func (r *NotificationReconciler) delivery(req notification, job *v1beta1.UpgradeJob) *delivery {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	d, ok := r.deliveries[req]
	if !ok || d.job != job.UID {
		status := notify.ReceiverStatus(job, req.receiver)
		d = &delivery{job: job.UID, status: status, recorded: status}
		r.deliveries[req] = d
	}
	return d
}

func (r *NotificationReconciler) forget(req notification) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.deliveries, req)
	r.retry.Forget(req)
}

// findReceiver returns the receiver of that name, nil if there is none.
func findReceiver(job *v1beta1.UpgradeJob, name string) *v1beta1.NotificationReceiver {
	config := &job.Spec.Config
	for i := range config.Notifications {
		if config.ReceiverName(i) == name {
			return &config.Notifications[i]
		}
	}
	return nil
}
