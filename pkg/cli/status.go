// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// defaultInterval is how often status -w looks.
const defaultInterval = 5 * time.Second

// statusCommand tells how far the cluster and a job are.
func (t *tool) statusCommand() *cobra.Command {
	watch, interval := false, defaultInterval
	command := &cobra.Command{
		Use:   "status [JOB]",
		Short: "Tell how far the upgrade is, what it waits for, and what comes next",
		Long: `Tell how far the upgrade is, what it waits for and what clears that, which deadlines are ahead, and what comes next.

Without JOB it is the job in work; where none is, the one that starts next, and else the one that ended last.
With --watch it follows: on a terminal the picture is drawn anew, else what changes is printed. It goes on while the
API server is away, as it is in the middle of every upgrade, until it is interrupted (Ctrl-C), and then exits with 0.`,
		Example: t.examples(
			"status", "Now",
			"status -w", "Follow, also while the control plane reboots",
			"status weekly-1764021600-abc1234 -o yaml", "All that is known of one job, for a program",
			"status -o html > report.html", "A report for the change ticket, in one file",
		),
		Args:              atMost("the name of an UpgradeJob"),
		ValidArgsFunction: t.completeJobs,
	}
	o := addOutput(command, formatWide, formatHTML)
	command.Flags().BoolVarP(&watch, "watch", "w", false, "Follow until interrupted.")
	command.Flags().DurationVar(&interval, "interval", defaultInterval, "How often --watch looks, at least 1s.")
	command.RunE = func(cmd *cobra.Command, args []string) error {
		if interval < time.Second {
			return usagef("--interval is %s: want at least 1s", interval)
		}
		if watch && o.format == formatHTML {
			return usagef("--watch does not go with --output html")
		}
		c, err := t.connect()
		if err != nil {
			return err
		}
		if o.format == formatHTML {
			return t.printHTML(cmd.Context(), c, argument(args))
		}
		look := t.statusReader(c, argument(args))
		if watch {
			return t.follow(cmd.Context(), look, o, interval)
		}
		r, err := look(cmd.Context())
		if err != nil {
			return err
		}
		return t.printStatus(r, o)
	}
	return command
}

// statusReader returns what reads the cluster and judges it, over and over. The name is that of the job to show; empty for the one that matters most.
func (t *tool) statusReader(c client.Client, name string) func(context.Context) (*statusReport, error) {
	cluster := openshift.NewCluster(c, c)
	return func(ctx context.Context) (*statusReport, error) {
		s, job, err := t.readStatus(ctx, c, cluster, name)
		if err != nil {
			return nil, err
		}
		return new(statusOf(s, job)), nil
	}
}

// readStatus takes a snapshot with all that statusOf judges, and finds the job of that name in it; jobToShow without a name.
func (t *tool) readStatus(ctx context.Context, c client.Client, cluster *openshift.Cluster, name string) (*snapshot, *v1beta1.UpgradeJob, error) {
	s, err := t.read(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	job := jobToShow(s)
	if name != "" {
		if job, err = named[v1beta1.UpgradeJob]("UpgradeJob", s.Jobs, name); err != nil {
			return nil, nil, err
		}
	}
	return s, job, s.readMachines(ctx, c, cluster)
}

// printStatus prints a report.
func (t *tool) printStatus(r *statusReport, o *output) error {
	if o.machine() {
		return t.printMachine(o, r)
	}
	v := t.newView(r.Time.Time)
	v.printStatus(r, o.format == formatWide)
	return t.show(v)
}
