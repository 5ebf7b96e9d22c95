// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

func TestConditions(t *testing.T) {
	for _, tc := range []struct {
		name string
		got  metav1.Condition
		want metav1.Condition
	}{
		{"Ready", v1beta1.Ready("Why", "what"), metav1.Condition{Type: "Ready", Status: "True", Reason: "Why", Message: "what"}},
		{"NotReady", v1beta1.NotReady("Why", "what"), metav1.Condition{Type: "Ready", Status: "False", Reason: "Why", Message: "what"}},
		{"Scheduling", v1beta1.Scheduling("what"), metav1.Condition{Type: "Scheduling", Status: "True", Reason: "Scheduled", Message: "what"}},
		{"NotScheduling", v1beta1.NotScheduling("Why", "what"), metav1.Condition{Type: "Scheduling", Status: "False", Reason: "Why", Message: "what"}},
		{"Started", v1beta1.Started("what"), metav1.Condition{Type: "Started", Status: "True", Reason: "Started", Message: "what"}},
		{"NotStarted", v1beta1.NotStarted("Why", "what"), metav1.Condition{Type: "Started", Status: "False", Reason: "Why", Message: "what"}},
		{"Succeeded", v1beta1.Succeeded("Why", "what"), metav1.Condition{Type: "Succeeded", Status: "True", Reason: "Why", Message: "what"}},
		{"Failed", v1beta1.Failed("Why", "what"), metav1.Condition{Type: "Failed", Status: "True", Reason: "Why", Message: "what"}},
		{"Skipped", v1beta1.Skipped("Why", "what"), metav1.Condition{Type: "Skipped", Status: "True", Reason: "Why", Message: "what"}},
		{"StepDone", v1beta1.StepDone("UpgradeCommenced", "what"), metav1.Condition{Type: "UpgradeCommenced", Status: "True", Reason: "Completed", Message: "what"}},
		{"StepNotDone", v1beta1.StepNotDone("UpgradeCommenced", "Why", "what"), metav1.Condition{Type: "UpgradeCommenced", Status: "False", Reason: "Why", Message: "what"}},
		{"StepHolds", v1beta1.StepHolds("MachineConfigPoolsPaused", true, "Why", "what"), metav1.Condition{Type: "MachineConfigPoolsPaused", Status: "True", Reason: "Why", Message: "what"}},
		{"StepHolds nothing", v1beta1.StepHolds("MachineConfigPoolsPaused", false, "Why", "what"), metav1.Condition{Type: "MachineConfigPoolsPaused", Status: "False", Reason: "Why", Message: "what"}},
		{"MachineConfigPoolsLeftPaused", v1beta1.MachineConfigPoolsLeftPaused("what"), metav1.Condition{Type: "MachineConfigPoolsPaused", Status: "True", Reason: "LeftPaused", Message: "what"}},
		{"a long message is cut", v1beta1.Ready("Why", strings.Repeat("x", 2000)),
			metav1.Condition{Type: "Ready", Status: "True", Reason: "Why", Message: strings.Repeat("x", v1beta1.MaxMessageLength-3) + "..."}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.got); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTruncate(t *testing.T) {
	for _, tc := range []struct {
		reason, text string
		limit        int
		want         string
	}{
		{"an empty text", "", 10, ""},
		{"a short text stays", "0123456789", 10, "0123456789"},
		{"one byte more is cut", "0123456789a", 10, "0123456..."},
		{"a short text of long runes stays", "äöüäö", 10, "äöüäö"},
		{"a cut between runes", "äöüäöü", 11, "äöüä..."},
		{"a cut in a rune of two bytes", "äöüäöü", 10, "äöü..."},
		{"a cut in a rune of three bytes", "€€€€", 11, "€€..."},
		{"a cut in a rune of four bytes", "😀😀😀😀", 14, "😀😀..."},
		{"no rune fits", "😀😀", 6, "..."},
		{"only the mark fits", "0123", 3, "..."},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if got := v1beta1.Truncate(tc.text, tc.limit); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func FuzzTruncate(f *testing.F) {
	f.Add("äöü", 4)
	f.Add("😀😀😀", 7)
	f.Add("plain words", 3)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if limit < 3 || limit > 1<<16 || !utf8.ValidString(text) {
			return // nothing is promised
		}
		got := v1beta1.Truncate(text, limit)
		switch {
		case len(got) > limit:
			t.Errorf("got %d bytes, want at most %d", len(got), limit)
		case !utf8.ValidString(got):
			t.Errorf("%q is no valid text", got)
		case len(text) <= limit && got != text:
			t.Errorf("%q fits and became %q", text, got)
		case len(text) > limit && (!strings.HasSuffix(got, "...") || !strings.HasPrefix(text, strings.TrimSuffix(got, "..."))):
			t.Errorf("%q is not the beginning of the text and the mark of a cut", got)
		case len(text) > limit && len(got) <= limit-utf8.UTFMax:
			t.Errorf("got %d of %d bytes: more would fit", len(got), limit)
		}
	})
}

func TestReasonsAndConditionsAreValid(t *testing.T) {
	// The pattern of metav1.Condition.reason, and of a condition's type without a prefix, narrowed to CamelCase.
	camelCase := regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	seen := map[string]string{}
	count := 0
	for name, value := range constants(t, "reasons.go") {
		prefix := "Reason"
		if strings.HasPrefix(name, "Condition") {
			prefix = "Condition"
		}
		count++
		switch {
		case !camelCase.MatchString(value):
			t.Errorf("%s is %q, which is not CamelCase", name, value)
		case len(value) > 63:
			t.Errorf("%s is %q: too long to read", name, value)
		case name != prefix+value:
			t.Errorf("%s is %q, want it to be named by its value, %s%s", name, value, prefix, value)
		case seen[prefix+value] != "":
			t.Errorf("%s and %s have one value, %q", name, seen[prefix+value], value)
		}
		seen[prefix+value] = name
	}
	if count < 30 {
		t.Errorf("found %d constants in reasons.go: this test does not see them", count)
	}
}

// constants returns the string constants of a source file, so that none can be forgotten.
func constants(t *testing.T, file string) map[string]string {
	t.Helper()
	source, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	ast.Inspect(source, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, value := range spec.Values {
			literal, ok := value.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				t.Errorf("%s is not a string", spec.Names[i].Name)
				continue
			}
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			found[spec.Names[i].Name] = text
		}
		return false
	})
	return found
}
