// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/test/environment"
)

// ofPredecessorLabel marks jobs that another operator has ended.
const ofPredecessorLabel = "of-predecessor"

// A job that the APPUiO upgrade controller has left behind: its status would not be accepted any more.
func TestJobOfTheAPPUiOControllerKeepsItsOutcome(t *testing.T) {
	c := newCluster(t)
	config := create(c, aConfig(creatingAJobNow(), func(config *v1beta1.UpgradeConfig) { config.Spec.Schedule.Suspend = true }))
	old := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{
			"startAfter": "2025-01-07T21:00:00Z", "startBefore": "2025-01-07T22:00:00Z",
			"desiredVersion": map[string]any{"version": installed}, "config": map[string]any{"upgradeTimeout": "12h"},
		},
	}}
	old.SetAPIVersion(v1beta1.GroupVersion.String())
	old.SetKind("UpgradeJob")
	old.SetNamespace(environment.Namespace)
	old.SetLabels(map[string]string{ofPredecessorLabel: "true"})
	old.SetName("cluster-upgrade-4-18-1-1736283600")
	c.withUncheckedStatus(old, func() {
		if err := env.Client.Create(c.ctx, old); err != nil {
			t.Fatal(err)
		}
		condition := func(kind, reason string) map[string]any {
			return map[string]any{"type": kind, "status": "True", "reason": reason, "message": "", "lastTransitionTime": "2025-01-07T21:00:00Z"}
		}
		old.Object["status"] = map[string]any{
			"conditions":  []any{condition("Started", "Started"), condition("Succeeded", "Succeeded")},
			"hookTracker": []any{map[string]any{"hookEvent": "Finish", "upgradeJobHook": "tell", "status": "complete"}},
		}
		if err := env.Client.Status().Update(c.ctx, old); err != nil {
			t.Fatal(err)
		}
	})
	c.startOperator()
	job := &v1beta1.UpgradeJob{}
	job.Namespace, job.Name = old.GetNamespace(), old.GetName()
	c.eventually("the job has its phase", func() error {
		if err := env.Client.Get(c.ctx, client.ObjectKeyFromObject(job), job); err != nil {
			return err
		}
		if job.Status.Phase != v1beta1.PhaseSucceeded {
			return fmt.Errorf("it is %q", job.Status.Phase)
		}
		return nil
	})
	if job.Status.CompletionTime != nil || len(job.Status.Conditions) != 2 || len(job.Status.HookTracker) != 1 {
		t.Errorf("its status is %+v", job.Status)
	}
	// It is in nobody's way.
	c.kubectl("-n", environment.Namespace, "patch", "upgradeconfigs.managedupgrade.appuio.io", config.Name, "--type=merge", "-p", `{"spec":{"schedule":{"suspend":false}}}`)
	c.wait(c.jobOf(config), inPhase(v1beta1.PhasePending))
	c.remove(job)
	c.gone(job)
}

// withUncheckedStatus does something while the API server takes any status of a job.
func (c *cluster) withUncheckedStatus(job *unstructured.Unstructured, do func()) {
	c.t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	key := client.ObjectKey{Name: "upgradejobs.managedupgrade.appuio.io"}
	edit := func(change func(*apiextensionsv1.CustomResourceDefinition)) {
		c.eventually("the kind is changed", func() error {
			if err := env.Client.Get(c.ctx, key, crd); err != nil {
				return err
			}
			change(crd)
			return env.Client.Update(c.ctx, crd)
		})
	}
	strict := &apiextensionsv1.CustomResourceDefinition{}
	if err := env.Client.Get(c.ctx, key, strict); err != nil {
		c.t.Fatal(err)
	}
	preserve := true
	edit(func(crd *apiextensionsv1.CustomResourceDefinition) {
		for i := range crd.Spec.Versions {
			crd.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties["status"] = apiextensionsv1.JSONSchemaProps{
				Type: "object", XPreserveUnknownFields: &preserve, Properties: map[string]apiextensionsv1.JSONSchemaProps{"phase": {Type: "string"}},
			}
		}
	})
	restored := func() {
		edit(func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec = *strict.Spec.DeepCopy() })
	}
	c.atEnd = append(c.atEnd, restored)
	c.accepts(job, true)
	do()
	restored()
	c.accepts(job, false)
}

// accepts waits until the API server takes, or does not take, an unknown field in the status of a job.
func (c *cluster) accepts(like *unstructured.Unstructured, wanted bool) {
	c.t.Helper()
	probe := like.DeepCopy()
	probe.SetName(fmt.Sprintf("probe-%d", time.Now().UnixNano()))
	probe.SetResourceVersion("")
	probe.SetUID("")
	delete(probe.Object, "status")
	if err := env.Client.Create(c.ctx, probe); err != nil {
		c.t.Fatal(err)
	}
	defer c.remove(probe)
	c.eventually("the API server has taken the change up", func() error {
		if err := env.Client.Get(c.ctx, client.ObjectKeyFromObject(probe), probe); err != nil {
			return err
		}
		probe.Object["status"] = map[string]any{"phase": "Unheard"}
		err := env.Client.Status().Update(c.ctx, probe)
		if (err == nil) != wanted {
			return fmt.Errorf("it accepts the status: %t", err == nil)
		}
		return nil
	})
}
