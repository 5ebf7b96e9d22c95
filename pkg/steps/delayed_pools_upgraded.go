// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// ConditionDelayedPoolsUpgraded is the condition of DelayedPoolsUpgraded.
const ConditionDelayedPoolsUpgraded = "DelayedPoolsUpgraded"

// DelayedPoolsUpgraded releases each delayed pool at its time, once its hooks of MachineConfigPoolUnpause have finished, and waits
// until every machine of these pools runs the configuration of the release. While all that is left is to wait for the
// time of a pool, the job is paused.
func DelayedPoolsUpgraded() Step { return delayedPoolsUpgraded{} }

type delayedPoolsUpgraded struct{}

func (delayedPoolsUpgraded) Condition() string { return ConditionDelayedPoolsUpgraded }

func (delayedPoolsUpgraded) Run(ctx context.Context, u *Upgrade) (Verdict, error) {
	delayed, err := poolsToUpgrade(ctx, u, true)
	if err != nil {
		return Verdict{}, err
	}
	slices.SortFunc(delayed, func(a, b judgedPool) int {
		return cmp.Or(cmp.Compare(a.rule.DelayMin, b.rule.DelayMin), cmp.Compare(a.pool.Name, b.pool.Name))
	})
	d := &delays{upgrade: u}
	for _, p := range delayed {
		if err := d.see(ctx, p); err != nil {
			return Verdict{}, err
		}
	}
	if verdict, ok, err := d.failure(); ok {
		return verdict, err
	}
	return d.verdict(len(delayed)), nil
}

// delays is how far the delayed pools are.
type delays struct {
	releases
	upgrade *Upgrade
	waiting []judgedPool // for their time
	open    []judgedPool // not upgraded, and not waiting for their time
	after   time.Duration
}

func (d *delays) see(ctx context.Context, p judgedPool) error {
	u := d.upgrade
	owned, err := u.owns(ctx, p.pool)
	if err != nil {
		return err
	}
	held := owned && p.pool.Spec.Paused
	switch left := p.rule.UnpauseAfter(u.Job).Sub(u.Now); {
	case held && left > 0:
		d.waiting = append(d.waiting, p)
		d.after = soonest(d.after, left)
	case held:
		d.open = append(d.open, d.release(ctx, u, p, "DelayReached",
			fmt.Sprintf("The delay of pool %s is over; it is about to be released.", p.pool.Name)))
	case owned: // somebody has unpaused it
		d.write(ctx, u, p)
		d.open = append(d.open, p)
	case p.State != openshift.PoolUpdated && (!p.pool.Spec.Paused || u.hasTarget()): // nothing that somebody else paused is waited for without need
		d.open = append(d.open, p)
	}
	return nil
}

func (d *delays) verdict(all int) Verdict {
	if len(d.waiting)+len(d.open) == 0 {
		if all == 0 {
			return Done("No pool is delayed.")
		}
		return Done(fmt.Sprintf("All machines of %d delayed pools run the configuration of %s.", all, openshift.RunningVersion(d.upgrade.Version)))
	}
	var parts []string
	blockers := append(d.blockers(), poolBlockers(d.upgrade, d.open)...)
	for _, p := range d.waiting {
		at := stamp(p.rule.UnpauseAfter(d.upgrade.Job))
		parts = append(parts, fmt.Sprintf("%s: paused until %s", p.pool.Name, at))
		blockers = append(blockers, v1beta1.Blocker{
			Code: "MachineConfigPoolDelayed", Object: "MachineConfigPool/" + p.pool.Name,
			Message:    fmt.Sprintf("Pool %s is paused until %s.", p.pool.Name, at),
			ClearsWhen: fmt.Sprintf("it is %s", at),
		})
	}
	if len(d.open) == 0 {
		return Pause(d.after, v1beta1.ReasonMachineConfigPoolsDelayed, strings.Join(parts, "; ")+".", blockers...)
	}
	parts = append(parts, poolsSay(d.open))
	message := fmt.Sprintf("%d of %d delayed pools are upgraded; %s.", all-len(d.open)-len(d.waiting), all, strings.Join(parts, "; "))
	reason := v1beta1.ReasonMachineConfigPoolsUpdating
	if len(d.running) > 0 {
		reason = v1beta1.ReasonHooksRunning
	}
	return Wait(soonest(d.after, NodesWait), reason, message, blockers...)
}
