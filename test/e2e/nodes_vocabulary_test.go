// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// What the machine-config operator says of a node.
const (
	desiredConfig    = "machineconfiguration.openshift.io/desiredConfig"
	desiredDrain     = "machineconfiguration.openshift.io/desiredDrain"
	lastAppliedDrain = "machineconfiguration.openshift.io/lastAppliedDrain"
	stateOfNode      = "machineconfiguration.openshift.io/state"
)

// nodeHistory returns all revisions of the nodes of a pool.
func (c *cluster) nodeHistory(pool string) []revision[*corev1.Node] {
	return slices.DeleteFunc(past.nodesSince(c.born), func(r revision[*corev1.Node]) bool { return poolOfNode(r.object.Name) != pool })
}

// poolOfNode returns the pool of a node, by its name.
func poolOfNode(name string) string { return name[:strings.LastIndex(name, "-")] }

// rebootedAfter expects that nothing happened to the nodes of a pool from its pause to its release, and that all of them
// rebooted after that.
func (c *cluster) rebootedAfter(pool string, pause, release order) {
	c.t.Helper()
	last, rebooted := map[string]*corev1.Node{}, map[string]bool{}
	for _, r := range c.nodeHistory(pool) {
		is, was := r.object, last[r.object.Name]
		last[is.Name] = is
		switch at := orderOf(is); {
		case was == nil || at < pause:
		case at < release && nodeTouched(was, is):
			c.t.Errorf("node %s was touched at %s, before pool %s was released", is.Name, r.seen.Format(time.StampMilli), pool)
		case at > release && was.Status.NodeInfo.BootID != is.Status.NodeInfo.BootID:
			rebooted[is.Name] = true
		}
	}
	for name := range last {
		if !rebooted[name] {
			c.t.Errorf("node %s has not rebooted since pool %s was released", name, pool)
		}
	}
	if len(last) == 0 {
		c.t.Errorf("pool %s has no nodes", pool)
	}
}

// nodeTouched tells whether the machine-config operator did something to a node.
func nodeTouched(was, is *corev1.Node) bool {
	for _, annotation := range []string{desiredConfig, desiredDrain, lastAppliedDrain, stateOfNode} {
		if was.Annotations[annotation] != is.Annotations[annotation] {
			return true
		}
	}
	return was.Spec.Unschedulable != is.Spec.Unschedulable || was.Status.NodeInfo.BootID != is.Status.NodeInfo.BootID
}
