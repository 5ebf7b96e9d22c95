// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/test/receiver"
)

// expectStory judges what is told of an upgrade with one hook that fails at its start.
func (c *cluster) expectStory(job *v1beta1.UpgradeJob, events []receiver.Received) {
	c.t.Helper()
	var turns, completed []string
	seen := map[v1beta1.NotificationType]int{}
	for _, r := range events {
		n := newsIn(r)
		seen[typeOf(r)]++
		switch kind := typeOf(r); {
		case kind == v1beta1.NotificationStepCompleted:
			completed = append(completed, n.Condition)
		case kind == v1beta1.NotificationHookFailed:
			if !strings.Contains(n.Message, noTicket) {
				c.t.Errorf("the failure of the hook is told as %q", n.Message)
			}
		case strings.HasPrefix(string(kind), "job.") && kind != v1beta1.NotificationJobWaiting:
			turns = append(turns, fmt.Sprintf("%s in %s", kind, n.Phase))
		}
	}
	if got, want := strings.Join(completed, " "), strings.Join(stepsInOrder, " "); got != want {
		c.t.Errorf("the steps that were completed are\n%s, want\n%s", got, want)
	}
	if got, want := strings.Join(turns, ", "), "job.created in Pending, job.started in Active, job.succeeded in Succeeded"; got != want {
		c.t.Errorf("the turns of the job are %s, want %s", got, want)
	}
	for kind, want := range map[v1beta1.NotificationType]int{v1beta1.NotificationHookFailed: 1, v1beta1.NotificationHookSucceeded: 2, v1beta1.NotificationStepFailed: 0, v1beta1.NotificationJobFailed: 0} {
		if seen[kind] != want {
			c.t.Errorf("there are %d of %s, want %d", seen[kind], kind, want)
		}
	}
	if last := newsIn(events[len(events)-1]); last.Phase != job.Status.Phase {
		c.t.Errorf("the last event is of phase %s", last.Phase)
	}
}

// expectEnvelope judges what is the same in all events of a job.
func (c *cluster) expectEnvelope(job *v1beta1.UpgradeJob, r receiver.Received, sequence int) {
	c.t.Helper()
	path := fmt.Sprintf("/apis/managedupgrade.appuio.io/v1beta1/namespaces/%s/upgradejobs/%s", job.Namespace, job.Name)
	e, n := r.Event, newsIn(r)
	want := map[string][2]string{
		"specversion":     {e.SpecVersion(), "1.0"},
		"source":          {e.Source(), path},
		"subject":         {e.Subject(), job.Name},
		"datacontenttype": {e.DataContentType(), "application/json"},
		"sequence":        {fmt.Sprint(e.Extensions()["sequence"]), fmt.Sprintf("%010d", sequence)},
		"content type":    {strings.Split(r.Header.Get("Content-Type"), ";")[0], "application/cloudevents+json"},
		"authorization":   {r.Header.Get("Authorization"), authorization},
		"job":             {fmt.Sprint(n.Job), fmt.Sprint(struct{ Namespace, Name, UID string }{job.Namespace, job.Name, string(job.UID)})},
		"cluster":         {n.Cluster.ID, string(c.version().Spec.ClusterID)},
		"link":            {n.Links.Job, path},
	}
	for what, pair := range want {
		if pair[0] != pair[1] {
			c.t.Errorf("event %d: %s is %q, want %q", sequence, what, pair[0], pair[1])
		}
	}
	if !strings.HasPrefix(e.Type(), v1beta1.NotificationTypePrefix) || n.Message == "" || n.Reason == "" || n.Phase == "" || n.Links.Describe == "" {
		c.t.Errorf("event %d (%s) is not complete: %+v", sequence, e.Type(), n)
	}
	if n.Version == nil || *n.Version != *job.Spec.DesiredVersion || (n.From != "" && n.From != installed) {
		c.t.Errorf("event %d: from %q to %+v", sequence, n.From, n.Version)
	}
	if (n.From == "") != (n.Phase == v1beta1.PhasePending) {
		c.t.Errorf("event %d in phase %s: from %q", sequence, n.Phase, n.From)
	}
	if e.Time().Before(job.CreationTimestamp.Time) || e.Time().After(time.Now()) {
		c.t.Errorf("event %d is of %s", sequence, e.Time())
	}
}

// expectEvents expects that the Kubernetes Events of a job tell what the receivers were told, each of it once. That it was
// created is no news to who looks at the job.
func (c *cluster) expectEvents(job *v1beta1.UpgradeJob, events []receiver.Received) {
	c.t.Helper()
	for _, r := range events[1:] {
		n := newsIn(r)
		eventType := corev1.EventTypeNormal
		if typeOf(r) == v1beta1.NotificationHookFailed {
			eventType = corev1.EventTypeWarning
		}
		c.told(job, eventType, "", n.Message)
	}
	got := c.eventsAbout(job.UID)
	once := map[string]bool{}
	for _, e := range got {
		key := e.Reason + "/" + e.Action + "/" + e.Note
		if once[key] || e.Series != nil {
			c.t.Errorf("the Event %s is repeated: %+v", key, e.Series)
		}
		once[key] = true
	}
	if len(got) != len(events[1:]) {
		c.t.Errorf("there are %d Events for %d transitions", len(got), len(events[1:]))
	}
}
