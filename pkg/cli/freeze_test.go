// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/muo"
)

// zurich is a wall clock time there.
func zurich(text string) time.Time {
	at, err := time.ParseInLocation("2006-01-02 15:04", text, actZone)
	if err != nil {
		panic(err)
	}
	return at
}

// frozenWorld has two configs, a job that runs, and two that wait for the Tuesday.
func frozenWorld(t *testing.T) *actWorld {
	config := actConfig(func(c *v1beta1.UpgradeConfig) { c.Spec.PinVersionWindow = &v1beta1.Duration{Duration: 4 * time.Hour} })
	daily := actConfig(func(c *v1beta1.UpgradeConfig) {
		c.Name, c.UID, c.Labels, c.Spec.Schedule.Cron = "daily", "uid-daily", map[string]string{"tier": "test"}, "0 1 * * *"
	})
	return newActWorld(t, config, daily,
		actJob(config, zurich("2026-11-24 22:00"), v1beta1.PhasePending),
		actJob(daily, zurich("2026-11-24 01:00"), v1beta1.PhasePending, func(j *v1beta1.UpgradeJob) { j.Labels["tier"] = "test" }),
		actJob(daily, zurich("2026-11-23 01:00"), v1beta1.PhaseActive), actJob(daily, zurich("2026-11-22 01:00"), v1beta1.PhaseFailed))
}

func TestFreeze(t *testing.T) {
	w := frozenWorld(t)
	all := []string{"freeze", "--from", "2026-11-23 18:00", "--to", "2026-12-20 00:00", "--reason", "Christmas", "--all"}
	w.expect("freeze-dry-run", ExitOK, append(all, "--dry-run")...)
	windows := &v1beta1.UpgradeSuspensionWindowList{}
	if err := w.c.List(t.Context(), windows); err != nil || len(windows.Items) != 0 {
		t.Fatalf("after a dry run there are %d windows (%v), want none", len(windows.Items), err)
	}
	w.expect("freeze", ExitOK, all...)
	created := get(w, actWindow("freeze-20261123-1700", actNow, actNow))
	want := v1beta1.UpgradeSuspensionWindowSpec{
		Start: metav1.NewTime(zurich("2026-11-23 18:00").UTC()), End: metav1.NewTime(zurich("2026-12-20 00:00").UTC()), Reason: "Christmas",
		ConfigSelector: &metav1.LabelSelector{}, JobSelector: &metav1.LabelSelector{},
	}
	if diff := cmp.Diff(want, created.Spec, cmp.Comparer(func(a, b metav1.Time) bool { return a.Equal(&b) })); diff != "" {
		t.Errorf("window (-want +got):\n%s", diff)
	}
	w.expect("freeze-twice", ExitFailed, all...)
}

func TestFreezeSome(t *testing.T) {
	w := frozenWorld(t)
	w.expect("freeze-configs", ExitOK, "freeze", "--to", "2026-12-01T21:00:00Z", "--reason", "Audit", "--configs", "tier=prod", "--name", "audit")
	created := get(w, actWindow("audit", actNow, actNow))
	if created.Spec.JobSelector != nil || created.Spec.ConfigSelector.MatchLabels["tier"] != "prod" || !created.Spec.Start.Time.Equal(actNow) {
		t.Errorf("window %+v", created.Spec)
	}
	w.expect("freeze-jobs-yaml", ExitOK, "freeze", "--from", "2026-11-24", "--to", "2026-11-25", "--location", "America/New_York", "--reason", "Audit", "--jobs", "tier in (prod)", "--dry-run", "-o", "yaml")
	w.expect("freeze-nothing", ExitOK, "freeze", "--from", "2027-01-01", "--to", "2027-01-02", "--reason", "New year", "--jobs", "tier=none")
}

// TestFreezeOfPinning: a window that ends before a start counts for it if its job would be created in the window, and could not be made up for.
func TestFreezeOfPinning(t *testing.T) {
	config := actConfig(func(c *v1beta1.UpgradeConfig) { c.Spec.PinVersionWindow = &v1beta1.Duration{Duration: 4 * time.Hour} })
	for _, tc := range []struct {
		reason, from, to string
		jobs             []v1beta1.UpgradeJob
		want             []time.Time
	}{
		{"the start is in it", "2026-11-24 21:00", "2026-11-24 23:00", nil, []time.Time{zurich("2026-11-24 22:00")}},
		{"it ends at the start", "2026-11-24 21:00", "2026-11-24 22:00", nil, nil},
		{"it begins at the start", "2026-11-24 22:00", "2026-11-24 22:01", nil, []time.Time{zurich("2026-11-24 22:00")}},
		{"its job would be created in it, an hour before the end", "2026-11-24 17:00", "2026-11-24 19:00", nil, []time.Time{zurich("2026-11-24 22:00")}},
		{"its job can be created when the window ends", "2026-11-24 17:00", "2026-11-24 18:30", nil, nil},
		{"its job would be created before it", "2026-11-24 18:01", "2026-11-24 21:00", nil, nil},
		{"its job is there", "2026-11-24 21:00", "2026-11-24 23:00", []v1beta1.UpgradeJob{*actJob(config, zurich("2026-11-24 22:00"), v1beta1.PhasePending)}, nil},
		{"what is over does not count", "2026-11-16 00:00", "2026-11-24 00:00", nil, nil},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got := frozenStarts(actWindow("x", zurich(tc.from), zurich(tc.to), ofConfigs), config, tc.jobs, actNow)
			if diff := cmp.Diff(tc.want, got.starts, cmp.Comparer(time.Time.Equal)); diff != "" {
				t.Errorf("starts (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFreezeOfDueStarts: the start at 22:00, whose job is due since 18:00 and is created by 19:00 or not at all.
func TestFreezeOfDueStarts(t *testing.T) {
	config := actConfig(func(c *v1beta1.UpgradeConfig) { c.Spec.PinVersionWindow = &v1beta1.Duration{Duration: 4 * time.Hour} })
	start := []time.Time{zurich("2026-11-24 22:00")}
	for _, tc := range []struct {
		reason, now, from, to string
		want                  []time.Time
	}{
		{"it begins before the operator tries again", "2026-11-24 18:30", "2026-11-24 18:30", "2026-11-24 19:00", start},
		{"it ends in time", "2026-11-24 18:30", "2026-11-24 18:30", "2026-11-24 18:59", nil},
		{"the start gets no job in any case", "2026-11-24 19:30", "2026-11-24 18:00", "2026-11-24 20:00", nil},
		{"the start gets no job in any case, and lies in it", "2026-11-24 19:30", "2026-11-24 18:00", "2026-11-24 23:00", start},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got := frozenStarts(actWindow("x", zurich(tc.from), zurich(tc.to), ofConfigs), config, nil, zurich(tc.now))
			if diff := cmp.Diff(tc.want, got.starts, cmp.Comparer(time.Time.Equal)); diff != "" {
				t.Errorf("starts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFreezeUsage(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		want string
	}{
		{"no end", []string{"--reason", "x", "--all"}, "--to is missing"},
		{"no reason", []string{"--to", "2026-12-01", "--all"}, "--reason is missing"},
		{"nothing selected", []string{"--to", "2026-12-01", "--reason", "x"}, "say what is frozen"},
		{"no time", []string{"--to", "soon", "--reason", "x", "--all"}, `--to "soon" is no time`},
		{"end before start", []string{"--from", "2026-12-02", "--to", "2026-12-01", "--reason", "x", "--all"}, "is not after --from"},
		{"end at start", []string{"--from", "2026-12-01", "--to", "2026-12-01", "--reason", "x", "--all"}, "is not after --from"},
		{"over", []string{"--from", "2026-11-01", "--to", "2026-11-02", "--reason", "x", "--all"}, "is over already"},
		{"no zone", []string{"--to", "2026-12-01", "--reason", "x", "--all", "--location", "Zurich"}, `--location "Zurich" is no IANA time zone`},
		{"time in a gap", []string{"--to", "2027-03-28 02:30", "--reason", "x", "--all"}, "does not exist in Europe/Zurich"},
		{"selector", []string{"--to", "2026-12-01", "--reason", "x", "--configs", "a b"}, `--configs "a b" is no label selector`},
		{"argument", []string{"--to", "2026-12-01", "--reason", "x", "--all", "weekly"}, "weekly"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			text, status := frozenWorld(t).run(append([]string{"freeze"}, tc.args...)...)
			if status != ExitUsage || !strings.Contains(text, tc.want) {
				t.Errorf("status %d, want 2 and %q:\n%s", status, tc.want, text)
			}
		})
	}
}

// TestFreezeTimes: people write them in many ways, and leave out zeros.
func TestFreezeTimes(t *testing.T) {
	for from, want := range map[string]string{
		"2026-12-20 9:00": "2026-12-20T08:00:00Z", "2026-12-20T09:00": "2026-12-20T08:00:00Z", "2026-12-20 18:00:00.5": "2026-12-20T17:00:00Z",
		"2026-12-20T09:00:00-05:00": "2026-12-20T14:00:00Z", "2026-12-20": "2026-12-19T23:00:00Z",
	} {
		text, status := frozenWorld(t).run("freeze", "--from", from, "--to", "2028-01-01", "--reason", "x", "--all", "--dry-run", "-o", "yaml")
		if status != ExitOK || !strings.Contains(text, "start: \""+want+"\"") {
			t.Errorf("--from %q: status %d, want %s:\n%s", from, status, want, text)
		}
	}
}

// TestFreezeOfManaged: objects of the Managed Upgrade Operator's kind count, and their jobs are selected before they are there.
func TestFreezeOfManaged(t *testing.T) {
	managed := &v1alpha1.UpgradeConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "upgrades", Name: "managed-upgrade-config"}}
	managed.Spec = v1alpha1.UpgradeConfigSpec{Type: v1alpha1.OSD, UpgradeAt: "2026-11-24T21:00:00Z", Desired: v1alpha1.Update{Version: "4.18.2", Channel: "stable-4.18"}}
	const skipped, starting = "of the Managed Upgrade Operator's UpgradeConfig managed-upgrade-config, which starts at Tue 2026-11-24 22:00 CET, will be skipped",
		"of the Managed Upgrade Operator's UpgradeConfig managed-upgrade-config starts at Tue 2026-11-24 22:00 CET all the same"
	there := &v1beta1.UpgradeJob{ObjectMeta: metav1.ObjectMeta{Namespace: "upgrades", Name: muo.JobName(managed)}, Spec: v1beta1.UpgradeJobSpec{StartAfter: metav1.NewTime(zurich("2026-11-24 22:00"))}}
	for _, tc := range []struct {
		reason  string
		args    []string
		objects []client.Object
		want    string
	}{
		{"all", []string{"--to", "2026-12-01", "--all"}, nil, skipped},
		{"its jobs", []string{"--to", "2026-12-01", "--jobs", v1alpha1.UpgradeConfigLabel + "=managed-upgrade-config"}, nil, skipped},
		{"other jobs", []string{"--to", "2026-12-01", "--jobs", "tier=prod"}, nil, starting},
		{"it starts later", []string{"--to", "2026-11-24", "--all"}, nil, "It selects no UpgradeConfig, and no UpgradeJob that starts in it."},
		{"its job is there", []string{"--to", "2026-12-01", "--all"}, []client.Object{there}, "UpgradeJob " + there.Name + ", which starts"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newActWorld(t, append(tc.objects, managed)...)
			text, status := w.run(append([]string{"freeze", "--reason", "x"}, tc.args...)...)
			if status != ExitOK || !strings.Contains(text, tc.want) || strings.Count(text, "22:00") > 1 {
				t.Errorf("status %d, want 0 and %q once:\n%s", status, tc.want, text)
			}
		})
	}
}

func TestFreezeFails(t *testing.T) {
	args := []string{"freeze", "--to", "2026-12-01", "--reason", "x", "--all"}
	w := newActWorld(t)
	w.expect("freeze-empty-namespace", ExitFailed, args...)
	w = frozenWorld(t)
	w.funcs.Create = func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
		return denied("create", "upgradesuspensionwindows")
	}
	w.expect("freeze-forbidden", ExitFailed, args...)
}
