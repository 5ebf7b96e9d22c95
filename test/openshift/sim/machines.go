// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// What the kubelet of a node says that has joined and has no network yet.
const (
	reasonNotReady  = "KubeletNotReady"
	messageNotReady = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: " +
		"no CNI configuration file in /etc/kubernetes/cni/net.d/. Has your network provider started?"
)

// planMachines lets every Machine do its next step:
//
//	machine controller  finalizer, phase Provisioning
//	cloud               makes the instance; spec.providerID, phase Provisioned
//	instance            boots and joins as a Node of its pool
//	nodelink            status.nodeRef, phase Running
//	kubelet             the Node is ready
//
// How a deleted one ends is told at machineController.end.
func planMachines(v *view, sw *stopwatch) []change {
	api := v.scenario.MachineAPI
	if api == nil {
		api = &MachineAPI{} // The scenario has lost it since the installation.
	}
	var changes []change
	for _, m := range v.machines {
		c := machineController{view: v, watch: sw, api: api, machine: m, fault: api.fault(setOf(m)), node: v.nodeOf(m)}
		if m.DeletionTimestamp != nil {
			changes = append(changes, c.end()...)
		} else if next := c.step(); next != nil {
			changes = append(changes, *next)
		}
	}
	return changes
}

// machineController is everybody who works on one Machine.
type machineController struct {
	view    *view
	watch   *stopwatch
	api     *MachineAPI
	machine *machinev1beta1.Machine
	fault   MachineSetFault
	node    *corev1.Node // nil when it has none
}

// step returns what happens next to a Machine that is not deleted.
func (c machineController) step() *change {
	switch phase := phaseOf(c.machine); {
	case !controllerutil.ContainsFinalizer(c.machine, machinev1beta1.MachineFinalizer):
		return c.edit(func(m *machinev1beta1.Machine) { controllerutil.AddFinalizer(m, machinev1beta1.MachineFinalizer) })
	case phase == "":
		return c.report("", machinev1beta1.PhaseProvisioning, func(m *machinev1beta1.Machine) {
			c.set(m, machinev1beta1.MachineDrainable, corev1.ConditionTrue, "", "")
			c.set(m, machinev1beta1.MachineTerminable, corev1.ConditionTrue, "", "")
			c.set(m, machinev1beta1.InstanceExistsCondition, corev1.ConditionFalse, machinev1beta1.InstanceNotCreatedReason, "Instance has not been created")
		})
	case phase == machinev1beta1.PhaseProvisioning:
		return c.provision()
	case phase == machinev1beta1.PhaseProvisioned:
		return c.join()
	case phase == machinev1beta1.PhaseRunning && c.node != nil:
		return c.getReady()
	}
	return nil
}

// provision makes the instance.
func (c machineController) provision() *change {
	switch {
	case c.fault.Fails != "":
		return c.report("failed: "+c.fault.Fails, machinev1beta1.PhaseFailed, func(m *machinev1beta1.Machine) {
			m.Status.ErrorReason = new(machinev1beta1.InvalidConfigurationMachineError)
			m.Status.ErrorMessage = new(c.fault.Fails)
		})
	case c.fault.StaysProvisioning, !c.takes(machinev1beta1.PhaseProvisioning, c.api.Provisioning):
		return nil
	case c.machine.Spec.ProviderID == nil:
		return c.edit(func(m *machinev1beta1.Machine) { m.Spec.ProviderID = new(providerID(m.Name)) })
	}
	return c.report("", machinev1beta1.PhaseProvisioned, func(m *machinev1beta1.Machine) {
		m.Status.Addresses = addresses(m.Name)
		c.set(m, machinev1beta1.InstanceExistsCondition, corev1.ConditionTrue, "", "")
	})
}

// join lets the instance become a node, and then links the two.
func (c machineController) join() *change {
	node := c.view.nodes[c.machine.Name]
	if node != nil {
		return c.report("runs as a node", machinev1beta1.PhaseRunning, func(m *machinev1beta1.Machine) {
			m.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: node.Name, UID: node.UID}
		})
	}
	if !c.takes(machinev1beta1.PhaseProvisioned, c.api.Joining) {
		return nil
	}
	roles := maps.Clone(c.machine.Spec.Labels)
	if roles == nil {
		roles = map[string]string{}
	}
	roles[roleLabel(workerPool)] = ""
	pool := c.view.pools[poolOf(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: roles}}, c.view.poolOrder())]
	if pool == nil {
		return nil
	}
	config := c.view.configs[pool.Spec.Configuration.Name]
	if config == nil {
		return nil // The watch of configurations lags behind that of pools.
	}
	node = bornNode(birth{
		name: c.machine.Name, pool: pool.Name, config: config.Name, version: config.Annotations[annotationReleaseVersion],
		zone: len(c.view.nodes), at: c.watch.now,
	})
	maps.Copy(node.Labels, roles)
	maps.Copy(node.Annotations, c.machine.Spec.Annotations)
	node.Annotations[annotationMachine] = machineKey(c.machine)
	node.Spec.ProviderID = providerID(c.machine.Name)
	node.Spec.Taints = append(node.Spec.Taints, c.machine.Spec.Taints...)
	setReady(node, corev1.ConditionFalse, reasonNotReady, messageNotReady, c.watch.now)
	return &change{after: node, part: created}
}

// getReady lets the node be ready, and removes the taint with which the API server
// has made it.
func (c machineController) getReady() *change {
	unready := slices.ContainsFunc(c.node.Status.Conditions, func(n corev1.NodeCondition) bool {
		return n.Type == corev1.NodeReady && n.Status == corev1.ConditionFalse && n.Message == messageNotReady
	})
	notReadyTaint := func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeNotReady && t.Effect == corev1.TaintEffectNoSchedule
	}
	next := c.node.DeepCopy()
	switch {
	case unready && (c.fault.StaysNotReady || !c.takes(machinev1beta1.PhaseRunning, c.api.Ready)):
		return nil
	case unready:
		setReady(next, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status", c.watch.now)
		return &change{before: c.node, after: next, part: status, note: "machine API: node " + next.Name + " is ready"}
	case nodeReady(c.node) && slices.ContainsFunc(c.node.Spec.Taints, notReadyTaint):
		next.Spec.Taints = slices.DeleteFunc(next.Spec.Taints, notReadyTaint)
		return &change{before: c.node, after: next, part: spec}
	}
	return nil
}

// takes reports whether a phase has taken its time.
func (c machineController) takes(phase string, d Duration) bool {
	return c.watch.passed(c.key(), phase, c.fault.takes(d))
}

func (c machineController) key() string { return "machine/" + string(c.machine.UID) + c.machine.Name }

// edit changes all but the status.
func (c machineController) edit(edit func(*machinev1beta1.Machine)) *change {
	next := c.machine.DeepCopy()
	edit(next)
	return &change{before: c.machine, after: next, part: spec}
}

// report changes the status, and puts the Machine into a phase; what tells it to people.
func (c machineController) report(what, phase string, edit func(*machinev1beta1.Machine)) *change {
	next := c.machine.DeepCopy()
	if phaseOf(next) != phase {
		next.Status.Phase = new(phase)
		next.Status.LastUpdated = new(metav1.Time{Time: c.watch.now})
	}
	edit(next)
	if what != "" {
		what = fmt.Sprintf("machine API: machine %s %s", next.Name, what)
	}
	return &change{before: c.machine, after: next, part: status, note: what}
}

// set writes a condition of the Machine. Its transition time moves only with its status.
func (c machineController) set(m *machinev1beta1.Machine, t machinev1beta1.ConditionType, st corev1.ConditionStatus, reason, message string) {
	next := machinev1beta1.Condition{
		Type: t, Status: st, Reason: reason, Message: message, LastTransitionTime: metav1.Time{Time: c.watch.now},
	}
	if st == corev1.ConditionFalse {
		next.Severity = machinev1beta1.ConditionSeverityWarning
	}
	for i := range m.Status.Conditions {
		if old := &m.Status.Conditions[i]; old.Type == t {
			if old.Status == st {
				next.LastTransitionTime = old.LastTransitionTime
			}
			*old = next
			return
		}
	}
	m.Status.Conditions = append(m.Status.Conditions, next)
}

// machineCondition returns a condition of a Machine, the zero value when it is absent.
func machineCondition(m *machinev1beta1.Machine, t machinev1beta1.ConditionType) machinev1beta1.Condition {
	for _, c := range m.Status.Conditions {
		if c.Type == t {
			return c
		}
	}
	return machinev1beta1.Condition{}
}

// phaseOf returns the phase of a Machine, empty before its first one.
func phaseOf(m *machinev1beta1.Machine) string {
	if m.Status.Phase == nil {
		return ""
	}
	return *m.Status.Phase
}

// providerID is the cloud's name of a Machine's instance.
func providerID(machine string) string {
	return "aws:///us-east-1a/i-" + digest("instance", machine)[:17]
}

// addresses are those of a Machine's instance.
func addresses(machine string) []corev1.NodeAddress {
	d := []byte(digest("address", machine))
	return []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.0.%d.%d", d[0], d[1])},
		{Type: corev1.NodeHostName, Address: machine},
	}
}
