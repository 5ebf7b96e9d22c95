// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Command demo shows a whole upgrade of a simulated cluster: see --help.
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

const usage = `Shows a whole upgrade, from the maintenance window to the last machine.

It starts a Kubernetes control plane, a Prometheus and an Alertmanager, simulates
an OpenShift 4.18.1 cluster of 3 masters, 4 workers and a pool of 2 machines that
follow at night, offers it 4.18.2, runs the operator as a process of its own with
the permissions of deploy/, and applies an UpgradeConfig that is due in about a
minute. A hook backs something up first, a critical alert holds the upgrade up
until it is mended, a pod that nothing may evict holds up a drain at night until a
NodeForceDrain deletes it, and a webhook is told of every turn. It tells what
happens, a line for each change:

  demo      what the demo itself does
  config    the UpgradeConfig: when the next job is created, and why none is
  job       the UpgradeJob: its version, its window, what it waits for
  step      a step of the upgrade
  hook      a hook's Job
  pool      a MachineConfigPool that is paused or released
  drain     the NodeForceDrain: what it deletes
  webhook   a CloudEvent that the webhook received
  cluster   how far the cluster is

It takes about three minutes, and listens on 127.0.0.1 only. When it ends, also by
^C, everything that it started ends. Exits 0 when the upgrade succeeded, 1 when it
did not (with the reason), 2 on wrong flags, 130 when interrupted.

Usage: go run ./test/demo [flags]

`

func main() {
	ctx, stop := interrupt.Context()
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// The exit codes of the demo.
const (
	exitSuccess     = 0
	exitFailure     = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// run is the program; it returns the exit code.
func run(ctx context.Context, args []string, stdout *os.File, stderr io.Writer) int {
	o, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitSuccess
	case err != nil:
		return exitUsage
	}
	// What the client libraries have to say is of no interest to the audience.
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	s := newScreen(stdout, coloured(stdout))
	err = demonstrate(ctx, o, s)
	switch {
	case err == nil:
		return exitSuccess
	case errors.Is(err, errInterrupted):
		s.say("demo", plain, "interrupted, everything is stopped")
		return exitInterrupted
	}
	s.say("demo", bad, "failed: "+err.Error())
	return exitFailure
}

// options are the flags.
type options struct {
	manager, scenario string
	keep              bool
	speed             float64
	timeout           time.Duration
}

// errUsage says that the flags are wrong, which has been told already.
var errUsage = errors.New("wrong flags")

// parse reads the flags.
func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.BoolVar(&o.keep, "keep", false, "leave the cluster running afterwards, until ^C, and tell how to look around in it")
	flags.StringVar(&o.manager, "manager", "", "`FILE` of the operator's program (default bin/manager of the source tree, which make build makes)")
	flags.StringVar(&o.scenario, "scenario", "", "`FILE` in YAML with changes of the simulated cluster, to see what goes wrong;\ngo run ./test/openshift --print-scenario shows all there is")
	flags.Float64Var(&o.speed, "speed", 1, "how many times faster than usual the cluster works")
	flags.DurationVar(&o.timeout, "timeout", 5*time.Minute, "give up when the upgrade takes longer")
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
	case o.speed <= 0:
		problem = "--speed must be greater than 0"
	case o.timeout <= 0:
		problem = "--timeout must be greater than 0"
	}
	if o.manager == "" {
		o.manager = filepath.Join(environment.Root(), "bin", "manager")
	}
	if problem != "" {
		fmt.Fprintf(stderr, "%s (see --help)\n", problem)
		return o, errUsage
	}
	return o, nil
}
