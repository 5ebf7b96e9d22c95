// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"errors"
	"fmt"
	"strings"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/hooks"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/pools"
)

// judgedPool is a pool, how far it is, and what is set for it.
type judgedPool struct {
	openshift.PoolProgress
	pool *mcfgv1.MachineConfigPool
	rule pools.Rule
	// hooked is set while hooks, or the cluster's health, hold the pool: they are named instead of it.
	hooked bool
}

// judgePools judges pools on their way to the version, in their order.
func judgePools(ctx context.Context, cluster *openshift.Cluster, all []mcfgv1.MachineConfigPool, version string) ([]judgedPool, error) {
	judged := make([]judgedPool, 0, len(all))
	for i := range all {
		renderedBy, err := cluster.RenderedBy(ctx, all[i].Spec.Configuration.Name)
		if err != nil {
			return nil, err
		}
		judged = append(judged, judgedPool{PoolProgress: openshift.JudgePool(&all[i], renderedBy, version), pool: &all[i]})
	}
	return judged, nil
}

// poolsToUpgrade returns the pools whose machines follow at once, or those that are delayed.
func poolsToUpgrade(ctx context.Context, u *Upgrade, delayed bool) ([]judgedPool, error) {
	rules, err := pools.Parse(u.Job.Spec.Config)
	if err != nil {
		return nil, err
	}
	all, err := u.Cluster.Pools(ctx)
	if err != nil {
		return nil, err
	}
	judged, err := judgePools(ctx, u.Cluster, all, openshift.RunningVersion(u.Version))
	if err != nil {
		return nil, err
	}
	var chosen []judgedPool
	for _, p := range judged {
		if p.rule = rules.For(p.pool); p.rule.Delayed() == delayed {
			chosen = append(chosen, p)
		}
	}
	return chosen, nil
}

// owns tells whether this job, or one that is over, stands on the pool as who paused it. Then it is for this job to release it in
// its turn, or, if somebody has unpaused it meanwhile, to take the name off.
func (u *Upgrade) owns(ctx context.Context, pool *mcfgv1.MachineConfigPool) (bool, error) {
	name := pools.Names(pool)
	if name == "" || name == u.Job.LockKey() || u.Over == nil {
		return name != "" && name == u.Job.LockKey(), nil
	}
	return u.Over(ctx, name)
}

// heldByHooks is a pool that hooks hold.
type heldByHooks struct {
	pool  string
	hooks hooks.Progress
}

// releases is what became of the pools that a step releases.
type releases struct {
	running []heldByHooks
	aborted *v1beta1.HookRun
	errs    []error
}

// release runs the hooks that are to be heard before the pool is released, and releases it when they have finished. It
// returns the pool as it is then. What holds one pool up holds no other.
func (r *releases) release(ctx context.Context, u *Upgrade, p judgedPool, reason, message string) judgedPool {
	if r.aborted != nil { // the job ends in this pass
		return p
	}
	if !r.heard(ctx, u, p, reason, message) {
		p.hooked, p.Message = true, "its hooks are waited for"
		return p
	}
	if r.write(ctx, u, p) {
		p.State, p.Message = openshift.PoolUpdating, "released"
	}
	return p
}

// write releases the pool, or takes the name of the job off it that somebody has unpaused.
func (r *releases) write(ctx context.Context, u *Upgrade, p judgedPool) bool {
	err := u.Lock(ctx)
	if err == nil {
		_, err = u.Cluster.ReleasePool(ctx, p.pool)
	}
	if err != nil {
		r.errs = append(r.errs, fmt.Errorf("release pool: %w", err))
	}
	return err == nil
}

// heard runs the hooks of the pool, and tells whether they have finished.
func (r *releases) heard(ctx context.Context, u *Upgrade, p judgedPool, reason, message string) bool {
	if u.Hooks == nil {
		return true
	}
	progress, err := u.Hooks.Emit(ctx, hooks.Event{
		Name: v1beta1.HookEventMachineConfigPoolUnpause, Pool: p.pool.Name, Time: u.Now, Reason: reason, Message: message,
	})
	switch {
	case progress.Aborted != nil:
		r.aborted = progress.Aborted
	case err != nil:
		r.errs = append(r.errs, err)
	case len(progress.Running) > 0:
		r.running = append(r.running, heldByHooks{p.pool.Name, progress})
	default:
		return true
	}
	return false
}

// failure returns the verdict, or error, for what did not work, if there is any.
func (r *releases) failure() (Verdict, bool, error) {
	if r.aborted != nil {
		return Fail(v1beta1.ReasonHookFailed, HookAborted(*r.aborted)), true, nil
	}
	err := errors.Join(r.errs...)
	return Verdict{}, err != nil, err
}

// reason is why pools are waited for.
func (r *releases) reason() string {
	if len(r.running) > 0 {
		return v1beta1.ReasonHooksRunning
	}
	return v1beta1.ReasonMachineConfigPoolsUpdating
}

// blockers are the hooks that hold pools.
func (r *releases) blockers() []v1beta1.Blocker {
	var blockers []v1beta1.Blocker
	for _, held := range r.running {
		for _, b := range HookBlockers(held.hooks) {
			b.Message += fmt.Sprintf(" It holds pool %s.", held.pool)
			blockers = append(blockers, b)
		}
	}
	return blockers
}

// poolBlockers names what holds pools up: first nodes that do not go on by themselves, then the pools that are not updated,
// then the nodes that are being worked on.
func poolBlockers(u *Upgrade, judged []judgedPool) []v1beta1.Blocker {
	named := map[string]bool{}
	var blockers []v1beta1.Blocker
	for _, p := range judged {
		if p.State != openshift.PoolUpdated && !p.hooked {
			named[p.pool.Name] = true
			blockers = append(blockers, poolBlocker(p))
		}
	}
	stuck, moving := u.machines.blockers(named)
	return append(append(stuck, blockers...), moving...)
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

// poolsSay lists what is to be said of each pool.
func poolsSay(judged []judgedPool) string {
	parts := make([]string, 0, len(judged))
	for _, p := range judged {
		parts = append(parts, fmt.Sprintf("%s: %s", p.pool.Name, p.Message))
	}
	return strings.Join(parts, "; ")
}
