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
	"github.com/appuio/managed-upgrade-operator/pkg/healthcheck"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/pools"
)

// ConditionDelayedPoolsUpgraded is the condition of DelayedPoolsUpgraded.
const ConditionDelayedPoolsUpgraded = "DelayedPoolsUpgraded"

// DelayedPoolsUpgraded releases each delayed pool at its time, once the cluster is healthy, hours after the control plane was upgraded, and the pool's
// hooks of MachineConfigPoolUnpause have finished, and waits until every machine of these pools runs the configuration of the
// release. While all that is left is to wait for the time of a pool, the job is paused.
func DelayedPoolsUpgraded(checks ...healthcheck.Check) Step {
	return delayedPoolsUpgraded{clusterHealthy{
		checks: checks,
		config: func(c *v1beta1.UpgradeJobConfig) v1beta1.HealthChecks { return c.PostUpgradeHealthChecks },
	}}
}

type delayedPoolsUpgraded struct{ health clusterHealthy }

func (delayedPoolsUpgraded) Condition() string { return ConditionDelayedPoolsUpgraded }

func (s delayedPoolsUpgraded) Run(ctx context.Context, u *Upgrade) (Verdict, error) {
	delayed, err := poolsToUpgrade(ctx, u, true)
	if err != nil {
		return Verdict{}, err
	}
	slices.SortFunc(delayed, func(a, b judgedPool) int {
		return cmp.Or(cmp.Compare(a.rule.DelayMin, b.rule.DelayMin), cmp.Compare(a.pool.Name, b.pool.Name))
	})
	d := &delays{upgrade: u, health: s.health}
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
	health  clusterHealthy
	report  *healthcheck.Report // once it is needed
	waiting []judgedPool        // for their time
	open    []judgedPool        // not upgraded, and not waiting for their time
	left    []string            // not upgraded, and not waited for
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
		if pools.Holder(p.pool) != u.Job.LockKey() { // one that a job left paused is this one's to answer for now
			_, err = u.Cluster.PausePool(ctx, p.pool, u.Job.LockKey())
		}
		return err
	case held && !d.healthy(ctx):
		p.Message = "its time has come, and a healthy cluster is waited for"
		p.hooked = true
		d.open = append(d.open, p)
	case held:
		d.open = append(d.open, d.release(ctx, u, p, "DelayReached",
			fmt.Sprintf("The delay of pool %s is over; it is about to be released.", p.pool.Name)))
	case owned: // somebody has unpaused it
		d.write(ctx, u, p)
		d.open = append(d.open, p)
	case p.State != openshift.PoolUpdated && p.pool.Spec.Paused && !u.hasTarget(): // without a release it is not this job's business
		d.left = append(d.left, p.pool.Name)
	case p.State != openshift.PoolUpdated:
		d.open = append(d.open, p)
	}
	return nil
}

// healthy tells whether the cluster is fit for more machines to go down. It is asked when a pool is due, as the health steps are.
func (d *delays) healthy(ctx context.Context) bool {
	if d.report == nil {
		interval := d.health.config(&d.upgrade.Job.Spec.Config).Interval.Or(v1beta1.DefaultHealthCheckInterval)
		report := d.health.look(ctx, d.upgrade, min(interval, decisiveAge), healthcheck.Timeout)
		d.report = &report
		d.after = soonest(d.after, report.Recheck)
	}
	return len(d.report.Findings) == 0
}

func (d *delays) verdict(all int) Verdict {
	if len(d.waiting)+len(d.open) == 0 {
		if all == 0 {
			return Done("No pool is delayed.")
		}
		message := fmt.Sprintf("All machines of %d delayed pools run the configuration of %s.", all-len(d.left), openshift.RunningVersion(d.upgrade.Version))
		if len(d.left) > 0 {
			message += fmt.Sprintf(" Paused by somebody else, and left alone: %s.", strings.Join(d.left, ", "))
		}
		return Done(message)
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
	reason := d.reason()
	if d.report != nil && len(d.report.Findings) > 0 {
		reason = v1beta1.ReasonUnhealthy
		message += " " + unhealthy(*d.report)
		blockers = append(blockersOf(d.report.Findings), blockers...)
	}
	return Wait(soonest(d.after, NodesWait), reason, message, blockers...)
}
