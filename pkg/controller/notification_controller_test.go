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
	o.expectResult("the write fails", o.tell(r, "chat"), minBackoff)
	o.expectStatus("chat", "0 0 0 0")
	o.happens(stepStarted)
	o.expectResult("it fails again", o.tell(r, "chat"), 2*minBackoff)
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
	hook.fails(0)
	o.elapse(4 * time.Minute)
	o.expectResult("the receiver is back", o.tell(r, "chat"), 0)
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

// What a receiver does not want costs few writes, but its cursor must not hold the outbox up.
func TestNotificationsThatNobodyWantsCostFewWrites(t *testing.T) {
	hook, all := newWebhook(t), newWebhook(t)
	o := newOffice(t, newReceivedJob(hook.as("outcome", "job.succeeded"), all.as("all")))
	r := o.notifications()
	for range 100 {
		o.happens(stepStarted)
		o.tell(r, "outcome")
		o.tell(r, "all")
	}
	if writes := o.applies - 100; writes != 100/maxCursorLag {
		t.Errorf("the filtered receiver cost %d writes for 100 transitions, want %d", writes, 100/maxCursorLag)
	}
	if got := len(o.job().Status.Notifications.Outbox); got > 40 {
		t.Errorf("the outbox has %d transitions that everybody is done with", got)
	}
	o.happens(jobSucceeded)
	o.tell(r, "outcome")
	hook.expect(t, "the outcome", "101 job.succeeded")
	o.expectStatus("outcome", "101 1 0 0")
}

func TestNotificationsUseSecrets(t *testing.T) {
	hook := newWebhook(t)
	receiver := v1beta1.NotificationReceiver{Name: "chat", URLFrom: &v1beta1.SecretKey{Name: "chat", Key: "url"}}
	o := newOffice(t, newReceivedJob(receiver))
	r := o.notifications()
	o.happens(jobStarted)
	o.expectResult("no Secret", o.tell(r, "chat"), time.Second)
	o.expectStatus("chat", "0 0 1 0 there is no Secret chat")

	secret := newSecret("chat", map[string]string{"ca.crt": "x"})
	if err := o.store.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	o.elapse(time.Second)
	o.expectResult("no key", o.tell(r, "chat"), 2*time.Second)
	o.expectStatus("chat", "0 0 1 0 Secret chat has no key url")

	secret.Data["url"] = []byte(hook.URL + "/" + secretMarker + "\n")
	if err := o.store.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	o.elapse(2 * time.Second)
	o.expectResult("all there", o.tell(r, "chat"), 0)
	o.expectStatus("chat", "1 1 0 0")
	o.happens(stepStarted)
	o.tell(r, "chat")
	if o.reads != 3 {
		t.Errorf("the Secret was read %d times, want once for each attempt that failed and once a minute", o.reads)
	}

	hook.fails(http.StatusUnauthorized)
	o.happens(stepCompleted)
	o.expectResult("denied", o.tell(r, "chat"), time.Second)
	hook.fails(0)
	o.elapse(time.Second)
	o.tell(r, "chat")
	if o.reads != 4 {
		t.Errorf("the Secret was read %d times, want 4: the receiver did not accept what was read before", o.reads)
	}
	o.expectStatus("chat", "3 3 0 0")
	o.happens(stepCompleted)
	o.elapse(10 * time.Minute)
	o.tell(r, "chat")
	if o.reads != 5 {
		t.Errorf("the Secret was read %d times, want 5: it may have changed", o.reads)
	}
}

// Nothing that is secret gets into the log or into the status, whatever goes wrong.
func TestNotificationsKeepSecrets(t *testing.T) {
	hook := newWebhook(t)
	secret := newSecret("chat", map[string]string{
		"away":     "http://127.0.0.1:1/" + secretMarker,
		"answer":   hook.URL + "/" + secretMarker + "?token=" + secretMarker,
		"password": "https://user:" + secretMarker + "@127.0.0.1:1/",
		"nonsense": "https://127.0.0.1:1/%zz" + secretMarker,
		"scheme":   secretMarker + "://127.0.0.1:1",
	})
	headers := newSecret("headers", map[string]string{"Authorization": "Bearer " + secretMarker, "X-Bad": secretMarker + "\n" + secretMarker})
	hook.answer = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Reason", secretMarker)
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write([]byte(secretMarker))
	}
	var receivers []v1beta1.NotificationReceiver
	for key := range secret.Data {
		from := &v1beta1.SecretKey{Name: "chat", Key: key}
		receivers = append(receivers, v1beta1.NotificationReceiver{Name: key, URLFrom: from})
	}
	receivers = append(receivers,
		v1beta1.NotificationReceiver{Name: "plain", URL: hook.URL, HeadersFrom: &v1beta1.SecretName{Name: "headers"}},
		v1beta1.NotificationReceiver{Name: "header", URL: "https://127.0.0.1:1", HeadersFrom: &v1beta1.SecretName{Name: "headers"}},
		v1beta1.NotificationReceiver{Name: "ca", URL: "https://127.0.0.1:1", CAFrom: &v1beta1.SecretKey{Name: "chat", Key: "away"}},
	)
	o := newOffice(t, newReceivedJob(receivers...), secret, headers)
	r := o.notifications()
	o.happens(jobStarted)
	for _, receiver := range receivers {
		o.tell(r, receiver.Name)
		if s := notify.ReceiverStatus(o.job(), receiver.Name); s.LastError == "" || s.Delivered != 0 {
			t.Errorf("receiver %s has status %+v, want an error", receiver.Name, s)
		}
	}
	data, err := json.Marshal(o.job().Status)
	if err != nil {
		t.Fatal(err)
	}
	for where, text := range map[string]string{"status": string(data), "log": o.logged.String()} {
		if strings.Contains(text, secretMarker) || strings.Contains(text, "127.0.0.1") {
			t.Errorf("there is a secret in the %s:\n%s", where, text)
		}
	}
	if got := strings.Count(o.logged.String(), "could not be delivered"); got != len(receivers) {
		t.Errorf("%d failures are in the log, want %d:\n%s", got, len(receivers), o.logged.String())
	}
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
	o.expectResult("the cache has the old job", o.tell(r, "chat"), minBackoff)
	o.expectStatus("chat", "0 0 0 0")
	o.cached = nil
	o.expectResult("the cache has the new job", o.tell(r, "chat"), 0)
	hook.expect(t, "both jobs", "1 job.started", "2 step.started", "3 step.completed", "other/1 job.started")
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
