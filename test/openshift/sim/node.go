// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Annotations and states by which the machine config controller and the
// machine config daemon of a node talk.
const (
	annotationCurrentConfig    = "machineconfiguration.openshift.io/currentConfig"
	annotationDesiredConfig    = "machineconfiguration.openshift.io/desiredConfig"
	annotationState            = "machineconfiguration.openshift.io/state"
	annotationReason           = "machineconfiguration.openshift.io/reason"
	annotationDesiredDrain     = "machineconfiguration.openshift.io/desiredDrain"
	annotationLastAppliedDrain = "machineconfiguration.openshift.io/lastAppliedDrain"
	annotationTopology         = "machineconfiguration.openshift.io/controlPlaneTopology"

	stateDone      = "Done"
	stateWorking   = "Working"
	stateRebooting = "Rebooting"
	stateDegraded  = "Degraded"

	// annotationAbandoned is the simulator's own: the hash of the configuration
	// whose drain was given up once already.
	annotationAbandoned = "openshift-simulator/abandoned-drain"

	drainPrefix    = "drain-"
	uncordonPrefix = "uncordon-"
)

// phaseDrain is the phase of a node whose pods are removed.
const phaseDrain = "drain"

// wantConfig hands a configuration to a node.
func wantConfig(node *corev1.Node, config string) change {
	next := node.DeepCopy()
	next.Annotations[annotationDesiredConfig] = config
	if !slices.Contains(next.Spec.Taints, updateTaint) {
		next.Spec.Taints = append(next.Spec.Taints, updateTaint)
	}
	return change{before: node, after: next, part: spec, note: ""}
}

// planNodes lets every node that is not settled do its next step. They are the
// steps of an update:
//
//	daemon      state Working, desiredDrain drain-<config>
//	controller  cordons, drains, lastAppliedDrain drain-<config>
//	daemon      applies the configuration, state Rebooting
//	kubelet     not ready, then ready again with the new system
//	daemon      desiredDrain uncordon-<config>
//	controller  uncordons, lastAppliedDrain uncordon-<config>
//	daemon      state Done, currentConfig <config>
//
// Each one shows in the node, so nothing else says how far it is.
func planNodes(v *view, sw *stopwatch) []change {
	var changes []change
	for name, node := range v.nodes {
		if isSimulated(node) && !cordonTaintFits(node) {
			changes = append(changes, fitCordonTaint(node, sw.now))
			continue
		}
		config := node.Annotations[annotationDesiredConfig]
		if config == "" || nodeSettled(node) && nodeReady(node) {
			continue
		}
		n := machine{
			node: node, config: config, watch: sw, timings: v.scenario.Timings, fault: v.scenario.node(name),
			pods: len(v.pods.evictable[name]),
		}
		if c := v.configs[config]; c != nil {
			n.version = c.Annotations[annotationReleaseVersion]
		}
		if change := n.step(); change != nil {
			changes = append(changes, *change)
		}
	}
	return changes
}

// machine is a node on the way to a configuration.
type machine struct {
	node *corev1.Node
	// config is the desired configuration, version its release.
	config, version string
	// pods is the number of pods on the node that a drain has to remove.
	pods    int
	watch   *stopwatch
	timings Timings
	fault   NodeFault
}

// step returns what happens next, nil when it takes its time or never happens.
func (n machine) step() *change {
	a := n.node.Annotations
	uncordon := uncordonPrefix + hashOf(n.config)
	booted := n.node.Status.NodeInfo.BootID == bootID(n.node.Name, n.config)
	switch {
	case a[annotationState] == stateRebooting && !booted && nodeReady(n.node):
		return n.goDown()
	case a[annotationState] == stateRebooting && !booted:
		return n.comeUp()
	case a[annotationState] == stateRebooting && a[annotationDesiredDrain] != uncordon:
		return n.annotate("", map[string]string{annotationDesiredDrain: uncordon})
	case a[annotationState] == stateRebooting && a[annotationLastAppliedDrain] != uncordon:
		return n.uncordon(uncordon)
	case a[annotationState] == stateRebooting:
		return n.finish()
	case nodeSettled(n.node):
		return nil // Not ready for a reason that is not ours.
	}
	return n.prepare()
}

// prepare returns the next step before the reboot.
func (n machine) prepare() *change {
	a := n.node.Annotations
	drain, uncordon := drainPrefix+hashOf(n.config), uncordonPrefix+hashOf(n.config)
	givenUp := a[annotationState] != stateDone && a[annotationDesiredDrain] == uncordon && n.abandoned()
	switch {
	case givenUp && a[annotationLastAppliedDrain] != uncordon:
		return n.uncordon(uncordon)
	case givenUp && !n.takes("again", Duration(n.timings.drainRetry())):
		return nil
	case a[annotationState] == stateDone || a[annotationDesiredDrain] != drain:
		return n.annotate("", map[string]string{annotationState: stateWorking, annotationReason: "", annotationDesiredDrain: drain})
	case a[annotationLastAppliedDrain] != drain && !n.node.Spec.Unschedulable:
		return n.cordon()
	case a[annotationLastAppliedDrain] != drain:
		return n.drain(drain, uncordon)
	case n.drainFailed():
		return n.annotate("drained at last", map[string]string{annotationState: stateWorking, annotationReason: ""})
	}
	return n.apply()
}

// takes reports whether a phase has taken its time.
func (n machine) takes(phase string, d Duration) bool {
	slow := n.fault.Slow
	if slow == 0 {
		slow = 1
	}
	return n.watch.passed("node/"+n.node.Name, phase+n.config, time.Duration(float64(d)*slow))
}

// edit returns a change of the node; what tells it to people.
func (n machine) edit(p part, what string, edit func(*corev1.Node)) *change {
	next := n.node.DeepCopy()
	edit(next)
	if what != "" {
		what = fmt.Sprintf("MCO: %s %s", n.node.Name, what)
	}
	return &change{before: n.node, after: next, part: p, note: what}
}

func (n machine) annotate(what string, values map[string]string) *change {
	return n.edit(spec, what, func(node *corev1.Node) {
		for key, value := range values {
			node.Annotations[key] = value
		}
	})
}

func (n machine) cordon() *change {
	return n.edit(spec, "draining", func(node *corev1.Node) {
		node.Spec.Unschedulable = true
		setCordonTaint(node, n.watch.now)
	})
}

// drain ends the drain, one way or another. The pods are removed meanwhile by
// planEvictions and the kubelets.
func (n machine) drain(drain, uncordon string) *change {
	due := n.takes(phaseDrain, n.timings.Drain)
	switch {
	case n.fault.AbandonsDrain > 0 && !n.abandoned() && n.takes(phaseDrain, n.fault.AbandonsDrain):
		return n.annotate("gives its drain up", map[string]string{
			annotationState: stateWorking, annotationReason: "", annotationDesiredDrain: uncordon, annotationAbandoned: hashOf(n.config),
		})
	case due && n.pods == 0 && !n.fault.HangsDraining:
		return n.annotate("", map[string]string{annotationLastAppliedDrain: drain})
	case n.timings.DrainFails > 0 && !n.drainFailed() && n.takes(phaseDrain, n.timings.DrainFails):
		reason := drainFailure(n.node.Name)
		return n.annotate("degraded: "+reason, map[string]string{annotationState: stateDegraded, annotationReason: reason})
	}
	return nil
}

// drainFailed reports whether the node says that its drain has failed.
func (n machine) drainFailed() bool {
	a := n.node.Annotations
	return a[annotationState] == stateDegraded && a[annotationReason] == drainFailure(n.node.Name)
}

// drainFailure is the reason of a node whose drain takes longer than Timings.DrainFails.
func drainFailure(node string) string {
	return fmt.Sprintf("failed to drain node: %s after 1 hour. Please see machine-config-controller logs for more information", node)
}

// abandoned reports whether the drain for this configuration was given up once already.
func (n machine) abandoned() bool {
	return n.node.Annotations[annotationAbandoned] == hashOf(n.config)
}

// apply writes the configuration to the disk, if the node can.
func (n machine) apply() *change {
	a := n.node.Annotations
	if n.fault.Degraded != "" {
		if a[annotationState] == stateDegraded && a[annotationReason] == n.fault.Degraded {
			return nil
		}
		return n.annotate("degraded: "+n.fault.Degraded, map[string]string{annotationState: stateDegraded, annotationReason: n.fault.Degraded})
	}
	if !n.takes("apply", n.timings.Apply) {
		return nil
	}
	return n.annotate("rebooting", map[string]string{annotationState: stateRebooting, annotationReason: ""})
}

func (n machine) goDown() *change {
	return n.edit(status, "", func(node *corev1.Node) {
		setReady(node, corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status.", n.watch.now)
	})
}

func (n machine) comeUp() *change {
	if !n.takes("reboot", n.timings.Reboot) || n.fault.StaysDown {
		return nil
	}
	return n.edit(status, "", func(node *corev1.Node) {
		node.Status.NodeInfo = nodeInfo(node.Name, n.config, n.version)
		setReady(node, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status", n.watch.now)
	})
}

// finish ends the update of the node.
func (n machine) finish() *change {
	return n.edit(spec, "updated", func(node *corev1.Node) {
		node.Annotations[annotationState] = stateDone
		node.Annotations[annotationCurrentConfig] = n.config
		delete(node.Annotations, annotationAbandoned)
	})
}

func (n machine) uncordon(uncordon string) *change {
	return n.edit(spec, "", func(node *corev1.Node) {
		node.Spec.Unschedulable = false
		setCordonTaint(node, n.watch.now)
		if node.Annotations[annotationState] == stateRebooting { // Otherwise the update is still to come.
			node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == updateTaint.Key })
		}
		node.Annotations[annotationLastAppliedDrain] = uncordon
	})
}

// hashOf returns the part of a rendered configuration's name after the pool.
func hashOf(config string) string { return config[max(0, len(config)-32):] }

// bootID identifies the boot by which a node came to a configuration.
func bootID(node, config string) string {
	d := digest("boot", node, config)
	return fmt.Sprintf("%s-%s-%s-%s-%s", d[:8], d[8:12], d[12:16], d[16:20], d[20:32])
}

// nodeInfo is what the kubelet of a release reports about its node.
func nodeInfo(node, config, version string) corev1.NodeSystemInfo {
	id := digest("machine", node)[:32]
	return corev1.NodeSystemInfo{
		MachineID: id, SystemUUID: id, BootID: bootID(node, config),
		KernelVersion:           "5.14.0-427.el9.x86_64",
		OSImage:                 "Red Hat Enterprise Linux CoreOS " + version,
		ContainerRuntimeVersion: "cri-o://" + kubernetesVersion(version),
		KubeletVersion:          "v" + kubernetesVersion(version),
		OperatingSystem:         "linux", Architecture: "amd64",
	}
}
