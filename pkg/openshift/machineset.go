// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

const (
	// MachineNamespace is where the Machine API has its objects.
	MachineNamespace = "openshift-machine-api"
	// UpgradeJobLabel has the UID of the job that a MachineSet, and its Machines, were made for.
	UpgradeJobLabel = v1beta1.UpgradeJobAnnotation
	// MaxMachineSetNameLength is how long the name of a MachineSet may be, in bytes, so that those of its Machines, with a dash and five random characters behind
	// it, are no longer than a label's value may be.
	MaxMachineSetNameLength = 57

	// machineSetLabel has the name of the MachineSet, on its Machines.
	machineSetLabel = "machine.openshift.io/cluster-api-machineset"
	// excludeNodeDrainingAnnotation has the Machine API end a machine without draining its node.
	excludeNodeDrainingAnnotation = "machine.openshift.io/exclude-node-draining"
)

// MachineSets returns every MachineSet, in order of name; none on a cluster without the Machine API. It costs a request: machines change all day, and matter
// while an upgrade begins and ends.
func (c *Cluster) MachineSets(ctx context.Context) ([]machinev1beta1.MachineSet, error) {
	return c.listMachineSets(ctx)
}

// ExtraMachineSets returns the MachineSets that were made for the job of that UID, in order of name. It costs a request.
func (c *Cluster) ExtraMachineSets(ctx context.Context, job types.UID) ([]machinev1beta1.MachineSet, error) {
	return c.listMachineSets(ctx, client.MatchingLabels{UpgradeJobLabel: string(job)})
}

func (c *Cluster) listMachineSets(ctx context.Context, options ...client.ListOption) ([]machinev1beta1.MachineSet, error) {
	list := &machinev1beta1.MachineSetList{}
	if err := c.live.List(ctx, list, append(options, client.InNamespace(MachineNamespace))...); withoutKind(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("list MachineSets: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b machinev1beta1.MachineSet) int { return cmp.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// ExtraMachines returns the Machines of the MachineSets that were made for the job of that UID, in order of name. It costs a request.
func (c *Cluster) ExtraMachines(ctx context.Context, job types.UID) ([]machinev1beta1.Machine, error) {
	list := &machinev1beta1.MachineList{}
	err := c.live.List(ctx, list, client.InNamespace(MachineNamespace), client.MatchingLabels{UpgradeJobLabel: string(job)})
	if withoutKind(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list Machines: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b machinev1beta1.Machine) int { return cmp.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// MachineSetOf is the name of the MachineSet that the Machine belongs to; empty if it belongs to none.
func MachineSetOf(machine *machinev1beta1.Machine) string { return machine.Labels[machineSetLabel] }

// withoutKind tells whether the cluster does not have the kind that was asked for.
func withoutKind(err error) bool { return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) }

// ExtraMachineSet returns a MachineSet of one machine that is as those of the original, under that name of at most MaxMachineSetNameLength bytes. It is
// labelled with the UID of the job that it is for, and annotated with its key. It belongs to no machine pool, and the autoscaler leaves it alone.
func ExtraMachineSet(original *machinev1beta1.MachineSet, name string, job types.UID, key string) *machinev1beta1.MachineSet {
	set := &machinev1beta1.MachineSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: MachineNamespace, Name: name,
		Labels:      map[string]string{UpgradeMachineLabel: "true", UpgradeJobLabel: string(job)},
		Annotations: map[string]string{v1beta1.UpgradeJobAnnotation: key},
	}}
	own := map[string]string{machineSetLabel: name, UpgradeMachineLabel: "true", UpgradeJobLabel: string(job)}
	template := original.Spec.Template.DeepCopy()
	set.Spec.Replicas = new(int32(1))
	set.Spec.DeletePolicy = original.Spec.DeletePolicy
	set.Spec.AuthoritativeAPI = original.Spec.AuthoritativeAPI
	// Expressions of the original's selector are left out: they may be about what is changed here, and the labels are narrow enough.
	set.Spec.Selector.MatchLabels = withLabels(original.Spec.Selector.MatchLabels, own)
	set.Spec.Template.Labels = withLabels(template.Labels, set.Spec.Selector.MatchLabels)
	set.Spec.Template.Annotations = template.Annotations
	set.Spec.Template.Spec = template.Spec
	set.Spec.Template.Spec.ProviderID = nil
	return set
}

func withLabels(labels, more map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, labels)
	maps.Copy(all, more)
	return all
}

// CreateExtraMachineSet creates what ExtraMachineSet returned, unless it is there. One of that name that is not the same job's is an error.
func (c *Cluster) CreateExtraMachineSet(ctx context.Context, set *machinev1beta1.MachineSet) error {
	err := c.client.Create(ctx, set)
	if !apierrors.IsAlreadyExists(err) {
		if err != nil {
			return fmt.Errorf("create MachineSet/%s: %w", set.Name, err)
		}
		return nil
	}
	own, listErr := c.ExtraMachineSets(ctx, types.UID(set.Labels[UpgradeJobLabel]))
	switch {
	case listErr != nil:
		return listErr
	case slices.ContainsFunc(own, func(o machinev1beta1.MachineSet) bool { return o.Name == set.Name }):
		return nil // the answer to an earlier attempt was lost
	}
	return fmt.Errorf("create MachineSet/%s: it exists, and was not made for the job", set.Name)
}

// DeleteMachineSet deletes a MachineSet, and its Machines with it, unless it is gone.
func (c *Cluster) DeleteMachineSet(ctx context.Context, set *machinev1beta1.MachineSet) error {
	err := c.client.Delete(ctx, set, client.Preconditions{UID: &set.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete MachineSet/%s: %w", set.Name, err)
	}
	return nil
}

// DeleteMachine deletes a Machine unless it is gone.
func (c *Cluster) DeleteMachine(ctx context.Context, machine *machinev1beta1.Machine) error {
	err := c.client.Delete(ctx, machine, client.Preconditions{UID: &machine.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete Machine/%s: %w", machine.Name, err)
	}
	return nil
}

// ExcludeFromDraining has the Machine API end a Machine that is being deleted without draining its node, unless it is gone.
func (c *Cluster) ExcludeFromDraining(ctx context.Context, machine *machinev1beta1.Machine) error {
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{excludeNodeDrainingAnnotation: ""}}})
	if err != nil {
		return fmt.Errorf("encode patch of Machine/%s: %w", machine.Name, err)
	}
	written := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: machine.Name}}
	if err := c.client.Patch(ctx, written, client.RawPatch(types.MergePatchType, data)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patch Machine/%s: %w", machine.Name, err)
	}
	return nil
}

// ExcludedFromDraining tells whether the Machine API ends the Machine without draining its node.
func ExcludedFromDraining(machine *machinev1beta1.Machine) bool {
	_, excluded := machine.Annotations[excludeNodeDrainingAnnotation]
	return excluded
}
