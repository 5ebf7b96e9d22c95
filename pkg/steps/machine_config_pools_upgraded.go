// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// ConditionMachineConfigPoolsUpgraded is the condition of MachineConfigPoolsUpgraded.
const ConditionMachineConfigPoolsUpgraded = "MachineConfigPoolsUpgraded"

// MachineConfigPoolsUpgraded waits until every machine of every pool runs the configuration of the release. The
// cluster-version operator is done before that: it waits for the masters only.
func MachineConfigPoolsUpgraded() Step { return machineConfigPoolsUpgraded{} }

type machineConfigPoolsUpgraded struct{}

func (machineConfigPoolsUpgraded) Condition() string { return ConditionMachineConfigPoolsUpgraded }

func (machineConfigPoolsUpgraded) Run(ctx context.Context, u *Upgrade) (Verdict, error) {
	if _, ok := u.Target(); !ok {
		return Done(nothingToUpgrade(u)), nil
	}
	version := openshift.RunningVersion(u.Version)
	pools, err := judgePools(ctx, u.Cluster, version)
	if err != nil {
		return Verdict{}, err
	}
	all := len(pools)
	pools = slices.DeleteFunc(pools, func(p judgedPool) bool { return p.State == openshift.PoolUpdated })
	if len(pools) == 0 {
		return Done(fmt.Sprintf("All machines of %d pools run the configuration of %s.", all, version)), nil
	}

	blockers, err := poolBlockers(ctx, u, ConditionMachineConfigPoolsUpgraded, pools)
	if err != nil {
		return Verdict{}, err
	}
	parts := make([]string, 0, len(pools))
	for _, p := range pools {
		parts = append(parts, fmt.Sprintf("%s: %s", p.pool.Name, p.Message))
	}
	message := fmt.Sprintf("%d of %d pools are updated; %s.", all-len(pools), all, strings.Join(parts, "; "))
	return Wait(openshift.NodesInterval, v1beta1.ReasonMachineConfigPoolsUpdating, message, blockers...), nil
}

type judgedPool struct {
	openshift.PoolProgress
	pool *mcfgv1.MachineConfigPool
}

// requiredForUpgrade tells whether the cluster-version operator waits for the pool.
func (p judgedPool) requiredForUpgrade() bool {
	_, required := p.pool.Labels["operator.machineconfiguration.openshift.io/required-for-upgrade"]
	return required
}

// judgePools judges every pool on its way to the version, in order of name.
func judgePools(ctx context.Context, cluster *openshift.Cluster, version string) ([]judgedPool, error) {
	pools, err := cluster.Pools(ctx)
	if err != nil {
		return nil, err
	}
	judged := make([]judgedPool, 0, len(pools))
	for i := range pools {
		renderedBy, err := cluster.RenderedBy(ctx, pools[i].Spec.Configuration.Name)
		if err != nil {
			return nil, err
		}
		judged = append(judged, judgedPool{openshift.JudgePool(&pools[i], renderedBy, version), &pools[i]})
	}
	slices.SortFunc(judged, func(a, b judgedPool) int { return cmp.Compare(a.pool.Name, b.pool.Name) })
	return judged, nil
}

// poolBlockers names the pools that are not updated, and the nodes of them that are being worked on. Nodes are asked for
// once the step of the condition has waited for NodesInterval: before that nothing is held up.
func poolBlockers(ctx context.Context, u *Upgrade, condition string, pools []judgedPool) ([]v1beta1.Blocker, error) {
	var blockers []v1beta1.Blocker
	named := map[string]bool{}
	for _, p := range pools {
		if p.State != openshift.PoolUpdated {
			named[p.pool.Name] = true
			blockers = append(blockers, poolBlocker(p))
		}
	}
	if len(blockers) == 0 || u.Now.Sub(u.StepStarted(condition)) < openshift.NodesInterval {
		return blockers, nil
	}

	all, err := u.Cluster.Pools(ctx) // a node of a custom pool has the labels of a worker too
	if err != nil {
		return nil, err
	}
	nodes, err := u.Cluster.NodesInWork(ctx)
	if err != nil { // the API server comes and goes while masters reboot; the pools tell enough
		log.FromContext(ctx).V(1).Info("The nodes in work are not known", "cause", err.Error())
		return blockers, nil
	}
	membership := openshift.NewMembership(all)
	for i := range nodes {
		name := membership.PoolOf(&nodes[i])
		if !named[name] {
			continue
		}
		if len(blockers) == MaxBlockers {
			break
		}
		does, _ := openshift.NodeInWork(&nodes[i])
		blockers = append(blockers, v1beta1.Blocker{
			Code:       "NodeUpdating",
			Object:     "Node/" + nodes[i].Name,
			Message:    fmt.Sprintf("Node %s of pool %s %s", nodes[i].Name, name, does),
			ClearsWhen: fmt.Sprintf("node %s runs the new configuration and is schedulable", nodes[i].Name),
		})
	}
	return blockers, nil
}

func poolBlocker(p judgedPool) v1beta1.Blocker {
	code, clears := "", fmt.Sprintf("every machine of pool %s runs the new configuration", p.pool.Name)
	switch p.State {
	case openshift.PoolPaused:
		code, clears = "MachineConfigPoolPaused", fmt.Sprintf("somebody unpauses pool %s", p.pool.Name)
	case openshift.PoolDegraded:
		code, clears = "MachineConfigPoolDegraded", fmt.Sprintf("pool %s is not degraded any more", p.pool.Name)
	case openshift.PoolNotRendered:
		code, clears = "MachineConfigPoolNotRendered", fmt.Sprintf("the machine-config operator renders the new configuration of pool %s", p.pool.Name)
	case openshift.PoolUpdating, openshift.PoolUpdated:
		code = "MachineConfigPoolUpdating"
	}
	return v1beta1.Blocker{
		Code:       code,
		Object:     "MachineConfigPool/" + p.pool.Name,
		Message:    fmt.Sprintf("Pool %s: %s", p.pool.Name, p.Message),
		ClearsWhen: clears,
	}
}
