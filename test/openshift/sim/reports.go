// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"golang.org/x/sync/errgroup"
)

// Reasons of a MachineConfigNode's conditions that do not name their phase.
const (
	reasonNotYet = "NotYetOccurred"

	resetPrefix = "Action during update to %s: "
)

// reportPhases are the conditions of a MachineConfigNode, in the order in which
// the MCO writes them.
var reportPhases = []mcfgv1.StateProgress{
	mcfgv1.MachineConfigNodeUpdatePrepared, mcfgv1.MachineConfigNodeUpdateExecuted,
	mcfgv1.MachineConfigNodeUpdatePostActionComplete, mcfgv1.MachineConfigNodeUpdateComplete, mcfgv1.MachineConfigNodeResumed,
	mcfgv1.MachineConfigNodeUpdateDrained, mcfgv1.MachineConfigNodeUpdateFilesAndOS, mcfgv1.MachineConfigNodeUpdateCordoned,
	mcfgv1.MachineConfigNodeUpdateRebooted, mcfgv1.MachineConfigNodeUpdated, mcfgv1.MachineConfigNodeUpdateUncordoned,
	mcfgv1.MachineConfigNodeNodeDegraded,
}

// planReports lets the MCO report on each node in its MachineConfigNode. What
// stands there follows the node, a moment later.
func planReports(v *view, sw *stopwatch) []change {
	var changes []change
	order := v.poolOrder()
	for name, report := range v.reports {
		if v.nodes[name] == nil { // Its owner is gone.
			changes = append(changes, change{before: report, after: report.DeepCopy(), part: deleted})
		}
	}
	for name, node := range v.nodes {
		if !isSimulated(node) || node.Annotations[annotationDesiredConfig] == "" {
			continue
		}
		r := reporter{node: node, pods: v.pods, watch: sw}
		report := v.reports[name]
		switch {
		case report == nil:
			changes = append(changes, change{after: newReport(node, poolOf(node, order)), part: created})
		case report.Spec.ConfigVersion.Desired != node.Annotations[annotationDesiredConfig]:
			next := report.DeepCopy()
			next.Spec.ConfigVersion.Desired = node.Annotations[annotationDesiredConfig]
			changes = append(changes, change{before: report, after: next, part: spec})
		default:
			if next := r.report(report); next != nil {
				changes = append(changes, change{before: report, after: next, part: status})
			}
		}
	}
	return changes
}

// newReport is the MachineConfigNode of a node, without a status.
func newReport(node *corev1.Node, pool string) *mcfgv1.MachineConfigNode {
	return &mcfgv1.MachineConfigNode{
		ObjectMeta: metav1.ObjectMeta{
			Name: node.Name,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID,
			}},
		},
		Spec: mcfgv1.MachineConfigNodeSpec{
			Node:          mcfgv1.MCOObjectReference{Name: node.Name},
			Pool:          mcfgv1.MCOObjectReference{Name: pool},
			ConfigVersion: mcfgv1.MachineConfigNodeSpecMachineConfigVersion{Desired: node.Annotations[annotationDesiredConfig]},
		},
	}
}

// reporter writes the MachineConfigNode of one node.
type reporter struct {
	node  *corev1.Node
	pods  podIndex
	watch *stopwatch
}

// report returns the report as it should be, nil when it is so already.
func (r reporter) report(have *mcfgv1.MachineConfigNode) *mcfgv1.MachineConfigNode {
	next := have.DeepCopy()
	st := &next.Status
	current, desired := r.node.Annotations[annotationCurrentConfig], r.node.Annotations[annotationDesiredConfig]
	// Real ones run ahead of the generation by one.
	st.ObservedGeneration = max(st.ObservedGeneration, have.Generation+1)
	if st.ConfigVersion == nil {
		st.ConfigVersion = &mcfgv1.MachineConfigNodeStatusMachineConfigVersion{Desired: desired}
		for _, phase := range reportPhases {
			r.set(st, phase, metav1.ConditionFalse, reasonNotYet, notYet(phase))
		}
	}
	st.ConfigVersion.Current = current
	updated := conditionStatus(have, mcfgv1.MachineConfigNodeUpdated) == metav1.ConditionTrue
	switch {
	case nodeSettled(r.node) && !(updated && st.ConfigVersion.Desired == desired):
		if len(have.Status.Conditions) > 0 { // Otherwise the node has not been updated, but was made so.
			r.progress(st)
		}
		st.ConfigVersion.Desired = desired
		r.reset(st, desired)
	case !nodeSettled(r.node) && r.node.Annotations[annotationState] != stateDone:
		st.ConfigVersion.Desired = desired
		r.progress(st)
	}
	if reflect.DeepEqual(st, &have.Status) {
		return nil
	}
	return next
}

// progress says how far the node is: True is done, Unknown is in progress.
func (r reporter) progress(st *mcfgv1.MachineConfigNodeStatus) {
	a := r.node.Annotations
	hash := hashOf(a[annotationDesiredConfig])
	done := nodeSettled(r.node)
	rebooting := done || a[annotationState] == stateRebooting
	booted := done || rebooting && r.node.Status.NodeInfo.BootID == bootID(r.node.Name, a[annotationDesiredConfig])
	drained := rebooting || a[annotationLastAppliedDrain] == drainPrefix+hash
	uncordoned := a[annotationDesiredDrain] == uncordonPrefix+hash && a[annotationLastAppliedDrain] == uncordonPrefix+hash
	set := func(phase mcfgv1.StateProgress, over bool, message string) {
		value := metav1.ConditionUnknown
		if over {
			value = metav1.ConditionTrue
		}
		r.set(st, phase, value, string(phase), message)
	}
	r.set(st, mcfgv1.MachineConfigNodeUpdated, metav1.ConditionFalse, reasonNotYet, notYet(mcfgv1.MachineConfigNodeUpdated))
	r.degraded(st)
	set(mcfgv1.MachineConfigNodeUpdatePrepared, true, "Update is compatible.")
	set(mcfgv1.MachineConfigNodeUpdateExecuted, rebooting, "Update of the node to "+a[annotationDesiredConfig])
	if drained || nodeDraining(r.node) {
		set(mcfgv1.MachineConfigNodeUpdateCordoned, true, "Cordoned node. The node is reporting Unschedulable = true")
		set(mcfgv1.MachineConfigNodeUpdateDrained, drained, r.drainMessage(drained))
	}
	if drained {
		set(mcfgv1.MachineConfigNodeUpdateFilesAndOS, rebooting, "Applying files and new OS config to node")
	}
	if rebooting {
		set(mcfgv1.MachineConfigNodeUpdatePostActionComplete, booted, "Node will reboot into config "+a[annotationDesiredConfig])
		set(mcfgv1.MachineConfigNodeUpdateRebooted, booted, "Upgrade requires a reboot")
	}
	if booted {
		set(mcfgv1.MachineConfigNodeResumed, true, "In desired config . Resumed normal operations.")
	}
	// A drain that is given up ends as an update does.
	if a[annotationDesiredDrain] == uncordonPrefix+hash {
		set(mcfgv1.MachineConfigNodeUpdateComplete, uncordoned, "Uncordoned Node as part of completing upgrade phase")
		set(mcfgv1.MachineConfigNodeUpdateUncordoned, uncordoned, "UnCordoned node. The node is reporting Unschedulable = false")
	}
}

// degraded says whether the node's daemon has failed.
func (r reporter) degraded(st *mcfgv1.MachineConfigNodeStatus) {
	const phase = mcfgv1.MachineConfigNodeNodeDegraded
	if r.node.Annotations[annotationState] == stateDegraded {
		r.set(st, phase, metav1.ConditionTrue, string(phase), fmt.Sprintf("Node %s upgrade failure. %s", r.node.Name, r.node.Annotations[annotationReason]))
		return
	}
	if i := indexOf(st.Conditions, phase); i >= 0 && st.Conditions[i].Status == metav1.ConditionTrue {
		r.set(st, phase, metav1.ConditionFalse, reasonAsExpected, "This node is not degraded")
	}
}

// drainMessage says how the drain goes, and what holds it up.
func (r reporter) drainMessage(drained bool) string {
	desired, applied := r.node.Annotations[annotationDesiredDrain], r.node.Annotations[annotationLastAppliedDrain]
	until := fmt.Sprintf("The drain will not be complete until desired drainer %s matches current drainer %s", desired, applied)
	if drained {
		return "Drained node. The drain is complete as the desired drainer matches current drainer: " + drainPrefix + hashOf(r.node.Annotations[annotationDesiredConfig])
	}
	switch problems := r.drainProblems(); len(problems) {
	case 0:
		return "Draining node. " + until
	case 1:
		return fmt.Sprintf("Error: Node Drain has not succeeded. Error is: %s %s", problems[0], until)
	default:
		return fmt.Sprintf("Error: Node Drain has not succeeded. Error is: [%s] %s", strings.Join(problems, ", "), until)
	}
}

// drainProblems says for each pod that holds the drain up what it does, in order.
func (r reporter) drainProblems() []string {
	var problems []string
	for _, pod := range r.pods.evictable[r.node.Name] {
		refusal := r.pods.attempts[pod.UID].refusal
		switch {
		case pod.DeletionTimestamp != nil && r.watch.reached(pod.DeletionTimestamp.Time):
			problems = append(problems, fmt.Sprintf("error when waiting for pod %q in namespace %q to terminate: global timeout reached: 1m30s", pod.Name, pod.Namespace))
		case pod.DeletionTimestamp == nil && refusal != "":
			problems = append(problems, fmt.Sprintf("error when evicting pods/%q -n %q: %s", pod.Name, pod.Namespace, refusal))
		}
	}
	slices.Sort(problems)
	return problems
}

// reset ends an update: what has happened in it is told of as past.
func (r reporter) reset(st *mcfgv1.MachineConfigNodeStatus, config string) {
	for i := range st.Conditions {
		if c := &st.Conditions[i]; c.Status != metav1.ConditionFalse {
			c.Status, c.LastTransitionTime = metav1.ConditionFalse, r.now()
			c.Message = fmt.Sprintf(resetPrefix, config) + c.Message
		}
	}
	r.set(st, mcfgv1.MachineConfigNodeUpdated, metav1.ConditionTrue, string(mcfgv1.MachineConfigNodeUpdated), fmt.Sprintf("Node %s Updated", r.node.Name))
}

// set writes a condition in its place, or last. Its transition time moves only
// with its status.
func (r reporter) set(st *mcfgv1.MachineConfigNodeStatus, phase mcfgv1.StateProgress, value metav1.ConditionStatus, reason, message string) {
	next := metav1.Condition{Type: string(phase), Status: value, Reason: reason, Message: message, LastTransitionTime: r.now()}
	i := indexOf(st.Conditions, phase)
	if i < 0 {
		st.Conditions = append(st.Conditions, next)
		return
	}
	if st.Conditions[i].Status == value {
		next.LastTransitionTime = st.Conditions[i].LastTransitionTime
	}
	st.Conditions[i] = next
}

func (r reporter) now() metav1.Time { return metav1.NewTime(r.watch.now.Truncate(time.Second)) }

func notYet(phase mcfgv1.StateProgress) string {
	return fmt.Sprintf("This node has not yet entered the %s phase", phase)
}

// indexOf returns the place of a condition, -1 for none.
func indexOf(conditions []metav1.Condition, phase mcfgv1.StateProgress) int {
	return slices.IndexFunc(conditions, func(c metav1.Condition) bool { return c.Type == string(phase) })
}

// conditionStatus returns the status of a condition, empty when there is none.
func conditionStatus(report *mcfgv1.MachineConfigNode, phase mcfgv1.StateProgress) metav1.ConditionStatus {
	if i := indexOf(report.Status.Conditions, phase); i >= 0 {
		return report.Status.Conditions[i].Status
	}
	return ""
}

// reports creates the MachineConfigNodes, if the scenario has any.
func (i *installation) reports(ctx context.Context) error {
	if !i.scenario.MachineConfigNodes {
		return nil
	}
	watch := newStopwatch()
	watch.begin(i.now.Add(-installEnded))
	order := i.view.poolOrder()
	var group errgroup.Group
	group.SetLimit(parallelWrites)
	for name, node := range i.view.nodes {
		group.Go(func() error {
			report := newReport(node, poolOf(node, order))
			if err := i.client.Create(ctx, report); err != nil {
				return fmt.Errorf("create MachineConfigNode %s: %w", name, err)
			}
			r := reporter{node: node, watch: watch}
			if err := i.client.Status().Update(ctx, r.report(report)); err != nil {
				return fmt.Errorf("update status of MachineConfigNode %s: %w", name, err)
			}
			return nil
		})
	}
	return group.Wait()
}
