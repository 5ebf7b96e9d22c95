// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Command bench measures what the operator costs: see --help.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/appuio/managed-upgrade-operator/test/environment"
	"github.com/appuio/managed-upgrade-operator/test/interrupt"
)

const usage = `Measures the time, the API requests, the memory and the CPU that the operator
needs for upgrades, and prints a table of them in Markdown on stdout.

The operator runs as a process of its own, as it is shipped: its permissions, its
leader election, no race detector. The Kubernetes control plane is real, with an
audit log that tells when each request came and was answered; the OpenShift
cluster is simulated, and needs seconds for what takes hours. Progress goes to
stderr. Other work on the machine makes every figure worse. Takes about fifteen
minutes. Exits 0 when everything could be measured, whatever the figures, 1 when
not, 2 on wrong flags, 130 when interrupted.

Usage: go run ./test/bench [flags]

`

func main() {
	ctx, stop := interrupt.Context()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return
	case interrupted:
		fmt.Fprintln(os.Stderr, "bench: interrupted, everything is stopped")
		os.Exit(130)
	case errors.Is(err, errUsage):
		os.Exit(2)
	}
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}

// options are the flags.
type options struct {
	manager    string
	runs       int
	configRuns int
	nodes      int
	idle       time.Duration
	verbose    bool
}

// errUsage says that the flags are wrong, which has been told already.
var errUsage = errors.New("wrong flags")

// parse reads the flags.
func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.manager, "manager", "", "`FILE` of the operator's program (default bin/manager of the source tree, which make build makes)")
	flags.IntVar(&o.runs, "runs", 15, "how many upgrades are measured by jobs that are made by hand")
	flags.IntVar(&o.configRuns, "config-runs", 2, "how many upgrades are measured by an UpgradeConfig; each one waits for a full minute")
	flags.IntVar(&o.nodes, "nodes", 2000, "how many nodes the large cluster has; 0 leaves it out")
	flags.DurationVar(&o.idle, "idle", time.Minute, "how long the idle operator is watched; 0 leaves it out")
	flags.BoolVar(&o.verbose, "verbose", false, "list the API requests of an upgrade on stderr")
	flags.Usage = func() {
		fmt.Fprint(stderr, usage)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, err
		}
		return o, errUsage
	}
	problem := ""
	switch {
	case flags.NArg() > 0:
		problem = fmt.Sprintf("unexpected argument %q", flags.Arg(0))
	case o.runs < 1:
		problem = "--runs must be at least 1"
	case o.configRuns < 0 || o.idle < 0:
		problem = "--config-runs and --idle must not be negative"
	case o.nodes != 0 && o.nodes <= masters:
		problem = fmt.Sprintf("--nodes must be 0, or more than the %d masters", masters)
	}
	if problem != "" {
		fmt.Fprintf(stderr, "%s (see --help)\n", problem)
		return o, errUsage
	}
	if o.manager == "" {
		o.manager = filepath.Join(environment.Root(), "bin", "manager")
	}
	return o, nil
}

// run is the program.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if _, err := os.Stat(o.manager); err != nil {
		return fmt.Errorf("find the operator's program: %w (make build makes it)", err)
	}
	// What the client libraries have to say is not about the operator.
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())

	b := &bench{options: o, progress: stderr, machine: describeMachine()}
	if err := b.measure(ctx); err != nil {
		return err
	}
	return b.print(stdout)
}
