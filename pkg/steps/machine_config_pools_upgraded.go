// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"fmt"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// ConditionMachineConfigPoolsUpgraded is the condition of MachineConfigPoolsUpgraded.
const ConditionMachineConfigPoolsUpgraded = "MachineConfigPoolsUpgraded"

// NodesWait is how often nodes and pools that are waited for are looked at, if nothing else happens.
const NodesWait = openshift.NodesInterval

// MachineConfigPoolsUpgraded waits until every machine of every pool that is not delayed runs the configuration of the
// release. The cluster-version operator is done before that: it waits for the masters only. Pools that an earlier job left
// paused are released.
func MachineConfigPoolsUpgraded() Step {
	return poolsUpgraded{ConditionMachineConfigPoolsUpgraded, func(ctx context.Context, u *Upgrade) ([]judgedPool, error) {
		return poolsToUpgrade(ctx, u, false)
	}}
}

// poolsUpgraded waits for the machines of pools.
type poolsUpgraded struct {
	condition string
	pools     func(context.Context, *Upgrade) ([]judgedPool, error)
}

func (s poolsUpgraded) Condition() string { return s.condition }

func (s poolsUpgraded) Run(ctx context.Context, u *Upgrade) (Verdict, error) {
	all, err := s.pools(ctx, u)
	if err != nil {
		return Verdict{}, err
	}
	var r releases
	var open []judgedPool
	for _, p := range all {
		owned, err := u.owns(ctx, p.pool)
		if err != nil {
			return Verdict{}, err
		}
		switch {
		case owned && p.pool.Spec.Paused:
			open = append(open, r.release(ctx, u, p, v1beta1.ReasonCompleted,
				fmt.Sprintf("The control plane is upgraded; pool %s, which a job left paused, is about to be released.", p.pool.Name)))
		case owned: // somebody has unpaused it
			r.write(ctx, u, p)
			open = append(open, p)
		case s.stays(u, p):
		case p.State != openshift.PoolUpdated && (u.hasTarget() || p.State == openshift.PoolUpdating): // without a release nothing else is this job's business
			open = append(open, p)
		}
	}
	if verdict, ok, err := r.failure(); ok {
		return verdict, err
	}
	switch {
	case len(open) > 0:
		message := fmt.Sprintf("%d of %d pools are updated; %s.", len(all)-len(open), len(all), poolsSay(open))
		blockers := append(r.blockers(), poolBlockers(u, open)...)
		return Wait(NodesWait, r.reason(), message, blockers...), nil
	case !u.hasTarget():
		return Done(nothingToUpgrade(u)), nil
	default:
		return Done(fmt.Sprintf("All machines of %d pools run the configuration of %s.", len(all), openshift.RunningVersion(u.Version))), nil
	}
}

// stays tells whether a pool was updated before, with all machines, and is no more because one of them is away: one that was added for the upgrade
// and is on its way out, or one that somebody has cordoned since. That is for the steps behind this one.
func (s poolsUpgraded) stays(u *Upgrade, p judgedPool) bool {
	step := stepStatus(u.Job, s.condition)
	doneBefore := step != nil && step.CompletionTime != nil && !step.CompletionTime.Time.Before(resumed(u.Job))
	return doneBefore && p.State == openshift.PoolUpdating && openshift.MachinesUpdated(p.pool)
}
