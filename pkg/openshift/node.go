// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"strings"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// Annotations that the machine-config operator keeps on a Node.
const (
	mcoPrefix                  = "machineconfiguration.openshift.io/"
	currentConfigAnnotation    = mcoPrefix + "currentConfig"
	desiredConfigAnnotation    = mcoPrefix + "desiredConfig"
	stateAnnotation            = mcoPrefix + "state"
	reasonAnnotation           = mcoPrefix + "reason"
	desiredDrainAnnotation     = mcoPrefix + "desiredDrain"
	lastAppliedDrainAnnotation = mcoPrefix + "lastAppliedDrain"
	// controlPlaneTopologyAnnotation is on every node of a pool, also on additional workers of a single control plane
	// node. The machine-config daemon drains its node unless it is SingleReplica.
	controlPlaneTopologyAnnotation = mcoPrefix + "controlPlaneTopology"

	drainPrefix    = "drain-"
	uncordonPrefix = "uncordon-"

	stateDone           = "Done"
	stateRebooting      = "Rebooting"
	stateDegraded       = "Degraded"
	stateUnreconcilable = "Unreconcilable"
)

// NodeProgress is what the machine-config operator does with a node.
type NodeProgress struct {
	Phase v1beta1.NodePhase
	// Message is what it says of the node; empty if nothing.
	Message string
}

// String says it of the node, as in "node worker-1 is draining".
func (p NodeProgress) String() string {
	return strings.TrimSuffix(doing[p.Phase]+": "+p.Message, ": ")
}

var doing = map[v1beta1.NodePhase]string{
	v1beta1.NodePhasePending:   "is about to be updated",
	v1beta1.NodePhaseDraining:  "is draining",
	v1beta1.NodePhaseUpdating:  "is updating",
	v1beta1.NodePhaseRebooting: "is rebooting",
	v1beta1.NodePhaseDone:      "is being uncordoned",
	v1beta1.NodePhaseDegraded:  "is degraded",
}

// NodeInWork says what the machine-config operator does with the node at present, as the annotations tell; false if nothing.
func NodeInWork(node *metav1.PartialObjectMetadata) (NodeProgress, bool) {
	a := node.Annotations
	state, drain := a[stateAnnotation], a[desiredDrainAnnotation]
	_, draining := PendingDrain(node)
	switch {
	case state == "" && a[desiredConfigAnnotation] == "":
		return NodeProgress{}, false // not managed by the machine-config operator
	case state == stateDegraded || state == stateUnreconcilable:
		return NodeProgress{v1beta1.NodePhaseDegraded, a[reasonAnnotation]}, true
	case draining:
		return NodeProgress{Phase: v1beta1.NodePhaseDraining}, true
	case strings.HasPrefix(drain, uncordonPrefix) && drain != a[lastAppliedDrainAnnotation]:
		return NodeProgress{Phase: v1beta1.NodePhaseDone}, true
	case state == stateRebooting:
		return NodeProgress{Phase: v1beta1.NodePhaseRebooting}, true
	case state == stateDone && a[currentConfigAnnotation] != a[desiredConfigAnnotation]:
		return NodeProgress{Phase: v1beta1.NodePhasePending}, true
	case state != stateDone:
		return NodeProgress{Phase: v1beta1.NodePhaseUpdating}, true
	default:
		return NodeProgress{}, false
	}
}

// PendingDrain returns the drain that the machine-config daemon of the node has asked for and that is not finished, by the value of the
// annotation desiredDrain. It is false while nothing, or the end of a drain, is asked for.
func PendingDrain(node *metav1.PartialObjectMetadata) (string, bool) {
	drain := node.Annotations[desiredDrainAnnotation]
	return drain, strings.HasPrefix(drain, drainPrefix) && drain != node.Annotations[lastAppliedDrainAnnotation]
}

// Membership tells to which pool a node belongs. It is made once for many nodes: parsing a selector is not cheap.
type Membership struct {
	pools []member
}

type member struct {
	name     string
	selector labels.Selector
}

// NewMembership prepares the node selectors of all pools of the cluster.
func NewMembership(pools []mcfgv1.MachineConfigPool) Membership {
	var m Membership
	for i := range pools {
		selector, err := metav1.LabelSelectorAsSelector(pools[i].Spec.NodeSelector)
		if err == nil && !selector.Empty() {
			m.pools = append(m.pools, member{pools[i].Name, selector})
		}
	}
	return m
}

// PoolOf returns the name of the pool that the node belongs to: master before a custom pool before worker, as the
// machine-config operator chooses. Empty if there is none.
func (m Membership) PoolOf(node *metav1.PartialObjectMetadata) string {
	found := ""
	for _, pool := range m.pools {
		if !pool.selector.Matches(labels.Set(node.Labels)) {
			continue
		}
		switch pool.name {
		case "master":
			return pool.name
		case "worker":
			if found == "" {
				found = pool.name
			}
		default:
			found = pool.name
		}
	}
	return found
}
