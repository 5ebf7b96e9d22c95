// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nodesPage is how many Nodes are read at once: each has tens of kilobytes, most of them names of images.
const nodesPage = 250

// NodeFacts is what is kept of a node.
type NodeFacts struct {
	Name string
	// NotReady is what the node says of not being ready; nil if it is ready.
	NotReady *NodeCondition
	// CordonedByHand is set if the node takes no pods, and the machine-config operator has no part in it.
	CordonedByHand bool
	// NotDrained is set if the machine-config operator reboots the node without a drain.
	NotDrained bool
	// Pressures are what the node is short of: memory, disk, process ids, in this order.
	Pressures []NodeCondition
}

// NodeCondition is a condition of a node in the node's words, without times.
type NodeCondition struct {
	Type            corev1.NodeConditionType
	Reason, Message string
}

// JudgeNode returns the facts of a node. A node that does not report whether it is ready is not.
func JudgeNode(node *corev1.Node) NodeFacts {
	facts := NodeFacts{Name: node.Name, NotDrained: node.Annotations[controlPlaneTopologyAnnotation] == string(configv1.SingleReplicaTopologyMode)}
	ready := nodeCondition(node, corev1.NodeReady)
	switch {
	case ready == nil:
		facts.NotReady = &NodeCondition{Type: corev1.NodeReady, Reason: "NotReported", Message: "the node has not reported yet"}
	case ready.Status != corev1.ConditionTrue:
		facts.NotReady = &NodeCondition{ready.Type, ready.Reason, ready.Message}
	}
	for _, t := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure} {
		if c := nodeCondition(node, t); c != nil && c.Status == corev1.ConditionTrue {
			facts.Pressures = append(facts.Pressures, NodeCondition{c.Type, c.Reason, c.Message})
		}
	}
	if node.Spec.Unschedulable {
		_, inWork := NodeInWork(&metav1.PartialObjectMetadata{ObjectMeta: node.ObjectMeta})
		facts.CordonedByHand = !inWork
	}
	return facts
}

func nodeCondition(node *corev1.Node, t corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == t {
			return c
		}
	}
	return nil
}

// Nodes returns the facts of every node, in order of name, as of at most maxAge ago. They are shared and must not be
// changed. They are not watched: see NodesInWork.
func (c *Cluster) Nodes(ctx context.Context, now time.Time, maxAge time.Duration) ([]NodeFacts, error) {
	return c.nodes.Get(ctx, now, maxAge, func(ctx context.Context) ([]NodeFacts, error) {
		var all []NodeFacts
		_, err := listPages(ctx, c.live, nodesPage, func(page *corev1.NodeList) bool {
			for i := range page.Items {
				all = append(all, JudgeNode(&page.Items[i]))
			}
			return false
		})
		if err != nil {
			return nil, fmt.Errorf("list Nodes: %w", err)
		}
		slices.SortFunc(all, func(a, b NodeFacts) int { return cmp.Compare(a.Name, b.Name) })
		return all, nil
	})
}
