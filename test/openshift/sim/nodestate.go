// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// updateTaint keeps new pods off nodes that are about to reboot, if possible.
var updateTaint = corev1.Taint{Key: "UpdateInProgress", Effect: corev1.TaintEffectPreferNoSchedule}

// nodeReady reports whether the node's kubelet says that it is ready.
func nodeReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// nodeAvailable reports whether the node takes pods.
func nodeAvailable(node *corev1.Node) bool { return nodeReady(node) && !node.Spec.Unschedulable }

// nodeSettled reports whether the node has nothing more to do for its desired configuration.
func nodeSettled(node *corev1.Node) bool {
	a := node.Annotations
	return a[annotationCurrentConfig] == a[annotationDesiredConfig] && a[annotationState] == stateDone &&
		a[annotationDesiredDrain] == a[annotationLastAppliedDrain]
}

// nodeRuns reports whether the node runs that configuration and is to keep it.
func nodeRuns(node *corev1.Node, config string) bool {
	return nodeSettled(node) && node.Annotations[annotationCurrentConfig] == config
}

// nodeUnavailable reports whether the node counts against maxUnavailable:
// whatever the reason, also when a person cordoned it.
func nodeUnavailable(node *corev1.Node) bool { return !nodeAvailable(node) || !nodeSettled(node) }

// setReady writes the node's Ready condition.
func setReady(node *corev1.Node, st corev1.ConditionStatus, reason, message string, now time.Time) {
	at := metav1.NewTime(now.Truncate(time.Second))
	ready := corev1.NodeCondition{
		Type: corev1.NodeReady, Status: st, Reason: reason, Message: message, LastHeartbeatTime: at, LastTransitionTime: at,
	}
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == corev1.NodeReady {
			node.Status.Conditions[i] = ready
			return
		}
	}
	node.Status.Conditions = append(node.Status.Conditions, ready)
}

// isCordonTaint reports whether the taint is the one of cordoned nodes.
func isCordonTaint(t corev1.Taint) bool {
	return t.Key == corev1.TaintNodeUnschedulable && t.Effect == corev1.TaintEffectNoSchedule
}

// cordonTaintFits reports whether the node lifecycle controller has nothing to do
// about a cordon.
func cordonTaintFits(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, isCordonTaint) == node.Spec.Unschedulable
}

// setCordonTaint adds the taint of cordoned nodes, or removes it. For its own
// cordons the machine config controller does it in the same write, to save the
// write of the node lifecycle controller.
func setCordonTaint(node *corev1.Node, now time.Time) {
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, isCordonTaint)
	if node.Spec.Unschedulable {
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{
			Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule,
			TimeAdded: new(metav1.NewTime(now.Truncate(time.Second))),
		})
	}
}

// fitCordonTaint is what the node lifecycle controller does when somebody else has
// cordoned the node or taken that back.
func fitCordonTaint(node *corev1.Node, now time.Time) change {
	next := node.DeepCopy()
	setCordonTaint(next, now)
	return change{before: node, after: next, part: spec}
}
