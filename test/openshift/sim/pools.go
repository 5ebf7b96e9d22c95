// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	masterPool = "master"
	workerPool = "worker"

	requiredLabel = "operator.machineconfiguration.openshift.io/required-for-upgrade"
)

// planPools lets the machine config controller do the next thing on each pool:
// render its configuration, take it as the target, hand it out to nodes, and
// count.
func planPools(v *view, sw *stopwatch) []change {
	members := v.members()
	var changes []change
	for _, name := range sortedKeys(v.pools) {
		p := &poolController{view: v, watch: sw, pool: v.pools[name], nodes: members[name]}
		if target := p.target(); target != nil {
			changes = append(changes, *target)
		}
		changes = append(changes, p.handOut()...)
		if counted := p.count(); counted != nil {
			changes = append(changes, *counted)
		}
	}
	return changes
}

// members returns the nodes of each pool: a node belongs to the master pool,
// else to a custom one, else to the worker pool.
func (v *view) members() map[string][]*corev1.Node {
	order := v.poolOrder()
	members := make(map[string][]*corev1.Node, len(order))
	for _, node := range v.nodes {
		if pool := poolOf(node, order); pool != "" {
			members[pool] = append(members[pool], node)
		}
	}
	return members
}

// poolOrder returns the names of the pools, those first that a node belongs to
// rather than to the others.
func (v *view) poolOrder() []string {
	custom := []string{}
	for name := range v.pools {
		if name != masterPool && name != workerPool {
			custom = append(custom, name)
		}
	}
	slices.Sort(custom)
	return append(append([]string{masterPool}, custom...), workerPool)
}

// poolOf returns the pool of a node, empty when it has none.
func poolOf(node *corev1.Node, order []string) string {
	for _, pool := range order {
		if _, is := node.Labels[roleLabel(pool)]; is {
			return pool
		}
	}
	return ""
}

// poolController is the machine config controller at work on one pool.
type poolController struct {
	view  *view
	watch *stopwatch
	pool  *mcfgv1.MachineConfigPool
	nodes []*corev1.Node
}

// target renders the pool's configuration for the release that the MCO has
// come to, and then makes it the pool's target.
func (p *poolController) target() *change {
	release, reached := p.release()
	if !reached {
		return nil
	}
	name := p.view.renderedName(p.pool.Name, release)
	if p.pool.Spec.Configuration.Name == name {
		return nil
	}
	if p.view.configs[name] == nil {
		config := renderedConfig(p.pool, name, release)
		return &change{after: config, part: created}
	}
	next := p.pool.DeepCopy()
	next.Spec.Configuration = configurationReference(name, p.pool.Name)
	note := fmt.Sprintf("MCO: pool %s: new configuration %s (%s)", p.pool.Name, name, release)
	if p.pool.Spec.Paused {
		note += ", but the pool is paused"
	}
	return &change{before: p.pool, after: next, part: spec, note: note}
}

// release returns the release that the pool is to be configured for, and
// whether the MCO has come to it: after its operator was updated, and some more
// time for this pool.
func (p *poolController) release() (string, bool) {
	history := p.view.version.Status.History
	if len(history) == 0 {
		return "", false
	}
	r := rollout{operators: p.view.operators, version: history[0].Version}
	if !r.started(machineConfigOperator) && !r.reports(machineConfigOperator) {
		return "", false
	}
	if p.pool.Spec.Configuration.Name == p.view.renderedName(p.pool.Name, r.version) {
		return r.version, true
	}
	delay := p.view.scenario.Timings.Render
	if pool, found := p.view.scenario.pool(p.pool.Name); found {
		delay += pool.RenderDelay
	}
	return r.version, p.watch.passed("render/"+p.pool.Name, r.version, time.Duration(delay))
}

// handOut gives the target to as many nodes as may be unavailable at a time.
func (p *poolController) handOut() []change {
	target := p.pool.Spec.Configuration.Name
	if p.pool.Spec.Paused || p.view.configs[target] == nil {
		return nil
	}
	capacity := p.maxUnavailable()
	candidates := []*corev1.Node{}
	for _, node := range p.nodes {
		switch {
		case nodeUnavailable(node):
			capacity--
		case node.Annotations[annotationDesiredConfig] != target:
			candidates = append(candidates, node)
		}
	}
	if capacity <= 0 || len(candidates) == 0 {
		return nil
	}
	slices.SortFunc(candidates, p.updateOrder)
	var changes []change
	for _, node := range candidates[:min(capacity, len(candidates))] {
		changes = append(changes, wantConfig(node, target))
	}
	return changes
}

// updateOrder sorts nodes as the MCO updates them: by zone, then by age. The
// master that the MCO itself runs on goes last.
func (p *poolController) updateOrder(a, b *corev1.Node) int {
	const mcoHost = masterPool + "-0"
	switch {
	case a.Name == mcoHost && b.Name != mcoHost:
		return 1
	case b.Name == mcoHost && a.Name != mcoHost:
		return -1
	}
	if order := strings.Compare(a.Labels[corev1.LabelTopologyZone], b.Labels[corev1.LabelTopologyZone]); order != 0 {
		return order
	}
	if order := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); order != 0 {
		return order
	}
	return strings.Compare(a.Name, b.Name)
}

// maxUnavailable returns how many nodes may be unavailable at a time: rounded
// down, but at least one.
func (p *poolController) maxUnavailable() int {
	limit := intstr.FromInt32(1)
	if p.pool.Spec.MaxUnavailable != nil {
		limit = *p.pool.Spec.MaxUnavailable
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(&limit, len(p.nodes), false)
	if err != nil {
		return 0
	}
	return max(1, n)
}

// count writes the pool's status.
func (p *poolController) count() *change {
	target := p.pool.Spec.Configuration.Name
	next := p.pool.DeepCopy()
	st := &next.Status
	st.ObservedGeneration = p.pool.Generation
	st.MachineCount = int32(len(p.nodes))
	st.UpdatedMachineCount, st.ReadyMachineCount, st.UnavailableMachineCount, st.DegradedMachineCount = 0, 0, 0, 0
	var degraded []string
	for _, node := range p.nodes {
		updated := nodeRuns(node, target)
		if updated {
			st.UpdatedMachineCount++
		}
		if updated && nodeAvailable(node) {
			st.ReadyMachineCount++
		}
		if nodeUnavailable(node) {
			st.UnavailableMachineCount++
		}
		if node.Annotations[annotationState] == stateDegraded {
			st.DegradedMachineCount++
			degraded = append(degraded, fmt.Sprintf("Node %s is reporting: %q", node.Name, node.Annotations[annotationReason]))
		}
	}
	slices.Sort(degraded)
	p.conditions(st, target, degraded)
	if reflect.DeepEqual(st, &p.pool.Status) {
		return nil
	}
	return &change{before: p.pool, after: next, part: status, note: poolNote(p.pool, next)}
}

// conditions says how far the pool is with its target.
func (p *poolController) conditions(st *mcfgv1.MachineConfigPoolStatus, target string, degraded []string) {
	set := func(t mcfgv1.MachineConfigPoolConditionType, value bool, reason, message string) {
		setPoolCondition(&st.Conditions, t, value, reason, message, p.watch.now)
	}
	switch {
	case st.UpdatedMachineCount == st.MachineCount && st.ReadyMachineCount == st.MachineCount && st.UnavailableMachineCount == 0:
		set(mcfgv1.MachineConfigPoolUpdated, true, "", "All nodes are updated with "+target)
		set(mcfgv1.MachineConfigPoolUpdating, false, "", "")
		st.Configuration = *p.pool.Spec.Configuration.DeepCopy()
	case p.pool.Spec.Paused:
		set(mcfgv1.MachineConfigPoolUpdated, false, "", "")
		set(mcfgv1.MachineConfigPoolUpdating, false, "", "Pool is paused; will not update to "+target)
	default:
		set(mcfgv1.MachineConfigPoolUpdated, false, "", "")
		set(mcfgv1.MachineConfigPoolUpdating, true, "", "All nodes are updating to "+target)
	}
	set(mcfgv1.MachineConfigPoolRenderDegraded, false, "", "")
	reason := ""
	if len(degraded) > 0 {
		reason = fmt.Sprintf("%d nodes are reporting degraded status on sync", len(degraded))
	}
	set(mcfgv1.MachineConfigPoolNodeDegraded, len(degraded) > 0, reason, strings.Join(degraded, ", "))
	set(mcfgv1.MachineConfigPoolDegraded, len(degraded) > 0, "", "")
}

// setPoolCondition writes a condition in its place, or last. Its transition
// time moves only with its status.
func setPoolCondition(conditions *[]mcfgv1.MachineConfigPoolCondition, t mcfgv1.MachineConfigPoolConditionType, value bool, reason, message string, now time.Time) {
	next := mcfgv1.MachineConfigPoolCondition{
		Type: t, Status: corev1.ConditionFalse, Reason: reason, Message: message,
		LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
	}
	if value {
		next.Status = corev1.ConditionTrue
	}
	for i := range *conditions {
		old := &(*conditions)[i]
		if old.Type != t {
			continue
		}
		if old.Status == next.Status {
			next.LastTransitionTime = old.LastTransitionTime
		}
		*old = next
		return
	}
	*conditions = append(*conditions, next)
}

// poolConditionTrue reports whether the pool's condition is True.
func poolConditionTrue(pool *mcfgv1.MachineConfigPool, t mcfgv1.MachineConfigPoolConditionType) bool {
	return slices.ContainsFunc(pool.Status.Conditions, func(c mcfgv1.MachineConfigPoolCondition) bool {
		return c.Type == t && c.Status == corev1.ConditionTrue
	})
}

// requiredPool reports whether an update is complete only with this pool.
func requiredPool(pool *mcfgv1.MachineConfigPool) bool {
	_, required := pool.Labels[requiredLabel]
	return required
}

// poolRuns reports whether all nodes of the pool run that configuration.
func poolRuns(pool *mcfgv1.MachineConfigPool, config string) bool {
	return pool.Spec.Configuration.Name == config && pool.Status.Configuration.Name == config &&
		pool.Status.ObservedGeneration == pool.Generation &&
		poolConditionTrue(pool, mcfgv1.MachineConfigPoolUpdated)
}

// poolNote tells the turns of a pool, not each node.
func poolNote(before, after *mcfgv1.MachineConfigPool) string {
	for _, t := range []mcfgv1.MachineConfigPoolConditionType{
		mcfgv1.MachineConfigPoolDegraded, mcfgv1.MachineConfigPoolUpdated, mcfgv1.MachineConfigPoolUpdating,
	} {
		was, is := poolConditionTrue(before, t), poolConditionTrue(after, t)
		if is && !was {
			return fmt.Sprintf("MCO: pool %s: %s, %d of %d nodes updated", after.Name, t, after.Status.UpdatedMachineCount, after.Status.MachineCount)
		}
	}
	if after.Spec.Paused && !poolConditionTrue(after, mcfgv1.MachineConfigPoolUpdated) &&
		poolConditionTrue(before, mcfgv1.MachineConfigPoolUpdated) {
		return fmt.Sprintf("MCO: pool %s: paused, %d of %d nodes updated", after.Name, after.Status.UpdatedMachineCount, after.Status.MachineCount)
	}
	return ""
}
