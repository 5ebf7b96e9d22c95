// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// The manager runs the managed upgrade operator: see --help.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"github.com/appuio/managed-upgrade-operator/pkg/monitoring"
	"github.com/appuio/managed-upgrade-operator/pkg/operator"
	"github.com/appuio/managed-upgrade-operator/pkg/upgrader"
)

// version is set by the build.
var version = "devel"

// ownNamespaceFile holds the namespace of a pod that runs with a service account.
const ownNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

func main() {
	if err := run(ctrl.SetupSignalHandler(), os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "manager: "+err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parseFlags(args, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if o.showVersion {
		_, err := fmt.Fprintln(stdout, "managed-upgrade-operator", version)
		return err
	}
	logger, err := newLogger(o.logFormat, o.logLevel, stderr)
	if err != nil {
		return err
	}
	collectGarbageSooner()
	ctrl.SetLogger(logger)
	klog.SetLogger(logger.WithName("client-go"))

	upgraders := &upgrader.Registry{}
	if err := upgraders.Register(upgrader.OpenShift()); err != nil {
		return err
	}
	o.operator.Upgraders = upgraders
	o.operator.Clock = clock.RealClock{}

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

type options struct {
	operator            operator.Options
	logFormat, logLevel string
	showVersion         bool
}

// unsetNamespace tells a --namespace that was not given from an empty one, which means all.
const unsetNamespace = "(the operator's own)"

func parseFlags(args []string, stdout io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("manager", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // errors are printed once, by main
	fs.StringVar(&o.operator.Namespace, "namespace", unsetNamespace,
		"`namespace` of the UpgradeConfigs, UpgradeJobs, UpgradeJobHooks and UpgradeSuspensionWindows to watch; \"\" for all")
	fs.StringVar(&o.operator.OperatorNamespace, "operator-namespace", ownNamespace(),
		"`namespace` of the operator itself: of the leader's Lease and of the ClusterVersion to sync; by default $POD_NAMESPACE, or the namespace of the pod's service account")
	fs.StringVar(&o.operator.HealthProbeAddress, "health-probe-bind-address", ":8081",
		"`address` of the probes /healthz and /readyz; \"0\" for none")
	fs.BoolVar(&o.operator.LeaderElection, "leader-elect", true,
		"let one of several replicas work; without it there must be one replica only")
	fs.DurationVar(&o.operator.LeaseDuration, "leader-election-lease-duration", operator.LeaseDuration,
		"how long the other replicas wait after the last sign of the leader")
	fs.DurationVar(&o.operator.RenewDeadline, "leader-election-renew-deadline", operator.RenewDeadline,
		"how long the leader tries to renew its lease before it gives up and exits")
	fs.DurationVar(&o.operator.RetryPeriod, "leader-election-retry-period", operator.RetryPeriod,
		"how often the lease is renewed or tried for")
	fs.StringVar(&o.operator.Monitoring.PrometheusURL, "prometheus-url", monitoring.DefaultPrometheusURL,
		"`URL` of Prometheus or Thanos, for health checks; empty if there is none")
	fs.StringVar(&o.operator.Monitoring.AlertmanagerURL, "alertmanager-url", monitoring.DefaultAlertmanagerURL,
		"`URL` of Alertmanager, which knows the silenced alerts; empty if there is none: then they count as the others do")
	fs.StringVar(&o.operator.Monitoring.TokenFile, "monitoring-token-file", ifExists(monitoring.DefaultTokenFile),
		"`file` with the bearer token for both, read anew for each request; empty for none, which is the default outside of a pod")
	fs.StringVar(&o.operator.Monitoring.CAFile, "monitoring-ca-file", ifExists(monitoring.DefaultCAFile),
		"`file` with the CA certificates of both, read anew when it changes; empty for those of the system, which is the default outside of OpenShift")
	fs.StringVar(&o.logFormat, "log-format", "json", "json, or console for people")
	fs.StringVar(&o.logLevel, "log-level", "info", "debug, info or error")
	fs.BoolVar(&o.showVersion, "version", false, "print the version and exit")
	config.RegisterFlags(fs)

	err := fs.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fs.SetOutput(stdout)
		fmt.Fprint(stdout, usage)
		fs.PrintDefaults()
		return o, err
	case err != nil:
		return o, fmt.Errorf("%w (see --help)", err)
	case fs.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q (see --help)", fs.Arg(0))
	case o.showVersion:
		return o, nil
	case o.operator.OperatorNamespace == "":
		return o, errors.New("the operator's own namespace is not known: give --operator-namespace or set POD_NAMESPACE")
	}
	if o.operator.Namespace == unsetNamespace {
		o.operator.Namespace = o.operator.OperatorNamespace
	}
	return o, checkLease(o.operator.LeaseDuration, o.operator.RenewDeadline, o.operator.RetryPeriod)
}

const usage = `The managed upgrade operator upgrades the OpenShift cluster that it runs on: in the
maintenance windows of UpgradeConfigs, by UpgradeJobs, while nobody is awake.

It needs the CRDs and the permissions of deploy/, and finds the cluster as kubectl
does: --kubeconfig, $KUBECONFIG, the pod's service account, ~/.kube/config.

Flags:
`

// checkLease refuses times with which client-go would panic or never elect anybody.
func checkLease(lease, renew, retry time.Duration) error {
	if retry <= 0 || renew < 2*retry || lease <= renew {
		return fmt.Errorf("leader election: want lease duration (%s) > renew deadline (%s) >= 2 x retry period (%s) > 0", lease, renew, retry)
	}
	return nil
}

func ownNamespace() string {
	if namespace := os.Getenv("POD_NAMESPACE"); namespace != "" {
		return namespace
	}
	data, err := os.ReadFile(ownNamespaceFile)
	if err != nil {
		return "" // not in a pod: the flag is required
	}
	return strings.TrimSpace(string(data))
}

// ifExists returns the path if there is a file, else nothing.
func ifExists(path string) string {
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// newLogger returns a logger that writes one line for each decision.
func newLogger(format, level string, w io.Writer) (logr.Logger, error) {
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.ISO8601TimeEncoder
	var encoder zapcore.Encoder
	switch format {
	case "json":
		encoder = zapcore.NewJSONEncoder(encoding)
	case "console":
		encoder = zapcore.NewConsoleEncoder(encoding)
	default:
		return logr.Logger{}, fmt.Errorf("--log-format is %q: want json or console", format)
	}
	minimum, err := zapcore.ParseLevel(level)
	if err != nil {
		return logr.Logger{}, fmt.Errorf("--log-level is %q: want debug, info or error", level)
	}
	core := zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(w)), minimum)
	return zapr.NewLogger(zap.New(core)), nil
}
