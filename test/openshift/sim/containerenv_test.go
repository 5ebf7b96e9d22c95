// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestExpand(t *testing.T) {
	env := map[string]string{"A": "one", "B": "$(A)", "EMPTY": "", "with.dot": "dotted"}
	tests := []struct{ reason, text, want string }{
		{"nothing to resolve", "plain", "plain"},
		{"a reference", "<$(A)>", "<one>"},
		{"several", "$(A)$(A) $(EMPTY).", "oneone ."},
		{"a value is not resolved again", "$(B)", "$(A)"},
		{"any name", "$(with.dot)", "dotted"},
		{"unknown stays", "$(C) $()", "$(C) $()"},
		{"an escaped reference", "$$(A)", "$(A)"},
		{"an escaped escape before a reference", "$$$(A)", "$one"},
		{"escapes in pairs", "$$$$(A)", "$$(A)"},
		{"an unknown reference may be escaped, too", "$$(C)", "$(C)"},
		{"not closed", "$(A and $(A", "$(A and $(A"},
		{"the shell's own syntax", "${A} $A $", "${A} $A $"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			if got := expand(tt.text, env); got != tt.want {
				t.Errorf("%q is expanded to %q, want %q", tt.text, got, tt.want)
			}
		})
	}
}

// describedRun reads what describeRun writes.
func describedRun(t *testing.T, spec corev1.PodSpec) map[string]Ran {
	t.Helper()
	text, err := describeRun(&spec)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > ranLimit {
		t.Errorf("%d bytes are written, more than %d", len(text), ranLimit)
	}
	ran, err := RanIn(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{AnnotationRan: text}}})
	if err != nil {
		t.Fatal(err)
	}
	return ran
}

func TestDescribeRun(t *testing.T) {
	got := describedRun(t, corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "init", Command: []string{"$(WHO)"}}},
		Containers: []corev1.Container{{
			Name: "main", Command: []string{"sh", "-c", "echo $(GREETING)"}, Args: []string{"$(NONE)", "$(LATER)"},
			Env: []corev1.EnvVar{
				{Name: "WHO", Value: "world"},
				{Name: "GREETING", Value: "hello $(WHO) $(LATER)"}, // what comes later is not known yet
				{Name: "LATER", Value: "later"},
				{Name: "WHO", Value: "moon"}, // the last one counts
				{Name: "SECRET", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}},
			},
		}},
	})
	want := map[string]Ran{
		"init": {Command: []string{"$(WHO)"}},
		"main": {
			Command: []string{"sh", "-c", "echo hello world $(LATER)"}, Args: []string{"$(NONE)", "later"},
			Env: map[string]string{"WHO": "moon", "GREETING": "hello world $(LATER)", "LATER": "later"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is run (-want +got):\n%s", diff)
	}
}

func TestDescribeRunOfMuch(t *testing.T) {
	large := strings.Repeat("x", ranLimit)
	got := describedRun(t, corev1.PodSpec{Containers: []corev1.Container{
		{Name: "a", Args: []string{"small"}, Env: []corev1.EnvVar{{Name: "LARGE", Value: large}}}, {Name: "b"},
	}})
	for name, ran := range got {
		if ran.Env != nil || !strings.HasPrefix(ran.Omitted, "env: ") {
			t.Errorf("container %s: env of %d, omitted %q", name, len(ran.Env), ran.Omitted)
		}
	}
	if diff := cmp.Diff([]string{"small"}, got["a"].Args); diff != "" {
		t.Errorf("args (-want +got):\n%s", diff)
	}
	got = describedRun(t, corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Args: []string{large}}}})
	if ran := got["a"]; ran.Args != nil || !strings.HasPrefix(ran.Omitted, "command, args and env: ") {
		t.Errorf("%d args, omitted %q", len(ran.Args), ran.Omitted)
	}
}

func TestRanInOfOtherPods(t *testing.T) {
	for name, annotations := range map[string]map[string]string{"not started": nil, "no JSON": {AnnotationRan: "cheese"}} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", Annotations: annotations}}
			if _, err := RanIn(pod); err == nil || !strings.Contains(err.Error(), "pod ns/pod") {
				t.Errorf("got error %v, want one that names the pod", err)
			}
		})
	}
}
