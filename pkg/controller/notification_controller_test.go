// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/notify"
)

const (
	jobStarted    = v1beta1.NotificationJobStarted
	jobSucceeded  = v1beta1.NotificationJobSucceeded
	stepStarted   = v1beta1.NotificationStepStarted
	stepCompleted = v1beta1.NotificationStepCompleted
)

func TestNotificationsAreDeliveredInOrder(t *testing.T) {
	all, outcomes := newWebhook(t), newWebhook(t)
	o := newOffice(t, newReceivedJob(all.as("all"), outcomes.as("", "job.*")))
	r := o.notifications()
	o.happens(jobStarted, stepStarted)
	o.expectResult("the first batch", o.tell(r, "all"), 0)
	o.elapse(time.Minute)
	o.happens(stepCompleted, jobSucceeded)
	o.expectResult("the second batch", o.tell(r, "all"), 0)
	o.expectResult("the filtered receiver", o.tell(r, "receiver-2"), 0)

	all.expect(t, "all", "1 job.started", "2 step.started", "3 step.completed", "4 job.succeeded")
	outcomes.expect(t, "outcomes", "1 job.started", "4 job.succeeded")
	o.expectStatus("all", "4 4 0 0")
	o.expectStatus("receiver-2", "4 2 0 0")
	status := o.job().Status.Notifications
	if status.Sequence != 4 || len(status.Outbox) != 4 || len(status.Receivers) != 2 {
		t.Errorf("status.notifications is %+v, want the outbox as it was and two receivers", status)
	}
	for _, s := range status.Receivers {
		if want := startAfter.Add(time.Minute); s.LastDeliveryTime == nil || !s.LastDeliveryTime.Time.Equal(want) {
			t.Errorf("the last delivery to %s was at %v, want %v", s.Name, s.LastDeliveryTime, want)
		}
	}
	event := struct {
		Data struct{ Cluster struct{ ID string } }
	}{}
	if err := json.Unmarshal([]byte(all.bodies[0]), &event); err != nil || event.Data.Cluster.ID != "cluster" {
		t.Errorf("the event is of cluster %q, error %v", event.Data.Cluster.ID, err)
	}
	writes := o.applies
	o.expectResult("nothing is new", o.tell(r, "all"), 0)
	if o.applies != writes || len(all.bodies) != 4 {
		t.Errorf("there were %d writes and %d requests, though nothing happened", o.applies-writes, len(all.bodies)-4)
	}
}

func TestNotificationsOfAFinishedJobAreDelivered(t *testing.T) {
	hook := newWebhook(t)
	o := newOffice(t, newReceivedJob(hook.as("chat")))
	o.happens(jobStarted, jobSucceeded)
	job := o.job()
	job.Status.Phase = v1beta1.PhaseSucceeded
	if err := o.store.Status().Update(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	o.tell(o.notifications(), "chat")
	hook.expect(t, "a finished job", "1 job.started", "2 job.succeeded")
	o.expectStatus("chat", "2 2 0 0")
}

// Delivered but not recorded: the process knows better than the API.
func TestNotificationsAreNotRepeatedWithinAProcess(t *testing.T) {
	hook := newWebhook(t)
	o := newOffice(t, newReceivedJob(hook.as("chat")))
	r := o.notifications()
	o.happens(jobStarted)
	o.applyErr = []error{errBroken, errConflict}
	o.expectResult("the write fails", o.tell(r, "chat"), minConflictDelay)
	o.expectStatus("chat", "0 0 0 0")
	o.happens(stepStarted)
	o.expectResult("it fails again", o.tell(r, "chat"), 2*minConflictDelay)
	o.expectResult("it succeeds", o.tell(r, "chat"), 0)
	hook.expect(t, "after two failed writes", "1 job.started", "2 step.started")
	o.expectStatus("chat", "2 2 0 0")

	o.cached = o.job()
	o.cached.Status.Notifications.Receivers = nil // as it was before the writes
	o.tell(r, "chat")
	hook.expect(t, "with a cache that lags behind", "1 job.started", "2 step.started")
	o.expectStatus("chat", "2 2 0 0")
	o.cached = nil
	o.happens(stepCompleted)
	o.tell(r, "chat")
	hook.expect(t, "then", "1 job.started", "2 step.started", "3 step.completed")
	o.expectStatus("chat", "3 3 0 0")
}

// Others write the job too. Who comes too late reads it anew; what it delivered it knows.
func TestNotificationsAreRecordedAfterAConflict(t *testing.T) {
	hook := newWebhook(t)
	o := newOffice(t, newReceivedJob(hook.as("chat"), hook.as("other")))
	r := o.notifications()
	o.happens(jobStarted)
	o.cached = o.job()
	earlier := o.cached
	o.happens(stepStarted)
	o.expectResult("the cache lags behind", o.tell(r, "chat"), minConflictDelay)
	o.expectStatus("chat", "0 0 0 0")
	if strings.Contains(o.logged.String(), "failed") {
		t.Errorf("a conflict is logged as a failure: %s", o.logged.String())
	}
	o.cached = nil
	o.expectResult("the cache is up to date", o.tell(r, "chat"), 0)
	hook.expect(t, "then", "1 job.started", "2 step.started")
	o.expectStatus("chat", "2 2 0 0")
	o.cached = earlier
	o.tell(r, "chat")
	o.cached = nil
	o.tell(r, "chat")
	hook.expect(t, "after a cache that knew less", "1 job.started", "2 step.started")
}

func TestNotificationsAreRepeatedWordForWordAfterACrash(t *testing.T) {
	hook := newWebhook(t)
	o := newOffice(t, newReceivedJob(hook.as("chat")))
	o.happens(jobStarted, stepStarted)
	o.applyErr = []error{errBroken}
	o.tell(o.notifications(), "chat")
	job := o.job()
	job.Status.StartTime, job.Status.FromVersion = &metav1.Time{Time: startAfter.Add(time.Hour)}, "4.18.1"
	if err := o.store.Status().Update(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	r := o.notifications() // of the next process
	o.tell(r, "chat")
	hook.expect(t, "after a crash", "1 job.started", "2 step.started", "1 job.started", "2 step.started")
	if !slices.Equal(hook.bodies[:2], hook.bodies[2:]) {
		t.Errorf("the repeat differs:\n%s", strings.Join(hook.bodies, "\n"))
	}
	o.expectStatus("chat", "2 2 0 0")
	o.tell(o.notifications(), "chat")
	if len(hook.bodies) != 4 {
		t.Errorf("after a restart %d more were sent, though all was recorded", len(hook.bodies)-4)
	}
}

// What a receiver does not want costs few writes, but its cursor must not hold the outbox up.
func TestNotificationsThatNobodyWantsCostFewWrites(t *testing.T) {
	hook, all := newWebhook(t), newWebhook(t)
	o := newOffice(t, newReceivedJob(hook.as("outcome", "job.succeeded"), all.as("all")))
	r := o.notifications()
	const transitions = 3*maxCursorLag + 2
	for range transitions {
		o.happens(stepStarted)
		o.tell(r, "outcome")
		o.tell(r, "all")
	}
	if writes := o.applies - transitions; writes != 3 {
		t.Errorf("the filtered receiver cost %d writes for %d transitions, want 3", writes, transitions)
	}
	if got := len(o.job().Status.Notifications.Outbox); got > 2*maxCursorLag+1 {
		t.Errorf("the outbox has %d transitions that everybody is done with", got)
	}
	o.happens(jobSucceeded)
	o.tell(r, "outcome")
	hook.expect(t, "the outcome", "51 job.succeeded")
	o.expectStatus("outcome", "51 1 0 0")
}

// A job of the same name is another one: it begins at its own beginning.
func TestNotificationsOfAJobThatIsMadeAgain(t *testing.T) {
	hook := newWebhook(t)
	o := newOffice(t, newReceivedJob(hook.as("chat")))
	r := o.notifications()
	o.happens(jobStarted, stepStarted)
	o.tell(r, "chat")
	old := o.job()
	job := newReceivedJob(hook.as("chat"))
	old.Finalizers = nil
	if err := errors.Join(o.store.Update(t.Context(), old), o.store.Delete(t.Context(), old)); err != nil {
		t.Fatal(err)
	}
	job.UID = "other"
	if err := o.store.Create(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	o.happens(jobStarted)

	o.cached = old // with one more, so that there is something to record
	notify.Append(o.cached, v1beta1.Notice{Type: stepCompleted}, o.clock.Now())
	o.expectResult("the cache has the old job", o.tell(r, "chat"), minConflictDelay)
	o.expectStatus("chat", "0 0 0 0")
	o.cached = nil
	o.expectResult("the cache has the new job", o.tell(r, "chat"), 0)
	hook.expect(t, "both jobs", "1 job.started", "2 step.started", "3 step.completed", "other/1 job.started")
	o.expectStatus("chat", "1 1 0 0")
}

func TestNotificationsOfAJobThatIsMadeAgainMeanwhile(t *testing.T) {
	hook := newWebhook(t)
	o := newOffice(t, newReceivedJob(hook.as("chat")))
	r := o.notifications()
	o.happens(jobStarted)
	hook.answer = func(http.ResponseWriter, *http.Request) {
		job := newReceivedJob(hook.as("chat"))
		job.UID = "other"
		o.cached = job
	}
	o.expectResult("while an attempt is made", o.tell(r, "chat"), 0)
	if o.applies != 0 {
		t.Error("what became of the old job was written to the new one")
	}
	o.cached = nil
	hook.fails(0)
	o.tell(o.notifications(), "chat") // to whom it is as if nothing had been sent
	o.expectStatus("chat", "1 1 0 0")
}

func TestNotificationsAreForgottenWithTheJob(t *testing.T) {
	hook := newWebhook(t)
	o := newOffice(t, newReceivedJob(hook.as("chat")))
	r := o.notifications()
	o.happens(jobStarted)
	o.applyErr = []error{errBroken}
	o.tell(r, "chat")
	o.tell(r, "somebody") // who is in no config
	if len(r.deliveries) != 1 {
		t.Errorf("%d deliveries are remembered, want 1", len(r.deliveries))
	}
	job := o.job()
	job.Finalizers = nil
	if err := errors.Join(o.store.Update(t.Context(), job), o.store.Delete(t.Context(), job)); err != nil {
		t.Fatal(err)
	}
	o.expectResult("a job that is gone", o.tell(r, "chat"), 0)
	if len(r.deliveries) != 0 || r.retry.NumRequeues(requestFor("chat")) != 0 {
		t.Errorf("%d deliveries are remembered, want none", len(r.deliveries))
	}
}

// The pass of the job's own reconciler would end in a conflict.
func TestNotificationsMakeTheJobWaitForItsCache(t *testing.T) {
	for _, tc := range []struct {
		phase v1beta1.Phase
		waits bool
	}{{v1beta1.PhaseActive, true}, {v1beta1.PhaseFailed, false}} {
		hook := newWebhook(t)
		o := newOffice(t, newReceivedJob(hook.as("chat"), hook.as("other")))
		r := o.notifications()
		r.Jobs = o.jobs()
		o.happens(jobStarted)
		job := o.job()
		job.Status.Phase = tc.phase
		if err := o.store.Status().Update(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		before := o.job()
		o.tell(r, "chat")
		if wait := r.Jobs.freshness.wait(before); (wait > 0) != tc.waits {
			t.Errorf("%s: the job's reconciler waits %s for the cache, want a wait: %t", tc.phase, wait, tc.waits)
		}
		if wait := r.Jobs.freshness.wait(o.job()); wait != 0 || len(r.Jobs.freshness.written) != 0 {
			t.Errorf("%s: the job's reconciler waits %s once the cache has it", tc.phase, wait)
		}
	}
}

// The end of the process is not the receiver's fault.
func TestNotificationsToldToStop(t *testing.T) {
	hook := newWebhook(t)
	o := newOffice(t, newReceivedJob(hook.as("chat")))
	r := o.notifications()
	o.happens(jobStarted, stepStarted)
	ctx, cancel := context.WithCancel(t.Context())
	hook.answer = func(_ http.ResponseWriter, r *http.Request) {
		if len(hook.bodies) == 2 {
			cancel()
			<-r.Context().Done()
		}
	}
	if _, err := r.Reconcile(ctx, requestFor("chat")); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want that of the context", err)
	}
	o.expectStatus("chat", "0 0 0 0")
	o.tell(r, "chat") // were it not the end
	hook.expect(t, "then", "1 job.started", "2 step.started", "2 step.started")
	o.expectStatus("chat", "2 2 0 0")
}

func TestNotificationsOfAClusterWithoutVersion(t *testing.T) {
	hook := newWebhook(t)
	o := newOffice(t, newReceivedJob(hook.as("chat")))
	o.remove(newClusterVersion())
	o.happens(jobStarted)
	o.tell(o.notifications(), "chat")
	if !strings.Contains(hook.bodies[0], `"cluster":{}`) {
		t.Errorf("the event is %s, want it without the ID of the cluster", hook.bodies[0])
	}
	o.api.fault = failing("get openshift.ClusterVersion", 1, errBroken)
	o.happens(stepStarted)
	r := o.notifications()
	if _, err := r.Reconcile(t.Context(), requestFor("chat")); err == nil {
		t.Error("there is no error, though the cache failed")
	}
	o.tell(r, "chat")
	hook.expect(t, "then", "1 job.started", "2 step.started")
}

// What is recorded of a receiver is its own: somebody else's claim to it does not stop it, and it touches nothing else.
func TestNotificationsRecordOnlyTheirOwn(t *testing.T) {
	hook := newWebhook(t)
	o := newOffice(t, newReceivedJob(hook.as("chat")))
	o.happens(jobStarted)
	job := o.job()
	job.Status.Blockers = []v1beta1.Blocker{{Code: "NodeDraining", Object: "Node/a", Since: metav1.NewTime(startAfter)}}
	job.Status.Notifications.Receivers = []v1beta1.NotificationReceiverStatus{{Name: "chat", Delivered: 9}, {Name: "other", Cursor: 7}}
	if err := o.store.Status().Update(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	before := o.job()
	o.tell(o.notifications(), "chat")
	after := o.job()
	o.expectStatus("chat", "1 10 0 0")
	o.expectStatus("other", "7 0 0 0")
	after.Status.Notifications.Receivers = before.Status.Notifications.Receivers
	if !apiequality.Semantic.DeepEqual(before.Status, after.Status) || !apiequality.Semantic.DeepEqual(before.Spec, after.Spec) {
		t.Errorf("more than the receiver changed: %+v", after)
	}
}
