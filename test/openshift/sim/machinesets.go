// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

const machineSetKind = "MachineSet"

// planMachineSets lets the MachineSet controller make and delete Machines and
// count them, and the garbage collector delete those whose MachineSet is gone.
func planMachineSets(v *view, sw *stopwatch) []change {
	var changes []change
	owned := map[types.UID][]*machinev1beta1.Machine{}
	for _, machine := range v.machines {
		if owner := metav1.GetControllerOf(machine); owner != nil && owner.Kind == machineSetKind {
			owned[owner.UID] = append(owned[owner.UID], machine)
		}
	}
	for _, set := range v.machineSets {
		s := machineSet{view: v, watch: sw, set: set, owned: owned[set.UID]}
		delete(owned, set.UID)
		changes = append(changes, s.plan()...)
	}
	for _, orphans := range owned {
		changes = append(changes, deleteMachines(orphans)...)
	}
	return changes
}

// deleteMachines deletes those that are not being deleted yet.
func deleteMachines(machines []*machinev1beta1.Machine) []change {
	var changes []change
	for _, machine := range machines {
		if machine.DeletionTimestamp == nil {
			changes = append(changes, change{
				before: machine, after: machine.DeepCopy(), part: deleted, note: "machine API: deleted machine " + machine.Name,
			})
		}
	}
	return changes
}

// machineSet is the MachineSet controller at work on one MachineSet.
type machineSet struct {
	view  *view
	watch *stopwatch
	set   *machinev1beta1.MachineSet
	// owned are the Machines that the set controls.
	owned []*machinev1beta1.Machine
}

func (s machineSet) plan() []change {
	if s.set.DeletionTimestamp != nil {
		return s.collect()
	}
	members := s.members()
	changes := s.scale(members)
	next := s.set.DeepCopy()
	next.Status = s.count(members)
	if !reflect.DeepEqual(next.Status, s.set.Status) {
		changes = append(changes, change{before: s.set, after: next, part: status})
	}
	return changes
}

// members returns the Machines that count as replicas, by name.
func (s machineSet) members() []*machinev1beta1.Machine {
	selector, err := metav1.LabelSelectorAsSelector(&s.set.Spec.Selector)
	if err != nil {
		return nil
	}
	members := slices.DeleteFunc(slices.Clone(s.owned), func(m *machinev1beta1.Machine) bool {
		return m.DeletionTimestamp != nil || !selector.Matches(labels.Set(m.Labels))
	})
	slices.SortFunc(members, func(a, b *machinev1beta1.Machine) int { return cmp.Compare(a.Name, b.Name) })
	return members
}

// scale makes the Machines that are missing, or deletes those that are too many.
func (s machineSet) scale(members []*machinev1beta1.Machine) []change {
	replicas := 1
	if s.set.Spec.Replicas != nil {
		replicas = int(*s.set.Spec.Replicas)
	}
	if len(members) > replicas {
		slices.SortStableFunc(members, func(a, b *machinev1beta1.Machine) int {
			return cmp.Compare(s.worth(a), s.worth(b))
		})
		return deleteMachines(members[:len(members)-replicas])
	}
	var changes []change
	for range replicas - len(members) {
		machine := s.newMachine(rand.String(5))
		changes = append(changes, change{after: machine, part: created, note: "machine API: new machine " + machine.Name})
	}
	return changes
}

// worth ranks the Machines of a set that shrinks: those of the lowest rank go first.
func (s machineSet) worth(m *machinev1beta1.Machine) int {
	_, marked := m.Annotations[annotationDeleteMachine]
	switch node := s.view.nodeOf(m); {
	case marked:
		return 0
	case node == nil:
		return 1
	case !nodeReady(node):
		return 2
	}
	return 3
}

// newMachine is a Machine from the set's template. Its name is made here instead of
// by the API server, in the same way.
func (s machineSet) newMachine(suffix string) *machinev1beta1.Machine {
	const longest = 58
	template := s.set.Spec.Template
	base := s.set.Name + "-"
	return &machinev1beta1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.set.Namespace, Name: base[:min(len(base), longest)] + suffix,
			Labels: maps.Clone(template.Labels), Annotations: maps.Clone(template.Annotations),
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(s.set, machinev1beta1.GroupVersion.WithKind(machineSetKind)),
			},
		},
		Spec: *template.Spec.DeepCopy(),
	}
}

// count returns the status of the set.
func (s machineSet) count(members []*machinev1beta1.Machine) machinev1beta1.MachineSetStatus {
	st := *s.set.Status.DeepCopy()
	st.ObservedGeneration = s.set.Generation
	st.Replicas = int32(len(members))
	st.FullyLabeledReplicas, st.ReadyReplicas, st.AvailableReplicas = 0, 0, 0
	template := labels.SelectorFromSet(s.set.Spec.Template.Labels)
	for _, m := range members {
		if template.Matches(labels.Set(m.Labels)) {
			st.FullyLabeledReplicas++
		}
		node := s.view.nodeOf(m)
		if node == nil || !nodeReady(node) {
			continue
		}
		st.ReadyReplicas++
		if s.watch.reached(readySince(node).Add(time.Duration(s.set.Spec.MinReadySeconds) * time.Second)) {
			st.AvailableReplicas++
		}
	}
	return st
}

// readySince is when the node's Ready condition turned.
func readySince(node *corev1.Node) time.Time {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// collect is the garbage collector's part in the deletion of a set that waits for
// its Machines, or leaves them behind.
func (s machineSet) collect() []change {
	var changes []change
	finalizer := metav1.FinalizerDeleteDependents
	switch {
	case slices.Contains(s.set.Finalizers, metav1.FinalizerOrphanDependents):
		finalizer = metav1.FinalizerOrphanDependents
		for _, m := range s.owned {
			next := m.DeepCopy()
			next.OwnerReferences = slices.DeleteFunc(next.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == s.set.UID })
			changes = append(changes, change{before: m, after: next, part: spec})
		}
	case len(s.owned) > 0:
		return deleteMachines(s.owned)
	}
	next := s.set.DeepCopy()
	if len(changes) == 0 && controllerutil.RemoveFinalizer(next, finalizer) {
		changes = append(changes, change{before: s.set, after: next, part: spec})
	}
	return changes
}

// nodeOf returns the Node of a Machine, nil when it has none.
func (v *view) nodeOf(m *machinev1beta1.Machine) *corev1.Node {
	if m.Status.NodeRef == nil {
		return nil
	}
	return v.nodes[m.Status.NodeRef.Name]
}

// setOf returns the name of a Machine's MachineSet, or its own when it has none.
func setOf(m *machinev1beta1.Machine) string {
	if owner := metav1.GetControllerOf(m); owner != nil {
		return owner.Name
	}
	return m.Name
}

// machineKey is how a Node refers to its Machine.
func machineKey(m *machinev1beta1.Machine) string { return fmt.Sprintf("%s/%s", m.Namespace, m.Name) }
