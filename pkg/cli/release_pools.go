// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"

	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/pools"
)

func (t *tool) releasePoolsCommand() *cobra.Command {
	var yes bool
	command := &cobra.Command{
		Use:   "release-pools [POOL...]",
		Short: "Unpause machine config pools that jobs which are over have left paused",
		Long: `Unpause the MachineConfigPools that an UpgradeJob has paused which has ended or is gone: all of them, or those that are named. Their machines
begin to follow at once: they are drained and rebooted, whatever the time.

Pools of a job that runs are left to it, and pools that somebody else has paused to them. The next job that gets through the control
plane releases left pools too.`,
		Example: fmt.Sprintf("  %[1]s release-pools\n  %[1]s release-pools infra storage --yes", t.program),
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.connected(func(c client.WithWatch) error { return t.releasePools(cmd.Context(), c, args, yes) })
		},
	}
	command.Flags().BoolVarP(&yes, "yes", "y", false, "Do not ask.")
	return command
}

// pausedPool is a pool with what is known of who paused it.
type pausedPool struct {
	pool *mcfgv1.MachineConfigPool
	// by says who paused it, and what became of them.
	by string
	// refused says why the pool is not to be released; empty if it may be.
	refused string
	// blind is set where the user may not see what the job has come to.
	blind bool
}

// releasePools releases the pools of those names, or all, that jobs have left paused.
func (t *tool) releasePools(ctx context.Context, c client.Client, names []string, yes bool) error {
	cluster := openshift.NewCluster(c, c)
	w, err := readPaused(ctx, c, cluster, names)
	if err != nil {
		return err
	}
	left, err := t.tellPaused(w.found, len(names) > 0)
	if err != nil || len(left) == 0 {
		return err
	}
	if w.updating != "" {
		t.warn("warning: %s: machines would follow into a control plane that is not done", w.updating)
	}
	t.say("Their machines follow at once: those that are not updated are drained and rebooted, as many at a time as maxUnavailable of the pool says.")
	if err := t.confirm(ctx, fmt.Sprintf("Release %d of %d pools?", len(left), w.pools), yes); err != nil {
		return err
	}
	if !yes { // the question may have stood there for hours
		now, err := readPaused(ctx, c, cluster, names)
		if err != nil {
			return err
		}
		if left, err = now.still(left, w.updating); err != nil {
			return err
		}
	}
	return t.releaseAll(ctx, cluster, left)
}

// pausedPools is what decides about the release of pools.
type pausedPools struct {
	// pools is how many the cluster has.
	pools int
	found []pausedPool
	// updating says that the control plane is being updated; empty if it is not.
	updating string
}

// readPaused finds the pools that are paused, or those of the names. A cluster that a job holds is an error.
func readPaused(ctx context.Context, c client.Client, cluster *openshift.Cluster, names []string) (pausedPools, error) {
	cv, err := cluster.LiveVersion(ctx)
	if err != nil {
		return pausedPools{}, explain("release pools", err)
	}
	all, err := cluster.LivePools(ctx)
	if err != nil {
		return pausedPools{}, explain("release pools", err)
	}
	why, err := occupied(ctx, c, cv, "")
	if err != nil {
		return pausedPools{}, err
	}
	if why != "" {
		return pausedPools{}, fmt.Errorf("no pool is released: %s, which releases pools in its turn", why)
	}
	found, err := judgePaused(ctx, c, all, names)
	return pausedPools{len(all), found, beingUpdated(cv)}, err
}

// still returns the pools as they are now. That one may not be released any more, or that the control plane is being updated since, is an error.
func (w pausedPools) still(left []*mcfgv1.MachineConfigPool, updating string) ([]*mcfgv1.MachineConfigPool, error) {
	if w.updating != "" && updating == "" {
		return nil, fmt.Errorf("no pool is released: %s, since you were asked", w.updating)
	}
	var fresh []*mcfgv1.MachineConfigPool
	for _, pool := range left {
		i := slices.IndexFunc(w.found, func(p pausedPool) bool { return p.pool.Name == pool.Name && p.pool.UID == pool.UID })
		switch {
		case i < 0:
			return nil, fmt.Errorf("no pool is released: MachineConfigPool %s has changed since you were asked", pool.Name)
		case w.found[i].refused != "":
			return nil, fmt.Errorf("no pool is released: MachineConfigPool %s has changed since you were asked: %s", pool.Name, w.found[i].refused)
		}
		fresh = append(fresh, w.found[i].pool)
	}
	return fresh, nil
}

// judgePaused looks at the pools that are paused, or at those of the names, in order of name.
func judgePaused(ctx context.Context, c client.Reader, all []mcfgv1.MachineConfigPool, names []string) ([]pausedPool, error) {
	for _, name := range names {
		if err := knownPool(all, name); err != nil {
			return nil, err
		}
	}
	var found []pausedPool
	for i := range all {
		pool := &all[i]
		if (len(names) == 0 && !pool.Spec.Paused) || (len(names) > 0 && !slices.Contains(names, pool.Name)) {
			continue
		}
		paused, err := whoPaused(ctx, c, pool)
		if err != nil {
			return nil, err
		}
		found = append(found, paused)
	}
	return found, nil
}

// whoPaused finds out who paused a pool, and whether it may be released.
func whoPaused(ctx context.Context, c client.Reader, pool *mcfgv1.MachineConfigPool) (pausedPool, error) {
	holder := pools.Holder(pool)
	switch {
	case !pool.Spec.Paused:
		return pausedPool{pool: pool, by: "nobody", refused: "it is not paused"}, nil
	case holder == "":
		return pausedPool{pool: pool, by: "somebody else", refused: "it was not paused by an UpgradeJob: whoever paused it unpauses it"}, nil
	}
	job, unknown, err := holderOf(ctx, c, holder)
	paused := pausedPool{pool: pool, by: "UpgradeJob " + holder, refused: unknown}
	switch {
	case err != nil:
		return pausedPool{}, err
	case unknown != "":
		paused.by, paused.blind = holder, strings.Contains(holder, "/")
		return paused, nil
	case job == nil:
		paused.by += ", which is gone"
		return paused, nil
	case !job.Status.Phase.Finished():
		paused.refused = "the job is not over, and releases it in its turn"
	case !pools.LeftBy(job):
		paused.refused = "the job has ended, but is still giving back what it held"
	}
	paused.by += fmt.Sprintf(" (%s)", phaseOf(job))
	return paused, nil
}

// tellPaused prints who paused the pools, and returns those that may be released. One that was named and may not be is an error.
func (t *tool) tellPaused(found []pausedPool, wereNamed bool) ([]*mcfgv1.MachineConfigPool, error) {
	var left []*mcfgv1.MachineConfigPool
	var refused []string
	rows := [][]string{{"POOL", "MACHINES", "PAUSED BY", "RELEASE"}}
	for _, p := range found {
		verdict := "yes"
		if p.refused == "" {
			left = append(left, p.pool)
		} else {
			verdict = "no: " + p.refused
			refused = append(refused, p.pool.Name)
		}
		rows = append(rows, []string{p.pool.Name, openshift.PoolAtRest(p.pool).Message, p.by, verdict})
	}
	if len(found) > 0 {
		if err := columns(t.Out, rows); err != nil {
			return nil, err
		}
	}
	switch {
	case wereNamed && len(refused) > 0:
		return nil, fmt.Errorf("no pool is released: %s may not be", strings.Join(refused, ", "))
	case len(left) == 0 && slices.ContainsFunc(found, func(p pausedPool) bool { return p.blind }):
		return nil, errors.New("no pool is released: ask for the ClusterRole managed-upgrade-operator-viewer")
	case len(left) == 0:
		t.say("No pool is left paused by a job that is over.")
	}
	return left, nil
}

// releaseAll releases every one of the pools, also if some cannot be.
func (t *tool) releaseAll(ctx context.Context, cluster *openshift.Cluster, left []*mcfgv1.MachineConfigPool) error {
	failed := 0
	for _, pool := range left {
		act := "release MachineConfigPool " + pool.Name
		_, err := cluster.ReleasePool(ctx, pool)
		switch {
		case err == nil:
			t.say("MachineConfigPool %s is released.", pool.Name)
			continue
		case apierrors.IsForbidden(err):
			err = fmt.Errorf("%s: %w: ask for the ClusterRole managed-upgrade-operator-pool-releaser", act, err)
		default:
			err = explainWrite(act, err)
		}
		failed++
		t.warn("error: %v", err)
	}
	if failed == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d pools are not released", failed, len(left))
}
