// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshifttest

import (
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
