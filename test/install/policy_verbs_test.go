// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// Everything that the operator does to the objects which the policies guard is allowed, by its own code.
func TestPoliciesAllowWhatTheOperatorDoes(t *testing.T) {
	operator := operatorWithAllRights(t)
	cluster := openshift.NewCluster(operator, operator)
	cv := &configv1.ClusterVersion{
		ObjectMeta: metav1.ObjectMeta{Name: "version"},
		Spec:       configv1.ClusterVersionSpec{ClusterID: "7d0c51de-0a82-4b09-b2b9-414dfee7210a", DesiredUpdate: &configv1.Update{Version: "4.18.1", Force: true}},
	}
	pool := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: "canary"}}
	put(t, cv)
	put(t, pool)
	version := func(what string, do func(*configv1.ClusterVersion) (*configv1.ClusterVersion, error)) {
		t.Helper()
		written, err := do(cv)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if written.ResourceVersion == cv.ResourceVersion {
			t.Errorf("%s changed nothing", what)
		}
		cv = written
	}
	version("lock", func(cv *configv1.ClusterVersion) (*configv1.ClusterVersion, error) {
		return cluster.SetLock(t.Context(), cv, "a/b")
	})
	version("set the channel", func(cv *configv1.ClusterVersion) (*configv1.ClusterVersion, error) {
		return cluster.SetChannel(t.Context(), cv, "stable-4.19")
	})
	version("upgrade", func(cv *configv1.ClusterVersion) (*configv1.ClusterVersion, error) {
		return cluster.SetDesiredUpdate(t.Context(), cv, openshift.Release{Version: "4.18.2", Image: "quay.io/release@sha256:0"}, "a/c")
	})
	version("take the update back", func(cv *configv1.ClusterVersion) (*configv1.ClusterVersion, error) {
		return cluster.ClearDesiredUpdate(t.Context(), cv)
	})
	version("unlock", func(cv *configv1.ClusterVersion) (*configv1.ClusterVersion, error) {
		return cluster.SetLock(t.Context(), cv, "")
	})

	paused, err := cluster.PausePool(t.Context(), pool, "a/b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.ReleasePool(t.Context(), paused); err != nil {
		t.Fatal(err)
	}
}

// machineSet is one of the Machine API; with a job's label it is the operator's.
func machineSet(labels map[string]string) *machinev1beta1.MachineSet {
	return &machinev1beta1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: openshift.MachineNamespace, GenerateName: "extra-", Labels: labels}}
}

// The operator makes, changes and removes machines of its own, and none of the cluster's.
func TestPolicyOfMachines(t *testing.T) {
	const refused = "denied request: the operator touches those MachineSets and Machines only that have the label"
	operator := operatorWithAllRights(t)
	cluster := openshift.NewCluster(operator, operator)
	original := machineSet(nil)
	put(t, original)

	extra := openshift.ExtraMachineSet(original, "extra", "0000-1111", "a/b")
	if err := cluster.CreateExtraMachineSet(t.Context(), extra); err != nil {
		t.Fatal(err)
	}
	machine := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: openshift.MachineNamespace, Name: "extra-1", Labels: extra.Spec.Template.Labels,
	}}
	put(t, machine)
	if err := cluster.ExcludeFromDraining(t.Context(), machine); err != nil {
		t.Error(err)
	}
	if err := cluster.DeleteMachine(t.Context(), machine); err != nil {
		t.Error(err)
	}
	if err := cluster.DeleteMachineSet(t.Context(), extra); err != nil {
		t.Error(err)
	}

	foreign := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: openshift.MachineNamespace, Name: "master-0"}}
	put(t, foreign)
	for what, err := range map[string]error{
		"delete a MachineSet of the cluster":    cluster.DeleteMachineSet(t.Context(), original),
		"delete a Machine of the cluster":       cluster.DeleteMachine(t.Context(), foreign),
		"change a Machine of the cluster":       cluster.ExcludeFromDraining(t.Context(), foreign),
		"create a MachineSet without the label": operator.Create(t.Context(), machineSet(map[string]string{"other": "x"})),
		"take a Machine over": operator.Patch(t.Context(), foreign.DeepCopy(),
			client.RawPatch("application/merge-patch+json", []byte(`{"metadata": {"labels": {"managedupgrade.appuio.io/upgrade-job": "x"}}}`))),
	} {
		if err == nil || !strings.Contains(err.Error(), refused) {
			t.Errorf("%s: %v", what, err)
		}
	}
	own := machineSet(map[string]string{openshift.UpgradeJobLabel: "x"})
	put(t, own)
	disown := client.RawPatch("application/merge-patch+json", []byte(`{"metadata": {"labels": null}}`))
	if err := operator.Patch(t.Context(), own.DeepCopy(), disown); err == nil || !strings.Contains(err.Error(), "does not change the label") {
		t.Errorf("the operator disowns a MachineSet: %v", err)
	}
}
