// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package suspension_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/suspension"
)

const ns = time.Nanosecond

var (
	start = time.Date(2026, time.November, 26, 0, 0, 0, 0, time.UTC)
	end   = start.Add(96 * time.Hour)
)

// newWindow returns a window of all configs and of the jobs of team a, changed by the overrides.
func newWindow(name string, overrides ...func(*v1beta1.UpgradeSuspensionWindow)) v1beta1.UpgradeSuspensionWindow {
	w := v1beta1.UpgradeSuspensionWindow{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "upgrades"},
		Spec: v1beta1.UpgradeSuspensionWindowSpec{
			Start: metav1.NewTime(start), End: metav1.NewTime(end),
			ConfigSelector: &metav1.LabelSelector{},
			JobSelector:    &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}},
		},
	}
	for _, override := range overrides {
		override(&w)
	}
	return w
}

func from(t time.Time) func(*v1beta1.UpgradeSuspensionWindow) {
	return func(w *v1beta1.UpgradeSuspensionWindow) { w.Spec.Start.Time = t }
}

func until(t time.Time) func(*v1beta1.UpgradeSuspensionWindow) {
	return func(w *v1beta1.UpgradeSuspensionWindow) { w.Spec.End.Time = t }
}

func ofConfigs(s *metav1.LabelSelector) func(*v1beta1.UpgradeSuspensionWindow) {
	return func(w *v1beta1.UpgradeSuspensionWindow) { w.Spec.ConfigSelector = s }
}

func elsewhere(w *v1beta1.UpgradeSuspensionWindow) { w.Namespace = "other" }

// object returns the metadata of a config or job with a team label.
func object(team string) *metav1.ObjectMeta {
	return &metav1.ObjectMeta{Name: "object", Namespace: "upgrades", Labels: map[string]string{"team": team}}
}

func TestMatches(t *testing.T) {
	broken := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: "Likes"}}}
	for _, tc := range []struct {
		reason   string
		window   v1beta1.UpgradeSuspensionWindow
		selector suspension.Selector
		object   *metav1.ObjectMeta
		want     bool
	}{
		{"an empty selector selects all", newWindow("w"), suspension.ForConfigs, object("b"), true},
		{"an absent selector selects none", newWindow("w", ofConfigs(nil)), suspension.ForConfigs, object("b"), false},
		{"labels match", newWindow("w"), suspension.ForJobs, object("a"), true},
		{"labels do not match", newWindow("w"), suspension.ForJobs, object("b"), false},
		{"an object without labels", newWindow("w"), suspension.ForJobs, &metav1.ObjectMeta{Namespace: "upgrades"}, false},
		{"an expression matches", newWindow("w", ofConfigs(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "team", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"a"}}}})), suspension.ForConfigs, object("b"), true},
		{"a selector that cannot be parsed selects all: a freeze was wanted", newWindow("w", ofConfigs(broken)), suspension.ForConfigs, object("b"), true},
		{"but nothing of another namespace", newWindow("w", ofConfigs(broken), elsewhere), suspension.ForConfigs, object("b"), false},
		{"another namespace", newWindow("w", elsewhere), suspension.ForConfigs, object("a"), false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if got := suspension.Matches(&tc.window, tc.selector, tc.object); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

func TestCovers(t *testing.T) {
	for _, tc := range []struct {
		reason string
		at     time.Time
		want   bool
	}{
		{"before", start.Add(-ns), false},
		{"at its start", start, true},
		{"after its start", start.Add(ns), true},
		{"before its end", end.Add(-ns), true},
		{"at its end", end, false},
		{"after its end", end.Add(ns), false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWindow("w")
			if got := suspension.Covers(&w, tc.at); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

func TestActive(t *testing.T) {
	type windows = []v1beta1.UpgradeSuspensionWindow
	for _, tc := range []struct {
		reason  string
		windows windows
		at      time.Time
		want    string
	}{
		{"there are none", nil, start, ""},
		{"one holds", windows{newWindow("w")}, start, "w"},
		{"it is over", windows{newWindow("w")}, end, ""},
		{"it does not select the object", windows{newWindow("w", ofConfigs(nil))}, start, ""},
		{"the one that ends last counts", windows{newWindow("short", until(end.Add(-ns))), newWindow("long"), newWindow("shorter", until(start.Add(ns)))}, start, "long"},
		{"of those that hold", windows{newWindow("now"), newWindow("later", from(start.Add(ns)), until(end.Add(ns)))}, start, "now"},
		{"of two that end together the first by name", windows{newWindow("b"), newWindow("a"), newWindow("c")}, start, "a"},
		{"in whatever order they come", windows{newWindow("a"), newWindow("c"), newWindow("b")}, start, "a"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got := ""
			if w := suspension.Active(tc.windows, suspension.ForConfigs, object("a"), tc.at); w != nil {
				got = w.Name
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestNextChange(t *testing.T) {
	type windows = []v1beta1.UpgradeSuspensionWindow
	later := newWindow("later", from(end.Add(time.Hour)), until(end.Add(2*time.Hour)))
	for _, tc := range []struct {
		reason  string
		windows windows
		after   time.Time
		want    time.Time
	}{
		{"there are none", nil, start, time.Time{}},
		{"a start", windows{newWindow("w")}, start.Add(-ns), start},
		{"at the start, the end", windows{newWindow("w")}, start, end},
		{"an end", windows{newWindow("w")}, end.Add(-ns), end},
		{"at the end, nothing", windows{newWindow("w")}, end, time.Time{}},
		{"the earliest of several", windows{later, newWindow("w")}, start, end},
		{"the earliest of several, in whatever order", windows{newWindow("w"), later}, start, end},
		{"the start of the next one", windows{newWindow("w"), later}, end, end.Add(time.Hour)},
		{"those that do not select the object do not count", windows{newWindow("w", ofConfigs(nil)), newWindow("x", elsewhere), later}, start, end.Add(time.Hour)},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if got := suspension.NextChange(tc.windows, suspension.ForConfigs, object("a"), tc.after); !got.Equal(tc.want) {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
