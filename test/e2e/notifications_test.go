// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/test/receiver"
)

// Everything of a run in which nothing goes wrong: who wants all gets all, once and in order, and the Kubernetes Events
// of the job say the same. Who wants outcomes only gets these.
func TestNotificationsArriveOnceAndInOrder(t *testing.T) {
	c := newCluster(t)
	create(c, aHook(at(v1beta1.HookEventStart), failing(noTicket)))
	create(c, aHook(hookNamed("report"), at(v1beta1.HookEventCreate, v1beta1.HookEventSuccess)))
	all, some := c.aReceiver(), c.aReceiver()
	c.startOperator()
	job := create(c, aJob(notifying(c.knownAs("all", all), c.knownAs("some", some, "job.*", "hook.failed"))))
	c.wait(job, succeeded(), withoutFinalizers())
	events := c.awaits(all, whole(job), onceEach)
	c.expectStory(job, events)
	for i, r := range events {
		c.expectEnvelope(job, r, i+1)
	}

	var wanted []string
	for _, r := range events {
		if kind := typeOf(r); strings.HasPrefix(string(kind), "job.") || kind == v1beta1.NotificationHookFailed {
			wanted = append(wanted, r.Event.ID())
		}
	}
	filtered := c.awaits(some, atLeast(len(wanted)))
	for i, r := range filtered {
		if i >= len(wanted) || r.Event.ID() != wanted[i] {
			t.Errorf("the receiver with a filter got as number %d %s (%s), want of all %v", i+1, r.Event.ID(), r.Event.Type(), wanted)
		}
	}
	c.wait(job, delivered("all", len(events)), delivered("some", len(wanted)))
	c.expectEvents(job, events)
	c.keepsSecrets(secretInURL, secretInHeader)
}

// The receiver is not there while the cluster is upgraded. That delays nothing, and nothing is lost.
func TestNotificationsOutliveAReceiverThatIsAway(t *testing.T) {
	c := newCluster(t)
	r := c.aReceiver()
	r.Stop()
	c.startOperator()
	began := time.Now()
	job := c.wait(create(c, aJob(notifying(c.knownAs("chat", r)))), succeeded(), withoutFinalizers())
	took := time.Since(began)
	c.upgradedOnce(job)
	c.wait(job, notDelivered("chat", "refused"))
	if err := r.Restart(); err != nil {
		t.Fatal(err)
	}
	events := c.awaits(r, whole(job), onceEach)
	c.wait(job, delivered("chat", len(events)))

	// A job that notifies nobody takes as long.
	c.change(offering("4.18.3"))
	c.offers("4.18.3")
	began = time.Now()
	c.wait(create(c, aJob(named("silent"), to("4.18.3"))), succeeded(), withoutFinalizers())
	if silent := time.Since(began); took > silent+2*time.Second {
		t.Errorf("with a receiver that is away the upgrade took %s, without one %s", took, silent)
	}
	c.keepsSecrets(secretInURL, secretInHeader)
}

// The receiver misbehaves in turn in every way in which it notices that there is somebody.
func TestNotificationsReachAReceiverThatFails(t *testing.T) {
	c := newCluster(t)
	r, unstable := c.aReceiver(), c.aReceiver()
	const failures = 2
	r.FailWith(500, failures)
	unstable.CloseConnections(2) // it has taken the event, which the sender cannot know
	c.startOperator()
	job := create(c, aJob(notifying(c.knownAs("failing", r), c.knownAs("unstable", unstable))))
	c.when(job, notDelivered("failing", "500"))
	c.wait(job, succeeded(), withoutFinalizers())
	events := c.awaits(r, whole(job), onceEach)
	if got, want := r.Attempts(), len(events)+failures; got != want {
		t.Errorf("there were %d attempts, want %d", got, want)
	}
	repeated := c.awaits(unstable, whole(job))
	if len(repeated) != len(events)+2 {
		t.Errorf("of %d events with two cuts %d have arrived", len(events), len(repeated))
	}
	for _, again := range repeated[:3] {
		if again.Event.ID() != events[0].Event.ID() {
			t.Errorf("the event that was cut off is followed by %s", again.Event.ID())
		}
	}
	c.wait(job, delivered("failing", len(events)), delivered("unstable", len(events)))
	c.keepsSecrets(secretInURL, secretInHeader)
}

// One receiver that answers nothing keeps neither the upgrade nor another receiver waiting.
func TestNotificationsPassAReceiverThatHangs(t *testing.T) {
	c := newCluster(t)
	quick, hangs := c.aReceiver(), c.aReceiver()
	hangs.Hang(-1)
	c.startOperator()
	job := create(c, aJob(notifying(c.knownAs("hangs", hangs), c.knownAs("quick", quick))))
	c.wait(job, succeeded(), withoutFinalizers())
	ended := time.Now()
	events := c.awaits(quick, whole(job), onceEach)
	for _, r := range events {
		if late := r.Time.Sub(r.Event.Time()); late > 3*promptness { // times of a transition are in whole seconds
			t.Errorf("the quick receiver got %s after %s", r.Event.Type(), late)
		}
	}
	c.wait(job, delivered("quick", len(events)))
	if late := time.Since(ended); late > 2*promptness {
		t.Errorf("the quick receiver had everything %s after the end", late)
	}
	if n := len(hangs.Events()); n > 0 {
		t.Errorf("the receiver that hangs has taken %d events", n)
	}
	hangs.Release()
	c.awaits(hangs, whole(job))
	c.wait(job, delivered("hangs", len(events)))
}

// A redirect to somebody else would give the secrets away.
func TestNotificationsFollowNoRedirectToAnotherHost(t *testing.T) {
	c := newCluster(t)
	r, stranger := c.aReceiver(), c.aReceiver()
	r.RedirectTo(stranger.URL()+secretPath, 307)
	c.startOperator()
	moved := c.knownAs("moved", r)
	edit(c, aSecret("moved", nil), func(s *corev1.Secret) { // nor is it the stranger's certificate that keeps the sender from it
		s.Data["ca.crt"] = append(s.Data["ca.crt"], stranger.CA()...)
	})
	job := create(c, aJob(notifying(moved)))
	c.wait(job, notDelivered("moved", "redirect"))
	c.wait(job, succeeded())
	if n := stranger.Attempts(); n > 0 {
		t.Errorf("the stranger got %d requests", n)
	}
	r.Release()
	events := c.awaits(r, whole(job), onceEach)
	c.wait(job, delivered("moved", len(events)), withoutFinalizers())
	if n := stranger.Attempts(); n > 0 {
		t.Errorf("the stranger got %d requests", n)
	}
	c.keepsSecrets(secretInURL, secretInHeader, strings.TrimPrefix(stranger.URL(), "https://"))
}

// The Secrets are created after the job, and at first with a header that the receiver does not take.
func TestNotificationsGoOnWhenTheirSecretsAreMended(t *testing.T) {
	const wrong = "Bearer another-marker"
	c := newCluster(t)
	r := c.aReceiver()
	c.startOperator()
	job := create(c, aJob(notifying(v1beta1.NotificationReceiver{
		URLFrom: &v1beta1.SecretKey{Name: "late", Key: "url"}, CAFrom: &v1beta1.SecretKey{Name: "late", Key: "ca"}, HeadersFrom: &v1beta1.SecretName{Name: "late-headers"},
	})))
	const name = "receiver-1" // by its place
	c.wait(job, notDelivered(name, "Secret", "late"))
	where := create(c, aSecret("late", map[string]string{"url": r.URL() + secretPath, "ca": string(r.CA())}))
	headers := create(c, aSecret("late-headers", map[string]string{"Authorization": wrong}))
	c.atEnd = append(c.atEnd, func() { c.remove(where); c.remove(headers) })
	c.wait(job, notDelivered(name, "401"))
	edit(c, headers, func(s *corev1.Secret) { s.Data["Authorization"] = []byte(authorization) })
	c.wait(job, succeeded(), withoutFinalizers())
	events := c.awaits(r, whole(job), onceEach)
	c.wait(job, delivered(name, len(events)))
	c.keepsSecrets(secretInURL, secretInHeader, "another-marker", strings.TrimPrefix(r.URL(), "https://"))
}

// The operator is killed while it notifies, again and again.
func TestNotificationsAreNotLostWhenTheOperatorIsKilled(t *testing.T) {
	c := newClusterFor(t, 2*patience)
	r := c.aReceiver()
	running := c.startOperator()
	job := create(c, aJob(notifying(c.knownAs("chat", r))))
	c.awaits(r, atLeast(1))
	for range 5 {
		n := len(r.Events())
		c.awaits(r, func(events []receiver.Received) error {
			if len(events) == n && typeOf(events[n-1]) != v1beta1.NotificationJobSucceeded {
				return errors.New("there is no other event")
			}
			return nil
		})
		running.Kill()
		running = c.startOperator()
	}
	c.wait(job, succeeded(), withoutFinalizers())
	events := c.awaits(r, whole(job))
	once, err := distinct(events)
	if err != nil {
		t.Error(err)
	}
	t.Logf("%d events, %d of them repeats", len(events), len(events)-len(once))
	c.wait(job, func(job *v1beta1.UpgradeJob) error {
		got := receiverOf(job, "chat")
		if got.Pending != 0 || got.LastError != "" || got.Lost != 0 || got.Cursor != int64(len(once)) {
			return errors.New(fmt.Sprint("the job says ", got))
		}
		return nil
	})
	c.upgradedOnce(job)
}
