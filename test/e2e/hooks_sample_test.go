// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/test/environment"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// Texts that nobody but the receiver of a notification may see.
const (
	secretInURL    = "T0000-marker-of-the-url"
	secretInHeader = "marker-of-the-header"
)

// The sample of a hook that is in use applies as it is, and works.
func TestSampleOfAHookRunsAtEachOfItsEvents(t *testing.T) {
	const name = "cluster-upgrade-notify-ext"
	c := newCluster(t)
	c.startOperator()
	c.kubectl("apply", "--validate=strict", "-f", "testdata/samples/upgradejobhook.yaml")
	c.kubectl("wait", "upgradejobhook", name, "--for=condition=Ready", "--timeout=20s")
	create(c, aSecret("webhook", map[string]string{"url": "http://127.0.0.1:1/" + secretInURL}))
	create(c, aSecret("headers", map[string]string{"Authorization": secretInHeader}))
	job := create(c, aJob(labelled("upgrade-config", "cluster-upgrade"), labelled("my-var.io/info", "blue"), withSecrets, func(job *v1beta1.UpgradeJob) {
		job.Annotations = map[string]string{"note": `costs $(HOME) $$ & <"more">`}
	}))
	c.wait(job, succeeded(), withoutFinalizers())

	var events []v1beta1.HookEvent
	for _, j := range c.hookJobsOf(job) {
		events = append(events, j.event)
		c.expectSample(job, j)
	}
	slices.Sort(events) // TestHooksRunInTheOrderOfTheUpgrade is about their order
	if want := []v1beta1.HookEvent{"Create", "Finish", "Start", "Success"}; !slices.Equal(events, want) {
		t.Errorf("the hook ran at %v, want %v", events, want)
	}
	hook := aHook(hookNamed(name))
	c.eventually("the status of the hook", func() error {
		c.get(hook)
		return errors.Join(claimedBy(hook, job), lastResults(hook, job, events...))
	})
	c.keepsSecrets(secretInURL, secretInHeader)
}

// withSecrets has a job notify receivers that do not exist, by secret ways.
func withSecrets(job *v1beta1.UpgradeJob) {
	job.Spec.Config.Notifications = []v1beta1.NotificationReceiver{
		{URL: "http://127.0.0.1:1/services/" + secretInURL},
		{URLFrom: &v1beta1.SecretKey{Name: "webhook", Key: "url"}},
		{URL: "https://127.0.0.1:1/services/" + secretInURL, HeadersFrom: &v1beta1.SecretName{Name: "headers"}},
	}
}

func aSecret(name string, data map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: environment.Namespace, Name: name}, StringData: data}
}

// expectSample judges what the container of the sample was started with.
func (c *cluster) expectSample(job *v1beta1.UpgradeJob, j *hookJob) {
	c.t.Helper()
	got := c.ranIn(j.object.Name, "notify")
	image := sim.Image(offered)
	wantArgs := []string{
		"-XPOST", "-H", "Content-Type: application/json", "-d",
		fmt.Sprintf(`{"event": %q, "version": %q}`, j.event, image), "https://example.com/webhook",
	}
	if !slices.Equal(got.Args, wantArgs) {
		c.t.Errorf("at %s the arguments are %q, want %q", j.event, got.Args, wantArgs)
	}
	for variable, want := range map[string]string{
		"EVENT_name": quoted(string(j.event)), "EVENT_NAME": quoted(string(j.event)), "EVENT_REASON": got.Env["EVENT_reason"],
		"JOB_metadata_name": quoted(job.Name), "JOB_metadata_labels_my_var_io_info": `"blue"`, "JOB_metadata_labels_upgrade_config": `"cluster-upgrade"`,
		"JOB_spec_desiredVersion_image": quoted(image), "JOB_spec_desiredVersion_version": quoted(offered),
		"JOB_metadata_annotations_note": `"costs $(HOME) $$ & <\"more\">"`,
		"META_matchesDisruptiveHooks":   "false",
	} {
		if got.Env[variable] != want {
			c.t.Errorf("at %s %s is %s, want %s", j.event, variable, got.Env[variable], want)
		}
	}
	var event struct{ Name, Reason, Time, Message string }
	var seen v1beta1.UpgradeJob
	var meta map[string]any
	for variable, into := range map[string]any{"EVENT": &event, "JOB": &seen, "META": &meta} {
		if err := json.Unmarshal([]byte(got.Env[variable]), into); err != nil {
			c.t.Errorf("at %s %s is no JSON: %v", j.event, variable, err)
		}
	}
	if event.Name != string(j.event) || event.Reason == "" || event.Time == "" || event.Message == "" {
		c.t.Errorf("at %s EVENT is %+v", j.event, event)
	}
	if seen.UID != job.UID || !maps.Equal(seen.Labels, job.Labels) || meta["matchesDisruptiveHooks"] != false {
		c.t.Errorf("at %s JOB is of %s, labels %v; META is %v", j.event, seen.UID, seen.Labels, meta)
	}
}

func quoted(text string) string { return fmt.Sprintf("%q", text) }

// claimedBy expects that a hook is taken by that job, by none if it is nil.
func claimedBy(hook *v1beta1.UpgradeJobHook, job *v1beta1.UpgradeJob) error {
	switch claim := hook.Status.ClaimedBy; {
	case job == nil && claim == nil:
	case job == nil:
		return fmt.Errorf("the hook is claimed by %s, want nobody", claim.Name)
	case claim == nil || claim.Name != job.Name || claim.UID != job.UID:
		return fmt.Errorf("the hook is claimed by %+v, want %s", claim, job.Name)
	}
	return nil
}

// lastResults expects that the hook last succeeded for that job, at each of these events and at no other.
func lastResults(hook *v1beta1.UpgradeJobHook, job *v1beta1.UpgradeJob, events ...v1beta1.HookEvent) error {
	var got []v1beta1.HookEvent
	for _, result := range hook.Status.LastResults {
		got = append(got, result.Event)
		if result.UpgradeJob != job.Name || result.Status != v1beta1.HookRunSucceeded || result.Job == "" || result.Time.IsZero() {
			return fmt.Errorf("the result is %+v", result)
		}
	}
	if !slices.Equal(got, events) {
		return fmt.Errorf("there are results for %v, want %v", got, events)
	}
	return nil
}

// keepsSecrets expects that nobody can read the texts in what the operator writes: logs, Events, statuses, Jobs, pods.
func (c *cluster) keepsSecrets(texts ...string) {
	c.t.Helper()
	places := map[string]string{}
	for _, o := range c.operators {
		places[fmt.Sprintf("the log of process %d", o.PID())] = o.Log()
	}
	for _, r := range past.jobsSince(c.began) {
		places["the status of UpgradeJob "+r.object.Name+" "+r.object.ResourceVersion] = text(r.object.Status)
	}
	for _, r := range past.hookJobsSince(c.began) {
		places["Job "+r.object.Name+" "+r.object.ResourceVersion] = text(r.object)
	}
	for _, r := range past.podsSince(c.began) {
		places["pod "+r.object.Name+" "+r.object.ResourceVersion] = text(r.object)
	}
	for _, list := range []client.ObjectList{&eventsv1.EventList{}, &v1beta1.UpgradeJobHookList{}} {
		if err := env.Client.List(c.ctx, list); err != nil {
			c.t.Fatal(err)
		}
		for _, o := range objectsOf(list) {
			places[fmt.Sprintf("%T %s", o, o.GetName())] = text(o)
		}
	}
	for _, secret := range texts {
		for _, place := range slices.Sorted(maps.Keys(places)) {
			if strings.Contains(places[place], secret) {
				c.t.Errorf("%s has %q in it", place, secret)
				break // one place tells enough
			}
		}
	}
}

func text(v any) string {
	data, _ := json.Marshal(v) // what came from the API server can be encoded
	return string(data)
}
