// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/test/controlplane"
)

// inFlight is how long a write that was decided on before another may arrive after it.
const inFlight = 500 * time.Millisecond

// checkPools judges what became of the machine config pools: a job leaves none paused unless it failed, marks those that it
// pauses by the write that does it, and keeps their nodes as they are until they are released.
func (c *cluster) checkPools() {
	c.t.Helper()
	list := &mcfgv1.MachineConfigPoolList{}
	if err := env.Client.List(c.ctx, list); err != nil {
		c.t.Fatal(err)
	}
	for i := range list.Items {
		history := c.poolHistory(list.Items[i].Name)
		c.checkMarks(history)
		c.checkNothingHeld(history)
		c.checkNodesOf(history)
	}
}

// checkMarks judges when the annotation of a pool comes and goes.
func (c *cluster) checkMarks(history []revision[*mcfgv1.MachineConfigPool]) {
	c.t.Helper()
	for i := range history[1:] {
		was, is := history[i].object, history[i+1].object
		before, after := was.Annotations[v1beta1.UpgradeJobAnnotation], is.Annotations[v1beta1.UpgradeJobAnnotation]
		switch at := history[i+1].seen.Format(time.StampMilli); {
		case before == after:
		case before == "" && (was.Spec.Paused || !is.Spec.Paused):
			c.t.Errorf("pool %s at %s: it is marked as paused by %s, but was paused %t and is paused %t", is.Name, at, after, was.Spec.Paused, is.Spec.Paused)
		case after == "" && is.Spec.Paused:
			c.t.Errorf("pool %s at %s: the mark of %s is taken off, but it stays paused", is.Name, at, before)
		}
	}
}

// checkNothingHeld judges whether a job that succeeded or was skipped held the pool when it let go of everything, or at the
// end.
func (c *cluster) checkNothingHeld(history []revision[*mcfgv1.MachineConfigPool]) {
	c.t.Helper()
	last := map[string]v1beta1.Phase{}
	for _, r := range past.jobsSince(c.began) {
		job := r.object
		last[keyOf(job)] = job.Status.Phase
		if len(job.Finalizers) > 0 || !leavesNothing(job.Status.Phase) {
			continue
		}
		if pool := asOf(history, orderOf(job)); pool != nil && pool.Annotations[v1beta1.UpgradeJobAnnotation] == keyOf(job) {
			c.t.Errorf("UpgradeJob %s has %s and holds pool %s at %s", job.Name, job.Status.Phase, pool.Name, r.seen.Format(time.StampMilli))
		}
	}
	pool := history[len(history)-1].object
	if holder := pool.Annotations[v1beta1.UpgradeJobAnnotation]; leavesNothing(last[holder]) {
		c.t.Errorf("pool %s is left with the mark of %s, which has %s", pool.Name, holder, last[holder])
	}
}

func leavesNothing(phase v1beta1.Phase) bool {
	return phase == v1beta1.PhaseSucceeded || phase == v1beta1.PhaseSkipped
}

// asOf returns the pool as it was when something was written, nil if it was not there.
func asOf(history []revision[*mcfgv1.MachineConfigPool], at order) *mcfgv1.MachineConfigPool {
	var pool *mcfgv1.MachineConfigPool
	for _, r := range history {
		if orderOf(r.object) < at {
			pool = r.object
		}
	}
	return pool
}

// checkNodesOf judges whether a node got another configuration while its pool was paused by a job.
func (c *cluster) checkNodesOf(history []revision[*mcfgv1.MachineConfigPool]) {
	c.t.Helper()
	last := map[types.UID]string{}
	for _, r := range c.nodeHistory(history[0].object.Name) {
		config, before := r.object.Annotations[desiredConfig], last[r.object.UID]
		last[r.object.UID] = config
		pool := asOf(history, orderOf(r.object))
		if before == "" || before == config || pool == nil || !pool.Spec.Paused || pool.Annotations[v1beta1.UpgradeJobAnnotation] == "" {
			continue
		}
		// Of a pool that was paused in the middle of a change, by a job that failed, a node may have been on its way.
		if pause := pausedSince(history, pool); updated(pause.object) != nil && r.seen.Sub(pause.seen) < inFlight {
			continue
		}
		c.t.Errorf("node %s gets another configuration at %s, while %s has paused its pool", r.object.Name,
			r.seen.Format(time.StampMilli), pool.Annotations[v1beta1.UpgradeJobAnnotation])
	}
}

// pausedSince returns the revision by which a pool came to be paused as it is.
func pausedSince(history []revision[*mcfgv1.MachineConfigPool], pool *mcfgv1.MachineConfigPool) revision[*mcfgv1.MachineConfigPool] {
	var since revision[*mcfgv1.MachineConfigPool]
	for _, r := range history {
		if !r.object.Spec.Paused || since.object == nil || !since.object.Spec.Paused {
			since = r
		}
		if r.object == pool {
			break
		}
	}
	return since
}

// boundedPools judges what a job says of pools: in order, and not more than there is room for.
func boundedPools(pools []v1beta1.MachineConfigPoolStatus) error {
	if len(pools) > v1beta1.MaxPoolStatuses || !slices.IsSortedFunc(pools, func(a, b v1beta1.MachineConfigPoolStatus) int { return strings.Compare(a.Name, b.Name) }) {
		return fmt.Errorf("it lists %d pools, want them by name: %+v", len(pools), pools)
	}
	for _, pool := range pools {
		sorted := slices.IsSortedFunc(pool.Nodes, func(a, b v1beta1.NodeStatus) int { return strings.Compare(a.Name, b.Name) })
		if len(pool.Nodes) > v1beta1.MaxNodeStatuses || int(pool.NodesInWork) < len(pool.Nodes) || !sorted {
			return fmt.Errorf("of pool %s it lists %d of %d nodes in work, want them by name: %+v", pool.Name, len(pool.Nodes), pool.NodesInWork, pool.Nodes)
		}
	}
	return nil
}

// checkPodDeletions judges the pods that the operator deleted: only those on nodes that drained for as long as a NodeForceDrain
// says.
func (c *cluster) checkPodDeletions() {
	c.t.Helper()
	grace, asked := c.shortestGrace()
	for _, request := range c.operatorRequests() {
		ref := request.ObjectRef
		if ref.APIGroup != "" || ref.Resource != "pods" || !slices.Contains([]string{"delete", "deletecollection", "create"}, request.Verb) ||
			request.ResponseStatus.Code >= http.StatusBadRequest {
			continue
		}
		if !asked {
			c.t.Errorf("the operator made the request %s %s, though there is no NodeForceDrain", request.Verb, request.RequestURI)
			continue
		}
		c.checkPodDeletion(request, grace)
	}
}

func (c *cluster) checkPodDeletion(request controlplane.AuditEvent, grace time.Duration) {
	c.t.Helper()
	ref, at := request.ObjectRef, request.RequestReceivedTimestamp.Time
	i := slices.IndexFunc(past.podsSince(c.began), func(r revision[*corev1.Pod]) bool {
		return r.object.Namespace == ref.Namespace && r.object.Name == ref.Name && r.object.Spec.NodeName != ""
	})
	if i < 0 {
		c.t.Errorf("the operator deleted pod %s/%s, of which the journal knows nothing", ref.Namespace, ref.Name)
		return
	}
	node := past.podsSince(c.began)[i].object.Spec.NodeName
	drain, draining := c.drainOf(node, at)
	if drained := at.Sub(drain); !draining || drained < grace-inFlight {
		c.t.Errorf("the operator deleted pod %s/%s at %s, when node %s had drained (%t) for %s, want at least %s", ref.Namespace, ref.Name,
			at.Format(time.StampMilli), node, draining, drained, grace)
	}
}

// shortestGrace returns how long a node drains at least before any NodeForceDrain of the test deletes anything, and whether
// there is one.
func (c *cluster) shortestGrace() (shortest time.Duration, found bool) {
	for _, r := range past.forceDrainsSince(c.born) {
		spec := &r.object.Spec
		for _, d := range []time.Duration{spec.NodeDrainGracePeriod.Or(0), spec.ProtectedPodGracePeriod.Or(0), spec.PodForceDeleteGracePeriod.Or(0)} {
			if d > 0 && (!found || d < shortest) {
				shortest, found = d, true
			}
		}
	}
	return shortest, found
}

// drainOf returns since when a node drained at a moment, and whether it did.
func (c *cluster) drainOf(node string, at time.Time) (since time.Time, draining bool) {
	for _, r := range past.nodesSince(c.born) {
		if r.object.Name != node || r.seen.After(at.Add(inFlight)) {
			continue
		}
		a := r.object.Annotations
		pending := strings.HasPrefix(a[desiredDrain], "drain-") && a[desiredDrain] != a[lastAppliedDrain]
		if pending && !draining {
			since = r.seen
		}
		if pending || r.seen.Before(at) {
			draining = pending
		}
	}
	return since, draining
}
