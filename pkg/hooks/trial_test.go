// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package hooks_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/hooks"
)

func TestTrial(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	name := strings.Repeat("a.", 126) + "a"
	hook := &v1beta1.UpgradeJobHook{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "upgrades"}}
	hook.Spec.Events = []v1beta1.HookEvent{"StepStarted/UpgradeCommenced", v1beta1.HookEventFinish}
	hook.Spec.Template.Labels = map[string]string{"team": "a"}
	hook.Spec.Template.Spec.Template.Spec.Containers = []corev1.Container{{Name: "notify", Env: []corev1.EnvVar{{Name: "OWN"}}}}
	untouched := hook.DeepCopy()

	job, err := hooks.Trial(fake.NewClientBuilder().WithScheme(scheme).Build(), hook)
	if err != nil {
		t.Fatal(err)
	}
	if job.Name != "" || !strings.HasSuffix(job.GenerateName, "-") || len(job.GenerateName) > 58 || job.Namespace != "upgrades" || len(job.OwnerReferences) > 0 {
		t.Errorf("got name %q, generate name %q, namespace %q, owners %v", job.Name, job.GenerateName, job.Namespace, job.OwnerReferences)
	}
	expectJobName(t, strings.TrimSuffix(job.GenerateName, "-"))
	for key, want := range map[string]string{
		"team": "a", v1beta1.HookLabel: hooks.LabelValue(name), v1beta1.HookEventLabel: hooks.LabelValue("StepStarted/UpgradeCommenced"),
	} {
		if got := job.Labels[key]; got != want {
			t.Errorf("label %s is %q, want %q", key, got, want)
		}
	}
	if diff := cmp.Diff(hook.Spec.Template.Spec.Template.Spec, job.Spec.Template.Spec); diff != "" {
		t.Errorf("pods (-template +job):\n%s", diff)
	}
	if diff := cmp.Diff(untouched, hook); diff != "" {
		t.Errorf("the hook was changed (-before +after):\n%s", diff)
	}
}
