// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshifttest

import (
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeTowards gives the node the configuration of that release to come to.
func NodeTowards(pool, version string) func(*corev1.Node) {
	return NodeAnnotations(map[string]string{"desiredConfig": RenderedConfig(pool, version)})
}

// NodeDraining makes the node one whose daemon waits for the drain of that id, and which is cordoned.
func NodeDraining(id string) func(*corev1.Node) {
	return func(node *corev1.Node) {
		NodeAnnotations(map[string]string{"state": "Working", "desiredDrain": "drain-" + id})(node)
		NodeCordoned()(node)
	}
}

// NodeDrained makes the node one on which files and operating system are written, after the drain of that id.
func NodeDrained(id string) func(*corev1.Node) {
	return func(node *corev1.Node) {
		NodeDraining(id)(node)
		NodeAnnotations(map[string]string{"lastAppliedDrain": "drain-" + id})(node)
	}
}

// NodeRebooting makes the node one that reboots, after the drain of that id.
func NodeRebooting(id string) func(*corev1.Node) {
	return func(node *corev1.Node) {
		NodeDrained(id)(node)
		NodeAnnotations(map[string]string{"state": "Rebooting"})(node)
	}
}

// MachineConfigNode returns the MachineConfigNode of a node of that pool, which is to run the configuration of that
// release and has not begun to.
func MachineConfigNode(name, pool, version string, options ...func(*mcfgv1.MachineConfigNode)) *mcfgv1.MachineConfigNode {
	m := &mcfgv1.MachineConfigNode{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}}
	m.Spec.Node.Name, m.Spec.Pool.Name = name, pool
	m.Spec.ConfigVersion.Desired = RenderedConfig(pool, version)
	m.Status.ObservedGeneration = 2 // that is how the machine-config operator counts
	m.Status.ConfigVersion = &mcfgv1.MachineConfigNodeStatusMachineConfigVersion{
		Current: RenderedConfig(pool, "4.18.1"), Desired: RenderedConfig(pool, version),
	}
	for _, stage := range []mcfgv1.StateProgress{
		mcfgv1.MachineConfigNodeUpdatePrepared, mcfgv1.MachineConfigNodeUpdateExecuted, mcfgv1.MachineConfigNodeUpdatePostActionComplete,
		mcfgv1.MachineConfigNodeUpdateComplete, mcfgv1.MachineConfigNodeResumed, mcfgv1.MachineConfigNodeUpdated,
		mcfgv1.MachineConfigNodeUpdateCordoned, mcfgv1.MachineConfigNodeUpdateDrained, mcfgv1.MachineConfigNodeUpdateFilesAndOS,
		mcfgv1.MachineConfigNodeUpdateRebooted, mcfgv1.MachineConfigNodeUpdateUncordoned, mcfgv1.MachineConfigNodeNodeDegraded,
	} {
		meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{
			Type: string(stage), Status: metav1.ConditionFalse, Reason: "NotYetOccurred", LastTransitionTime: installed,
			Message: "This node has not yet entered the " + string(stage) + " phase",
		})
	}
	for _, option := range options {
		option(m)
	}
	return m
}

// Stage sets a condition of a MachineConfigNode: Unknown while the stage goes on, True when it is over.
func Stage(stage mcfgv1.StateProgress, status metav1.ConditionStatus, message string) func(*mcfgv1.MachineConfigNode) {
	return func(m *mcfgv1.MachineConfigNode) {
		meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{
			Type: string(stage), Status: status, Reason: string(stage), Message: message, LastTransitionTime: installed,
		})
	}
}
