// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package hooks_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/hooks"
)

// expectFits fails if the environment is more than Linux, or a Job with some containers, can take.
func expectFits(t interface{ Errorf(string, ...any) }, event hooks.Event, job *v1beta1.UpgradeJob) {
	env, err := hooks.Environment(event, job, hooks.Meta{})
	if err != nil {
		t.Errorf("there is no environment: %v", err)
	}
	total := 0
	for _, v := range env {
		size := len(v.Name) + 1 + len(v.Value) + 1
		if size > 64<<10 {
			t.Errorf("%s has %d bytes", v.Name, size)
		}
		total += size
	}
	if total > 128<<10 {
		t.Errorf("the environment has %d bytes", total)
	}
}

func withAnnotation(key string, size int) func(*v1beta1.UpgradeJob) {
	return func(j *v1beta1.UpgradeJob) {
		metav1.SetMetaDataAnnotation(&j.ObjectMeta, key, strings.Repeat("x", size))
	}
}

func withRuns(n int) func(*v1beta1.UpgradeJob) {
	return func(j *v1beta1.UpgradeJob) {
		for i := range n {
			j.Status.HookTracker = append(j.Status.HookTracker, v1beta1.HookRun{
				HookEvent: v1beta1.HookEventMachineConfigPoolUnpause, TrackingKey: fmt.Sprint("pool-", i), UpgradeJobHook: "notify",
				Status: v1beta1.HookRunFailed, Message: strings.Repeat("no ", 50), StartTime: metav1.NewTime(tuesday),
			})
		}
	}
}

func withConditions(n, size int) func(*v1beta1.UpgradeJob) {
	return func(j *v1beta1.UpgradeJob) {
		for i := range n {
			j.Status.Conditions = append(j.Status.Conditions, metav1.Condition{Type: fmt.Sprint("Step", i), Message: strings.Repeat("w", size)})
		}
	}
}

func withLabels(n int) func(*v1beta1.UpgradeJob) {
	return func(j *v1beta1.UpgradeJob) {
		for i := range n {
			metav1.SetMetaDataLabel(&j.ObjectMeta, fmt.Sprint("label.example.com/", i), strings.Repeat("l", 63))
		}
	}
}

func TestEnvironmentOfABigJob(t *testing.T) {
	const kept, gone = true, false
	many := func(j *v1beta1.UpgradeJob) {
		for i := range 40 {
			withAnnotation(fmt.Sprint("note-", i), 5000)(j)
		}
	}
	tracker, config, labels := "JOB.status.hookTracker", "JOB.spec.config", "JOB.metadata.labels"
	steps, messages := "JOB.status.steps", "JOB.status.conditions.*.message"
	for _, tc := range []struct {
		reason    string
		change    func(*v1beta1.UpgradeJob)
		truncated []string
		variables map[string]bool
	}{
		{"big, but not too big", func(j *v1beta1.UpgradeJob) { withAnnotation("note", 40000)(j); withRuns(20)(j) }, nil,
			map[string]bool{"JOB_metadata_annotations_note": kept, "JOB_status_hookTracker_19_status": kept}},
		{"an annotation as big as they may be", func(j *v1beta1.UpgradeJob) {
			withAnnotation("note.io/big", 262144)(j)
			withAnnotation("small", 4096)(j)
			withRuns(20)(j)
		},
			[]string{"JOB.metadata.annotations.note.io/big"},
			map[string]bool{"JOB_metadata_annotations_note_io_big": gone, "JOB_metadata_annotations_small": kept, "JOB_status_hookTracker_19_status": kept}},
		{"JOB alone is too big", func(j *v1beta1.UpgradeJob) { withAnnotation("a.b", 33000)(j); withAnnotation("a-b", 33000)(j) }, // but one variable for both
			[]string{"JOB.metadata.annotations.a-b", "JOB.metadata.annotations.a.b"}, map[string]bool{"JOB_status_steps_0_condition": kept}},
		{"many big annotations", many, []string{"JOB.metadata.annotations"}, map[string]bool{"JOB_metadata_annotations_note_0": gone, "JOB_metadata_labels_my_var_io_info": kept}},
		{"as many runs as there may be", withRuns(v1beta1.MaxHookRuns), []string{tracker}, map[string]bool{"JOB_status_hookTracker_0_status": gone, "JOB_status_steps_0_condition": kept}},
		{"long messages", withConditions(60, 1024), []string{steps, messages},
			map[string]bool{"JOB_status_steps_0_condition": gone, "JOB_status_conditions_60_message": kept}},
		{"more conditions than anybody reads", func(j *v1beta1.UpgradeJob) {
			withConditions(600, 10)(j)
			withAnnotation("note", 10)(j)
			j.Finalizers, j.OwnerReferences = []string{"f"}, []metav1.OwnerReference{{Name: "o"}}
			j.Status.ResumedRequests = []v1beta1.ResumedRequest{{Request: "r"}}
			j.Status.Blockers = []v1beta1.Blocker{{Code: "c", Message: strings.Repeat("m", 300), ClearsWhen: strings.Repeat("w", 300)}}
			j.Spec.Config.Upgrader = "OpenShift"
		}, []string{
			steps, "JOB.status.resumedRequests", "JOB.status.blockers.*.message", "JOB.status.blockers.*.clearsWhen", "JOB.metadata.annotations",
			"JOB.metadata.ownerReferences", "JOB.metadata.finalizers", "JOB.status.blockers", config, labels, "JOB.status.conditions",
		}, map[string]bool{"JOB_status_conditions_0_type": gone, "JOB_spec_desiredVersion_image": kept, "JOB_status_phase": kept}},
		{"more labels than anybody needs", withLabels(1000), []string{steps, labels},
			map[string]bool{"JOB_metadata_labels_my_var_io_info": gone, "JOB_status_conditions_0_type": kept}},
		{"what no API server takes", func(j *v1beta1.UpgradeJob) {
			j.Status.FromVersion = strings.Repeat("\x01", 1<<17)
			j.GenerateName = strings.Repeat("g", 1<<17)
		},
			[]string{steps, labels, "JOB.status.conditions", "JOB"},
			map[string]bool{"JOB_metadata_name": kept, "JOB_spec_desiredVersion_image": kept, "JOB_status_fromVersion": kept, "JOB_metadata_generateName": gone}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			event, job := hooks.Event{Name: v1beta1.HookEventStart, Time: tuesday}, upgradeJob(tc.change)
			expectFits(t, event, job)
			got := seen(t, event, job, hooks.Meta{})
			if truncated := metaOf(t, got).Truncated; !slices.Equal(truncated, tc.truncated) {
				t.Errorf("truncated are %v, want %v", truncated, tc.truncated)
			}
			for name, want := range tc.variables {
				if _, there := got[name]; there != want {
					t.Errorf("%s is there: %t, want %t", name, there, want)
				}
			}
			var whole v1beta1.UpgradeJob
			if err := json.Unmarshal([]byte(got["JOB"]), &whole); err != nil || whole.Name != "weekly" {
				t.Errorf("JOB cannot be read: %v\n%.200s", err, got["JOB"])
			}
		})
	}
}

func TestEnvironmentOfABigEvent(t *testing.T) {
	long := strings.Repeat("$é\n", 1<<16)
	event := hooks.Event{Name: v1beta1.HookEvent("StepStarted/" + long), Time: tuesday, Reason: long, Message: long, Pool: long}
	expectFits(t, event, upgradeJob())
	got := seen(t, event, upgradeJob(), hooks.Meta{Truncated: []string{"before"}})
	if told, want := metaOf(t, got).Truncated, []string{"before", "EVENT.name", "EVENT.reason", "EVENT.message", "EVENT.pool", "EVENT.step"}; !slices.Equal(told, want) {
		t.Errorf("truncated are %v, want %v", told, want)
	}
	if !strings.HasSuffix(got["EVENT_MESSAGE"], `..."`) {
		t.Errorf("the message ends in %q, want a mark", got["EVENT_MESSAGE"][len(got["EVENT_MESSAGE"])-10:])
	}
}

func TestEnvironmentLeavesTheCallersMetaAlone(t *testing.T) {
	memory := make([]string, 4)
	job := upgradeJob(withAnnotation("note", 262144), func(j *v1beta1.UpgradeJob) { j.Labels = map[string]string{"a.b": "1", "a-b": "2"} })
	if _, err := hooks.Environment(hooks.Event{}, job, hooks.Meta{Truncated: memory[:0:2], Ambiguous: memory[2:2]}); err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(memory, func(s string) bool { return s != "" }) {
		t.Errorf("the caller's memory was written to: %q", memory)
	}
}

func TestEnvironmentAlwaysFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int{0, 1, 20, 300, 5000, 20000})
		letter := rapid.SampledFrom([]string{"a", "\"", "$", "\x01", "é", "\xff", "<"})
		text := func(name string) string {
			return strings.Repeat(letter.Draw(t, name+" letter"), size.Draw(t, name+" size"))
		}
		count := func(name string) int { return rapid.SampledFrom([]int{0, 1, 50}).Draw(t, name) }
		job := upgradeJob(withRuns(count("runs")), withLabels(count("labels")), withConditions(count("conditions"), rapid.IntRange(0, 1024).Draw(t, "words")))
		job.Name, job.GenerateName, job.UID = text("name"), text("generateName"), types.UID(text("uid"))
		job.Annotations = map[string]string{text("key"): text("annotation"), "other": text("other")}
		job.Spec.DesiredVersion.Image, job.Spec.ResumeRequest, job.Spec.Config.Upgrader = text("image"), text("resume"), text("upgrader")
		job.Status.FromVersion = text("from")
		expectFits(t, hooks.Event{
			Name: v1beta1.HookEvent("StepCompleted/" + text("event")), Time: tuesday, Reason: text("reason"), Message: text("message"), Pool: text("pool"),
		}, job)
	})
}
