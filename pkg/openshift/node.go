// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"fmt"
	"strings"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
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

	stateDone = "Done"
)

// NodeInWork says what the machine-config operator does with the node at present; false if nothing.
func NodeInWork(node *metav1.PartialObjectMetadata) (string, bool) {
	a := node.Annotations
	state, drain := a[stateAnnotation], a[desiredDrainAnnotation]
	switch {
	case state == "" && a[desiredConfigAnnotation] == "":
		return "", false // not managed by the machine-config operator
	case state == "Degraded" || state == "Unreconcilable":
		return strings.TrimSuffix(fmt.Sprintf("is %s: %s", strings.ToLower(state), a[reasonAnnotation]), ": "), true
	case strings.HasPrefix(drain, "drain-") && drain != a[lastAppliedDrainAnnotation]:
		return "is draining", true
	case strings.HasPrefix(drain, "uncordon-") && drain != a[lastAppliedDrainAnnotation]:
		return "is being uncordoned", true
	case state == "Rebooting":
		return "is rebooting", true
	case state != stateDone || a[currentConfigAnnotation] != a[desiredConfigAnnotation]:
		return "is updating", true
	default:
		return "", false
	}
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
