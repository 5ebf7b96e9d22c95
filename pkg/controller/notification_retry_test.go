// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/notify"
)

func TestNotificationsAreRetriedWithBackoff(t *testing.T) {
	hook := newWebhook(t)
	o := newOffice(t, newReceivedJob(hook.as("chat")))
	r := o.notifications()
	hook.fails(http.StatusInternalServerError)
	o.happens(jobStarted, stepStarted)
	o.expectResult("the first failure", o.tell(r, "chat"), time.Second)
	o.expectStatus("chat", "0 0 2 0 the receiver answers 500 Internal Server Error")
	o.elapse(900 * time.Millisecond)
	o.expectResult("before it is due", o.tell(r, "chat"), 100*time.Millisecond)
	hook.expect(t, "before it is due", "1 job.started")
	o.elapse(100 * time.Millisecond)
	writes := o.applies
	o.expectResult("the second failure", o.tell(r, "chat"), 2*time.Second)
	if o.applies != writes {
		t.Error("the same error was written again")
	}
	for range 8 {
		o.elapse(10 * time.Minute)
		o.tell(r, "chat")
	}
	o.elapse(time.Minute)
	o.expectResult("later", o.tell(r, "chat"), time.Minute) // of four that are left
	if got := len(hook.attempts(t)); got != 10 {
		t.Errorf("there were %d attempts, want 10", got)
	}
	if got := strings.Count(o.logged.String(), "could not be delivered"); got != 1 {
		t.Errorf("the same error is in the log %d times, want once:\n%s", got, o.logged.String())
	}
	hook.fails(0)
	o.elapse(4 * time.Minute)
	o.expectResult("the receiver is back", o.tell(r, "chat"), 0)
	if !strings.Contains(o.logged.String(), "takes notifications again") {
		t.Errorf("the log does not tell that the receiver is back:\n%s", o.logged.String())
	}
	o.expectStatus("chat", "2 2 0 0")
	hook.fails(http.StatusBadGateway)
	o.happens(stepCompleted)
	o.expectResult("it fails anew", o.tell(r, "chat"), time.Second)
	o.expectStatus("chat", "2 2 1 0 the receiver answers 502 Bad Gateway")
}

func TestNotificationsWaitAsLongAsTheReceiverAsks(t *testing.T) {
	hook := newWebhook(t)
	o := newOffice(t, newReceivedJob(hook.as("chat")))
	r := o.notifications()
	hook.answer = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "40")
		w.WriteHeader(http.StatusTooManyRequests)
	}
	o.happens(jobStarted)
	o.expectResult("told to wait", o.tell(r, "chat"), 40*time.Second)
	o.elapse(-time.Hour)
	o.expectResult("the clock is set back", o.tell(r, "chat"), 40*time.Second)
	hook.fails(0)
	o.elapse(40 * time.Second)
	o.expectResult("in time", o.tell(r, "chat"), 0)
	o.expectStatus("chat", "1 1 0 0")
}

// What was delivered before a failure is not sent again.
func TestNotificationsStopAtTheFirstFailure(t *testing.T) {
	hook := newWebhook(t)
	o := newOffice(t, newReceivedJob(hook.as("chat", "job.*", "step.completed"), hook.as("all")))
	r := o.notifications()
	hook.answer = func(w http.ResponseWriter, _ *http.Request) {
		if len(hook.bodies) == 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}
	o.happens(jobStarted, stepStarted, stepStarted, stepCompleted, jobSucceeded)
	o.expectResult("the second one fails", o.tell(r, "chat"), time.Second)
	o.expectStatus("chat", "3 1 2 0 the receiver answers 503 Service Unavailable")
	o.elapse(time.Second)
	o.tell(r, "chat")
	hook.expect(t, "in the end", "1 job.started", "4 step.completed", "4 step.completed", "5 job.succeeded")
	o.expectStatus("chat", "5 3 0 0")
}

func TestNotificationsHangAlone(t *testing.T) {
	hanging, quick := newWebhook(t), newWebhook(t)
	o := newOffice(t, newReceivedJob(hanging.as("hanging"), quick.as("quick")))
	r := o.notifications()
	o.happens(jobStarted)
	arrived, release := make(chan struct{}), make(chan struct{})
	hanging.answer = func(http.ResponseWriter, *http.Request) {
		close(arrived)
		<-release
	}
	done := make(chan error, 1)
	go func() {
		_, err := r.Reconcile(t.Context(), requestFor("hanging"))
		done <- err
	}()
	<-arrived
	o.expectResult("the other receiver", o.tell(r, "quick"), 0)
	o.expectStatus("quick", "1 1 0 0")
	o.expectStatus("hanging", "0 0 0 0")
	close(release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	o.expectStatus("hanging", "1 1 0 0")
	o.expectStatus("quick", "1 1 0 0")
}

func TestNotificationsCountWhatIsLost(t *testing.T) {
	hook := newWebhook(t)
	o := newOffice(t, newReceivedJob(hook.as("chat")))
	r := o.notifications()
	o.happens(jobStarted)
	o.tell(r, "chat")
	hook.fails(http.StatusBadGateway)
	o.happens(slices.Repeat([]v1beta1.NotificationType{stepStarted}, 300)...)
	o.tell(r, "chat")
	o.expectStatus("chat", "45 1 256 44 the receiver answers 502 Bad Gateway")
	o.elapse(time.Hour)
	o.tell(r, "chat")
	o.expectStatus("chat", "45 1 256 44 the receiver answers 502 Bad Gateway")
	hook.fails(0)
	o.elapse(time.Hour)
	for result := o.tell(r, "chat"); result.RequeueAfter > 0; result = o.tell(r, "chat") {
		if result.RequeueAfter != time.Millisecond {
			t.Fatalf("got result %v, want the next batch at once", result)
		}
	}
	o.expectStatus("chat", "301 257 0 44")
	if got := hook.attempts(t); got[3] != "46 step.started" || got[len(got)-1] != "301 step.started" || len(got) != 3+256 {
		t.Errorf("the receiver was sent %d, beginning with %q, want the 256 that are left", len(got), got[:5])
	}
}

// A crash repeats what is not recorded, so that a batch is small.
func TestNotificationsAreRecordedInBatches(t *testing.T) {
	for _, tc := range []struct {
		reason string
		takes  time.Duration
		want   []int
	}{
		{"a quick receiver", 0, []int{32, 64, 70}},
		{"a slow receiver", 8 * time.Second, []int{4, 8, 12}},
		{"the clock is set back", -time.Hour, []int{1, 2, 3}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			hook := newWebhook(t)
			o := newOffice(t, newReceivedJob(hook.as("chat")))
			r := o.notifications()
			hook.answer = func(http.ResponseWriter, *http.Request) { o.elapse(tc.takes) }
			o.happens(slices.Repeat([]v1beta1.NotificationType{stepStarted}, 70)...)
			for i, want := range tc.want {
				result := o.tell(r, "chat")
				if got := int(notify.ReceiverStatus(o.job(), "chat").Delivered); got != want {
					t.Errorf("after batch %d %d are recorded, want %d", i+1, got, want)
				}
				if more := want < 70; (result.RequeueAfter > 0) != more {
					t.Errorf("after batch %d got result %v, want another one: %t", i+1, result, more)
				}
			}
		})
	}
}

// Turns come in groups: they are recorded together.
func TestNotificationsAreRecordedTogether(t *testing.T) {
	hook := newWebhook(t)
	o := newOffice(t, newReceivedJob(hook.as("chat")))
	r := o.notifications()
	r.delay = recordDelay
	for i, kind := range []v1beta1.NotificationType{jobStarted, stepStarted} {
		o.happens(kind)
		o.expectResult("it is delivered", o.tell(r, "chat"), recordDelay-time.Duration(i)*recordDelay/4)
		o.elapse(recordDelay / 4)
	}
	if o.applies != 0 {
		t.Errorf("got %d writes at once", o.applies)
	}
	o.elapse(recordDelay)
	for range 2 {
		o.expectResult("it is recorded", o.tell(r, "chat"), 0)
	}
	if o.applies != 1 {
		t.Errorf("got %d writes, want one", o.applies)
	}
	o.expectStatus("chat", "2 2 0 0")
}
