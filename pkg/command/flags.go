// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"github.com/appuio/managed-upgrade-operator/pkg/monitoring"
	"github.com/appuio/managed-upgrade-operator/pkg/operator"
)

// ownNamespaceFile holds the namespace of a pod that runs with a service account.
const ownNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// servingCertDir is where the pod has the certificate that OpenShift gives the operator's Service.
const servingCertDir = "/var/run/secrets/serving-cert"

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
	fs.StringVar(&o.operator.Metrics.BindAddress, "metrics-bind-address", ":8443",
		"`address` of the metrics /metrics; \"0\" for none")
	fs.BoolVar(&o.operator.Metrics.Secure, "metrics-secure", true,
		"serve the metrics by HTTPS, to whom the API server knows and lets get /metrics; without it by HTTP, to anybody")
	fs.StringVar(&o.operator.Metrics.CertDir, "metrics-cert-dir", ifExists(servingCertDir),
		"`folder` with the certificate of the metrics, tls.crt, and its key, tls.key, read anew when they change; empty for a self-signed one, which is the default where there is no "+servingCertDir)
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

    manager [flags]      run the operator
    manager upgraders    print the upgraders that jobs can choose, with their steps

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
