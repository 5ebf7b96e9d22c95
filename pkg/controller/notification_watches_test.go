// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"testing"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/notify"
)

func TestNewNotices(t *testing.T) {
	// job has two receivers, of which the second wants outcomes only, after these transitions.
	job := func(transitions ...v1beta1.NotificationType) *v1beta1.UpgradeJob {
		job := newReceivedJob(v1beta1.NotificationReceiver{URL: "http://x"}, v1beta1.NotificationReceiver{Name: "outcome", URL: "http://x", Events: []v1beta1.NotificationFilter{"job.*"}})
		for _, t := range transitions {
			notify.Append(job, v1beta1.Notice{Type: t}, startAfter)
		}
		return job
	}
	// toldUpTo records the cursor of both receivers.
	toldUpTo := func(job *v1beta1.UpgradeJob, cursors ...int64) *v1beta1.UpgradeJob {
		for i, cursor := range cursors {
			receivers := &job.Status.Notifications.Receivers
			*receivers = append(*receivers, v1beta1.NotificationReceiverStatus{Name: job.Spec.Config.ReceiverName(i), Cursor: cursor})
		}
		return job
	}
	finished := func(job *v1beta1.UpgradeJob) *v1beta1.UpgradeJob {
		job.Status.Phase = v1beta1.PhaseSucceeded
		return job
	}
	again := func(job *v1beta1.UpgradeJob) *v1beta1.UpgradeJob {
		job.UID = "other"
		return job
	}
	waits := slices.Repeat([]v1beta1.NotificationType{v1beta1.NotificationStepWaiting}, maxCursorLag)
	type list = []string
	for _, tc := range []struct {
		reason        string
		before, after *v1beta1.UpgradeJob // of which one is missing if the job is new or gone
		want          list
	}{
		{"a new job", nil, job(), nil},
		{"a job without receivers", nil, newJob("job"), nil},
		{"after a restart, nothing is told", nil, job(jobStarted), list{"outcome", "receiver-1"}},
		{"after a restart, one receiver is behind", nil, toldUpTo(job(jobStarted, stepStarted), 1, 1), list{"receiver-1"}},
		{"after a restart, all is told", nil, toldUpTo(job(jobStarted, stepStarted), 2, 1), nil},
		{"after a restart, a finished job", nil, finished(toldUpTo(job(jobStarted, jobSucceeded), 1, 2)), list{"receiver-1"}},
		{"after a restart, a finished job of which all is recorded", nil, finished(toldUpTo(job(jobStarted, jobSucceeded), 2, 2)), nil},
		{"a transition that both want", toldUpTo(job(jobStarted), 1, 1), toldUpTo(job(jobStarted, jobSucceeded), 1, 1), list{"outcome", "receiver-1"}},
		{"a transition that one wants", toldUpTo(job(jobStarted), 1, 1), toldUpTo(job(jobStarted, stepStarted), 1, 1), list{"receiver-1"}},
		{"the last cursor of a finished job", job(jobStarted), finished(toldUpTo(job(jobStarted, stepStarted), 2, 1)), list{"outcome"}},
		{"a cursor far behind", job(), toldUpTo(job(waits...), maxCursorLag, 0), list{"outcome"}},
		{"nothing but a delivery", job(jobStarted), toldUpTo(job(jobStarted), 0, 1), nil},
		{"nothing at all", job(jobStarted), job(jobStarted), nil},
		{"another job of the name", job(jobStarted), again(job(jobStarted)), list{"outcome", "receiver-1"}},
		{"a job that goes", toldUpTo(job(jobStarted), 1, 1), nil, list{"outcome", "receiver-1"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[notification]())
			defer q.ShutDown()
			switch {
			case tc.before == nil:
				newNotices.Create(t.Context(), event.CreateEvent{Object: tc.after}, q)
			case tc.after == nil:
				newNotices.Delete(t.Context(), event.DeleteEvent{Object: tc.before}, q)
			default:
				newNotices.Update(t.Context(), event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}, q)
			}
			var got list
			for q.Len() > 0 {
				req, _ := q.Get()
				if req.Namespace != namespace || req.Name != "job" {
					t.Errorf("got a request for %s", req.NamespacedName)
				}
				got = append(got, req.receiver)
			}
			slices.Sort(got)
			if !slices.Equal(got, tc.want) {
				t.Errorf("asked to tell %q, want %q", got, tc.want)
			}
		})
	}
}
