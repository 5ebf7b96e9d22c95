// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package hooks_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/hooks"
)

var tuesday = time.Date(2026, time.November, 24, 22, 0, 0, 0, time.UTC)

// upgradeJob returns a job as a hook meets it, changed by the overrides.
func upgradeJob(overrides ...func(*v1beta1.UpgradeJob)) *v1beta1.UpgradeJob {
	job := &v1beta1.UpgradeJob{
		ObjectMeta: metav1.ObjectMeta{
			Name: "weekly", Namespace: "upgrades", UID: "weekly-uid", Generation: 1,
			Labels:        map[string]string{"my-var.io/info": "blue", "größe": "7"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
		},
		Spec: v1beta1.UpgradeJobSpec{
			StartAfter: metav1.NewTime(tuesday), StartBefore: metav1.NewTime(tuesday.Add(time.Hour)),
			DesiredVersion: &v1beta1.DesiredVersion{Version: "4.18.2", Image: "quay.io/release@sha256:abc"},
		},
		Status: v1beta1.UpgradeJobStatus{
			Phase:      v1beta1.PhaseActive,
			Conditions: []metav1.Condition{{Type: "Started", Status: metav1.ConditionTrue, Reason: "Started", Message: "a < b && c > d"}},
			Steps:      []v1beta1.StepStatus{{Condition: "UpgradeCommenced", StartTime: metav1.NewTime(tuesday), Attempts: 1}},
		},
	}
	for _, override := range overrides {
		override(job)
	}
	return job
}

// seen is the environment that a container gets: the kubelet expands references in the order of the variables.
func seen(t interface{ Fatal(...any) }, event hooks.Event, job *v1beta1.UpgradeJob, meta hooks.Meta) map[string]string {
	env, err := hooks.Environment(event, job, meta)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for _, v := range env {
		values[v.Name] = expand(v.Value, values)
	}
	return values
}

// expand replaces references as the documentation of EnvVar says: $(NAME) is the variable, or stays if there is none; $$ is
// a dollar sign, so that $$(NAME) is $(NAME) and no reference.
func expand(text string, values map[string]string) string {
	return regexp.MustCompile(`\$\$|\$\([^)]*\)`).ReplaceAllStringFunc(text, func(match string) string {
		if match == "$$" {
			return "$"
		}
		if value, ok := values[match[2:len(match)-1]]; ok {
			return value
		}
		return match
	})
}

func TestExpandAsTheKubeletDoes(t *testing.T) {
	for text, want := range map[string]string{
		"$(A)": "a", "$(B)": "$(B)", "$$(A)": "$(A)", "$$$(A)": "$a", "$$$$(A)": "$$(A)",
		"$": "$", "a$": "a$", "$A": "$A", "$$": "$", "$$$": "$$", "$(A": "$(A", "$)": "$)", "$(A)$(A)": "aa", "$é": "$é",
	} {
		if got := expand(text, map[string]string{"A": "a"}); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func TestEnvironmentOfAnEvent(t *testing.T) {
	zone := time.FixedZone("CET", 3600)
	for _, tc := range []struct {
		reason string
		event  hooks.Event
		want   map[string]string
	}{
		{"all there is", hooks.Event{Name: "StepStarted/A", Time: tuesday.In(zone), Reason: "Because", Message: `a "b" < c` + "\n", Pool: "worker"}, map[string]string{
			"EVENT":      `{"name":"StepStarted/A","reason":"Because","time":"2026-11-24T22:00:00Z","message":"a \"b\" < c\n","pool":"worker","step":"A"}`,
			"EVENT_name": `"StepStarted/A"`, "EVENT_reason": `"Because"`, "EVENT_time": `"2026-11-24T22:00:00Z"`, "EVENT_message": `"a \"b\" < c\n"`,
			"EVENT_pool": `"worker"`, "EVENT_step": `"A"`,
			"EVENT_NAME": `"StepStarted/A"`, "EVENT_REASON": `"Because"`, "EVENT_TIME": `"2026-11-24T22:00:00Z"`, "EVENT_MESSAGE": `"a \"b\" < c\n"`,
		}},
		{"neither pool nor step, reason nor message", hooks.Event{Name: v1beta1.HookEventStart, Time: tuesday}, map[string]string{
			"EVENT":      `{"name":"Start","reason":"","time":"2026-11-24T22:00:00Z","message":""}`,
			"EVENT_name": `"Start"`, "EVENT_reason": `""`, "EVENT_time": `"2026-11-24T22:00:00Z"`, "EVENT_message": `""`,
			"EVENT_NAME": `"Start"`, "EVENT_REASON": `""`, "EVENT_TIME": `"2026-11-24T22:00:00Z"`, "EVENT_MESSAGE": `""`,
		}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got := seen(t, tc.event, upgradeJob(), hooks.Meta{})
			maps.DeleteFunc(got, func(name, _ string) bool { return !strings.HasPrefix(name, "EVENT") })
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("variables (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEnvironmentOfAJob(t *testing.T) {
	got := seen(t, hooks.Event{Name: v1beta1.HookEventStart, Time: tuesday}, upgradeJob(), hooks.Meta{MatchesDisruptiveHooks: true})
	maps.DeleteFunc(got, func(name, _ string) bool { return strings.HasPrefix(name, "EVENT") })
	const job = `{"apiVersion":"managedupgrade.appuio.io/v1beta1","kind":"UpgradeJob",` +
		`"metadata":{"generation":1,"labels":{"größe":"7","my-var.io/info":"blue"},"name":"weekly","namespace":"upgrades","uid":"weekly-uid"},` +
		`"spec":{"desiredVersion":{"image":"quay.io/release@sha256:abc","version":"4.18.2"},"startAfter":"2026-11-24T22:00:00Z","startBefore":"2026-11-24T23:00:00Z"},` +
		`"status":{"conditions":[{"lastTransitionTime":null,"message":"a < b && c > d","reason":"Started","status":"True","type":"Started"}],"phase":"Active",` +
		`"steps":[{"attempts":1,"condition":"UpgradeCommenced","startTime":"2026-11-24T22:00:00Z"}]}}`
	if diff := cmp.Diff(map[string]string{
		"JOB":                                job,
		"JOB_apiVersion":                     `"managedupgrade.appuio.io/v1beta1"`,
		"JOB_kind":                           `"UpgradeJob"`,
		"JOB_metadata_generation":            `1`,
		"JOB_metadata_labels_gr__e":          `"7"`,
		"JOB_metadata_labels_my_var_io_info": `"blue"`,
		"JOB_metadata_name":                  `"weekly"`,
		"JOB_metadata_namespace":             `"upgrades"`,
		"JOB_metadata_uid":                   `"weekly-uid"`,
		"JOB_spec_desiredVersion_image":      `"quay.io/release@sha256:abc"`,
		"JOB_spec_desiredVersion_version":    `"4.18.2"`,
		"JOB_spec_startAfter":                `"2026-11-24T22:00:00Z"`,
		"JOB_spec_startBefore":               `"2026-11-24T23:00:00Z"`,
		"JOB_status_conditions_0_message":    `"a < b && c > d"`,
		"JOB_status_conditions_0_reason":     `"Started"`,
		"JOB_status_conditions_0_status":     `"True"`,
		"JOB_status_conditions_0_type":       `"Started"`,
		"JOB_status_phase":                   `"Active"`,
		"JOB_status_steps_0_attempts":        `1`,
		"JOB_status_steps_0_condition":       `"UpgradeCommenced"`,
		"JOB_status_steps_0_startTime":       `"2026-11-24T22:00:00Z"`,
		"META":                               `{"matchesDisruptiveHooks":true}`,
		"META_matchesDisruptiveHooks":        `true`,
	}, got); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
}

func TestEnvironmentIsSortedAndDoesNotVary(t *testing.T) {
	job := upgradeJob(func(j *v1beta1.UpgradeJob) {
		for i := range 50 {
			j.Labels[fmt.Sprint("label-", i)], j.Labels[fmt.Sprint("label.", i)] = "a", "b"
		}
	})
	event := hooks.Event{Name: v1beta1.HookEventStart, Time: tuesday}
	first, err := hooks.Environment(event, job, hooks.Meta{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.IsSortedFunc(first, func(a, b corev1.EnvVar) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the variables are not sorted by name")
	}
	for range 20 {
		again, err := hooks.Environment(event, job, hooks.Meta{})
		if diff := cmp.Diff(first, again); diff != "" || err != nil {
			t.Fatalf("the environment varies (-first +again, error %v):\n%s", err, diff)
		}
	}
}

func TestEnvironmentTellsWhatIsAmbiguous(t *testing.T) {
	for _, tc := range []struct {
		reason string
		labels map[string]string
		want   map[string]string
		told   []string
	}{
		{"nothing is", map[string]string{"a": "1", "b": "2"}, map[string]string{"JOB_metadata_labels_a": `"1"`, "JOB_metadata_labels_b": `"2"`}, nil},
		{"of three the first is taken", map[string]string{"a_b": "1", "a.b": "2", "a-b": "3"}, map[string]string{"JOB_metadata_labels_a_b": `"3"`}, []string{"JOB_metadata_labels_a_b"}},
		{"two pairs", map[string]string{"a.b": "1", "a-b": "2", "x/y": "3", "x.y": "4"},
			map[string]string{"JOB_metadata_labels_a_b": `"2"`, "JOB_metadata_labels_x_y": `"4"`}, []string{"JOB_metadata_labels_a_b", "JOB_metadata_labels_x_y"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got := seen(t, hooks.Event{}, upgradeJob(func(j *v1beta1.UpgradeJob) { j.Labels = tc.labels }), hooks.Meta{})
			if told := metaOf(t, got).Ambiguous; !slices.Equal(told, tc.told) {
				t.Errorf("told are %v, want %v", told, tc.told)
			}
			maps.DeleteFunc(got, func(name, _ string) bool { return !strings.HasPrefix(name, "JOB_metadata_labels") })
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEnvironmentNamesSomeOfWhatIsAmbiguous(t *testing.T) {
	got := seen(t, hooks.Event{}, upgradeJob(func(j *v1beta1.UpgradeJob) {
		for i := range 100 {
			j.Labels[fmt.Sprint("a.", i)], j.Labels[fmt.Sprint("a-", i)] = "1", "2"
		}
	}), hooks.Meta{})
	if told := metaOf(t, got).Ambiguous; len(told) != 16 {
		t.Errorf("told are %d, want 16: %v", len(told), told)
	}
}

func metaOf(t interface{ Fatal(...any) }, values map[string]string) hooks.Meta {
	var meta hooks.Meta
	if err := json.Unmarshal([]byte(values["META"]), &meta); err != nil {
		t.Fatal(err)
	}
	return meta
}

func TestEnvironmentReachesTheContainerAsItIs(t *testing.T) {
	const reference = "$(META) $$(META) $$$(META) $ $$ $( $) $é price$"
	message := func(t interface{ Fatal(...any) }, text string) (alone, inEvent string) {
		values := seen(t, hooks.Event{Name: v1beta1.HookEventStart, Time: tuesday, Message: text}, upgradeJob(), hooks.Meta{})
		var event struct{ Message string }
		for in, out := range map[string]any{values["EVENT_MESSAGE"]: &alone, values["EVENT"]: &event} {
			if err := json.Unmarshal([]byte(in), out); err != nil {
				t.Fatal(err)
			}
		}
		return alone, event.Message
	}
	if alone, inEvent := message(t, reference); alone != reference || inEvent != reference {
		t.Errorf("the container sees %q and %q, want %q", alone, inEvent, reference)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`([$()]|JOB|"|\\){0,40}`)).Draw(t, "message")
		if alone, inEvent := message(t, text); alone != text || inEvent != text {
			t.Errorf("the container sees %q and %q, want %q", alone, inEvent, text)
		}
	})
}

func TestEnvironmentHasNoSecrets(t *testing.T) {
	const secret = "hunter2"
	job := upgradeJob(func(j *v1beta1.UpgradeJob) {
		j.Spec.Config.Upgrader = "OpenShift"
		j.Spec.Config.Notifications = []v1beta1.NotificationReceiver{{URL: "https://example.com/" + secret, HeadersFrom: &v1beta1.SecretName{Name: secret}}}
		j.Status.Notifications = &v1beta1.NotificationsStatus{Outbox: []v1beta1.Notice{{Message: secret}}}
		j.ManagedFields[0].Manager = secret
		j.Annotations = map[string]string{
			corev1.LastAppliedConfigAnnotation: `{"url":"` + secret + `"}`, "kapp.k14s.io/original": secret, "objectset.rio.cattle.io/applied": secret,
			"note": "kept",
		}
	})
	got := seen(t, hooks.Event{Name: v1beta1.HookEventStart, Time: tuesday}, job, hooks.Meta{})
	for name, value := range got {
		if strings.Contains(value, secret) || strings.Contains(strings.ToLower(name), "notifications") || strings.Contains(name, "managedFields") {
			t.Errorf("%s=%s must not be there", name, value)
		}
	}
	if got["JOB_metadata_annotations_note"] != `"kept"` || got["JOB_spec_config_upgrader"] != `"OpenShift"` || metaOf(t, got).Truncated != nil {
		t.Errorf("what stands beside is gone: %v", got)
	}
	if job.Spec.Config.Notifications == nil || job.Status.Notifications == nil || len(job.Annotations) != 4 {
		t.Error("the job itself was changed")
	}
}

func TestEnvironmentHidesThatThereAreSecrets(t *testing.T) {
	event := hooks.Event{Name: v1beta1.HookEventStart, Time: tuesday}
	want := seen(t, event, upgradeJob(), hooks.Meta{})
	got := seen(t, event, upgradeJob(func(j *v1beta1.UpgradeJob) {
		j.Spec.Config.Notifications = []v1beta1.NotificationReceiver{{URL: "https://example.com/"}}
		j.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}"}
	}), hooks.Meta{})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("variables (-without +with secrets):\n%s", diff)
	}
}

func TestInject(t *testing.T) {
	env := []corev1.EnvVar{{Name: "EVENT", Value: "ours"}, {Name: "JOB", Value: "ours"}}
	own := corev1.EnvVar{Name: "EVENT", Value: "$(JOB)"}
	template := &batchv1.JobTemplateSpec{}
	template.Spec.Template.Spec = corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "init"}},
		Containers:     []corev1.Container{{Name: "first", Env: []corev1.EnvVar{own}}, {Name: "second"}},
	}
	hooks.Inject(template, env)
	want := corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "init", Env: env}},
		Containers:     []corev1.Container{{Name: "first", Env: []corev1.EnvVar{env[0], env[1], own}}, {Name: "second", Env: env}},
	}
	if diff := cmp.Diff(want, template.Spec.Template.Spec); diff != "" {
		t.Errorf("containers (-want +got):\n%s", diff)
	}
	template.Spec.Template.Spec.InitContainers[0].Env[0].Value = "changed"
	if env[0].Value != "ours" || template.Spec.Template.Spec.Containers[1].Env[0].Value != "ours" {
		t.Error("containers share memory")
	}
}
