// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

// What is said of machines that have not come. Those whose Node is there are looked at by the tests of the step that waits for them.
func TestExtraMachineSaysWhatIsWrong(t *testing.T) {
	const set, machine = "MachineSet/openshift-machine-api/" + extraName, "Machine/openshift-machine-api/" + extraName + "-x7k2q"
	failing := func(s *machinev1beta1.MachineSet) {
		s.Status.ErrorReason, s.Status.ErrorMessage = new(machinev1beta1.InvalidConfigurationMachineSetError), new("no such zone")
	}
	for _, tc := range []struct {
		reason   string
		set      []func(*machinev1beta1.MachineSet)
		machines []machinev1beta1.Machine
		want     openshift.ExtraMachine
	}{
		{reason: "no Machine", want: openshift.ExtraMachine{Object: set, Message: "it has no Machine yet"}},
		{
			reason: "no Machine, and why", set: []func(*machinev1beta1.MachineSet){failing},
			want: openshift.ExtraMachine{Object: set, Message: "it has no Machine (InvalidConfiguration: no such zone)"},
		},
		{
			reason:   "another's Machine",
			machines: []machinev1beta1.Machine{*openshifttest.MachineOf(extraJob, "other", machinev1beta1.PhaseRunning, "n")},
			want:     openshift.ExtraMachine{Object: set, Message: "it has no Machine yet"},
		},
		{
			reason:   "it has just been made",
			machines: []machinev1beta1.Machine{*openshifttest.MachineOf(extraJob, extraName, "", "")},
			want:     openshift.ExtraMachine{Object: machine, Message: "it has no phase yet"},
		},
		{
			reason:   "it boots",
			machines: []machinev1beta1.Machine{*openshifttest.MachineOf(extraJob, extraName, machinev1beta1.PhaseProvisioned, "")},
			want:     openshift.ExtraMachine{Object: machine, Message: "it is in phase Provisioned"},
		},
		{
			reason: "it failed",
			machines: []machinev1beta1.Machine{*openshifttest.MachineOf(extraJob, extraName, "", "n",
				openshifttest.MachineFailed(machinev1beta1.InsufficientResourcesMachineError, "quota exceeded"))},
			want: openshift.ExtraMachine{Object: machine, Message: "it is in phase Failed (InsufficientResources: quota exceeded)"},
		},
		{
			reason: "it failed without a reason",
			machines: []machinev1beta1.Machine{*openshifttest.MachineOf(extraJob, extraName, machinev1beta1.PhaseFailed, "n", func(m *machinev1beta1.Machine) {
				m.Status.ErrorMessage = new("quota exceeded")
			})},
			want: openshift.ExtraMachine{Object: machine, Message: "it is in phase Failed (quota exceeded)"},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			api := newAPI(openshifttest.Node("n", "worker"))
			got, err := openshift.NewCluster(api, api).ExtraMachine(t.Context(), openshifttest.MachineSetOf(extraJob, extraName, now, true, tc.set...), tc.machines)
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// One machine is enough, where somebody has scaled the MachineSet.
func TestExtraMachineOfSeveral(t *testing.T) {
	api := newAPI(openshifttest.Node("n", "worker"))
	machines := []machinev1beta1.Machine{
		*openshifttest.MachineOf(extraJob, extraName, machinev1beta1.PhaseProvisioning, ""), *openshifttest.MachineOf(extraJob, extraName, machinev1beta1.PhaseRunning, "n"),
		*openshifttest.MachineOf(extraJob, extraName, machinev1beta1.PhaseProvisioning, ""),
	}
	got, err := openshift.NewCluster(api, api).ExtraMachine(t.Context(), openshifttest.MachineSetOf(extraJob, extraName, now, true), machines)
	if err != nil || !got.Ready {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestJudgeMachineEnd(t *testing.T) {
	drainable := openshifttest.MachineCondition(machinev1beta1.MachineDrainable, corev1.ConditionFalse, "a hook")
	draining := openshifttest.MachineCondition(machinev1beta1.MachineDrained, corev1.ConditionFalse, "a pod")
	drained := openshifttest.MachineCondition(machinev1beta1.MachineDrained, corev1.ConditionTrue, "Drain finished successfully")
	terminable := openshifttest.MachineCondition(machinev1beta1.MachineTerminable, corev1.ConditionFalse, "a volume")
	excluded := func(m *machinev1beta1.Machine) {
		m.Annotations = map[string]string{"machine.openshift.io/exclude-node-draining": ""}
	}
	failed := openshifttest.MachineFailed(machinev1beta1.DeleteMachineError, "no such instance")
	for _, tc := range []struct {
		reason  string
		node    string
		options []func(*machinev1beta1.Machine)
		want    openshift.MachineEnd
	}{
		{"it begins", "n", nil, openshift.MachineEnd{Node: "n"}},
		{"a hook holds the drain", "n", []func(*machinev1beta1.Machine){drainable}, openshift.MachineEnd{Node: "n", Message: "a hook"}},
		{"a pod does", "n", []func(*machinev1beta1.Machine){draining}, openshift.MachineEnd{Node: "n", Message: "a pod"}},
		{"drained", "n", []func(*machinev1beta1.Machine){drained}, openshift.MachineEnd{Node: "n", Drained: true}},
		{"drained, and a hook holds the end", "n", []func(*machinev1beta1.Machine){drainable, drained, terminable}, openshift.MachineEnd{Node: "n", Drained: true, Message: "a volume"}},
		{"no drain is wanted any more", "n", []func(*machinev1beta1.Machine){draining, excluded}, openshift.MachineEnd{Node: "n", Drained: true}},
		{"there is nothing to drain", "", []func(*machinev1beta1.Machine){drainable}, openshift.MachineEnd{Drained: true}},
		{"it fails", "n", []func(*machinev1beta1.Machine){drained, failed}, openshift.MachineEnd{Node: "n", Drained: true, Message: "no such instance"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, openshift.JudgeMachineEnd(openshifttest.MachineOf(extraJob, extraName, "", tc.node, tc.options...))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
