// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package forcedrain_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/forcedrain"
)

func newSelection(t *testing.T, spec v1beta1.NodeForceDrainSpec) *forcedrain.Selection {
	t.Helper()
	s, problem := forcedrain.NewSelection(&spec)
	if problem != nil {
		t.Fatalf("cannot be used: %+v", *problem)
	}
	return s
}

func TestPodJQSelector(t *testing.T) {
	t.Setenv("FORCEDRAIN_TEST", "here")
	priority := int32(7)
	batch := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "cart", Generation: 1 << 53, Labels: map[string]string{"tier": "batch"},
	}, Spec: corev1.PodSpec{Priority: &priority, Containers: []corev1.Container{{Name: "a"}, {Name: "b"}}}}
	for _, tc := range []struct {
		reason, expression string
		want               bool
		failure            string
	}{
		{"none selects all", "", true, ""},
		{"true", `.metadata.labels.tier == "batch"`, true, ""},
		{"false", `.metadata.labels.tier == "web"`, false, ""},
		{"a field that is not there", `.metadata.annotations.x == "y"`, false, ""},
		{"its kind", `.kind == "Pod" and .apiVersion == "v1"`, true, ""},
		{"numbers, also big ones", `.spec.priority > 6 and .metadata.generation == 9007199254740992`, true, ""},
		{"the documented one", `.metadata.labels.tier == "batch" or (.metadata.ownerReferences // [] | any(.kind == "Job"))`, true, ""},
		{"the half of it that is false", `.metadata.ownerReferences // [] | any(.kind == "Job")`, false, ""},
		{"one of several outputs", `.spec.containers[].name == "b"`, true, ""},
		{"none of several outputs", `.spec.containers[].name == "c"`, false, ""},
		{"a true one before an error", `true, error("no")`, true, ""},
		{"an error before a true one", `false, error("no"), true`, false, "no"},
		{"an error", `.metadata.labels | .[0]`, false, "expected an array but got: object"},
		{"no output", "empty", false, "its output is neither true nor false"},
		{"outputs that are no booleans", `1, "true", null`, false, "its output is neither true nor false"},
		{"the end of the program", "halt", false, "halt"},
		{"too slow", "def forever: forever; forever", false, "it takes longer than 250ms"},
		{"too slow with outputs", "repeat(1)", false, "it takes longer than 250ms"},
		{"the environment is empty", `(env | length) == 0 and ($ENV | length) == 0`, true, ""},
		{"an endless error", `error("x" * 100000)`, false, "..."},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			began := time.Now()
			got, err := newSelection(t, v1beta1.NodeForceDrainSpec{PodJQSelector: tc.expression}).Evaluate().Selects(t.Context(), batch)
			if took := time.Since(began); took > 4*time.Second { // a machine may be slow
				t.Errorf("it took %s", took)
			}
			if got != tc.want {
				t.Errorf("selected: %t, want %t", got, tc.want)
			}
			switch {
			case tc.failure == "" && err != nil:
				t.Errorf("failed: %v", err)
			case tc.failure != "" && (err == nil || !strings.Contains(err.Error(), tc.failure) || len(err.Error()) > 256):
				t.Errorf("got error %v, want %q in it", err, tc.failure)
			}
		})
	}
}

// One expression that runs for ever must not cost a quarter of a second for each of hundreds of pods.
func TestPodJQSelectorTakesLongOnce(t *testing.T) {
	s := newSelection(t, v1beta1.NodeForceDrainSpec{PodJQSelector: `.metadata.name != "slow" or (def f: f; f)`})
	slow, quick := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "slow"}}, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "quick"}}
	e := s.Evaluate()
	for _, step := range []struct {
		pod     *corev1.Pod
		want    bool
		failure string
	}{{quick, true, ""}, {slow, false, "longer than 250ms"}, {quick, false, "not evaluated"}} {
		got, err := e.Selects(t.Context(), step.pod)
		if got != step.want || (err != nil) != (step.failure != "") || (err != nil && !strings.Contains(err.Error(), step.failure)) {
			t.Errorf("%s is selected: %t (%v), want %t, %q", step.pod.Name, got, err, step.want, step.failure)
		}
	}
	if got, err := s.Evaluate().Selects(t.Context(), quick); !got || err != nil {
		t.Errorf("in the next pass it is selected: %t (%v)", got, err)
	}
}

func TestPodJQSelectorEndsWithThePass(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	s := newSelection(t, v1beta1.NodeForceDrainSpec{PodJQSelector: "repeat(1)"})
	if got, err := s.Evaluate().Selects(ended, &corev1.Pod{}); got || err == nil {
		t.Errorf("selected: %t (%v)", got, err)
	}
}

func TestNewSelectionRefuses(t *testing.T) {
	broken := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: "Likes"}}}
	for _, tc := range []struct {
		name    string
		spec    v1beta1.NodeForceDrainSpec
		reason  string
		message string
	}{
		{"nodes", v1beta1.NodeForceDrainSpec{NodeSelector: broken}, v1beta1.ReasonInvalidSelector, `spec.nodeSelector cannot be parsed: "Likes"`},
		{"namespaces", v1beta1.NodeForceDrainSpec{NamespaceSelector: broken}, v1beta1.ReasonInvalidSelector, "spec.namespaceSelector cannot be parsed"},
		{"syntax", v1beta1.NodeForceDrainSpec{PodJQSelector: ".metadata["}, v1beta1.ReasonInvalidJQ, "spec.podJQSelector is no jq expression: unexpected EOF"},
		{"blank", v1beta1.NodeForceDrainSpec{PodJQSelector: " "}, v1beta1.ReasonInvalidJQ, "missing query"},
		{"an unknown function", v1beta1.NodeForceDrainSpec{PodJQSelector: "isPod"}, v1beta1.ReasonInvalidJQ, "function not defined: isPod/0"},
		{"more input", v1beta1.NodeForceDrainSpec{PodJQSelector: "input"}, v1beta1.ReasonInvalidJQ, "not allowed"},
		{"files", v1beta1.NodeForceDrainSpec{PodJQSelector: `import "a" as $a; true`}, v1beta1.ReasonInvalidJQ, "cannot load module"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, problem := forcedrain.NewSelection(&tc.spec)
			if s != nil || problem == nil || problem.Reason != tc.reason || !strings.Contains(problem.Message, tc.message) {
				t.Errorf("got %+v, want %s: %s", problem, tc.reason, tc.message)
			}
		})
	}
}

func TestSelectionOfNodesAndNamespaces(t *testing.T) {
	app, none := map[string]string{"role": "app"}, map[string]string(nil)
	selector := &metav1.LabelSelector{MatchLabels: app}
	for _, tc := range []struct {
		reason            string
		selector          *metav1.LabelSelector
		selectsApp, other bool
	}{
		{"absent selects all", nil, true, true},
		{"empty selects all", &metav1.LabelSelector{}, true, true},
		{"one selects its own", selector, true, false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			nodes := newSelection(t, v1beta1.NodeForceDrainSpec{NodeSelector: tc.selector})
			if nodes.SelectsNode(app) != tc.selectsApp || nodes.SelectsNode(none) != tc.other || !nodes.AnyNamespace() {
				t.Errorf("nodes: %t, %t; any namespace: %t", nodes.SelectsNode(app), nodes.SelectsNode(none), nodes.AnyNamespace())
			}
			namespaces := newSelection(t, v1beta1.NodeForceDrainSpec{NamespaceSelector: tc.selector})
			if namespaces.SelectsNamespace(app) != tc.selectsApp || namespaces.SelectsNamespace(none) != tc.other || namespaces.AnyNamespace() != tc.other {
				t.Errorf("namespaces: %t, %t; any: %t", namespaces.SelectsNamespace(app), namespaces.SelectsNamespace(none), namespaces.AnyNamespace())
			}
			if !namespaces.SelectsNode(none) {
				t.Error("a selector of namespaces selects nodes")
			}
		})
	}
}
