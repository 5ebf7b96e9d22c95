// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"context"
	"fmt"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ExtraMachine is how far the machine of a MachineSet is that was made by ExtraMachineSet.
type ExtraMachine struct {
	// Ready is set if its Node is there for pods, and the MachineSet says so too.
	Ready bool
	// Object that is to be looked at, as Kind/namespace/name or Kind/name.
	Object string
	// Message says of the object why the machine is not ready, in words that stay the same for as long as the reason does.
	Message string
}

// ExtraMachine tells how far the machine of the MachineSet is. Of the Machines, others than its own do not matter. It costs a request if all but the Node
// is known to be ready.
func (c *Cluster) ExtraMachine(ctx context.Context, set *machinev1beta1.MachineSet, machines []machinev1beta1.Machine) (ExtraMachine, error) {
	answer := ExtraMachine{Object: objectName("MachineSet", set.Name), Message: describeMachineSet(set)}
	if !set.DeletionTimestamp.IsZero() {
		return answer, nil
	}
	for i := range machines {
		m := &machines[i]
		if m.Labels[machineSetLabel] != set.Name || !m.DeletionTimestamp.IsZero() {
			continue
		}
		found, err := c.judgeMachine(ctx, set, m)
		if err != nil || found.Ready {
			return found, err
		}
		answer = found // whoever scales the set has several; one is enough
	}
	return answer, nil
}

// judgeMachine tells how far a Machine is that is not being deleted.
func (c *Cluster) judgeMachine(ctx context.Context, set *machinev1beta1.MachineSet, m *machinev1beta1.Machine) (ExtraMachine, error) {
	answer := ExtraMachine{Object: objectName("Machine", m.Name), Message: describeMachine(m)}
	if m.Status.NodeRef == nil || m.Status.ErrorReason != nil || ptr.Deref(m.Status.Phase, "") == machinev1beta1.PhaseFailed {
		return answer, nil
	}
	node := &corev1.Node{}
	name := m.Status.NodeRef.Name
	if err := c.live.Get(ctx, client.ObjectKey{Name: name}, node); apierrors.IsNotFound(err) {
		answer.Message = fmt.Sprintf("its Node %s is not there", name)
		return answer, nil
	} else if err != nil {
		return answer, fmt.Errorf("get Node/%s: %w", name, err)
	}
	switch facts := JudgeNode(node); {
	case facts.NotReady != nil:
		answer.Message = fmt.Sprintf("its Node %s is not ready (%s: %s)", name, facts.NotReady.Reason, facts.NotReady.Message)
	case node.Spec.Unschedulable:
		answer.Message = fmt.Sprintf("its Node %s takes no pods: it is cordoned", name)
	case !counted(set):
		answer.Message = "the MachineSet does not count it as ready yet"
	default:
		return ExtraMachine{Ready: true, Object: answer.Object}, nil
	}
	return answer, nil
}

// counted tells whether the MachineSet, as it is now, has a machine that is ready.
func counted(set *machinev1beta1.MachineSet) bool {
	return set.Status.ObservedGeneration >= set.Generation && set.Status.ReadyReplicas >= 1
}

// describeMachineSet says why a MachineSet has no Machine that is not being deleted.
func describeMachineSet(set *machinev1beta1.MachineSet) string {
	switch {
	case !set.DeletionTimestamp.IsZero():
		return "it is being deleted"
	case set.Status.ErrorMessage != nil:
		return fmt.Sprintf("it has no Machine (%s: %s)", ptr.Deref(set.Status.ErrorReason, ""), *set.Status.ErrorMessage)
	}
	return "it has no Machine yet"
}

// describeMachine says in which phase a Machine is, and what is wrong with it.
func describeMachine(m *machinev1beta1.Machine) string {
	message := "it is in phase " + ptr.Deref(m.Status.Phase, "")
	if ptr.Deref(m.Status.Phase, "") == "" {
		message = "it has no phase yet"
	}
	if m.Status.ErrorReason == nil && m.Status.ErrorMessage == nil {
		return message
	}
	why := strings.TrimPrefix(fmt.Sprintf("%s: %s", ptr.Deref(m.Status.ErrorReason, ""), ptr.Deref(m.Status.ErrorMessage, "")), ": ")
	return fmt.Sprintf("%s (%s)", message, strings.TrimSuffix(why, ": "))
}

// MachineEnd is what the Machine API says of a Machine that is being deleted.
type MachineEnd struct {
	// Drained is set if its node is drained, or needs no drain.
	Drained bool
	// Node that it is; empty if it never joined.
	Node string
	// Message says what the end of the machine waits for; empty if nothing is known.
	Message string
}

// JudgeMachineEnd tells how far the end of a Machine is.
func JudgeMachineEnd(m *machinev1beta1.Machine) MachineEnd {
	end := MachineEnd{}
	if m.Status.NodeRef != nil {
		end.Node = m.Status.NodeRef.Name
	}
	drained := machineCondition(m, machinev1beta1.MachineDrained)
	end.Drained = end.Node == "" || ExcludedFromDraining(m) || (drained != nil && drained.Status == corev1.ConditionTrue)
	for _, t := range []machinev1beta1.ConditionType{machinev1beta1.MachineDrainable, machinev1beta1.MachineDrained, machinev1beta1.MachineTerminable} {
		held := machineCondition(m, t)
		over := end.Drained && t != machinev1beta1.MachineTerminable
		if held != nil && held.Status == corev1.ConditionFalse && held.Message != "" && !over {
			end.Message = held.Message
			return end
		}
	}
	if m.Status.ErrorMessage != nil {
		end.Message = *m.Status.ErrorMessage
	}
	return end
}

func machineCondition(m *machinev1beta1.Machine, t machinev1beta1.ConditionType) *machinev1beta1.Condition {
	for i := range m.Status.Conditions {
		if m.Status.Conditions[i].Type == t {
			return &m.Status.Conditions[i]
		}
	}
	return nil
}

func objectName(kind, name string) string { return kind + "/" + MachineNamespace + "/" + name }
