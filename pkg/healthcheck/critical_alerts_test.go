// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package healthcheck_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/healthcheck"
	"github.com/appuio/managed-upgrade-operator/pkg/monitoring"
)

func firing(name, message string) healthcheck.Finding {
	return healthcheck.Finding{
		Check: "CriticalAlerts", Object: "Alert/" + name, Reason: "CriticalAlertFiring", Message: "critical alert " + name + " is firing" + message,
		ClearsWhen: "alert " + name + " stops firing, or is silenced or excluded",
	}
}

func TestCriticalAlerts(t *testing.T) {
	excluding := func(namespaces []string, names ...string) v1beta1.HealthChecks {
		config := v1beta1.HealthChecks{ExcludeNamespaces: namespaces}
		for _, name := range names {
			config.ExcludeAlerts = append(config.ExcludeAlerts, v1beta1.ExcludedAlert{AlertName: name})
		}
		return config
	}
	withoutAlertmanager := func(o *monitoring.Options) { o.AlertmanagerURL = "" }
	etcd := critical("EtcdDown", "namespace", "openshift-etcd", "pod", "etcd-0")
	for _, tc := range []struct {
		reason  string
		alerts  []alert
		silence map[string]string // of the first alert
		config  v1beta1.HealthChecks
		options func(*monitoring.Options)
		want    healthcheck.Report
	}{
		{reason: "healthy"},
		{
			reason: "one alert", alerts: []alert{etcd},
			want: healthcheck.Report{Findings: []healthcheck.Finding{firing("EtcdDown", `: {namespace="openshift-etcd", pod="etcd-0"}`)}},
		},
		{
			reason: "several of one name are one finding, each name has its own",
			alerts: []alert{critical("NodeDown", "node", "b"), etcd, critical("NodeDown", "node", "a"), critical("NodeDown", "node", "c")},
			want: healthcheck.Report{Findings: []healthcheck.Finding{
				firing("EtcdDown", `: {namespace="openshift-etcd", pod="etcd-0"}`), firing("NodeDown", ` 3 times, one of them: {node="a"}`),
			}},
		},
		{reason: "other severities", alerts: []alert{{"EtcdDown", map[string]string{"severity": "warning"}}, {"NodeDown", map[string]string{}}}},
		{
			reason: "excluded by name", alerts: []alert{etcd, critical("NodeDown")}, config: excluding(nil, "EtcdDown", "Other"),
			want: healthcheck.Report{
				Findings: []healthcheck.Finding{firing("NodeDown", `: {}`)},
				Notes:    []string{"critical alerts left out: 1 by excludeAlerts (EtcdDown)"},
			},
		},
		{
			reason: "a name is not a part of one", alerts: []alert{etcd}, config: excluding([]string{"openshift"}, "Etcd", "EtcdDown2"),
			want: healthcheck.Report{Findings: []healthcheck.Finding{firing("EtcdDown", `: {namespace="openshift-etcd", pod="etcd-0"}`)}},
		},
		{
			reason: "excluded by namespace", alerts: []alert{etcd, critical("NodeDown", "namespace", "openshift-console")}, config: excluding([]string{"openshift-console", "openshift-etcd"}),
			want: healthcheck.Report{Notes: []string{"critical alerts left out: 2 by excludeNamespaces (EtcdDown, NodeDown)"}},
		},
		{
			reason: "an alert of this operator", alerts: []alert{critical("ManagedUpgradeJobFailed", "namespace", "managed-upgrade-operator")},
			want: healthcheck.Report{Notes: []string{"critical alerts left out: 1 of this operator (ManagedUpgradeJobFailed)"}},
		},
		{
			reason: "silenced", alerts: []alert{etcd, critical("EtcdDown", "namespace", "openshift-etcd", "pod", "etcd-1"), critical("NodeDown", "pod", "etcd-0")},
			silence: map[string]string{"alertname": "EtcdDown", "pod": "etcd-0"},
			want: healthcheck.Report{
				Findings: []healthcheck.Finding{firing("EtcdDown", `: {namespace="openshift-etcd", pod="etcd-1"}`), firing("NodeDown", `: {pod="etcd-0"}`)},
				Notes:    []string{"critical alerts left out: 1 silenced (EtcdDown)"},
			},
		},
		{
			reason: "silences of an Alertmanager that is not configured", alerts: []alert{etcd}, silence: map[string]string{"alertname": "EtcdDown"}, options: withoutAlertmanager,
			want: healthcheck.Report{Findings: []healthcheck.Finding{firing("EtcdDown", `: {namespace="openshift-etcd", pod="etcd-0"}`)}},
		},
		{
			reason: "silences of an Alertmanager that is away", alerts: []alert{etcd}, silence: map[string]string{"alertname": "EtcdDown"},
			options: func(o *monitoring.Options) { o.AlertmanagerURL = "http://127.0.0.1:1" },
			want: healthcheck.Report{
				Findings: []healthcheck.Finding{firing("EtcdDown", `: {namespace="openshift-etcd", pod="etcd-0"}`)},
				Notes:    []string{"silences are not known: Alertmanager does not answer: connection refused"},
			},
		},
		{reason: "Alertmanager does not matter without an alert", options: func(o *monitoring.Options) { o.AlertmanagerURL = "http://127.0.0.1:1" }},
		{reason: "turned off", alerts: []alert{etcd}, config: v1beta1.HealthChecks{CheckCriticalAlerts: new(false)}},
		{
			reason: "turned on", alerts: []alert{etcd}, config: v1beta1.HealthChecks{CheckCriticalAlerts: new(true)},
			want: healthcheck.Report{Findings: []healthcheck.Finding{firing("EtcdDown", `: {namespace="openshift-etcd", pod="etcd-0"}`)}},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWatched(t)
			w.fire(tc.alerts...)
			if tc.silence != nil {
				w.silence(tc.alerts[0].name, tc.silence)
			}
			if len(tc.want.Findings) > 0 {
				tc.want.Recheck = 30 * time.Second
			}
			if diff := cmp.Diff(tc.want, w.ask(healthcheck.CriticalAlerts(), tc.config, tc.options)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestChecksWithoutPrometheus(t *testing.T) {
	unanswered := func(check, message string) healthcheck.Report {
		return healthcheck.Report{Recheck: 30 * time.Second, Findings: []healthcheck.Finding{{
			Check: check, Reason: healthcheck.CodeUnanswered, Message: check + " cannot be answered: " + message, ClearsWhen: "the check gets an answer",
		}}}
	}
	const gone = "http://127.0.0.1:1"
	queries := []v1beta1.CustomQuery{{Query: "up == 0"}, {Query: "up == 2"}}
	for _, tc := range []struct {
		reason, url string
		policy      v1beta1.UnavailablePolicy
		check       healthcheck.Check
		want        healthcheck.Report
	}{
		{"none is configured", "", "", healthcheck.CriticalAlerts(), unanswered("CriticalAlerts", "no Prometheus is configured (--prometheus-url)")},
		{"it is away", gone, v1beta1.UnavailableFail, healthcheck.CriticalAlerts(), unanswered("CriticalAlerts", "Prometheus does not answer: connection refused")},
		{"that does not matter", gone, v1beta1.UnavailableIgnore, healthcheck.CriticalAlerts(), healthcheck.Report{
			Notes: []string{"critical alerts not checked (whenUnavailable: Ignore): Prometheus does not answer: connection refused"},
		}},
		{"for any of several queries", gone, "", healthcheck.CustomQueries(), unanswered("CustomQueries", "Prometheus does not answer: connection refused")},
		{"nor does that", "", v1beta1.UnavailableIgnore, healthcheck.CustomQueries(), healthcheck.Report{
			Recheck: 0,
			Notes:   []string{"custom queries not checked (whenUnavailable: Ignore): no Prometheus is configured (--prometheus-url)"},
		}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			config := v1beta1.HealthChecks{WhenUnavailable: tc.policy, CustomQueries: queries}
			got := askThrough(t, tc.check, config, monitoring.Options{PrometheusURL: tc.url})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
