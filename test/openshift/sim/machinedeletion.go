// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// end returns what happens next to a Machine that is deleted:
//
//	machine controller  phase Deleting
//	drain controller    cordons the Node and evicts its pods; condition Drained
//	cloud               ends the instance, and with it the pods that are left
//	machine controller  deletes the Node, and takes its finalizer off
//
// Hooks of the Machine's lifecycle hold it up before the drain and before the end.
func (c machineController) end() []change {
	var next *change
	switch {
	case !controllerutil.ContainsFinalizer(c.machine, machinev1beta1.MachineFinalizer):
		return nil // Somebody else's finalizers are waited for.
	case phaseOf(c.machine) != machinev1beta1.PhaseDeleting:
		next = c.report("is deleted", machinev1beta1.PhaseDeleting, func(*machinev1beta1.Machine) {})
	case machineCondition(c.machine, machinev1beta1.MachineDrained).Status != corev1.ConditionTrue:
		next = c.drain()
	default:
		return c.terminate()
	}
	if next == nil {
		return nil
	}
	return []change{*next}
}

// drain empties the node.
func (c machineController) drain() *change {
	_, excluded := c.machine.Annotations[annotationExcludeDraining]
	hooks := c.machine.Spec.LifecycleHooks.PreDrain
	switch {
	case excluded || c.machine.Status.NodeRef == nil:
		return c.drained("Node drain skipped")
	case len(hooks) > 0:
		return c.say(machinev1beta1.MachineDrainable, corev1.ConditionFalse, machinev1beta1.MachineHookPresent,
			fmt.Sprintf("Drain operation currently blocked by: %+v", hooks))
	case machineCondition(c.machine, machinev1beta1.MachineDrainable).Status != corev1.ConditionTrue:
		return c.say(machinev1beta1.MachineDrainable, corev1.ConditionTrue, "", "")
	case c.node != nil && !machineDraining(c.node):
		next := c.node.DeepCopy()
		next.Spec.Unschedulable = true
		setCordonTaint(next, c.watch.now)
		next.Annotations[annotationMachineDrain] = machineKey(c.machine)
		return &change{before: c.node, after: next, part: spec, note: "machine API: node " + next.Name + " draining"}
	case c.node == nil || len(c.view.pods.evictable[c.node.Name]) == 0:
		return c.drained("Drain finished successfully")
	}
	if problem := c.problem(); problem != "" {
		return c.say(machinev1beta1.MachineDrained, corev1.ConditionFalse, machinev1beta1.MachineDrainError, problem)
	}
	return nil
}

// drained ends the drain.
func (c machineController) drained(message string) *change {
	return c.say(machinev1beta1.MachineDrained, corev1.ConditionTrue, "", message)
}

// say writes a condition, if that is news.
func (c machineController) say(t machinev1beta1.ConditionType, st corev1.ConditionStatus, reason, message string) *change {
	old := machineCondition(c.machine, t)
	if old.Status == st && old.Reason == reason && old.Message == message {
		return nil
	}
	what := ""
	if st == corev1.ConditionFalse {
		what = "is not deleted yet: " + message
	}
	return c.report(what, phaseOf(c.machine), func(m *machinev1beta1.Machine) { c.set(m, t, st, reason, message) })
}

// problem says why the drain is not done: because of pods whose eviction was
// refused, and of those that take longer to end than an attempt lasts. The attempts
// of real drains last 20 s, and the words say so whatever is set here.
func (c machineController) problem() string {
	const timeout = "global timeout reached: 20s"
	var problems []error
	pods := slices.SortedFunc(maps.Values(c.view.pods.evictable[c.node.Name]), func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	long := c.watch.passed("machine-drain/"+c.machine.Name, string(c.machine.UID), c.view.scenario.Timings.drainRetry())
	for _, pod := range pods {
		switch last, tried := c.view.pods.attempts[pod.UID]; {
		case pod.DeletionTimestamp == nil && tried && last.refusal != "":
			problems = append(problems, fmt.Errorf("error when evicting pods/%q -n %q: %s", pod.Name, pod.Namespace, timeout))
		case pod.DeletionTimestamp != nil && long:
			problems = append(problems, fmt.Errorf("error when waiting for pod %q in namespace %q to terminate: %s", pod.Name, pod.Namespace, timeout))
		}
	}
	if len(problems) == 0 {
		return ""
	}
	return "could not drain machine: " + utilerrors.NewAggregate(problems).Error()
}

// terminate ends the instance, the node and the Machine.
func (c machineController) terminate() []change {
	hooks := c.machine.Spec.LifecycleHooks.PreTerminate
	if len(hooks) > 0 {
		blocked := c.say(machinev1beta1.MachineTerminable, corev1.ConditionFalse, machinev1beta1.MachineHookPresent,
			fmt.Sprintf("Terminate operation currently blocked by: %+v", hooks))
		if blocked == nil {
			return nil
		}
		return []change{*blocked}
	}
	if c.fault.StaysDeleting || !c.takes(machinev1beta1.PhaseDeleting, c.api.Deleting) {
		return nil
	}
	if c.node == nil {
		c.watch.forget("machine-drain/" + c.machine.Name)
		c.watch.forget(c.key())
		gone := c.edit(func(m *machinev1beta1.Machine) { controllerutil.RemoveFinalizer(m, machinev1beta1.MachineFinalizer) })
		gone.note = fmt.Sprintf("machine API: machine %s is gone", c.machine.Name)
		return []change{*gone}
	}
	var changes []change
	for _, pod := range c.view.pods.evictable[c.node.Name] {
		if grace := pod.DeletionGracePeriodSeconds; grace != nil && *grace == 0 {
			continue // Somebody else's finalizers keep it, also without its node.
		}
		changes = append(changes, change{before: pod, after: pod.DeepCopy(), part: deleted})
	}
	if len(changes) > 0 {
		return changes
	}
	return []change{{before: c.node, after: c.node.DeepCopy(), part: deleted}}
}
