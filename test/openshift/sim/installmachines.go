// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"maps"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"golang.org/x/sync/errgroup"
)

// installedMachine is the name of the Machine of an installed node. It depends on
// nothing but the two names.
func installedMachine(set, node string) string {
	return set + "-" + digest("machine", set, node)[:5]
}

// machines creates the MachineSets and the Machines of the nodes that have one.
func (i *installation) machines(ctx context.Context) error {
	if i.scenario.MachineAPI == nil {
		return nil
	}
	for _, kind := range []client.Object{&machinev1beta1.MachineSet{}, &machinev1beta1.Machine{}} {
		if err := i.served(ctx, kind); err != nil {
			return err
		}
	}
	nodes := map[string][]string{}
	for node, set := range i.owners {
		nodes[set] = append(nodes[set], node)
	}
	for _, installed := range i.scenario.MachineAPI.installedSets() {
		set := i.newMachineSet(installed, len(nodes[installed.Name]))
		if err := i.client.Create(ctx, set); err != nil {
			return fmt.Errorf("create MachineSet %s: %w", set.Name, err)
		}
		var group errgroup.Group
		group.SetLimit(parallelWrites)
		for _, node := range nodes[installed.Name] {
			group.Go(func() error { return i.machine(ctx, set, i.view.nodes[node]) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
		count := int32(len(nodes[installed.Name]))
		set.Status = machinev1beta1.MachineSetStatus{
			Replicas: count, FullyLabeledReplicas: count, ReadyReplicas: count, AvailableReplicas: count, ObservedGeneration: set.Generation,
		}
		if err := i.client.Status().Update(ctx, set); err != nil {
			return fmt.Errorf("update status of MachineSet %s: %w", set.Name, err)
		}
	}
	return nil
}

// newMachineSet is a MachineSet as the installer writes it.
func (i *installation) newMachineSet(installed InstalledMachineSet, replicas int) *machinev1beta1.MachineSet {
	const cluster = "simulated-x7k2p"
	selected := map[string]string{machineClusterLabel: cluster, machineSetLabel: installed.Name}
	set := &machinev1beta1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: machineNamespace, Name: installed.Name, Labels: map[string]string{machineClusterLabel: cluster},
		},
		Spec: machinev1beta1.MachineSetSpec{
			Replicas: new(int32(replicas)),
			Selector: metav1.LabelSelector{MatchLabels: selected},
			Template: machinev1beta1.MachineTemplateSpec{
				ObjectMeta: machinev1beta1.ObjectMeta{Labels: map[string]string{
					machineRoleLabel: installed.Pool, machineTypeLabel: installed.Pool,
				}},
				Spec: machinev1beta1.MachineSpec{ProviderSpec: machinev1beta1.ProviderSpec{Value: &runtime.RawExtension{
					Raw: []byte(`{"apiVersion":"machine.openshift.io/v1beta1","kind":"AWSMachineProviderConfig","instanceType":"m6i.2xlarge",` +
						`"placement":{"availabilityZone":"us-east-1a","region":"us-east-1"}}`),
				}}},
			},
		},
	}
	maps.Copy(set.Labels, installed.Labels)
	maps.Copy(set.Spec.Template.Labels, selected)
	if installed.Pool != workerPool {
		set.Spec.Template.Spec.Labels = map[string]string{roleLabel(installed.Pool): ""}
	}
	return set
}

// machine creates the Machine of an installed node.
func (i *installation) machine(ctx context.Context, set *machinev1beta1.MachineSet, node *corev1.Node) error {
	watch := newStopwatch()
	watch.begin(i.now.Add(-installEnded))
	m := machineSet{set: set}.newMachine("")
	m.Name = installedMachine(set.Name, node.Name)
	m.Finalizers = []string{machinev1beta1.MachineFinalizer}
	m.Spec.ProviderID = new(node.Spec.ProviderID)
	if err := i.client.Create(ctx, m); err != nil {
		return fmt.Errorf("create Machine %s: %w", m.Name, err)
	}
	c := machineController{watch: watch, machine: m}
	m.Status = machinev1beta1.MachineStatus{
		Phase: new(machinev1beta1.PhaseRunning), LastUpdated: new(i.at(installEnded)), Addresses: addresses(m.Name),
		NodeRef: &corev1.ObjectReference{Kind: "Node", Name: node.Name, UID: node.UID},
	}
	for _, t := range []machinev1beta1.ConditionType{
		machinev1beta1.MachineDrainable, machinev1beta1.MachineTerminable, machinev1beta1.InstanceExistsCondition,
	} {
		c.set(m, t, corev1.ConditionTrue, "", "")
	}
	if err := i.client.Status().Update(ctx, m); err != nil {
		return fmt.Errorf("update status of Machine %s: %w", m.Name, err)
	}
	return nil
}

// clearMachines removes the MachineSets and Machines of an earlier installation.
// Their finalizers, which nobody takes off now, would keep them for good.
func clearMachines(ctx context.Context, c client.Client) error {
	for _, kind := range []string{"Machine", machineSetKind} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(machinev1beta1.GroupVersion.WithKind(kind + "List"))
		err := c.List(ctx, list)
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("list all %ss: %w", kind, err)
		}
		for n := range list.Items {
			obj := &list.Items[n]
			next := obj.DeepCopy()
			next.Finalizers = nil
			if err := c.Patch(ctx, next, client.MergeFrom(obj)); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("patch finalizers of %s %s: %w", kind, obj.Name, err)
			}
			if err := c.Delete(ctx, next); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("delete %s %s: %w", kind, obj.Name, err)
			}
		}
	}
	return nil
}
