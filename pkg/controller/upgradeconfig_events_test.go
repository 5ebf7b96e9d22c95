// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// freeze returns a window that suspends every config from an hour before the start of the job under test to an hour after it.
func freeze(overrides ...func(*v1beta1.UpgradeSuspensionWindow)) *v1beta1.UpgradeSuspensionWindow {
	window := &v1beta1.UpgradeSuspensionWindow{
		ObjectMeta: metav1.ObjectMeta{Name: "freeze", Namespace: namespace},
		Spec: v1beta1.UpgradeSuspensionWindowSpec{
			Start: metav1.NewTime(startAfter.Add(-time.Hour)), End: metav1.NewTime(startAfter.Add(time.Hour)), ConfigSelector: &metav1.LabelSelector{},
		},
	}
	for _, override := range overrides {
		override(window)
	}
	return window
}

// expectEvents fails unless just these were published since the last time, in short: type, reason, and the beginning of
// the note.
func (w *world) expectEvents(when string, want ...string) {
	w.t.Helper()
	got := w.events()
	same := len(got) == len(want)
	for i := range min(len(got), len(want)) {
		same = same && strings.HasPrefix(got[i], want[i])
	}
	if !same {
		w.t.Errorf("%s: Events (-want +got):\n%s", when, cmp.Diff(want, got))
	}
}

func TestConfigTellsItsTurns(t *testing.T) {
	const (
		scheduled   = "Normal Scheduled The next job is created at "
		suspended   = "Normal Suspended spec.schedule.suspend is set."
		suspendedBy = "Normal SuspensionWindow UpgradeSuspensionWindow freeze suspends upgrades until "
		invalid     = "Warning InvalidConfig The configuration cannot be used: "
		noUpdate    = "Normal NoUpdateAvailable The cluster offers no update."
		created     = "Normal JobCreated Created UpgradeJob weekly-"
		failed      = "Warning CreateFailed create UpgradeJob weekly-"
		skipped     = "Normal StartSkipped No job is created for the start at 2026-11-24T22:00:00Z "
	)
	cv := newClusterVersion()
	at := func(d time.Duration) func(*world) {
		return func(w *world) { w.clock.SetTime(startAfter.Add(d)) }
	}
	spec := func(apply func(*v1beta1.UpgradeConfigSpec)) func(*world) {
		return func(w *world) { change(w, newConfig(), func(c *v1beta1.UpgradeConfig) { apply(&c.Spec) }) }
	}
	suspend := func(on bool) func(*world) {
		return spec(func(s *v1beta1.UpgradeConfigSpec) { s.Schedule.Suspend = on })
	}
	location := func(name string) func(*world) {
		return spec(func(s *v1beta1.UpgradeConfigSpec) { s.Schedule.Location = name })
	}
	offers := func(versions ...string) func(*world) {
		return func(w *world) {
			change(w, cv, func(cv *configv1.ClusterVersion) {
				cv.Status.AvailableUpdates = nil
				for _, v := range versions {
					cv.Status.AvailableUpdates = append(cv.Status.AvailableUpdates, configv1.Release{Version: v, Image: "image:" + v})
				}
			})
		}
	}
	window := func(w *world) {
		if err := w.client.Create(w.t.Context(), freeze()); err != nil {
			w.t.Fatal(err)
		}
	}
	noWindow := func(w *world) { w.remove(freeze()) }
	unwritable := func(w *world) { w.api.fault = failing("create UpgradeJob", -1, errBroken) }
	writable := func(w *world) { w.api.fault = nil }
	type turn struct {
		happens func(*world)
		told    []string
	}
	for _, tc := range []struct {
		reason string
		turns  []turn
	}{
		{"nothing is wrong", []turn{{at(-time.Hour), nil}, {at(0), []string{created}}, {at(time.Hour), nil}}},
		{"born when a start is due", []turn{{at(0), []string{created}}}},
		{"suspended, and not any more", []turn{{at(-time.Hour), nil}, {suspend(true), []string{suspended}}, {suspend(false), []string{scheduled}}}},
		{"born suspended", []turn{{suspend(true), []string{suspended}}, {at(2 * time.Hour), nil}}},
		{"suspended for two weeks", []turn{
			{suspend(true), []string{suspended}}, {at(24 * time.Hour), nil},
			{at(7 * 24 * time.Hour), []string{"Normal StartSkipped No job is created for the start at 2026-12-01T22:00:00Z (Suspended)"}},
		}},
		{"in a window, and not any more", []turn{{at(-90 * time.Minute), nil}, {window, nil}, {at(-time.Hour), []string{suspendedBy}}, {noWindow, []string{scheduled}}}},
		{"suspended for other reasons", []turn{{at(-time.Hour), nil}, {suspend(true), []string{suspended}}, {window, nil}, {suspend(false), []string{suspendedBy}}}},
		{"not to be used, and corrected", []turn{{at(-time.Hour), nil}, {location("Europe/Bern"), []string{invalid}}, {location("Europe/Zug"), nil}, {location("UTC"), []string{scheduled}}}},
		{"born not to be used", []turn{{location("Europe/Bern"), []string{invalid}}}},
		{"no update is offered", []turn{
			{at(-time.Hour), nil}, {offers(), nil}, {at(0), []string{noUpdate}}, {at(2 * time.Hour), nil},
		}},
		{"an update is offered in the end", []turn{{offers(), []string{noUpdate}}, {offers("4.18.3"), []string{created}}}},
		{"what is in the way changes", []turn{
			{offers(), []string{noUpdate}}, {suspend(true), []string{suspended}},
		}},
		{"the job cannot be created for a while", []turn{{at(-time.Hour), nil}, {unwritable, nil}, {at(0), []string{failed}}, {writable, []string{created}}}},
		{"the job cannot be created in time", []turn{{unwritable, []string{failed}}, {at(2 * time.Hour), []string{scheduled, skipped + "(Missed)"}}}},
		{"the operator was away", []turn{{at(2 * time.Hour), []string{skipped + "(Missed)"}}}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			config := newConfig()
			w := newWorld(t, cv.DeepCopy(), config).register(plain())
			r := w.configs()
			for _, turn := range tc.turns {
				turn.happens(w)
				w.reconcile(r, config)
				w.expectEvents("after the turn", turn.told...)
				for range 3 {
					w.elapse(time.Second)
					w.reconcile(r, config)
				}
				w.expectEvents("in the passes that follow")
			}
		})
	}
}

func TestConfigTellsWhatIsWritten(t *testing.T) {
	config := newConfig(func(c *v1beta1.UpgradeConfig) { c.Spec.Schedule.Suspend = true })
	for _, err := range []error{errBroken, errConflict} {
		w := newWorld(t, newClusterVersion(), config.DeepCopy()).register(plain())
		w.clock.SetTime(startAfter.Add(-time.Hour))
		w.api.fault = failing("patch UpgradeConfig/status", 2, err)
		r := w.configs()
		w.reconcile(r, config)
		w.reconcile(r, config)
		w.expectEvents("while the status cannot be written")
		w.reconcile(r, config)
		w.expectEvents("once it is written", "Normal Suspended ")
		w.reconcile(w.configs(), config)
		w.expectEvents("after a restart")
	}
}

func TestConfigTellsAtMostWhatAnEventTakes(t *testing.T) {
	config := newConfig()
	w := newWorld(t, newClusterVersion(), config, freeze(func(f *v1beta1.UpgradeSuspensionWindow) { f.Spec.Reason = strings.Repeat("é", 2000) })).register(plain())
	w.reconcile(w.configs(), config)
	first := w.events()
	w.clock.SetTime(startAfter.Add(7 * 24 * time.Hour)) // the next start, while the window is extended
	change(w, freeze(), func(f *v1beta1.UpgradeSuspensionWindow) { f.Spec.End = metav1.NewTime(w.clock.Now().Add(time.Hour)) })
	w.reconcile(w.configs(), config)
	events := append(first, w.events()...)
	if len(events) != 2 {
		t.Fatalf("got %q, want two", events)
	}
	for i, begin := range []string{"Normal SuspensionWindow ", "Normal StartSkipped "} {
		note, ok := strings.CutPrefix(events[i], begin)
		if !ok || len(note) > 1024 || !strings.HasSuffix(note, "é...") {
			t.Errorf("got a note of %d bytes, want one that begins with %q and is cut at 1 kB: %q", len(note), begin, events[i])
		}
	}
}
