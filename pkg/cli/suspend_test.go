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

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

func TestSuspendAndUnsuspend(t *testing.T) {
	config := actConfig()
	stranger := actConfig(func(c *v1beta1.UpgradeConfig) { c.Name, c.UID = "other", "uid-other" })
	w := newActWorld(t, config, stranger, actJob(config, actNow.Add(-time.Hour), v1beta1.PhaseActive), actJob(config, actNow.Add(36*time.Hour), v1beta1.PhasePending),
		actJob(config, actNow.Add(-9*24*time.Hour), v1beta1.PhaseFailed), actJob(stranger, actNow.Add(time.Hour), v1beta1.PhasePending))
	w.expect("suspend", ExitOK, "suspend", "weekly")
	if !get(w, config).Spec.Schedule.Suspend || get(w, stranger).Spec.Schedule.Suspend {
		t.Error("want weekly suspended, and no other")
	}
	w.expect("suspend-twice", ExitOK, "suspend", "weekly")
	w.expect("unsuspend", ExitOK, "unsuspend", "weekly")
	if get(w, config).Spec.Schedule.Suspend {
		t.Error("weekly is still suspended")
	}
	w.expect("unsuspend-twice", ExitOK, "unsuspend", "weekly")
}

// TestUnsuspendTellsTheNextUpgrade: at 10:00 on a Monday, of starts at 22:00 on Tuesdays.
func TestUnsuspendTellsTheNextUpgrade(t *testing.T) {
	pinned := func(pin time.Duration) func(*v1beta1.UpgradeConfig) {
		return func(c *v1beta1.UpgradeConfig) { c.Spec.PinVersionWindow = &v1beta1.Duration{Duration: pin} }
	}
	cron := func(text string) func(*v1beta1.UpgradeConfig) {
		return func(c *v1beta1.UpgradeConfig) { c.Spec.Schedule.Cron = text }
	}
	suspended := func(options ...func(*v1beta1.UpgradeConfig)) *v1beta1.UpgradeConfig {
		return actConfig(append(options, func(c *v1beta1.UpgradeConfig) { c.Spec.Schedule.Suspend = true })...)
	}
	tuesday := zurich("2026-11-24 22:00")
	for _, tc := range []struct {
		reason  string
		config  *v1beta1.UpgradeConfig
		objects []client.Object
		want    []string
	}{
		{"the next start", suspended(), nil, []string{"Its next start is Tue 2026-11-24 22:00 CET."}},
		{"its job is created at once", suspended(pinned(36*time.Hour + 30*time.Minute)), nil, []string{"Its next start is Tue 2026-11-24 22:00 CET."}},
		{"its job had to be created before", suspended(pinned(39 * time.Hour)), nil, []string{"Its next start is Tue 2026-12-01 22:00 CET.",
			"The start at Tue 2026-11-24 22:00 CET gets no job: it had to be created by Mon 2026-11-23 08:00 CET."}},
		{"its job is there", suspended(pinned(39 * time.Hour)), []client.Object{actJob(actConfig(), tuesday, v1beta1.PhasePending)}, []string{"Its next start is Tue 2026-11-24 22:00 CET."}},
		{"its job is over", suspended(pinned(39 * time.Hour)), []client.Object{actJob(actConfig(), tuesday, v1beta1.PhaseSkipped, func(j *v1beta1.UpgradeJob) { j.Name = "over" })},
			[]string{"Its next start is Tue 2026-12-01 22:00 CET.", "The start at Tue 2026-11-24 22:00 CET has had its job, UpgradeJob over."}},
		{"the job of another config is there", suspended(pinned(39 * time.Hour)), []client.Object{
			actJob(actConfig(func(c *v1beta1.UpgradeConfig) { c.Name, c.UID = "other", "uid-other" }), tuesday, v1beta1.PhasePending)}, []string{"Its next start is Tue 2026-12-01 22:00 CET.",
			"The start at Tue 2026-11-24 22:00 CET gets no job: it had to be created by Mon 2026-11-23 08:00 CET."}},
		{"several are too late", suspended(pinned(14*time.Hour), cron("0 20-23 * * *")), nil, []string{"Its next start is Mon 2026-11-23 23:00 CET.",
			"The start at Mon 2026-11-23 20:00 CET gets no job: it had to be created by Mon 2026-11-23 07:00 CET. Nor is anything to be expected of the 2 after it."}},
		{"a window of configs covers it", suspended(), []client.Object{actWindow("freeze", tuesday, tuesday.Add(time.Hour), ofConfigs)}, []string{"Its next start is Tue 2026-12-01 22:00 CET.",
			"The start at Tue 2026-11-24 22:00 CET gets no job: UpgradeSuspensionWindow freeze suspends upgrades until 2026-11-24T22:00:00Z: Black Friday."}},
		{"a window of jobs covers two", suspended(), []client.Object{actWindow("freeze", tuesday, zurich("2026-12-02 00:00"), ofJobs)}, []string{"Its next start is Tue 2026-12-08 22:00 CET.",
			"The start at Tue 2026-11-24 22:00 CET comes to nothing: UpgradeSuspensionWindow freeze keeps the job from starting until Wed 2026-12-02 00:00 CET. Nor is anything to be expected of the one after it."}},
		{"a window covers all that are looked at", suspended(), []client.Object{actWindow("freeze", actNow, zurich("2028-01-01 00:00"), ofConfigs)}, []string{"Nothing is to be expected of its starts until Tue 2027-01-26 22:00 CET.",
			"The start at Tue 2026-11-24 22:00 CET gets no job: UpgradeSuspensionWindow freeze suspends upgrades until 2027-12-31T23:00:00Z: Black Friday. Nor is anything to be expected of the 9 after it."}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newActWorld(t, append(tc.objects, tc.config)...)
			text, status := w.run("unsuspend", "weekly")
			want := "$ oc managed-upgrade unsuspend weekly\nUpgradeConfig upgrades/weekly creates jobs again.\n" + strings.Join(tc.want, "\n") + "\n--- status 0\n"
			if diff := cmp.Diff(want, text); diff != "" || status != ExitOK {
				t.Errorf("status %d, output (-want +got):\n%s", status, diff)
			}
		})
	}
}

func TestSuspendOfInvalidSchedule(t *testing.T) {
	w := newActWorld(t, actConfig(func(c *v1beta1.UpgradeConfig) { c.Spec.Schedule.Cron = "0 22 30 2 *" }))
	w.expect("suspend-invalid", ExitOK, "suspend", "weekly")
}

func TestSuspendFails(t *testing.T) {
	w := newActWorld(t, actConfig())
	w.expect("suspend-unknown", ExitFailed, "suspend", "daily")
	w.expect("suspend-usage", ExitUsage, "suspend", "a", "b")
	answer := conflict("upgradeconfigs", "weekly")
	w.funcs.Patch = func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
		return answer
	}
	w.expect("suspend-conflict", ExitFailed, "suspend", "weekly")
	answer = denied("patch", "upgradeconfigs")
	w.expect("suspend-forbidden", ExitFailed, "suspend", "weekly")
	w.funcs.List = func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return denied("list", "upgradeconfigs")
	}
	w.expect("suspend-blind", ExitFailed, "suspend", "weekly")
}

// TestUnsuspendNeedsTheWindows: what keeps the next upgrade from being told keeps the config as it is; suspending needs no windows.
func TestUnsuspendNeedsTheWindows(t *testing.T) {
	config := actConfig()
	w := newActWorld(t, config)
	w.funcs.List = func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		if _, ok := list.(*v1beta1.UpgradeSuspensionWindowList); ok {
			return denied("list", "upgradesuspensionwindows")
		}
		return c.List(ctx, list, options...)
	}
	if text, status := w.run("suspend", "weekly"); status != ExitOK || !get(w, config).Spec.Schedule.Suspend {
		t.Errorf("status %d, want 0 and weekly suspended:\n%s", status, text)
	}
	if text, status := w.run("unsuspend", "weekly"); status != ExitFailed || !strings.Contains(text, "list UpgradeSuspensionWindows: ") || !get(w, config).Spec.Schedule.Suspend {
		t.Errorf("status %d, want 1 and weekly suspended:\n%s", status, text)
	}
}

func TestGitOps(t *testing.T) {
	for _, tc := range []struct {
		reason string
		set    func(*v1beta1.UpgradeConfig)
		want   string
	}{
		{"nobody", func(*v1beta1.UpgradeConfig) {}, ""},
		{"the operator and people", func(c *v1beta1.UpgradeConfig) {
			c.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "manager"}, {Manager: "kubectl-client-side-apply"}}
		}, ""},
		{"Argo CD by annotation", func(c *v1beta1.UpgradeConfig) {
			c.Annotations = map[string]string{"argocd.argoproj.io/tracking-id": "x"}
		}, "Argo CD (annotation argocd.argoproj.io/tracking-id)"},
		{"an instance", func(c *v1beta1.UpgradeConfig) { c.Labels["app.kubernetes.io/instance"] = "cluster" }, "a tool like Argo CD or Helm (label app.kubernetes.io/instance)"},
		{"Flux", func(c *v1beta1.UpgradeConfig) { c.Labels["kustomize.toolkit.fluxcd.io/name"] = "x" }, "Flux (label kustomize.toolkit.fluxcd.io/name)"},
		{"Argo CD by field manager", func(c *v1beta1.UpgradeConfig) {
			c.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "argocd-controller"}}
		}, "field manager argocd-controller"},
		{"Flux by field manager", func(c *v1beta1.UpgradeConfig) {
			c.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kustomize-controller"}}
		}, "field manager kustomize-controller"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if got := keptBy(actConfig(tc.set)); got != tc.want {
				t.Errorf("kept by %q, want %q", got, tc.want)
			}
		})
	}
	w := newActWorld(t, actConfig(func(c *v1beta1.UpgradeConfig) { c.Labels["app.kubernetes.io/instance"] = "cluster" }))
	text, _ := w.run("suspend", "weekly")
	if !strings.Contains(text, "warning: UpgradeConfig upgrades/weekly is kept by a tool like Argo CD or Helm") || !strings.Contains(text, "make it a commit (spec.schedule.suspend: true)") {
		t.Errorf("no warning:\n%s", text)
	}
}
