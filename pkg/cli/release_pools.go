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
	cv, err := cluster.LiveVersion(ctx)
	if err != nil {
		return explain("release pools", err)
	}
	all, err := cluster.LivePools(ctx)
	if err != nil {
		return explain("release pools", err)
	}
	why, err := occupied(ctx, c, cv, "")
	if err != nil {
		return err
	}
	if why != "" {
		return fmt.Errorf("no pool is released: %s, which releases pools in its turn", why)
	}
	found, err := judgePaused(ctx, c, all, names)
	if err != nil {
		return err
	}
	left, err := t.tellPaused(found, len(names) > 0)
	if err != nil || len(left) == 0 {
		return err
	}
	if why := beingUpdated(cv); why != "" {
		fmt.Fprintf(t.ErrOut, "warning: %s: machines would follow into a control plane that is not done\n", why)
	}
	fmt.Fprintf(t.Out, "Their machines follow at once: those that are not updated are drained and rebooted, as many at a time as maxUnavailable of the pool says.\n")
	if err := t.confirm(ctx, fmt.Sprintf("Release %d of %d pools?", len(left), len(all)), yes); err != nil {
		return err
	}
	return t.releaseAll(ctx, cluster, left)
}

// judgePaused looks at the pools that are paused, or at those of the names, in order of name.
func judgePaused(ctx context.Context, c client.Reader, all []mcfgv1.MachineConfigPool, names []string) ([]pausedPool, error) {
	var known []string
	for i := range all {
		known = append(known, all[i].Name)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("there is no MachineConfigPool %q: there are %s", name, strings.Join(known[:min(len(known), maxKnown)], ", "))
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
		fmt.Fprintln(t.Out, "No pool is left paused by a job that is over.")
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
			fmt.Fprintf(t.Out, "MachineConfigPool %s is released.\n", pool.Name)
			continue
		case apierrors.IsForbidden(err):
			err = fmt.Errorf("%s: %w: ask for the ClusterRole managed-upgrade-operator-pool-releaser", act, err)
		default:
			err = explainWrite(act, err)
		}
		failed++
		fmt.Fprintf(t.ErrOut, "error: %v\n", err)
	}
	if failed == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d pools are not released", failed, len(left))
}
