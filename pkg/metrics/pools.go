// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"slices"
	"strings"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/pools"
)

// judgePools tells how far the machine config pools have come, and who keeps them from following.
func judgePools(s *series, w *world) {
	for i := range w.pools.Items {
		pool := &w.pools.Items[i]
		holder := pools.Holder(pool)
		s.add(poolPaused, number(pool.Spec.Paused), pool.Name, holder)
		if w.left(holder) {
			s.add(poolLeftPaused, 1, pool.Name, holder)
		}
		s.add(poolUpdating, number(updating(pool)), pool.Name)
		s.add(poolMachines, float64(pool.Status.MachineCount), pool.Name)
		s.add(poolUpdated, float64(pool.Status.UpdatedMachineCount), pool.Name)
		s.add(poolUnavailable, float64(pool.Status.UnavailableMachineCount), pool.Name)
		s.add(poolDegraded, float64(pool.Status.DegradedMachineCount), pool.Name)
	}
	for i := range w.jobs.Items {
		job := &w.jobs.Items[i]
		if job.Status.Phase.Finished() {
			continue
		}
		for j := range job.Status.Pools {
			pool := &job.Status.Pools[j]
			s.addTime(poolUnpauseAfter, pool.UnpauseAfter, pool.Name, job.LockKey())
			s.addTime(poolUnpauseBefore, pool.UnpauseBefore, pool.Name, job.LockKey())
		}
	}
}

// left tells whether a pool that is paused in the name of the job, as namespace/name, stays so until another job comes. A job that this operator does not
// watch, or could not read, is not known to be over.
func (w *world) left(holder string) bool {
	return !w.unread[kindJob] && pools.Left(holder, w.jobs.Items, w.namespace)
}

func updating(pool *mcfgv1.MachineConfigPool) bool {
	return slices.ContainsFunc(pool.Status.Conditions, func(c mcfgv1.MachineConfigPoolCondition) bool {
		return c.Type == mcfgv1.MachineConfigPoolUpdating && c.Status == corev1.ConditionTrue
	})
}

// judgeNodes tells what is done with the cordoned nodes. The others are not in the cache.
func judgeNodes(s *series, w *world) {
	membership := openshift.NewMembership(w.pools.Items)
	for i := range w.nodes.Items {
		node := &w.nodes.Items[i]
		if progress, inWork := openshift.NodeInWork(node); inWork {
			s.add(nodeDrain, 1, node.Name, membership.PoolOf(node), strings.ToLower(string(progress.Phase)))
		}
	}
}

// judgeForceDrains counts the pods that were deleted.
func judgeForceDrains(s *series, w *world) {
	for i := range w.forceDrains.Items {
		drain := &w.forceDrains.Items[i]
		s.add(podsDeleted, float64(drain.Status.PodsDeleted), drain.Namespace, drain.Name)
		s.add(podsForceDeleted, float64(drain.Status.PodsForceDeleted), drain.Namespace, drain.Name)
	}
}
