// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"slices"

	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// ConditionWorkerNodesUpgraded is the condition of WorkerNodesUpgraded.
const ConditionWorkerNodesUpgraded = "WorkerNodesUpgraded"

// WorkerNodesUpgraded waits until every machine of every pool but those of the control plane runs the configuration of the release. It does not know of
// pools that are delayed: a list with it delays none. Pools that an earlier job left paused are released.
func WorkerNodesUpgraded() Step {
	return poolsUpgraded{ConditionWorkerNodesUpgraded, workerPools}
}

// workerPools returns the pools that the cluster-version operator does not wait for.
func workerPools(ctx context.Context, u *Upgrade) ([]judgedPool, error) {
	all, err := u.Cluster.Pools(ctx)
	if err != nil {
		return nil, err
	}
	judged, err := judgePools(ctx, u.Cluster, all, openshift.RunningVersion(u.Version))
	return slices.DeleteFunc(judged, func(p judgedPool) bool { return openshift.RequiredForUpgrade(p.pool) }), err
}
