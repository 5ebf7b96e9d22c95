// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/appuio/managed-upgrade-operator/pkg/monitoring"
	"github.com/appuio/managed-upgrade-operator/pkg/operator"
	"github.com/appuio/managed-upgrade-operator/pkg/upgrader"
)

// allFlags are those that the program promises.
var allFlags = []string{
	"alertmanager-url", "health-probe-bind-address", "kubeconfig", "leader-elect", "leader-election-lease-duration",
	"leader-election-renew-deadline", "leader-election-retry-period", "log-format", "log-level",
	"metrics-bind-address", "metrics-cert-dir", "metrics-secure", "monitoring-ca-file",
	"monitoring-token-file", "namespace",
	"operator-namespace", "prometheus-url", "version",
}

func TestParseFlags(t *testing.T) {
	defaults := options{
		operator: operator.Options{
			Namespace: "own", OperatorNamespace: "own", HealthProbeAddress: ":8081", LeaderElection: true,
			LeaseDuration: 137 * time.Second, RenewDeadline: 107 * time.Second, RetryPeriod: 26 * time.Second,
			Monitoring: monitoring.Options{
				PrometheusURL:   "https://thanos-querier.openshift-monitoring.svc:9091",
				AlertmanagerURL: "https://alertmanager-main.openshift-monitoring.svc:9094",
				TokenFile:       ifExists(monitoring.DefaultTokenFile), CAFile: ifExists(monitoring.DefaultCAFile),
			},
			Metrics: operator.MetricsOptions{BindAddress: ":8443", Secure: true, CertDir: ifExists("/var/run/secrets/serving-cert")},
		},
		logFormat: "json", logLevel: "info",
	}
	with := func(change func(*options)) *options {
		o := defaults
		change(&o)
		return &o
	}
	for _, tc := range []struct {
		reason string
		args   []string
		want   *options
		err    string
	}{
		{"by default the operator's namespace is watched", nil, &defaults, ""},
		{"another namespace", []string{"--namespace=other"}, with(func(o *options) { o.operator.Namespace = "other" }), ""},
		{"an empty namespace means all, which an absent one does not", []string{"--namespace="}, with(func(o *options) { o.operator.Namespace = "" }), ""},
		{"an empty namespace as an argument of its own", []string{"--namespace", ""}, with(func(o *options) { o.operator.Namespace = "" }), ""},
		{"the flag wins over the environment, and is watched", []string{"--operator-namespace=mine"}, with(func(o *options) {
			o.operator.Namespace, o.operator.OperatorNamespace = "mine", "mine"
		}), ""},
		{"both namespaces", []string{"--operator-namespace=mine", "--namespace=other"}, with(func(o *options) {
			o.operator.Namespace, o.operator.OperatorNamespace = "other", "mine"
		}), ""},
		{"one replica, no probes", []string{"--leader-elect=false", "--health-probe-bind-address=0"}, with(func(o *options) {
			o.operator.LeaderElection, o.operator.HealthProbeAddress = false, "0"
		}), ""},
		{"metrics for anybody on the machine", []string{"--metrics-bind-address=127.0.0.1:8080", "--metrics-secure=false"}, with(func(o *options) {
			o.operator.Metrics.BindAddress, o.operator.Metrics.Secure = "127.0.0.1:8080", false
		}), ""},
		{"metrics with a certificate of one's own", []string{"--metrics-cert-dir=/certificate"}, with(func(o *options) { o.operator.Metrics.CertDir = "/certificate" }), ""},
		{"no metrics", []string{"--metrics-bind-address=0"}, with(func(o *options) { o.operator.Metrics.BindAddress = "0" }), ""},
		{"logs for people", []string{"-log-format", "console", "-log-level", "debug"}, with(func(o *options) {
			o.logFormat, o.logLevel = "console", "debug"
		}), ""},
		{"another monitoring", []string{
			"--prometheus-url=http://127.0.0.1:9090", "--alertmanager-url=", "--monitoring-token-file=/token", "--monitoring-ca-file=/ca.crt",
		}, with(func(o *options) {
			o.operator.Monitoring = monitoring.Options{PrometheusURL: "http://127.0.0.1:9090", TokenFile: "/token", CAFile: "/ca.crt"}
		}), ""},
		{"a quick election", []string{"--leader-election-lease-duration=3s", "--leader-election-renew-deadline=2s", "--leader-election-retry-period=1s"},
			with(func(o *options) {
				o.operator.LeaseDuration, o.operator.RenewDeadline, o.operator.RetryPeriod = 3*time.Second, 2*time.Second, time.Second
			}), ""},
		{"the version needs no namespace", []string{"--operator-namespace=", "--version"}, with(func(o *options) {
			o.operator.Namespace, o.operator.OperatorNamespace, o.showVersion = unsetNamespace, "", true
		}), ""},

		{"an unknown flag", []string{"--pause"}, nil, "flag provided but not defined: -pause (see --help)"},
		{"an argument", []string{"run"}, nil, `unexpected argument "run" (see --help)`},
		{"an argument after a flag that takes none", []string{"--leader-elect", "false"}, nil, `unexpected argument "false" (see --help)`},
		{"a duration without a unit", []string{"--leader-election-retry-period=26"}, nil, "leader-election-retry-period"},
		{"no namespace at all", []string{"--operator-namespace="}, nil, "give --operator-namespace or set POD_NAMESPACE"},
		{"a namespace to watch is not that of the operator", []string{"--operator-namespace=", "--namespace=other"}, nil, "give --operator-namespace or set POD_NAMESPACE"},
		{"a lease that ends before it is renewed", []string{"--leader-election-lease-duration=107s"}, nil, "want lease duration (1m47s) > renew deadline (1m47s)"},
		{"a deadline with time for one try only", []string{"--leader-election-retry-period=54s"}, nil, ">= 2 x retry period (54s)"},
		{"no time between tries", []string{"--leader-election-retry-period=0"}, nil, "retry period (0s) > 0"},
		{"a negative time between tries", []string{"--leader-election-retry-period=-1s"}, nil, "retry period (-1s) > 0"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			t.Setenv("POD_NAMESPACE", "own")
			var stdout bytes.Buffer
			got, err := parseFlags(tc.args, &stdout)
			if stdout.Len() > 0 {
				t.Errorf("printed %q", stdout.String())
			}
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got error %v, want one with %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(*tc.want, got, cmp.AllowUnexported(options{})); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHelpNamesEveryFlag(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "own")
	for _, arg := range []string{"--help", "-h"} {
		var stdout bytes.Buffer
		if _, err := parseFlags([]string{arg}, &stdout); !errors.Is(err, flag.ErrHelp) {
			t.Fatalf("got error %v, want flag.ErrHelp", err)
		}
		help := stdout.String()
		if !strings.HasPrefix(help, "The managed upgrade operator") || !strings.Contains(help, "deploy/") || !strings.Contains(help, "manager upgraders ") {
			t.Errorf("the help does not begin with what the program is for:\n%s", help)
		}
		var named []string
		for _, match := range regexp.MustCompile(`(?m)^  -([a-z-]+)`).FindAllStringSubmatch(help, -1) {
			named = append(named, match[1])
		}
		slices.Sort(named)
		if diff := cmp.Diff(allFlags, named); diff != "" {
			t.Errorf("flags in the help (-want +got):\n%s", diff)
		}
		for _, value := range []string{"2m17s", "1m47s", "26s", ":8081", ":8443", `"json"`, `"info"`} {
			if !strings.Contains(help, value) {
				t.Errorf("the default %s is not in the help", value)
			}
		}
	}
}

func TestRun(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "own")
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	document := `{"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c"}}],
		"clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}]}`
	if err := os.WriteFile(kubeconfig, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		reason      string
		args        []string
		stdout, err string
	}{
		{"the version", []string{"--version"}, "managed-upgrade-operator devel\n", ""},
		{"help is no error", []string{"--help"}, "The managed upgrade operator upgrades", ""},
		{"an unknown flag", []string{"--pause"}, "", "flag provided but not defined: -pause"},
		{"a wrong log format", []string{"--log-format=xml"}, "", `--log-format is "xml": want json or console`},
		{"a wrong log level", []string{"--log-level=loud"}, "", `--log-level is "loud": want debug, info or error`},
		{"a wrong URL", []string{"--prometheus-url=prometheus:9090", "--kubeconfig=" + kubeconfig}, "", "reach Prometheus: the URL does not begin with http:// or https://"},
		{"a password in the URL", []string{"--alertmanager-url=https://a:b@c", "--kubeconfig=" + kubeconfig}, "", "reach Alertmanager: the URL contains a user or a password"},
		{"no CA", []string{"--monitoring-ca-file=" + kubeconfig + ".crt", "--kubeconfig=" + kubeconfig}, "", kubeconfig + ".crt"},
		{"no certificate", []string{"--metrics-cert-dir=" + kubeconfig + ".gone", "--kubeconfig=" + kubeconfig}, "", "read the certificate of the metrics: open " + kubeconfig + ".gone/tls.crt"},
		{"no kubeconfig", []string{"--kubeconfig=" + kubeconfig + ".gone"}, "", "find the cluster: "},
		{"no API server", []string{"--kubeconfig=" + kubeconfig}, "", "127.0.0.1:1"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			err := Run(t.Context(), tc.args, &stdout, &stderr, Options{Upgraders: upgrader.BuiltIn()})
			switch {
			case tc.err == "" && err != nil:
				t.Errorf("got error %v", err)
			case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)):
				t.Errorf("got error %v, want one with %q", err, tc.err)
			}
			if !strings.HasPrefix(stdout.String(), tc.stdout) || (tc.stdout == "" && stdout.Len() > 0) {
				t.Errorf("printed %q, want %q", stdout.String(), tc.stdout)
			}
		})
	}
}

func TestIfExists(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if got := ifExists(file); got != "" {
		t.Errorf("got %q for a file that does not exist", got)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := ifExists(file); got != file {
		t.Errorf("got %q, want %q", got, file)
	}
}

func TestOwnNamespace(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "from-the-environment")
	if got := ownNamespace(); got != "from-the-environment" {
		t.Errorf("got %q, want that of the environment", got)
	}
	t.Setenv("POD_NAMESPACE", "")
	ofPod, _ := os.ReadFile(ownNamespaceFile) // there is none where the test does not run in a pod
	if got, want := ownNamespace(), strings.TrimSpace(string(ofPod)); got != want {
		t.Errorf("without the environment got %q, want %q", got, want)
	}
}

func TestLogger(t *testing.T) {
	for _, tc := range []struct {
		level string
		want  []string
	}{
		{"debug", []string{"a detail", "a decision", "a failure"}},
		{"info", []string{"a decision", "a failure"}},
		{"error", []string{"a failure"}},
	} {
		t.Run(tc.level, func(t *testing.T) {
			var out bytes.Buffer
			logger, err := newLogger("json", tc.level, &out)
			if err != nil {
				t.Fatal(err)
			}
			logger = logger.WithName("part").WithValues("job", "upgrades/weekly")
			logger.V(1).Info("a detail")
			logger.Info("a decision", "after", "1m0s")
			logger.Error(errors.New("what happened"), "a failure")

			var got []string
			for line := range strings.Lines(out.String()) {
				var entry struct{ TS, Msg, Job, Logger, Error string }
				if err := json.Unmarshal([]byte(line), &entry); err != nil {
					t.Fatalf("%q is not JSON: %v", line, err)
				}
				if _, err := time.Parse("2006-01-02T15:04:05.000Z0700", entry.TS); err != nil || entry.Job != "upgrades/weekly" || entry.Logger != "part" {
					t.Errorf("got line %q, want a time, the name and the values", line)
				}
				if (entry.Msg == "a failure") != (entry.Error == "what happened") {
					t.Errorf("got line %q, want the error in the line of the failure", line)
				}
				if n := strings.Count(line, entry.Msg); n != 1 {
					t.Errorf("line %q has the message %d times", line, n)
				}
				got = append(got, entry.Msg)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConsoleLogger(t *testing.T) {
	var out bytes.Buffer
	logger, err := newLogger("console", "info", &out)
	if err != nil {
		t.Fatal(err)
	}
	logger.Info("a decision", "job", "upgrades/weekly")
	if got := out.String(); strings.HasPrefix(got, "{") || strings.Count(got, "a decision") != 1 || strings.Count(got, "\n") != 1 {
		t.Errorf("got %q, want one line for people", got)
	}
}
