// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// view is the cluster as the controllers see it. Its objects are shared and
// must not be changed.
type view struct {
	scenario  *Scenario
	version   *configv1.ClusterVersion
	operators map[string]*configv1.ClusterOperator
	pools     map[string]*mcfgv1.MachineConfigPool
	configs   map[string]*mcfgv1.MachineConfig
	nodes     map[string]*corev1.Node
	// reports are the MachineConfigNodes, by node. There are none unless the
	// scenario asks for them.
	reports map[string]*mcfgv1.MachineConfigNode
	// machineSets and machines are there if the scenario asks for a Machine API, and
	// integrities, the FileIntegrities' metadata, if it asks for that kind.
	machineSets map[client.ObjectKey]*machinev1beta1.MachineSet
	machines    map[client.ObjectKey]*machinev1beta1.Machine
	integrities map[client.ObjectKey]*metav1.PartialObjectMetadata
	// masters are those of the nodes that run the control plane.
	masters map[string]*corev1.Node
	// draining are those of the nodes whose pods are being evicted.
	draining map[string]*corev1.Node
	pods     podIndex
}

func newView() *view {
	return &view{
		operators:   map[string]*configv1.ClusterOperator{},
		pools:       map[string]*mcfgv1.MachineConfigPool{},
		configs:     map[string]*mcfgv1.MachineConfig{},
		nodes:       map[string]*corev1.Node{},
		reports:     map[string]*mcfgv1.MachineConfigNode{},
		machineSets: map[client.ObjectKey]*machinev1beta1.MachineSet{},
		machines:    map[client.ObjectKey]*machinev1beta1.Machine{},
		integrities: map[client.ObjectKey]*metav1.PartialObjectMetadata{},
		masters:     map[string]*corev1.Node{},
		draining:    map[string]*corev1.Node{},
		pods:        newPodIndex(),
	}
}

// get returns the object of obj's kind and name, nil when there is none.
func (v *view) get(obj client.Object) client.Object {
	switch obj.(type) {
	case *configv1.ClusterVersion:
		if v.version != nil {
			return v.version
		}
	case *configv1.ClusterOperator:
		return found(v.operators, obj.GetName())
	case *mcfgv1.MachineConfigPool:
		return found(v.pools, obj.GetName())
	case *mcfgv1.MachineConfig:
		return found(v.configs, obj.GetName())
	case *corev1.Node:
		return found(v.nodes, obj.GetName())
	case *mcfgv1.MachineConfigNode:
		return found(v.reports, obj.GetName())
	case *corev1.Pod:
		return found(v.pods.all, client.ObjectKeyFromObject(obj))
	case *machinev1beta1.MachineSet:
		return found(v.machineSets, client.ObjectKeyFromObject(obj))
	case *machinev1beta1.Machine:
		return found(v.machines, client.ObjectKeyFromObject(obj))
	case *metav1.PartialObjectMetadata:
		return found(v.integrities, client.ObjectKeyFromObject(obj))
	}
	return nil
}

// found avoids a non-nil interface around a nil pointer.
func found[K comparable, T client.Object](objects map[K]T, key K) client.Object {
	if have, ok := objects[key]; ok {
		return have
	}
	return nil
}

// put replaces the object of obj's kind and name.
func (v *view) put(obj client.Object) {
	switch o := obj.(type) {
	case *configv1.ClusterVersion:
		if o.Name == versionName {
			v.version = o
		}
	case *configv1.ClusterOperator:
		v.operators[o.Name] = o
	case *mcfgv1.MachineConfigPool:
		v.pools[o.Name] = o
	case *mcfgv1.MachineConfig:
		v.configs[o.Name] = o
	case *corev1.Node:
		v.nodes[o.Name] = o
		if isMaster(o) {
			v.masters[o.Name] = o
		}
		delete(v.draining, o.Name)
		if nodeDraining(o) || machineDraining(o) {
			v.draining[o.Name] = o
		}
	case *corev1.Pod:
		v.pods.put(o)
	case *mcfgv1.MachineConfigNode:
		v.reports[o.Name] = o
	case *machinev1beta1.MachineSet:
		v.machineSets[client.ObjectKeyFromObject(o)] = o
	case *machinev1beta1.Machine:
		v.machines[client.ObjectKeyFromObject(o)] = o
	case *metav1.PartialObjectMetadata:
		v.integrities[client.ObjectKeyFromObject(o)] = o
	}
}

// remove forgets the object of obj's kind and name.
func (v *view) remove(obj client.Object) {
	switch o := obj.(type) {
	case *configv1.ClusterVersion:
		if o.Name == versionName {
			v.version = nil
		}
	case *configv1.ClusterOperator:
		delete(v.operators, o.Name)
	case *mcfgv1.MachineConfigPool:
		delete(v.pools, o.Name)
	case *mcfgv1.MachineConfig:
		delete(v.configs, o.Name)
	case *corev1.Node:
		delete(v.nodes, o.Name)
		delete(v.masters, o.Name)
		delete(v.draining, o.Name)
	case *mcfgv1.MachineConfigNode:
		delete(v.reports, o.Name)
	case *machinev1beta1.MachineSet:
		delete(v.machineSets, client.ObjectKeyFromObject(o))
	case *machinev1beta1.Machine:
		delete(v.machines, client.ObjectKeyFromObject(o))
	case *metav1.PartialObjectMetadata:
		delete(v.integrities, client.ObjectKeyFromObject(o))
	case *corev1.Pod:
		v.pods.remove(client.ObjectKeyFromObject(o))
	}
}

// complete reports whether there is a cluster to play.
func (v *view) complete() bool { return v.scenario != nil && v.version != nil }

// mastersDown returns the names of the masters that are not ready, sorted.
func (v *view) mastersDown() []string {
	var down []string
	for name, node := range v.masters {
		if !nodeReady(node) {
			down = append(down, name)
		}
	}
	slices.Sort(down)
	return down
}

// isMaster reports whether obj is a node that runs the control plane.
func isMaster(obj client.Object) bool {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return false
	}
	_, master := node.Labels[masterLabel]
	return master
}

// isVersion reports whether obj is a ClusterVersion, without which nothing is played.
func isVersion(obj client.Object) bool {
	_, version := obj.(*configv1.ClusterVersion)
	return version
}

// isPod reports whether obj is a pod.
func isPod(obj client.Object) bool {
	_, pod := obj.(*corev1.Pod)
	return pod
}

// isNode reports whether obj is a node.
func isNode(obj client.Object) bool {
	_, node := obj.(*corev1.Node)
	return node
}

// isReport reports whether obj is a MachineConfigNode, which nobody acts on.
func isReport(obj client.Object) bool {
	_, report := obj.(*mcfgv1.MachineConfigNode)
	return report
}

// isMachine reports whether obj is a Machine or a MachineSet.
func isMachine(obj client.Object) bool {
	switch obj.(type) {
	case *machinev1beta1.MachineSet, *machinev1beta1.Machine:
		return true
	}
	return false
}

// isIntegrity reports whether obj is the metadata of a FileIntegrity.
func isIntegrity(obj client.Object) bool {
	_, integrity := obj.(*metav1.PartialObjectMetadata)
	return integrity
}

// isAside reports whether obj is of a kind that neither the CVO nor the MCO look at.
func isAside(obj client.Object) bool { return isReport(obj) || isMachine(obj) || isIntegrity(obj) }

// isWorker reports whether obj is any other node. There may be thousands.
func isWorker(obj client.Object) bool {
	return isNode(obj) && !isMaster(obj)
}

// part says what of an object a change writes.
type part int

const (
	spec part = iota // everything but the status
	status
	created
	bound   // a pod to its node
	deleted // at once
	evicted // if its budget allows it
)

// change is a write that a controller wants: before becomes after.
type change struct {
	before, after client.Object
	part          part
	// note tells people what happens; empty when it is routine.
	note string
}

// sortedKeys returns the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
