// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package upgrader_test

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/pkg/upgrader"
)

// declaration returns an Upgrader with these steps. A step may have parameters: "Step key=value key=value".
func declaration(name string, list ...string) *v1beta1.Upgrader {
	u := &v1beta1.Upgrader{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, text := range list {
		words := strings.Fields(text)
		step := v1beta1.UpgraderStep{Step: words[0]}
		for _, word := range words[1:] {
			key, value, _ := strings.Cut(word, "=")
			if step.Parameters == nil {
				step.Parameters = map[string]string{}
			}
			step.Parameters[key] = value
		}
		u.Spec.Steps = append(u.Spec.Steps, step)
	}
	return u
}

// minimal is the shortest list that breaks no rule.
var minimal = []string{"ClusterHealthyBeforeUpgrade", "UpgradeCommenced", "ControlPlaneUpgraded", "MachineConfigPoolsUpgraded"}

// layers returns the step, the combinators around it first, each with what it is made of, without those that are named.
func layers(step steps.Step, without ...string) []string {
	var all []string
	for {
		wrapper, ok := step.(interface{ Unwrap() steps.Step })
		if !ok {
			return append(all, written(step))
		}
		inner := wrapper.Unwrap()
		if !slices.Contains(without, fmt.Sprintf("%T", step)) {
			all = append(all, strings.ReplaceAll(written(step), written(inner), "..."))
		}
		step = inner
	}
}

// written writes a step as Go does, without the addresses of functions.
func written(step steps.Step) string {
	return regexp.MustCompile(`\(0x[0-9a-f]+\)`).ReplaceAllString(fmt.Sprintf("%#v", step), "")
}

// The lists that are built in are what the catalogue would make of their steps, so that an Upgrader can be a list that is built in with a change.
func TestTheCatalogueMakesTheListsThatAreBuiltIn(t *testing.T) {
	for _, tc := range []struct {
		variant    upgrader.Upgrader
		parameters string
		// What the catalogue adds to steps: nothing that acts unless the config of the job asks for it, or that another step of the list does not do already.
		added []string
	}{
		{upgrader.OpenShift(), " tellStage=false", []string{"steps.ifOffered", "steps.withForcedDrains"}},
		{upgrader.OSD(), "", nil},
		{upgrader.ARO(), "", nil},
	} {
		t.Run(tc.variant.Name(), func(t *testing.T) {
			catalogue := upgrader.NewCatalogue()
			literal := tc.variant.Steps()
			var list []string
			for _, condition := range conditions(literal) {
				entry, _ := catalogue.Entry(condition)
				if slices.ContainsFunc(entry.Parameters, func(p upgrader.Parameter) bool { return p.Name == "tellStage" }) {
					condition += tc.parameters
				}
				list = append(list, condition)
			}
			made, err := catalogue.Declared(declaration("like", list...))
			if err != nil {
				t.Fatal(err)
			}
			for i, step := range made.Steps() {
				if diff := cmp.Diff(layers(literal[i]), layers(step, tc.added...)); diff != "" {
					t.Errorf("%s (-literal +catalogue):\n%s", step.Condition(), diff)
				}
			}
			if diff := cmp.Diff(conditions(catalogue.Finally()), conditions(made.Finally())); diff != "" { // whatever its list was before
				t.Errorf("cleanup (-all +declared):\n%s", diff)
			}
		})
	}
}

// A job of which nobody knows which steps it had gives back all that any step could hold.
func TestCleanupOfTheCatalogue(t *testing.T) {
	catalogue := upgrader.NewCatalogue()
	want := []string{"UnacceptedUpdateWithdrawn", "MachineConfigPoolsPaused", "ForcedDrainsEnded", "ComputeCapacityGivenBack", "SilencesRemoved"}
	if diff := cmp.Diff(want, conditions(catalogue.Finally())); diff != "" {
		t.Errorf("cleanup (-want +got):\n%s", diff)
	}
	for _, variant := range upgrader.BuiltIn() {
		for _, step := range conditions(variant.Finally()) {
			if !slices.Contains(want, step) {
				t.Errorf("%s gives back by %s, which the catalogue does not know", variant.Name(), step)
			}
		}
	}
}

// own is a step of somebody else.
type own struct {
	steps.Step
	condition string
	given     upgrader.Parameters
}

func (s own) Condition() string { return s.condition }

func ownEntry(change func(*upgrader.Entry)) upgrader.Entry {
	e := upgrader.Entry{
		Condition: "ChangeApproved", Summary: "Waits for an approval.",
		Parameters: []upgrader.Parameter{{Name: "board", Meaning: "who approves", Default: "night"}},
		Rules:      []upgrader.Rule{upgrader.StandsBefore("UpgradeCommenced", "nothing is changed without an approval")},
		Finally:    []steps.Step{own{condition: "ApprovalReturned"}},
		New: func(p upgrader.Parameters) (steps.Step, error) {
			if p["board"] == "none" {
				return nil, errors.New("the board must not be none")
			}
			return own{condition: "ChangeApproved", given: p}, nil
		},
	}
	if change != nil {
		change(&e)
	}
	return e
}

func TestCatalogueTakesAStepOfOnesOwn(t *testing.T) {
	catalogue := upgrader.NewCatalogue()
	if err := catalogue.Add(ownEntry(nil)); err != nil {
		t.Fatal(err)
	}
	for board, list := range map[string][]string{
		"night": append([]string{"ChangeApproved"}, minimal...),
		"day":   append([]string{"ChangeApproved board=day"}, minimal...),
	} {
		variant, err := catalogue.Declared(declaration("own", list...))
		if err != nil {
			t.Fatal(err)
		}
		if got := variant.Steps()[0].(own).given; !maps.Equal(got, upgrader.Parameters{"board": board}) {
			t.Errorf("the step is made with %v", got)
		}
		if got := conditions(variant.Finally()); !slices.Equal(got, append(conditions(upgrader.NewCatalogue().Finally()), "ApprovalReturned")) {
			t.Errorf("cleanup %v", got)
		}
	}
	_, err := catalogue.Declared(declaration("own", append(slices.Clone(minimal), "ChangeApproved")...))
	if err == nil || err.Error() != "ChangeApproved stands before UpgradeCommenced: nothing is changed without an approval" {
		t.Errorf("got %v, want the rule that is broken", err)
	}
}

func TestCatalogueRefuses(t *testing.T) {
	for _, tc := range []struct {
		reason string
		change func(*upgrader.Entry)
		says   string
	}{
		{"a condition that is taken", func(e *upgrader.Entry) { e.Condition = "UpgradeCommenced" }, "the condition is taken"},
		{"a condition of the job itself", func(e *upgrader.Entry) { e.Condition = "Failed" }, "it is a condition of the job itself"},
		{"no condition", func(e *upgrader.Entry) { e.Condition = "change-approved" }, "want a condition that matches"},
		{"a condition that is too long", func(e *upgrader.Entry) { e.Condition = strings.Repeat("A", 64) }, "want a condition that matches"},
		{"no summary", func(e *upgrader.Entry) { e.Summary = "" }, "want a summary"},
		{"no step", func(e *upgrader.Entry) { e.New = nil }, "want a summary and a function"},
		{"a step of another name", func(e *upgrader.Entry) { e.Condition = "Other" }, "the step has condition ChangeApproved"},
		{"a default that will not do", func(e *upgrader.Entry) { e.Parameters[0].Default = "none" }, "the board must not be none"},
		{"a parameter without a meaning", func(e *upgrader.Entry) { e.Parameters[0].Meaning = "" }, `parameter "board" has no name or meaning`},
		{"a parameter twice", func(e *upgrader.Entry) { e.Parameters = append(e.Parameters, e.Parameters[0]) }, `parameter "board" has no name or meaning, or its name is taken`},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			catalogue := upgrader.NewCatalogue()
			before := len(catalogue.Entries())
			err := catalogue.Add(ownEntry(tc.change))
			if err == nil || !strings.Contains(err.Error(), "to the catalogue: ") || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %q", err, tc.says)
			}
			if got := len(catalogue.Entries()); got != before {
				t.Errorf("what was refused is there: %d steps, were %d", got, before)
			}
		})
	}
}

// A step that needs to be told something cannot be tried when it is added.
func TestRequiredParameters(t *testing.T) {
	catalogue := upgrader.NewCatalogue()
	if err := catalogue.Add(ownEntry(func(e *upgrader.Entry) { e.Parameters[0].Required, e.Parameters[0].Default = true, "none" })); err != nil {
		t.Fatal(err)
	}
	_, err := catalogue.Declared(declaration("own", append([]string{"ChangeApproved"}, minimal...)...))
	if err == nil || !strings.Contains(err.Error(), "spec.steps[0] (ChangeApproved): parameter board is required") {
		t.Errorf("without the parameter: got %v", err)
	}
	if _, err := catalogue.Declared(declaration("own", append([]string{"ChangeApproved board=day"}, minimal...)...)); err != nil {
		t.Errorf("with the parameter: got %v", err)
	}
}
