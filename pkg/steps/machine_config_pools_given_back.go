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
	if !pools.MayPause(u.Job.Spec.Config) {
		return Done(""), nil
	}
	// A cache that lags behind would leave a pool paused that nobody knows of.
	all, err := u.Cluster.LivePools(ctx)
	if err != nil {
		return Verdict{}, err
	}
	var verdict Verdict
	if s.keeps(u) {
		verdict, err = s.keep(ctx, u, all)
	} else {
		verdict, err = s.release(ctx, u, all)
	}
	if err != nil {
		return Verdict{}, err
	}
	return verdict, nil
}

// keeps tells whether the pools stay paused.
func (machineConfigPoolsGivenBack) keeps(u *Upgrade) bool {
	if phase := u.Job.Status.Phase; phase == v1beta1.PhaseSucceeded || phase == v1beta1.PhaseSkipped {
		return false
	}
	target, ok := u.Target()
	if !ok {
		return u.Job.Status.Phase == v1beta1.PhaseFailed
	}
	return openshift.Accepted(u.Version, target)
}

func (machineConfigPoolsGivenBack) release(ctx context.Context, u *Upgrade, all []mcfgv1.MachineConfigPool) (Verdict, error) {
	var errs []error
	for i := range all {
		if all[i].Annotations[v1beta1.UpgradeJobAnnotation] != u.Job.LockKey() {
			continue
		}
		if _, err := u.Cluster.ReleasePool(ctx, &all[i]); err != nil {
			errs = append(errs, err)
		}
	}
	return Holding(false, 0, v1beta1.ReasonReleased, "No pool is paused by the job any more."), errors.Join(errs...)
}

func (s machineConfigPoolsGivenBack) keep(ctx context.Context, u *Upgrade, all []mcfgv1.MachineConfigPool) (Verdict, error) {
	left := pools.HeldBy(all, u.Job.LockKey())
	paused, err := s.pauseMore(ctx, u, all)
	switch {
	case err != nil:
		return Verdict{}, err
	case len(left)+len(paused) == 0:
		return Holding(false, 0, v1beta1.ReasonReleased, "No pool is paused by the job any more."), nil
	}
	reason, message := v1beta1.ReasonLeftPaused, ""
	if len(left) > 0 {
		message = fmt.Sprintf("Left paused: %s. ", strings.Join(left, ", "))
	}
	if len(paused) > 0 {
		reason = v1beta1.ReasonPausedOnFailure
		message += fmt.Sprintf("Paused because the job failed: %s. ", strings.Join(paused, ", "))
	}
	return Holding(true, 0, reason, message+"The next job that upgrades the control plane releases them."), nil
}

// pauseMore pauses the pools that are to be paused on failure, and returns their names. One that was paused by an earlier
// attempt at this is among those that the job holds already.
func (machineConfigPoolsGivenBack) pauseMore(ctx context.Context, u *Upgrade, all []mcfgv1.MachineConfigPool) ([]string, error) {
	rules, err := pools.Parse(u.Job.Spec.Config)
	if err != nil || u.Job.Status.Phase != v1beta1.PhaseFailed {
		return nil, nil //nolint:nilerr // a selector that is none selects nothing; the job has failed already, or told
	}
	judged, err := judgePools(ctx, u.Cluster, all, comingTo(u))
	if err != nil {
		return nil, err
	}
	var paused []string
	var errs []error
	for _, p := range judged {
		if p.State == openshift.PoolUpdated || p.pool.Spec.Paused || !rules.PausedOnFailure(p.pool) {
			continue
		}
		if _, err := u.Cluster.PausePool(ctx, p.pool, u.Job.LockKey()); err != nil {
			errs = append(errs, err)
			continue
		}
		paused = append(paused, p.pool.Name)
	}
	return paused, errors.Join(errs...)
}
