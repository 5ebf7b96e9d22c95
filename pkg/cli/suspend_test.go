// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"strings"
	"testing"
	"time"

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
