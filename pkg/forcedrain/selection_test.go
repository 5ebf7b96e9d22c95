// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package forcedrain_test

import (
	"context"
	"slices"
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
		{"the environment is empty", `(env | length) == 0`, true, ""},
		{"a long error", `error("` + strings.Repeat("x", 1000) + `")`, false, "..."},
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

// slowly is an expression that takes long for a pod of many containers.
const slowly = `[..] | [..] | [..] | [..] | length > 3`

func manyContainers(n int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "big"}, Spec: corev1.PodSpec{Containers: make([]corev1.Container, n)}}
}

// An expression that takes long for a pod must not be the end of all others, nor cost a quarter of a second for each of hundreds of pods.
func TestPodJQSelectorThatTakesLong(t *testing.T) {
	s := newSelection(t, v1beta1.NodeForceDrainSpec{PodJQSelector: slowly})
	big, small := manyContainers(20000), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "small"}}
	e := s.Evaluate()
	for i := range 20 {
		if got, err := e.Selects(t.Context(), big); got || err == nil || !strings.Contains(err.Error(), "longer than 250ms") {
			t.Fatalf("%d: selected: %t (%v)", i, got, err)
		}
		if got, err := e.Selects(t.Context(), small); i < 19 && (!got || err != nil) {
			t.Fatalf("%d: behind a slow one it is selected: %t (%v)", i, got, err)
		}
	}
	if got, err := e.Selects(t.Context(), small); got || err == nil || !strings.Contains(err.Error(), "not evaluated") {
		t.Errorf("after twenty of them: selected %t (%v)", got, err)
	}
	if got, err := s.Evaluate().Selects(t.Context(), small); !got || err != nil {
		t.Errorf("in the next pass it is selected: %t (%v)", got, err)
	}
}

func TestPodJQSelectorEndsWithThePass(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	s := newSelection(t, v1beta1.NodeForceDrainSpec{PodJQSelector: slowly})
	if got, err := s.Evaluate().Selects(ended, manyContainers(20000)); got || err == nil {
		t.Errorf("selected: %t (%v)", got, err)
	}
}

// What an expression may do to the pod must not do anything to the operator.
func TestPodJQSelectorIsBounded(t *testing.T) {
	for expression, refused := range map[string]string{
		`"x" * 2000000000 | length > 3`:                    "it uses *",
		`reduce range(40) as $i ("x"; . + .) | length > 3`: "it uses reduce",
		`[foreach .spec as $x (0; 1)] | length > 3`:        "it uses foreach",
		`def f: f; f`:                                              "it uses def",
		`[.[] as $x | $x] | length > 3`:                            "it uses $x",
		`[limit(3; repeat(1))] | length > 3`:                       "it uses limit",
		`[range(1e12)] | length > 3`:                               "it uses range",
		`.metadata |= . | true`:                                    "it uses |=",
		`.metadata.labels | tojson | length > 3`:                   "it uses tojson",
		`(.metadata | @base64) == "x"`:                             "it uses @base64",
		`label $out | break $out`:                                  "it uses label",
		`halt`:                                                     "it uses halt",
		`$ENV.HOME == "x"`:                                         "it uses $ENV",
		`any(.spec.containers[]; .name * 3 == "x")`:                "it uses *",
		`if true then [range(5)] else . end | length > 3`:          "it uses range",
		`{a: [range(5)]} | length > 3`:                             "it uses range",
		`.spec[[range(5)] | length | tostring] == 1`:               "it uses range",
		`try [range(5)] catch . | length > 3`:                      "it uses range",
		`.name | (.+.)|(.+.)|(.+.)|(.+.)|(.+.) | length > 3`:       "5 times",
		`[.,.]|[.,.]|[.,.]|[.,.]|[.,.] | length > 3`:               "5 times",
		`"\(.)\(.)"|"\(.)\(.)"|"\(.)" | length > 3`:                "5 times",
		`[..]|[..]|[..]|[..]|[..] | length > 3`:                    "5 times",
		`.metadata.name | IN("a", "b", "c", "d", "e", "f", "g")`:   "",
		`.metadata.labels["app"] // "" | test("^(web|api)$")`:      "",
		`(now - (.metadata.creationTimestamp | fromdate)) > 3600`:  "",
		`[.spec.containers[].image] | any(startswith("quay.io/"))`: "",
	} {
		_, problem := forcedrain.NewSelection(&v1beta1.NodeForceDrainSpec{PodJQSelector: expression})
		switch {
		case refused == "" && problem != nil:
			t.Errorf("%s: %+v", expression, *problem)
		case refused != "" && (problem == nil || problem.Reason != v1beta1.ReasonInvalidJQ || !strings.Contains(problem.Message, refused)):
			t.Errorf("%s: got %+v, want %q in it", expression, problem, refused)
		}
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
		{"syntax", v1beta1.NodeForceDrainSpec{PodJQSelector: ".metadata["}, v1beta1.ReasonInvalidJQ, "spec.podJQSelector cannot be used: unexpected EOF"},
		{"blank", v1beta1.NodeForceDrainSpec{PodJQSelector: " "}, v1beta1.ReasonInvalidJQ, "missing query"},
		{"an unknown function", v1beta1.NodeForceDrainSpec{PodJQSelector: "isPod"}, v1beta1.ReasonInvalidJQ, "function not defined: isPod/0"},
		{"more input", v1beta1.NodeForceDrainSpec{PodJQSelector: "input"}, v1beta1.ReasonInvalidJQ, "not allowed"},
		{"patterns", v1beta1.NodeForceDrainSpec{IgnoredNamespacePatterns: []string{"^openshift-", "shop["}}, v1beta1.ReasonInvalidPattern, `spec.ignoredNamespacePatterns has "shop[", which cannot be used: error parsing regexp: missing closing ]`},
		{"what RE2 does not know", v1beta1.NodeForceDrainSpec{IgnoredNamespacePatterns: []string{"(?!shop)"}}, v1beta1.ReasonInvalidPattern, `"(?!shop)"`},
		{"large patterns", v1beta1.NodeForceDrainSpec{IgnoredNamespacePatterns: []string{".{900}.{900}"}}, v1beta1.ReasonInvalidPattern, `".{900}.{900}", which cannot be used: its repetitions make it too large`},
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

func TestIgnoredNamespaces(t *testing.T) {
	for _, tc := range []struct {
		reason   string
		patterns []string
		want     []string
	}{
		{"none", nil, nil},
		{"a part of the name", []string{"shop"}, []string{"shop", "my-shop-2"}},
		{"the beginning", []string{"^openshift-"}, []string{"openshift-etcd"}},
		{"the whole name", []string{"^shop$"}, []string{"shop"}},
		{"the case counts", []string{"SHOP"}, nil},
		{"unless it is said not to", []string{"(?i)SHOP"}, []string{"shop", "my-shop-2"}},
		{"any of several", []string{"etcd$", "^my-"}, []string{"openshift-etcd", "my-shop-2"}},
		{"the longest that there may be", []string{"^" + strings.Repeat("[a-z]", 50)}, nil},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			s := newSelection(t, v1beta1.NodeForceDrainSpec{IgnoredNamespacePatterns: tc.patterns})
			var got []string
			for _, name := range []string{"shop", "openshift-etcd", "my-shop-2", "bank"} {
				if s.IgnoresNamespace(name) {
					got = append(got, name)
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("ignores %v, want %v", got, tc.want)
			}
		})
	}
}
