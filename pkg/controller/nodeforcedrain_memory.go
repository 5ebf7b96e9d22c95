// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/forcedrain"
)

// drainMemory is what this process knows of a NodeForceDrain beyond its status. It is used by one worker.
type drainMemory struct {
	uid        types.UID
	generation int64
	// selection of that generation, or what is wrong with it.
	selection *forcedrain.Selection
	problem   *forcedrain.Problem
	// drains that are followed since the last pass.
	drains []forcedrain.Drain
	// unrecorded are deletions that are not in the status yet, oldest first.
	unrecorded []v1beta1.DeletedPod
	// refused has what the API server did not permit, and failed how podJQSelector or a deletion failed, by node, as of the
	// last look at it.
	refused, failed map[string]string
}

// memory returns what is known of the object, for its present spec.
func (r *NodeForceDrainReconciler) memory(key types.NamespacedName, nfd *v1beta1.NodeForceDrain) *drainMemory {
	m := r.memories[key]
	if m == nil || m.uid != nfd.UID {
		m = &drainMemory{uid: nfd.UID, refused: map[string]string{}, failed: map[string]string{}}
		r.memories[key] = m
	}
	if (m.selection == nil && m.problem == nil) || m.generation != nfd.Generation {
		m.generation = nfd.Generation
		m.selection, m.problem = forcedrain.NewSelection(&nfd.Spec)
		for i := range m.drains {
			m.drains[i].Next = time.Time{} // when a node is looked at depends on the spec
		}
		clear(m.refused)
		clear(m.failed)
	}
	if isRecorded(&nfd.Status, m.unrecorded) {
		m.unrecorded = nil // by a write whose answer was lost
	}
	return m
}

// recorded returns the drains that are known: those of this process first, and those of the status, which a process before
// this one may have seen.
func (m *drainMemory) recorded(status *v1beta1.NodeForceDrainStatus) []forcedrain.Drain {
	known := slices.Clone(m.drains)
	for _, d := range status.LastObservedNodeDrain {
		known = append(known, forcedrain.Drain{Node: d.NodeName, ID: d.DrainID, Observed: d.ObservedTime.Time})
	}
	return known
}

// follow keeps the drains that are followed from now on, and forgets all others.
func (m *drainMemory) follow(drains []forcedrain.Drain) {
	m.drains = drains
	gone := func(node, _ string) bool {
		return !slices.ContainsFunc(drains, func(d forcedrain.Drain) bool { return d.Node == node })
	}
	maps.DeleteFunc(m.refused, gone)
	maps.DeleteFunc(m.failed, gone)
}

// recordDrains puts the drains into the status if one of them is not in it. Those that are over stay there until then: the
// end of a drain is not worth a write.
func recordDrains(status *v1beta1.NodeForceDrainStatus, drains []forcedrain.Drain) {
	observed := make([]v1beta1.ObservedNodeDrain, 0, len(drains))
	news := false
	for _, d := range drains {
		entry := v1beta1.ObservedNodeDrain{NodeName: d.Node, DrainID: d.ID, ObservedTime: metav1.NewMicroTime(d.Observed)}
		observed = append(observed, entry)
		news = news || !slices.ContainsFunc(status.LastObservedNodeDrain, func(o v1beta1.ObservedNodeDrain) bool {
			return o.NodeName == entry.NodeName && o.DrainID == entry.DrainID && o.ObservedTime.Equal(&entry.ObservedTime)
		})
	}
	if news || !valid(status.LastObservedNodeDrain) {
		status.LastObservedNodeDrain = observed
	}
}

// valid tells whether the CRD accepts the list. One that another operator left here may be longer, and name a node twice.
func valid(observed []v1beta1.ObservedNodeDrain) bool {
	nodes := map[string]bool{}
	for _, o := range observed {
		nodes[o.NodeName] = true
	}
	return len(nodes) == len(observed) && len(observed) <= v1beta1.MaxObservedDrains
}

// recordDeletions puts deletions, oldest first, into the status.
func recordDeletions(status *v1beta1.NodeForceDrainStatus, deletions []v1beta1.DeletedPod) {
	for _, d := range deletions {
		if d.Forced {
			status.PodsForceDeleted++
		} else {
			status.PodsDeleted++
		}
		status.LastDeletedPods = slices.Insert(status.LastDeletedPods, 0, d)
	}
	status.LastDeletedPods = status.LastDeletedPods[:min(len(status.LastDeletedPods), v1beta1.MaxDrainedPods)]
}

// isRecorded tells whether the status has the deletions. They are recorded by one write, so that the last stands for all.
func isRecorded(status *v1beta1.NodeForceDrainStatus, deletions []v1beta1.DeletedPod) bool {
	if len(deletions) == 0 {
		return true
	}
	last := deletions[len(deletions)-1]
	return slices.ContainsFunc(status.LastDeletedPods, func(d v1beta1.DeletedPod) bool { return d.UID == last.UID && d.Forced == last.Forced })
}
