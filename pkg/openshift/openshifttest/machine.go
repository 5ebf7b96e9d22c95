// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshifttest

import (
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

const machineNamespace = "openshift-machine-api"

// MachineSet returns a MachineSet of the pool worker with three machines that are ready, as the installer makes it.
func MachineSet(name string, options ...func(*machinev1beta1.MachineSet)) *machinev1beta1.MachineSet {
	set := &machinev1beta1.MachineSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: machineNamespace, Name: name, UID: types.UID(name), Generation: 1, CreationTimestamp: installed,
		Labels: map[string]string{"machine.openshift.io/cluster-api-cluster": "prod-7xk2p", "hive.openshift.io/machine-pool": "worker"},
		Annotations: map[string]string{
			"machine.openshift.io/cluster-api-autoscaler-node-group-min-size": "1", "machine.openshift.io/cluster-api-autoscaler-node-group-max-size": "9",
		},
	}}
	set.Spec.Replicas = new(int32(3))
	set.Spec.Selector.MatchLabels = map[string]string{
		"machine.openshift.io/cluster-api-cluster": "prod-7xk2p", "machine.openshift.io/cluster-api-machineset": name,
	}
	set.Spec.Template.Labels = map[string]string{
		"machine.openshift.io/cluster-api-cluster": "prod-7xk2p", "machine.openshift.io/cluster-api-machineset": name,
		"machine.openshift.io/cluster-api-machine-role": "worker",
	}
	set.Spec.Template.Spec.Labels = map[string]string{"node-role.kubernetes.io/worker": ""}
	set.Spec.Template.Spec.Taints = []corev1.Taint{{Key: "example.com/shop", Effect: corev1.TaintEffectNoSchedule}}
	set.Spec.Template.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: []byte(`{"instanceType":"m5.xlarge","placement":{"availabilityZone":"eu-west-1a"}}`)}
	set.Status = machinev1beta1.MachineSetStatus{ObservedGeneration: 1, Replicas: 3, ReadyReplicas: 3, AvailableReplicas: 3}
	for _, option := range options {
		option(set)
	}
	return set
}

// MachinePool sets the machine pool of a MachineSet; an empty one takes it away.
func MachinePool(pool string) func(*machinev1beta1.MachineSet) {
	return func(set *machinev1beta1.MachineSet) {
		set.Labels["hive.openshift.io/machine-pool"] = pool
		if pool == "" {
			delete(set.Labels, "hive.openshift.io/machine-pool")
		}
	}
}

// MachineSetOf returns a MachineSet that was made at that time for the job of that UID, whose machine is ready or not.
func MachineSetOf(job types.UID, name string, made time.Time, ready bool, options ...func(*machinev1beta1.MachineSet)) *machinev1beta1.MachineSet {
	labels := map[string]string{"upgrade.managed.openshift.io": "true", "managedupgrade.appuio.io/upgrade-job": string(job)}
	set := &machinev1beta1.MachineSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: machineNamespace, Name: name, UID: types.UID(name), Generation: 1, CreationTimestamp: metav1.NewTime(made), Labels: labels,
	}}
	set.Spec.Replicas = new(int32(1))
	set.Status = machinev1beta1.MachineSetStatus{ObservedGeneration: 1, Replicas: 1}
	if ready {
		set.Status.ReadyReplicas = 1
	}
	for _, option := range options {
		option(set)
	}
	return set
}

// MachineOf returns the Machine of a MachineSet that was made for the job of that UID. It is in that phase, and has that Node unless it is empty.
func MachineOf(job types.UID, set, phase, node string, options ...func(*machinev1beta1.Machine)) *machinev1beta1.Machine {
	m := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: machineNamespace, Name: set + "-x7k2q", UID: types.UID(set + "-x7k2q"), Finalizers: []string{machinev1beta1.MachineFinalizer},
		Labels: map[string]string{
			"upgrade.managed.openshift.io": "true", "managedupgrade.appuio.io/upgrade-job": string(job), "machine.openshift.io/cluster-api-machineset": set,
		},
	}}
	m.Status.Phase = &phase
	if node != "" {
		m.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: node}
	}
	for _, option := range options {
		option(m)
	}
	return m
}

// MachineDeletedAt makes the Machine one that is being deleted since then.
func MachineDeletedAt(at time.Time) func(*machinev1beta1.Machine) {
	return func(m *machinev1beta1.Machine) {
		m.DeletionTimestamp = new(metav1.NewTime(at))
		m.Status.Phase = new(machinev1beta1.PhaseDeleting)
	}
}

// MachineCondition sets a condition of a Machine.
func MachineCondition(t machinev1beta1.ConditionType, status corev1.ConditionStatus, message string) func(*machinev1beta1.Machine) {
	return func(m *machinev1beta1.Machine) {
		m.Status.Conditions = append(m.Status.Conditions, machinev1beta1.Condition{Type: t, Status: status, Message: message})
	}
}

// MachineFailed makes the Machine one that will not come.
func MachineFailed(reason machinev1beta1.MachineStatusError, message string) func(*machinev1beta1.Machine) {
	return func(m *machinev1beta1.Machine) {
		m.Status.Phase, m.Status.ErrorReason, m.Status.ErrorMessage = new(machinev1beta1.PhaseFailed), &reason, &message
	}
}

// FileIntegrity returns the FileIntegrity of OpenShift Dedicated, with those annotations.
func FileIntegrity(annotations map[string]string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("fileintegrity.openshift.io/v1alpha1")
	u.SetKind("FileIntegrity")
	u.SetNamespace("openshift-file-integrity")
	u.SetName("osd-fileintegrity")
	u.SetAnnotations(annotations)
	return u
}
