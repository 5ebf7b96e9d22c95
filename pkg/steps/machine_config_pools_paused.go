// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/pools"
)

// ConditionMachineConfigPoolsPaused is the condition of MachineConfigPoolsPaused.
const ConditionMachineConfigPoolsPaused = v1beta1.ConditionMachineConfigPoolsPaused

// MachineConfigPoolsPaused pauses the pools that are to follow later, before the upgrade commences. Its condition tells
// whether the job holds pools paused; either way the next step runs. It also keeps the time: a pool that could not be
// released within delayMax ends the job.
func MachineConfigPoolsPaused() Step { return machineConfigPoolsPaused{} }

type machineConfigPoolsPaused struct{}

func (machineConfigPoolsPaused) Condition() string { return ConditionMachineConfigPoolsPaused }

func (s machineConfigPoolsPaused) Run(ctx context.Context, u *Upgrade) (Verdict, error) {
	rules, err := pools.Parse(u.Job.Spec.Config)
	if err != nil {
		return Skip(v1beta1.ReasonInvalidSelector, err.Error()), nil
	}
	all, err := u.Cluster.Pools(ctx)
	if err != nil {
		return Verdict{}, err
	}
	p := &pausing{upgrade: u}
	for i := range all {
		if err := p.judge(ctx, &all[i], rules.For(&all[i])); err != nil {
			return Verdict{}, err
		}
	}
	if verdict, ends := p.obstacle(rules.Refused(all)); ends {
		return verdict, nil
	}
	if err := p.pause(ctx); err != nil {
		return Verdict{}, err
	}
	return p.state(), nil
}

// pausing is what is to be done with the pools, and what is.
type pausing struct {
	upgrade *Upgrade
	due     []judgedPool // to be paused
	busy    []judgedPool // to be paused, but rolling
	held    []string     // paused, and until when
	foreign []string     // paused by somebody else
	expired []string
	free    []string      // not paused any more, or too late to be
	after   time.Duration // to the next expiry
}

func (p *pausing) judge(ctx context.Context, pool *mcfgv1.MachineConfigPool, rule pools.Rule) error {
	u := p.upgrade
	owned, err := u.owns(ctx, pool)
	if err != nil {
		return err
	}
	held := owned && pool.Spec.Paused
	if held {
		p.hold(pool, rule)
		if pools.Holder(pool) != u.Job.LockKey() && u.Commenced() { // from now on it is this one's to answer for
			p.due = append(p.due, judgedPool{pool: pool, rule: rule})
		}
	}
	if !rule.Delayed() {
		return nil
	}
	switch progress := openshift.PoolAtRest(pool); {
	case held:
	case pool.Spec.Paused:
		p.foreign = append(p.foreign, pool.Name)
	case u.Commenced(), !u.Now.Before(rule.UnpauseAfter(u.Job)):
		p.free = append(p.free, pool.Name)
	case progress.State == openshift.PoolUpdating:
		p.busy = append(p.busy, judgedPool{PoolProgress: progress, pool: pool, rule: rule})
	default:
		p.due = append(p.due, judgedPool{PoolProgress: progress, pool: pool, rule: rule})
	}
	return nil
}

// hold notes a pool that is paused until this job releases it.
func (p *pausing) hold(pool *mcfgv1.MachineConfigPool, rule pools.Rule) {
	u := p.upgrade
	if !rule.Delayed() {
		p.held = append(p.held, pool.Name+" until the control plane is upgraded")
		return
	}
	p.held = append(p.held, fmt.Sprintf("%s until %s", pool.Name, stamp(rule.UnpauseAfter(u.Job))))
	before, ok := rule.UnpauseBefore(u.Job)
	switch left := before.Sub(u.Now); {
	case !ok:
	case left <= 0:
		p.expired = append(p.expired, fmt.Sprintf("%s by %s", pool.Name, stamp(before)))
	default:
		p.after = soonest(p.after, left)
	}
}

// obstacle says why the job ends here, or waits.
func (p *pausing) obstacle(refused string) (Verdict, bool) {
	u := p.upgrade
	switch {
	case refused != "" && !u.Commenced():
		return Skip(v1beta1.ReasonPoolCannotBeDelayed, refused), true
	case len(p.expired) > 0:
		message := fmt.Sprintf("Delayed pools could not be released in their time: %s.", strings.Join(p.expired, ", "))
		if b := u.Job.Status.Blockers; len(b) > 0 {
			message += " Last the job waited for: " + b[0].Message
		}
		if u.Needed() && !u.Commenced() {
			return Skip(v1beta1.ReasonUnpausingPoolsExpired, message), true
		}
		return Fail(v1beta1.ReasonUnpausingPoolsExpired, message), true
	case len(p.busy) > 0: // paused in the middle it would have machines of two configurations, for hours
		message := fmt.Sprintf("Pools that are to be paused are still being updated; %s.", poolsSay(p.busy))
		return u.awaitBeforeCommencing(NodesWait, v1beta1.ReasonMachineConfigPoolsUpdating, message, poolBlockers(u, p.busy)), true
	}
	return Verdict{}, false
}

func (p *pausing) pause(ctx context.Context) error {
	u := p.upgrade
	for _, due := range p.due {
		if err := u.Lock(ctx); err != nil {
			return err
		}
		written, err := u.Cluster.PausePool(ctx, due.pool, u.Job.LockKey())
		if err != nil {
			return fmt.Errorf("pause pool: %w", err)
		}
		if pools.Holder(due.pool) == "" {
			p.hold(written, due.rule)
		}
	}
	return nil
}

// state is the condition of the step.
func (p *pausing) state() Verdict {
	message, reason := "The job pauses no pool.", v1beta1.ReasonNoManagedPools
	switch {
	case len(p.held) > 0:
		slices.Sort(p.held) // those that were paused just now are behind the others
		message, reason = "Paused: "+strings.Join(p.held, ", ")+".", v1beta1.ReasonDelaySet
	case len(p.free) > 0:
		message, reason = fmt.Sprintf("Free to follow the control plane: %s.", strings.Join(p.free, ", ")), v1beta1.ReasonReleased
	}
	if len(p.foreign) > 0 {
		message += fmt.Sprintf(" Paused by somebody else, and left alone: %s.", strings.Join(p.foreign, ", "))
	}
	return Holding(len(p.held) > 0, p.after, reason, message)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
