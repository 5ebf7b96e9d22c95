// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/test/environment"
	"github.com/appuio/managed-upgrade-operator/test/receiver"
)

// secretPath is a part of an URL that only the receiver may see, as with the webhooks of chats.
const secretPath = "/services/" + secretInURL

// authorization is a header that only the receiver may see.
const authorization = "Bearer " + secretInHeader

// aReceiver starts a receiver by https that wants an authorization, until the test ends.
func (c *cluster) aReceiver() *receiver.Receiver {
	c.t.Helper()
	r, err := receiver.Start(receiver.Options{TLS: true, Headers: map[string]string{"Authorization": authorization}})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(r.Close)
	return r
}

// knownAs puts what leads to a receiver into Secrets, and returns how a job notifies it.
func (c *cluster) knownAs(name string, r *receiver.Receiver, events ...v1beta1.NotificationFilter) v1beta1.NotificationReceiver {
	c.t.Helper()
	where := create(c, aSecret(name, map[string]string{"url": r.URL() + secretPath, "ca.crt": string(r.CA())}))
	headers := create(c, aSecret(name+"-headers", map[string]string{"Authorization": authorization}))
	c.atEnd = append(c.atEnd, func() { c.remove(where); c.remove(headers) })
	return v1beta1.NotificationReceiver{
		Name: name, URLFrom: &v1beta1.SecretKey{Name: name, Key: "url"}, CAFrom: &v1beta1.SecretKey{Name: name, Key: "ca.crt"},
		HeadersFrom: &v1beta1.SecretName{Name: headers.Name}, Events: events,
	}
}

// notifying has a job notify these receivers.
func notifying(receivers ...v1beta1.NotificationReceiver) func(*v1beta1.UpgradeJob) {
	return configured(func(config *v1beta1.UpgradeJobConfig) { config.Notifications = receivers })
}

// news is what receivers read in an event.
type news struct {
	Job       struct{ Namespace, Name, UID string }
	Cluster   struct{ ID string }
	Phase     v1beta1.Phase
	Condition string
	Reason    string
	Message   string
	From      string `json:"fromVersion"`
	Version   *v1beta1.DesiredVersion
	Blockers  []v1beta1.Blocker
	Links     struct{ Job, Describe string }
}

func newsIn(r receiver.Received) news {
	var n news
	_ = json.Unmarshal(r.Event.Data(), &n) // what is not there is missed by who looks for it
	return n
}

// typeOf returns the type of an event without what all of them begin with.
func typeOf(r receiver.Received) v1beta1.NotificationType {
	return v1beta1.NotificationType(strings.TrimPrefix(r.Event.Type(), v1beta1.NotificationTypePrefix))
}

// distinct returns the events without repeats. A repeat has to say exactly the same, and must not come out of order.
func distinct(events []receiver.Received) ([]receiver.Received, error) {
	var once []receiver.Received
	var errs []error
	byID := map[string][]byte{}
	for _, r := range events {
		body, err := json.Marshal(r.Event)
		if err != nil {
			return nil, err
		}
		before, repeated := byID[r.Event.ID()]
		if !repeated {
			byID[r.Event.ID()] = body
			once = append(once, r)
			continue
		}
		if !bytes.Equal(before, body) {
			errs = append(errs, fmt.Errorf("the repeat of %s says something else:\n%s\n%s", r.Event.ID(), before, body))
		}
	}
	return once, errors.Join(errs...)
}

// whole expects all transitions of a job that has ended, in order and without a gap, from its creation to its end.
func whole(job *v1beta1.UpgradeJob) func([]receiver.Received) error {
	return func(events []receiver.Received) error {
		got, err := distinct(events)
		if err != nil {
			return err
		}
		for i, r := range got {
			if want := fmt.Sprintf("%s/%d", job.UID, i+1); r.Event.ID() != want {
				return fmt.Errorf("event %d has the id %s, want %s", i+1, r.Event.ID(), want)
			}
		}
		if want := int(job.Status.Notifications.Sequence); len(got) != want {
			return fmt.Errorf("%d of %d transitions have arrived", len(got), want)
		}
		if first := typeOf(got[0]); first != v1beta1.NotificationJobCreated {
			return fmt.Errorf("the first is %s", first)
		}
		return ended(got)
	}
}

// ended expects the end of a job, and nothing after it but the hooks that it sets going.
func ended(events []receiver.Received) error {
	end := slices.IndexFunc(events, func(r receiver.Received) bool {
		return slices.Contains([]v1beta1.NotificationType{v1beta1.NotificationJobSucceeded, v1beta1.NotificationJobFailed, v1beta1.NotificationJobSkipped}, typeOf(r))
	})
	if end < 0 {
		return errors.New("the end of the job is not told")
	}
	for _, r := range events[end+1:] {
		if !strings.HasPrefix(string(typeOf(r)), "hook.") {
			return fmt.Errorf("after the end there is %s", typeOf(r))
		}
	}
	return nil
}

// onceEach expects no repeats.
func onceEach(events []receiver.Received) error {
	got, err := distinct(events)
	if len(got) != len(events) {
		return errors.Join(err, fmt.Errorf("%d events, of which %d are repeats", len(events), len(events)-len(got)))
	}
	return err
}

// awaits waits until what has arrived is as expected in every respect.
func (c *cluster) awaits(r *receiver.Receiver, expected ...func([]receiver.Received) error) []receiver.Received {
	c.t.Helper()
	err := r.AwaitEvents(c.ctx, func(events []receiver.Received) error {
		var errs []error
		for _, e := range expected {
			errs = append(errs, e(events))
		}
		return errors.Join(errs...)
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return r.Events()
}

// atLeast expects so many events.
func atLeast(n int) func([]receiver.Received) error {
	return func(events []receiver.Received) error {
		if len(events) < n {
			return fmt.Errorf("%d events have arrived, want %d", len(events), n)
		}
		return nil
	}
}

// receiverOf returns what the job says of a receiver.
func receiverOf(job *v1beta1.UpgradeJob, name string) v1beta1.NotificationReceiverStatus {
	if job.Status.Notifications != nil {
		for _, r := range job.Status.Notifications.Receivers {
			if r.Name == name {
				return r
			}
		}
	}
	return v1beta1.NotificationReceiverStatus{}
}

// delivered expects that a receiver has got so many transitions and waits for none.
func delivered(name string, n int) expectation {
	return func(job *v1beta1.UpgradeJob) error {
		got := receiverOf(job, name)
		if got.Delivered != int64(n) || got.Pending != 0 || got.Lost != 0 || got.LastError != "" || got.LastDeliveryTime.IsZero() ||
			got.Cursor != job.Status.Notifications.Sequence {
			return fmt.Errorf("receiver %s: %+v of %d transitions, want %d delivered", name, got, job.Status.Notifications.Sequence, n)
		}
		return nil
	}
}

// notDelivered expects that delivery fails for a reason with these words, which are no secrets.
func notDelivered(name string, words ...string) expectation {
	return func(job *v1beta1.UpgradeJob) error {
		got := receiverOf(job, name)
		if got.LastError == "" || got.Pending == 0 {
			return fmt.Errorf("receiver %s: %+v, want an error", name, got)
		}
		for _, word := range words {
			if !strings.Contains(got.LastError, word) {
				return fmt.Errorf("receiver %s: the error does not say %q: %s", name, word, got.LastError)
			}
		}
		return nil
	}
}

// eventsAbout returns the Kubernetes Events about an object of ours.
func (c *cluster) eventsAbout(uid types.UID) []eventsv1.Event {
	c.t.Helper()
	list, err := c.listEvents(uid)
	if err != nil {
		c.t.Fatal(err)
	}
	return list
}

func (c *cluster) listEvents(uid types.UID) ([]eventsv1.Event, error) {
	list := &eventsv1.EventList{}
	if err := env.Client.List(c.ctx, list, client.InNamespace(environment.Namespace)); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(e eventsv1.Event) bool { return e.Regarding.UID != uid }), nil
}

// told waits for a Kubernetes Event about an object with that type, and that reason if one is given, whose note says the
// words.
func (c *cluster) told(about client.Object, eventType, reason string, words ...string) {
	c.t.Helper()
	c.eventually("the Event "+reason, func() error {
		events, err := c.listEvents(about.GetUID())
		if err != nil {
			return err
		}
		var seen []string
		for _, e := range events {
			seen = append(seen, fmt.Sprintf("%s %s: %s", e.Type, e.Reason, e.Note))
			if e.Type == eventType && (reason == "" || e.Reason == reason) && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(e.Note, w) }) {
				return nil
			}
		}
		return fmt.Errorf("no %s Event says %q; the Events are\n%s", eventType, words, strings.Join(seen, "\n"))
	})
}
