// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/pools"
)

// MachineConfigPoolsGivenBack is cleanup: it releases the pools that the job paused, unless the job has failed, or is
// deleted, when the cluster had already taken the release up. Then the machines would follow outside of any window, on to a release that
// something is wrong with: the pools stay paused, and those that are to be paused on failure are paused too. The condition
// MachineConfigPoolsPaused tells which, and the next job that gets so far releases them.
func MachineConfigPoolsGivenBack() Step { return machineConfigPoolsGivenBack{} }

type machineConfigPoolsGivenBack struct{}

func (machineConfigPoolsGivenBack) Condition() string { return ConditionMachineConfigPoolsPaused }

func (s machineConfigPoolsGivenBack) Run(ctx context.Context, u *Upgrade) (Verdict, error) {
	if !pools.MayPause(u.Job.Spec.Config) && !meta.IsStatusConditionTrue(u.Job.Status.Conditions, ConditionMachineConfigPoolsPaused) {
		return Done(""), nil
	}
	// Caches that lag behind would leave a pool paused that nobody knows of, or release one behind an update that has just begun.
	live, err := u.Cluster.LiveVersion(ctx)
	if err != nil {
		return Verdict{}, err
	}
	u.Version = live
	all, err := u.Cluster.LivePools(ctx)
	if err != nil {
		return Verdict{}, err
	}
	switch keeps, open := s.keeps(u); {
	case open:
		return Wait(time.Second, v1beta1.ReasonControlPlaneUpdating, "The desired update is not taken back yet."), nil
	case keeps:
		return s.keep(ctx, u, all)
	default:
		return s.release(ctx, u, all)
	}
}

// keeps tells whether the pools stay paused: whether the cluster has ever begun with the release, wherever it is by now. That is
// open while the release is still asked for.
func (machineConfigPoolsGivenBack) keeps(u *Upgrade) (keeps, open bool) {
	if phase := u.Job.Status.Phase; phase == v1beta1.PhaseSucceeded || phase == v1beta1.PhaseSkipped {
		return false, false
	}
	target, ok := u.Target()
	if !ok {
		return u.Job.Status.Phase == v1beta1.PhaseFailed, false
	}
	for _, entry := range u.Version.Status.History {
		if target.Matches(entry.Version, entry.Image) {
			return true, false
		}
	}
	mine := u.Version.Annotations[v1beta1.UpgradeJobAnnotation] == u.Job.LockKey() && u.Job.Status.CommenceTime != nil
	return false, mine && openshift.Desires(u.Version, target)
}

func (s machineConfigPoolsGivenBack) release(ctx context.Context, u *Upgrade, all []mcfgv1.MachineConfigPool) (Verdict, error) {
	var errs []error
	for i := range all {
		if pools.Names(&all[i]) != u.Job.LockKey() {
			continue
		}
		written, err := u.Cluster.ReleasePool(ctx, &all[i])
		if err != nil {
			errs = append(errs, err)
			continue
		}
		u.machines.wrote(written)
	}
	return s.nothingHeld(u), errors.Join(errs...)
}

// nothingHeld takes back that pools are paused, if that was said.
func (machineConfigPoolsGivenBack) nothingHeld(u *Upgrade) Verdict {
	if !meta.IsStatusConditionTrue(u.Job.Status.Conditions, ConditionMachineConfigPoolsPaused) {
		return Done("")
	}
	return Holding(false, 0, v1beta1.ReasonReleased, "No pool is paused by the job any more.")
}

func (s machineConfigPoolsGivenBack) keep(ctx context.Context, u *Upgrade, all []mcfgv1.MachineConfigPool) (Verdict, error) {
	rules, err := pools.Parse(u.Job.Spec.Config)
	if err != nil {
		rules = &pools.Rules{} // a selector that is none selects nothing; the job has failed already, or told
	}
	if err := s.pauseMore(ctx, u, rules, all); err != nil {
		return Verdict{}, err
	}
	var delayed, onFailure []string
	for i := range all {
		switch {
		case pools.Holder(&all[i]) != u.Job.LockKey():
		case rules.For(&all[i]).Delayed():
			delayed = append(delayed, all[i].Name)
		default:
			onFailure = append(onFailure, all[i].Name)
		}
	}
	if len(delayed)+len(onFailure) == 0 {
		return s.nothingHeld(u), nil
	}
	reason, message := v1beta1.ReasonLeftPaused, ""
	if len(delayed) > 0 {
		message = fmt.Sprintf("Left paused: %s. ", strings.Join(delayed, ", "))
	}
	if len(onFailure) > 0 {
		reason = v1beta1.ReasonPausedOnFailure
		message += fmt.Sprintf("Paused because the job failed: %s. ", strings.Join(onFailure, ", "))
	}
	return Holding(true, 0, reason, message+"The next job that gets through the control plane releases them."), nil
}

// pauseMore pauses the pools that are to be paused on failure. It does so only while the job has the lock: once it is released
// somebody may have released the pools too.
func (machineConfigPoolsGivenBack) pauseMore(ctx context.Context, u *Upgrade, rules *pools.Rules, all []mcfgv1.MachineConfigPool) error {
	locked := u.Version.Annotations[v1beta1.UpgradeJobAnnotation] == u.Job.LockKey()
	if u.Job.Status.Phase != v1beta1.PhaseFailed || !rules.PausesOnFailure() || !locked {
		return nil
	}
	judged, err := judgePools(ctx, u.Cluster, all, comingTo(u))
	if err != nil {
		return err
	}
	var errs []error
	for i, p := range judged {
		if p.State == openshift.PoolUpdated || p.pool.Spec.Paused || !rules.PausedOnFailure(p.pool) {
			continue
		}
		written, err := u.Cluster.PausePool(ctx, p.pool, u.Job.LockKey())
		if err != nil {
			errs = append(errs, err)
			continue
		}
		u.machines.wrote(written)
		all[i] = *written
	}
	return errors.Join(errs...)
}
