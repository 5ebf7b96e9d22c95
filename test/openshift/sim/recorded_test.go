// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/yaml"
)

// TestRecordedStates drives the simulator through what a real CVO went through
// when its ClusterVersion was recorded, and compares all that clients read.
func TestRecordedStates(t *testing.T) {
	t.Run("a usual update and what is asked after it", func(t *testing.T) {
		v := newVirtual(t, graphOf("4.18.1", OfferedUpdate{Version: "4.18.2", From: []string{"4.18.1"}}))
		v.pass(time.Second)
		v.matches("01-available-4.18.1")
		v.upgrade("4.18.2")
		v.matches("10-completed-4.18.2")
		v.change(func(s *Scenario) {
			s.Updates = append(s.Updates, OfferedUpdate{Version: "4.18.3"}, OfferedUpdate{Version: "4.18.4", From: []string{"4.18.3"}})
		})
		v.pass(time.Second)
		v.matches("20-update-4.18.3-available", "generation")
		v.desire(&configv1.Update{Version: "4.18.4"})
		v.pass(time.Second)
		v.matches("30-desired-not-available-version-only")
		v.desire(&configv1.Update{Version: "4.18.1"})
		v.round()
		v.matches("31-desired-older-version-in-history")
		v.desire(&configv1.Update{Version: "4.18.2"})
		v.round()
		v.matches("32-desired-equals-current")
	})
	t.Run("a minor update slips through before Upgradeable is seen", func(t *testing.T) {
		v := newVirtual(t, graphOf("4.18.1", OfferedUpdate{Version: "4.18.2", From: []string{"4.18.1"}}, OfferedUpdate{Version: "4.18.3", From: []string{"4.18.2"}}))
		v.upgrade("4.18.2")
		v.desire(nil)
		v.change(func(s *Scenario) {
			s.Timings.Upgradeable = s.Timings.Accept + Duration(time.Millisecond)
			s.Operators = []OperatorFault{{Name: "network", NotUpgradeable: true, Message: "Custom CNI: remove the deprecated thing before updating to 4.19"}}
		})
		v.pass(time.Millisecond)
		v.matches("40-upgradeable-false-one-co")
		v.change(func(s *Scenario) {
			s.Operators = append(s.Operators, OperatorFault{Name: "console", NotUpgradeable: true, Message: "console plugin X is incompatible with 4.19"})
		})
		v.desire(&configv1.Update{Version: "4.19.0", Image: Image("4.19.0")})
		v.until("two operators seen and kube-apiserver waited for", func() bool {
			return v.is(configv1.OperatorUpgradeable, configv1.ConditionFalse, reasonMultiple)() && v.waitsOn("kube-apiserver")() && v.view.version.Status.AvailableUpdates == nil
		})
		v.matches("42-minor-accepted-despite-co-upgradeable-false-midway")
		v.until("completed", v.is(configv1.OperatorProgressing, configv1.ConditionFalse, ""))
		v.pass(time.Second)
		v.matches("43-minor-4.19.0-slipped-through")
	})
	t.Run("conditional updates and an unusable graph", func(t *testing.T) {
		v := newVirtual(t, graphOf("4.18.1",
			OfferedUpdate{Version: "4.18.2"},
			alwaysBad("4.18.1"),
			OfferedUpdate{Version: "4.18.4", Risks: []Risk{{Name: "PromFalse", Message: "Clusters with X hit this.", Applies: AppliesNo}}},
			OfferedUpdate{Version: "4.19.0", Risks: []Risk{
				{Name: "PromTrue", Message: "Clusters with Y hit this.", Applies: AppliesYes, URL: "https://issues.example/PromTrue"},
				{Name: "PromTrue2", Message: "Clusters with Z hit this.", Applies: AppliesYes, URL: "https://issues.example/PromTrue2"},
			}},
		))
		v.pass(time.Second)
		v.matches("50-conditional-edges-always-promql", "generation")
		v.desire(&configv1.Update{Version: "4.18.3"})
		v.pass(time.Second)
		v.matches("51-desired-notrecommended-conditional-version-only")
		v.desire(nil)
		v.change(func(s *Scenario) {
			s.UpdatesUnknown = &UpdatesUnknown{Reason: "VersionNotFound", Message: `Unable to retrieve available updates: currently reconciling cluster version 4.18.1 not found in the "stable-4.18" channel`}
		})
		v.pass(time.Second)
		v.matches("55-graph-current-version-not-found", "generation")
		v.change(func(s *Scenario) { s.UpdatesUnknown = nil })
		cv := v.view.version.DeepCopy()
		cv.Spec.Channel = ""
		v.view.put(cv)
		v.pass(time.Second)
		v.matches("56-no-channel", "generation")
	})
	t.Run("refused releases", func(t *testing.T) {
		v := newVirtual(t, graphOf("4.18.1", OfferedUpdate{Version: "4.18.2"}, alwaysBad("4.18.1"), OfferedUpdate{Version: "4.18.9", From: []string{"4.18.1"}}, OfferedUpdate{Version: "4.19.0", From: []string{"4.18.1"}}))
		v.change(func(s *Scenario) {
			s.Operators = []OperatorFault{{Name: "network", NotUpgradeable: true, Message: "Custom CNI: remove the deprecated thing before updating to 4.19"}}
			s.Releases = []ReleaseFault{{Version: "4.18.9", Reason: reasonRetrievePayload}}
		})
		v.pass(time.Second)
		v.desire(&configv1.Update{Version: "4.18.9"})
		v.pass(time.Second)
		v.matches("61-unsigned-rejected")
		v.desire(&configv1.Update{Version: "4.19.0"})
		v.pass(time.Second)
		v.matches("62-minor-blocked-upgradeable-false")
		v.desire(&configv1.Update{Version: "4.19.0", Force: true})
		v.until("console waited for", v.waitsOn("console"))
		v.matches("65-minor-forced-through", "generation")
	})
	t.Run("the edge is withdrawn while the release is refused", func(t *testing.T) {
		v := newVirtual(t, graphOf("4.18.1", OfferedUpdate{Version: "4.18.2", From: []string{"4.18.1"}}, alwaysBad("4.18.2"), OfferedUpdate{Version: "4.18.9"}))
		v.upgrade("4.18.2")
		v.change(func(s *Scenario) { s.Releases = []ReleaseFault{{Version: "4.18.9", Reason: reasonRetrievePayload}} })
		v.desire(&configv1.Update{Version: "4.18.9"})
		v.until("refused", v.is(conditionReleaseAccepted, configv1.ConditionFalse, reasonRetrievePayload))
		v.change(func(s *Scenario) { s.Updates = []OfferedUpdate{alwaysBad("4.18.2")} })
		v.pass(time.Second)
		v.matches("66-edge-withdrawn-while-desired-pending")
	})
	t.Run("a chain of updates with trouble", chainOfUpdates)
	t.Run("an operator that is too slow", func(t *testing.T) {
		v := newVirtual(t, graphOf("4.18.1", OfferedUpdate{Version: "4.18.2"}))
		v.change(func(s *Scenario) { s.Operators = []OperatorFault{{Name: "network", NeverReports: true}} })
		v.desire(&configv1.Update{Version: "4.18.2"})
		v.until("slow", v.is(conditionFailing, configv1.ConditionUnknown, "SlowClusterOperator"))
		v.matches("88-slow-operator-over-30min")
	})
	t.Run("an operator that stays degraded", func(t *testing.T) {
		v := newVirtual(t, graphOf("4.18.1", OfferedUpdate{Version: "4.18.2"}))
		v.change(func(s *Scenario) { s.Operators = []OperatorFault{{Name: "network", Degraded: true}} })
		v.desire(&configv1.Update{Version: "4.18.2"})
		v.until("failing", func() bool {
			return v.is(conditionFailing, configv1.ConditionTrue, "ClusterOperatorDegraded")() && v.view.version.Status.History[0].Version == "4.18.2"
		})
		v.matches("89b-degraded-over-40min-failing")
	})
}

// chainOfUpdates is one cluster's way from 4.18.1 to 4.18.6.
func chainOfUpdates(t *testing.T) {
	from := func(versions ...string) []string { return versions }
	graph := []OfferedUpdate{
		{Version: "4.18.2", From: from("4.18.1")},
		alwaysBad("4.18.1"),
		{Version: "4.18.4", From: from("4.18.3")},
		{Version: "4.18.5", From: from("4.18.3", "4.18.4")},
		{Version: "4.18.6", From: from("4.18.5")},
		{Version: "4.18.7", From: from("4.18.6")},
		{Version: "4.18.9", From: from("4.18.1")},
		{Version: "4.19.0", From: from("4.18.1", "4.18.3")},
	}
	v := newVirtual(t, graphOf("4.18.1", graph...))
	v.pass(time.Second)
	v.desire(&configv1.Update{Version: "4.18.3", Image: Image("4.18.3")})
	v.round()
	v.matches("70-notrecommended-by-image-retrieving")
	v.until("kube-apiserver waited for", v.waitsOn("kube-apiserver"))
	v.matches("71-notrecommended-by-image-updating")
	v.change(func(s *Scenario) { s.Updates = nil })
	v.round()
	v.matches("72-edge-withdrawn-mid-update", "generation")
	v.change(func(s *Scenario) { s.Operators = []OperatorFault{{Name: "network", Unavailable: true}} })
	v.until("failing", v.is(conditionFailing, configv1.ConditionTrue, "ClusterOperatorNotAvailable"))
	v.pass(time.Second)
	v.matches("74-co-unavailable-blocks")
	v.change(func(s *Scenario) { s.Updates = graph })
	v.round()
	v.desire(&configv1.Update{Version: "4.18.4"})
	v.until("moved", func() bool { return v.view.version.Status.Desired.Version == "4.18.4" })
	v.matches("75-retarget-mid-update", "updates")
	v.change(func(s *Scenario) { s.Operators = nil })
	v.until("completed", v.is(configv1.OperatorProgressing, configv1.ConditionFalse, ""))
	v.pass(time.Second)
	v.matches("76-retarget-completed")
	v.change(func(s *Scenario) { s.Operators = []OperatorFault{{Name: "network", Degraded: true}} })
	v.pass(time.Second)
	v.matches("80-co-degraded-steady-state")
	v.desire(&configv1.Update{Version: "4.18.5"})
	v.until("moved", func() bool {
		return v.is(configv1.OperatorUpgradeable, configv1.ConditionFalse, reasonUpdating)() && v.view.version.Status.Desired.Version == "4.18.5"
	})
	v.matches("81-upgrade-started-with-degraded-co", "updates", "counts")
	v.until("blocked", v.is(configv1.OperatorProgressing, configv1.ConditionTrue, "ClusterOperatorDegraded"))
	v.matches("82-upgrade-blocked-at-degraded-co")
	v.change(func(s *Scenario) {
		s.Operators = nil
		s.Releases = []ReleaseFault{{Version: "4.18.6", Stuck: true}}
	})
	v.until("completed", v.is(configv1.OperatorProgressing, configv1.ConditionFalse, ""))
	v.pass(time.Second)
	v.desire(&configv1.Update{Version: "4.18.6"})
	v.pass(time.Hour)
	v.matches("83-retrieving-payload-pod-pending")
	v.change(func(s *Scenario) { s.Releases = nil })
	v.upgrade("4.18.6")
	v.desire(&configv1.Update{Version: "4.18.8", Image: Image("4.18.7")})
	v.pass(time.Second)
	v.matches("85-version-image-mismatch")
	v.desire(&configv1.Update{Version: "4.18.1", Image: Image("4.18.1")})
	v.pass(time.Second)
	v.matches("86-rollback-too-far")
	v.desire(nil)
	v.round()
	v.matches("87-desired-cleared-after-failure")
}

// graphOf is a default cluster with that update graph.
func graphOf(version string, updates ...OfferedUpdate) Scenario {
	s := Default()
	s.Version, s.Updates = version, updates
	return s
}

// alwaysBad is the recorded clusters' conditional update to 4.18.3.
func alwaysBad(from string) OfferedUpdate {
	return OfferedUpdate{Version: "4.18.3", From: []string{from}, Risks: []Risk{{
		Name: "AlwaysBad", Message: "Every cluster hits this.", Applies: AppliesYes, URL: "https://issues.example/AlwaysBad",
	}}}
}

// waitsOn reports whether the CVO waits on that operator.
func (v *virtual) waitsOn(name string) func() bool {
	pattern := regexp.MustCompile(`waiting on .*\b` + name + `\b`)
	return func() bool {
		return pattern.MatchString(findCondition(v.view.version.Status.Conditions, configv1.OperatorProgressing).Message)
	}
}

// matches compares the ClusterVersion with a recorded one. Without are the
// parts that depend on how the recorded cluster came to that state.
func (v *virtual) matches(name string, without ...string) {
	v.t.Helper()
	want := essence(readRecorded(v.t, filepath.Join("testdata", "recorded", name+".yaml")), without)
	if diff := cmp.Diff(want, essence(v.view.version, without)); diff != "" {
		v.t.Errorf("differs from %s (-recorded +simulated):\n%s", name, diff)
	}
}

func readRecorded(t *testing.T, path string) *configv1.ClusterVersion {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cv := &configv1.ClusterVersion{}
	if err := yaml.Unmarshal(data, cv); err != nil {
		t.Fatalf("read %s: %v", path, err)
	}
	return cv
}

// state is what clients read in a ClusterVersion, without times, digests and
// the numbers and names of the operators of a release.
type state struct {
	Desired     string
	Channels    []string
	History     []string
	Observed    string
	Updates     []string
	Conditional []string
	Conditions  map[string]string
}

// essence reduces a ClusterVersion to its state.
func essence(cv *configv1.ClusterVersion, without []string) state {
	st := cv.Status
	s := state{Desired: st.Desired.Version, Channels: st.Desired.Channels, Conditions: map[string]string{}}
	for _, entry := range st.History[:min(2, len(st.History))] {
		text := string(entry.State) + " " + entry.Version + " " + entry.AcceptedRisks
		if entry.CompletionTime == nil {
			text += " open"
		}
		if entry.Verified {
			text += " verified"
		}
		s.History = append(s.History, normal(text))
	}
	if !slices.Contains(without, "generation") {
		s.Observed = "behind"
		if st.ObservedGeneration == cv.Generation {
			s.Observed = "up to date"
		}
	}
	if !slices.Contains(without, "updates") {
		for _, release := range st.AvailableUpdates {
			s.Updates = append(s.Updates, release.Version)
		}
		for _, update := range st.ConditionalUpdates {
			c := update.Conditions[0]
			s.Conditional = append(s.Conditional, update.Release.Version+" "+string(c.Status)+" "+c.Reason+" "+c.Message)
		}
	}
	for _, c := range st.Conditions {
		text := normal(string(c.Status) + " " + c.Reason + " | " + c.Message)
		if slices.Contains(without, "counts") {
			text = strings.ReplaceAll(text, ": COUNTED", "")
		}
		s.Conditions[string(c.Type)] = text
	}
	return s
}

// normal replaces what differs from one release payload to another.
func normal(text string) string {
	for _, r := range []struct{ pattern, replacement string }{
		{`sha256:[0-9a-f]{64}`, "sha256:DIGEST"},
		{`quay.io/openshift-release-dev/ocp-release@sha256:DIGEST against`, "sha256:DIGEST against"},
		{`verifier-public-key-\w+`, "KEY"},
		{`: \d+ of \d+ done \(\d+% complete\)`, ": COUNTED"},
		{`waiting on [a-z-]+(, [a-z-]+)*`, "waiting on OPERATORS"},
		{`ClusterOperators?Updating`, "ClusterOperatorUpdating"},
	} {
		text = regexp.MustCompile(r.pattern).ReplaceAllString(text, r.replacement)
	}
	return text
}

// TestRecordedOrder compares the order in which an update shows in the
// ClusterVersion with the recorded revisions of one.
func TestRecordedOrder(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "recorded", "happy-path", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded revisions: %v", err)
	}
	var recorded []*configv1.ClusterVersion
	for _, file := range files {
		recorded = append(recorded, readRecorded(t, file))
	}
	v := newVirtual(t, graphOf("4.18.1", OfferedUpdate{Version: "4.18.2"}))
	v.pass(time.Second)
	v.upgrade("4.18.2")

	if diff := cmp.Diff(milestones(recorded), milestones(v.revisions)); diff != "" {
		t.Errorf("order of milestones (-recorded +simulated):\n%s", diff)
	}
	for _, field := range []string{
		"Desired", "History", "Observed", "Updates", "Available", "Failing", "Progressing", "ReleaseAccepted", "Upgradeable", "RetrievedUpdates",
	} {
		if diff := cmp.Diff(values(recorded, field), values(v.revisions, field)); diff != "" {
			t.Errorf("values of %s (-recorded +simulated):\n%s", field, diff)
		}
	}
}

// milestones returns what happened, in order of its first appearance; what
// appears together is in the order of the list.
func milestones(revisions []*configv1.ClusterVersion) []string {
	has := func(s state, t, start string) bool { return strings.HasPrefix(s.Conditions[t], start) }
	all := []struct {
		name    string
		reached func(*configv1.ClusterVersion, state) bool
	}{
		{"requested", func(cv *configv1.ClusterVersion, s state) bool { return cv.Spec.DesiredUpdate != nil }},
		{"accepted", func(_ *configv1.ClusterVersion, s state) bool {
			return has(s, "ReleaseAccepted", `True PayloadLoaded | Payload loaded version="4.18.2"`)
		}},
		{"moved", func(_ *configv1.ClusterVersion, s state) bool {
			return s.Desired == "4.18.2" && len(s.History) == 2 && s.Observed == "up to date" && has(s, "Progressing", "True")
		}},
		{"minor updates blocked", func(_ *configv1.ClusterVersion, s state) bool { return has(s, "Upgradeable", "False "+reasonUpdating) }},
		{"waiting for an operator", func(_ *configv1.ClusterVersion, s state) bool {
			return has(s, "Progressing", "True ClusterOperatorUpdating")
		}},
		{"offered no more", func(_ *configv1.ClusterVersion, s state) bool { return len(s.Updates) == 0 }},
		{"completed", func(_ *configv1.ClusterVersion, s state) bool {
			return has(s, "Progressing", "False  | Cluster version is 4.18.2") && has(s, "Available", "True  | Done applying 4.18.2") &&
				strings.HasPrefix(s.History[0], "Completed 4.18.2")
		}},
		{"minor updates free", func(_ *configv1.ClusterVersion, s state) bool {
			return s.Conditions["Upgradeable"] == "" && has(s, "Progressing", "False  | Cluster version is 4.18.2")
		}},
	}
	var order []string
	for _, cv := range revisions {
		s := essence(cv, nil)
		for _, m := range all {
			if !slices.Contains(order, m.name) && m.reached(cv, s) {
				order = append(order, m.name)
			}
		}
	}
	return order
}

// values returns the distinct values of a field in order of their first
// appearance; what comes back, as Progressing without a reason does between
// operators, is not repeated.
func values(revisions []*configv1.ClusterVersion, field string) []string {
	var list []string
	for _, cv := range revisions {
		s := essence(cv, nil)
		value := map[string]string{
			"Desired": s.Desired, "History": strings.Join(s.History, ", "), "Observed": s.Observed, "Updates": strings.Join(s.Updates, ", "),
		}[field]
		if text, condition := s.Conditions[field]; condition {
			value = text
		}
		if !slices.Contains(list, value) {
			list = append(list, value)
		}
	}
	return list
}
