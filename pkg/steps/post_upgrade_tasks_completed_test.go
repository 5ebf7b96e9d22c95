// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

const reinit = "file-integrity.openshift.io/re-init"

func reinitializing(job *v1beta1.UpgradeJob) {
	job.Spec.Config.PostUpgradeTasks = &v1beta1.PostUpgradeTasks{ReinitializeFileIntegrity: true}
}

// refusingFileIntegrity fails patches of the FileIntegrity.
func refusingFileIntegrity(err error) interceptor.Funcs {
	return interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
		if _, ok := o.(*unstructured.Unstructured); ok {
			return err
		}
		return c.Patch(ctx, o, patch, options...)
	}}
}

// The annotation is added, once more after a crash, and no other is changed.
func TestPostUpgradeTasksCompleted(t *testing.T) {
	before := map[string]string{"example.com/owner": "security", "file-integrity.openshift.io/other": "x"}
	w := newMachineWorld(t, newJob(reinitializing, commenced), openshifttest.FileIntegrity(maps.Clone(before)))
	for range 2 {
		w.expect(steps.PostUpgradeTasksCompleted(), 0, verdict{
			outcome: steps.Completed, reason: "Completed", says: "FileIntegrity openshift-file-integrity/osd-fileintegrity is being reinitialized",
		})
	}
	got := openshifttest.FileIntegrity(nil)
	if err := w.api.Get(t.Context(), client.ObjectKeyFromObject(got), got); err != nil {
		t.Fatal(err)
	}
	before[reinit] = ""
	if !maps.Equal(got.GetAnnotations(), before) {
		t.Errorf("got the annotations %v, want %v", got.GetAnnotations(), before)
	}
}

func TestPostUpgradeTasksCompletedWithNothingToDo(t *testing.T) {
	asked := refusingFileIntegrity(errors.New("asked"))
	for _, tc := range []struct {
		reason string
		job    []jobOption
		faults interceptor.Funcs
		says   string
	}{
		{"nobody wants anything", nil, asked, "nothing else"},
		{"not that", []jobOption{func(job *v1beta1.UpgradeJob) { job.Spec.Config.PostUpgradeTasks = &v1beta1.PostUpgradeTasks{} }}, asked, "nothing else"},
		{"nothing is upgraded", []jobOption{reinitializing, withoutVersion}, asked, "nothing else"},
		{"there is no such object", []jobOption{reinitializing}, interceptor.Funcs{}, "the cluster does not have it"},
		{"there is no such kind", []jobOption{reinitializing}, refusingFileIntegrity(&meta.NoKindMatchError{}), "the cluster does not have it"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newMachineWorld(t, newJob(tc.job...))
			w.faults = tc.faults
			w.expect(steps.PostUpgradeTasksCompleted(), 0, verdict{outcome: steps.Completed, reason: "Completed", says: tc.says})
		})
	}
}

func TestPostUpgradeTasksCompletedMeetsAnError(t *testing.T) {
	broken := errors.New("etcd is away")
	w := newMachineWorld(t, newJob(reinitializing, commenced), openshifttest.FileIntegrity(nil))
	w.faults = refusingFileIntegrity(broken)
	if err := w.expectError(steps.PostUpgradeTasksCompleted(), 0); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}

	w = newMachineWorld(t, newJob(reinitializing, commenced), openshifttest.FileIntegrity(nil))
	w.lockedBy = "ns/other"
	if err := w.expectError(steps.PostUpgradeTasksCompleted(), 0); !strings.Contains(err.Error(), "ns/other") {
		t.Errorf("locked by another: got %v", err)
	}
}
