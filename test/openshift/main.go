// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Command openshift simulates an OpenShift cluster on any Kubernetes API server.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

const usage = `Simulates an OpenShift cluster on the API server of a kubeconfig.

It installs OpenShift's kinds (ClusterVersion, ClusterOperator, MachineConfigPool,
MachineConfig, and if the scenario says so MachineConfigNode, MachineSet, Machine and
FileIntegrity) and the objects of a cluster whose installation is complete, and then plays the cluster-version
operator, the machine-config operator and the nodes until it is interrupted. An update starts, as on a real cluster, when
somebody writes the ClusterVersion's spec.desiredUpdate:

  kubectl patch clusterversion version --type merge \
    -p '{"spec":{"desiredUpdate":{"version":"4.18.2"}}}'

What is installed, how long things take and what goes wrong is set by a scenario
in YAML (test/openshift/README.md explains all of it). It is kept in a ConfigMap
and can be changed while the cluster runs:

  kubectl edit configmap -n %s %s

Use an API server of its own: the objects of these kinds, and the simulator's
nodes, are replaced without asking. Every event is told in a line on stdout.
Exits 0 when interrupted, 2 on wrong flags, 1 on any other error.

Usage: go run ./test/openshift [flags]

`

func main() {
	// What client-go says about lost connections is no event of the cluster, and
	// what fails because of them is told anyway.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return
	case errors.Is(err, errUsage):
		os.Exit(2)
	}
	fmt.Fprintln(os.Stderr, "error:", err)
	stop()
	os.Exit(1)
}

// errUsage says that the flags are wrong, which has been told already.
var errUsage = errors.New("wrong flags")

// options are the flags.
type options struct {
	kubeconfig, scenario            string
	installOnly, runOnly, printOnly bool
	updateService                   bool
}

// parse reads the flags.
func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("openshift", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "`FILE` that says how to reach the API server (default $KUBECONFIG)")
	flags.StringVar(&o.scenario, "scenario", "", "`FILE` with the scenario in YAML; what it leaves out is as in --print-scenario")
	flags.BoolVar(&o.installOnly, "install-only", false, "install the cluster and exit")
	flags.BoolVar(&o.runOnly, "run-only", false, "run the cluster that is installed already, with the scenario in its ConfigMap")
	flags.BoolVar(&o.printOnly, "print-scenario", false, "print the whole scenario (that of --scenario, or the built-in one) and exit")
	flags.BoolVar(&o.updateService, "update-service", false, "serve the update graph on 127.0.0.1; the ClusterVersion's spec.upstream says where")
	flags.Usage = func() {
		fmt.Fprintf(stderr, usage, sim.Namespace, sim.ConfigMapName)
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
	case o.installOnly && o.runOnly:
		problem = "--install-only and --run-only exclude each other"
	case o.updateService && (o.installOnly || o.runOnly):
		problem = "--update-service lives from the installation to the end of the run: leave --install-only and --run-only out"
	case o.runOnly && o.scenario != "":
		problem = "--run-only uses the installed scenario: leave --scenario out"
	case o.kubeconfig == "" && !o.printOnly:
		problem = "no API server: set --kubeconfig or KUBECONFIG"
	}
	if problem != "" {
		fmt.Fprintf(stderr, "%s (see --help)\n", problem)
		return o, errUsage
	}
	return o, nil
}

// run is the program.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	s, err := readScenario(o.scenario)
	if err != nil {
		return err
	}
	if o.printOnly {
		text, err := s.YAML()
		if err != nil {
			return err
		}
		_, err = io.WriteString(stdout, text)
		return err
	}
	cfg, err := restConfig(o.kubeconfig)
	if err != nil {
		return err
	}
	tell := func(line string) { fmt.Fprintln(stdout, time.Now().Format("15:04:05.000"), line) }
	if o.updateService {
		service, err := sim.StartUpdateService(ctx, cfg)
		if err != nil {
			return err
		}
		defer func() { _ = service.Close() }()
		s.Upstream = service.URL()
		tell("update graph at " + s.Upstream)
	}
	if !o.runOnly {
		if err := sim.Install(ctx, cfg, s); err != nil {
			return err
		}
		tell(fmt.Sprintf("installed OpenShift %s with %d masters and %d workers at %s", s.Version, s.Masters.Size, s.Workers.Size, cfg.Host))
	}
	if o.installOnly {
		return nil
	}
	tell("running, interrupt to end")
	return sim.Run(ctx, cfg, sim.WithProgress(tell))
}

// readScenario reads a scenario's file; none is the built-in scenario.
func readScenario(path string) (sim.Scenario, error) {
	if path == "" {
		return sim.Default(), nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return sim.Scenario{}, fmt.Errorf("read scenario: %w", err)
	}
	s, err := sim.Parse(data, sim.Default())
	if err != nil {
		return sim.Scenario{}, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// restConfig reads a kubeconfig's current context.
func restConfig(path string) (*rest.Config, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	return cfg, nil
}
