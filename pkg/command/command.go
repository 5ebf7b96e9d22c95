// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Package command is the command line of a manager: flags, logs and signals. A main of one's own, with steps and upgraders of one's own, is a call of
// Main.
package command

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"github.com/appuio/managed-upgrade-operator/pkg/operator"
	"github.com/appuio/managed-upgrade-operator/pkg/upgrader"
)

// Options are what tells one manager from another.
type Options struct {
	// Version that --version prints. Empty for "devel".
	Version string
	// Upgraders that jobs can choose. Required; upgrader.BuiltIn returns those of the operator.
	Upgraders []upgrader.Upgrader
	// Steps are added to the step catalogue, so that objects of kind Upgrader can use them.
	Steps []upgrader.Entry
}

// Main runs the command line of the process and ends it: with status 0 after SIGTERM or SIGINT, with status 1 and a line on stderr after an error.
func Main(o Options) {
	if err := Run(ctrl.SetupSignalHandler(), os.Args[1:], os.Stdout, os.Stderr, o); err != nil {
		fmt.Fprintln(os.Stderr, "manager: "+err.Error())
		os.Exit(1)
	}
}

// Run runs a command line, without the name of the program, until ctx ends. What was asked for goes to stdout, the log to stderr.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer, o Options) error {
	registry, catalogue, err := assemble(o)
	if err != nil {
		return err
	}
	if len(args) == 1 && args[0] == "upgraders" {
		return printUpgraders(stdout, o.Upgraders, catalogue)
	}
	version := cmp.Or(o.Version, "devel")
	flags, err := parseFlags(args, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if flags.showVersion {
		_, err := fmt.Fprintln(stdout, "managed-upgrade-operator", version)
		return err
	}
	flags.operator.Upgraders, flags.operator.Catalogue = registry, catalogue
	return runOperator(ctx, flags, version, stderr)
}

// assemble registers the upgraders and completes the catalogue.
func assemble(o Options) (*upgrader.Registry, *upgrader.Catalogue, error) {
	registry, catalogue := &upgrader.Registry{}, upgrader.NewCatalogue()
	for _, u := range o.Upgraders {
		if err := registry.Register(u); err != nil {
			return nil, nil, err
		}
	}
	for _, step := range o.Steps {
		if err := catalogue.Add(step); err != nil {
			return nil, nil, err
		}
	}
	return registry, catalogue, nil
}

func runOperator(ctx context.Context, o options, version string, stderr io.Writer) error {
	logger, err := newLogger(o.logFormat, o.logLevel, stderr)
	if err != nil {
		return err
	}
	collectGarbageSooner()
	ctrl.SetLogger(logger)
	klog.SetLogger(logger.WithName("client-go"))

	o.operator.Clock, o.operator.Version = clock.RealClock{}, version

	restConfig, err := config.GetConfig()
	if err != nil {
		return fmt.Errorf("find the cluster: %w (give --kubeconfig or set KUBECONFIG outside of a cluster)", err)
	}
	restConfig.UserAgent = "managed-upgrade-operator/" + version
	mgr, err := operator.New(ctx, restConfig, o.operator)
	if err != nil {
		return err
	}
	logger.Info("Starting", "version", version, "namespace", o.operator.Namespace, "operatorNamespace", o.operator.OperatorNamespace,
		"prometheus", o.operator.Monitoring.PrometheusURL, "alertmanager", o.operator.Monitoring.AlertmanagerURL)
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run the manager: %w", err)
	}
	logger.Info("Stopped")
	return nil
}

// collectGarbageSooner trades a little CPU for memory: the live heap is some 5 MiB, so that twice as many collections
// cost little. GOGC wins when set.
func collectGarbageSooner() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
}
