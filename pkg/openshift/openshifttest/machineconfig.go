// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshifttest

import (
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

const (
	mco  = "machineconfiguration.openshift.io/"
	role = "node-role.kubernetes.io/"
)

// RenderedConfig is the name of the configuration that a release renders for a pool.
func RenderedConfig(pool, version string) string { return "rendered-" + pool + "-" + version }

// MachineConfig returns what a release rendered for a pool.
func MachineConfig(pool, version string) *mcfgv1.MachineConfig {
	return &mcfgv1.MachineConfig{ObjectMeta: metav1.ObjectMeta{
		Name:        RenderedConfig(pool, version),
		Annotations: map[string]string{mco + "release-image-version": version},
	}}
}

// Pool returns a pool of three machines, all of which run the configuration of 4.18.1. Its node selector is the role
// of its name.
func Pool(name string, options ...func(*mcfgv1.MachineConfigPool)) *mcfgv1.MachineConfigPool {
	pool := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1, Labels: map[string]string{}}}
	if name == "master" {
		pool.Labels["operator.machineconfiguration.openshift.io/required-for-upgrade"] = ""
	}
	pool.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{role + name: ""}}
	PoolAt("4.18.1")(pool)
	for _, option := range options {
		option(pool)
	}
	return pool
}

// PoolAt makes every machine run the configuration of that release.
func PoolAt(version string) func(*mcfgv1.MachineConfigPool) {
	return func(pool *mcfgv1.MachineConfigPool) {
		pool.Spec.Configuration.Name = RenderedConfig(pool.Name, version)
		pool.Status.Configuration.Name = pool.Spec.Configuration.Name
		pool.Status.ObservedGeneration = pool.Generation
		pool.Status.MachineCount, pool.Status.UpdatedMachineCount, pool.Status.ReadyMachineCount = 3, 3, 3
		pool.Status.UnavailableMachineCount = 0
		setPoolCondition(pool, mcfgv1.MachineConfigPoolUpdated, corev1.ConditionTrue, "")
		setPoolCondition(pool, mcfgv1.MachineConfigPoolUpdating, corev1.ConditionFalse, "")
	}
}

// PoolTowards gives the pool the configuration of that release, which so many of its three machines run yet.
func PoolTowards(version string, updated int32) func(*mcfgv1.MachineConfigPool) {
	return func(pool *mcfgv1.MachineConfigPool) {
		pool.Spec.Configuration.Name = RenderedConfig(pool.Name, version)
		pool.Status.UpdatedMachineCount, pool.Status.UnavailableMachineCount = updated, 1
		setPoolCondition(pool, mcfgv1.MachineConfigPoolUpdated, corev1.ConditionFalse, "")
		setPoolCondition(pool, mcfgv1.MachineConfigPoolUpdating, corev1.ConditionTrue, "All nodes are updating to "+pool.Spec.Configuration.Name)
	}
}

// PoolPaused pauses the pool. A paused pool with a new configuration is neither Updated nor Updating.
func PoolPaused() func(*mcfgv1.MachineConfigPool) {
	return func(pool *mcfgv1.MachineConfigPool) {
		pool.Spec.Paused = true
		if pool.Spec.Configuration.Name != pool.Status.Configuration.Name {
			message := "Pool is paused; will not update to " + pool.Spec.Configuration.Name
			setPoolCondition(pool, mcfgv1.MachineConfigPoolUpdated, corev1.ConditionFalse, message)
			setPoolCondition(pool, mcfgv1.MachineConfigPoolUpdating, corev1.ConditionFalse, message)
			pool.Status.UnavailableMachineCount = 0
		}
	}
}

// PoolPausedBy pauses the pool on behalf of a job, given as namespace/name.
func PoolPausedBy(job string) func(*mcfgv1.MachineConfigPool) {
	return func(pool *mcfgv1.MachineConfigPool) {
		if pool.Annotations == nil {
			pool.Annotations = map[string]string{}
		}
		pool.Annotations[v1beta1.UpgradeJobAnnotation] = job
		PoolPaused()(pool)
	}
}

// PoolCondition makes a condition of the pool True.
func PoolCondition(t mcfgv1.MachineConfigPoolConditionType, message string) func(*mcfgv1.MachineConfigPool) {
	return func(pool *mcfgv1.MachineConfigPool) { setPoolCondition(pool, t, corev1.ConditionTrue, message) }
}

func setPoolCondition(pool *mcfgv1.MachineConfigPool, t mcfgv1.MachineConfigPoolConditionType, status corev1.ConditionStatus, message string) {
	c := mcfgv1.MachineConfigPoolCondition{Type: t, Status: status, Message: message}
	for i := range pool.Status.Conditions {
		if pool.Status.Conditions[i].Type == t {
			pool.Status.Conditions[i] = c
			return
		}
	}
	pool.Status.Conditions = append(pool.Status.Conditions, c)
}

// Node returns a node of that role that is ready and has nothing to do.
func Node(name, ofRole string, options ...func(*corev1.Node)) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{role + ofRole: ""}}}
	NodeAnnotations(map[string]string{
		"currentConfig": RenderedConfig(ofRole, "4.18.1"), "desiredConfig": RenderedConfig(ofRole, "4.18.1"), "state": "Done",
		"desiredDrain": "uncordon-0", "lastAppliedDrain": "uncordon-0",
	})(node)
	NodeCondition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "kubelet has sufficient memory available")(node)
	NodeCondition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure")(node)
	NodeCondition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available")(node)
	NodeCondition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status")(node)
	for _, option := range options {
		option(node)
	}
	return node
}

// NodeRole adds a role to the node.
func NodeRole(name string) func(*corev1.Node) {
	return func(node *corev1.Node) { node.Labels[role+name] = "" }
}

// NodeAnnotations sets annotations of the machine-config operator, by their names without its prefix.
func NodeAnnotations(annotations map[string]string) func(*corev1.Node) {
	return func(node *corev1.Node) {
		if node.Annotations == nil {
			node.Annotations = map[string]string{}
		}
		for key, value := range annotations {
			node.Annotations[mco+key] = value
		}
	}
}

// NodeCondition sets a condition of the node.
func NodeCondition(t corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string) func(*corev1.Node) {
	return func(node *corev1.Node) {
		c := corev1.NodeCondition{Type: t, Status: status, Reason: reason, Message: message, LastTransitionTime: installed, LastHeartbeatTime: installed}
		for i := range node.Status.Conditions {
			if node.Status.Conditions[i].Type == t {
				node.Status.Conditions[i] = c
				return
			}
		}
		node.Status.Conditions = append(node.Status.Conditions, c)
	}
}

// NodeCordoned makes the node take no pods.
func NodeCordoned() func(*corev1.Node) {
	return func(node *corev1.Node) { node.Spec.Unschedulable = true }
}

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
