// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/model"

	"github.com/appuio/managed-upgrade-operator/test/programs"
)

// etcdDown are the labels of an alert as OpenShift has them.
var etcdDown = map[string]string{"severity": "critical", "namespace": "openshift-etcd", "job": "etcd", "instance": "10.0.0.1:9979"}

func start(t *testing.T) *Monitoring {
	t.Helper()
	m, err := Start(t.Context(), Options{Progress: t.Output()})
	must(t, err)
	t.Cleanup(func() { must(t, m.Close()) })
	return m
}

func TestAlertFiresAndResolves(t *testing.T) {
	m := start(t)
	must(t, m.Fire(t.Context(), "EtcdDown", etcdDown))
	must(t, m.Fire(t.Context(), "EtcdDown", map[string]string{"severity": "critical"}))
	must(t, m.Fire(t.Context(), "Watchdog", nil))
	must(t, m.Prometheus.AwaitFiring(t.Context(), "Watchdog"))
	expectFiring(t, m.Prometheus, "EtcdDown", etcdDown, map[string]string{"severity": "critical"})

	m.Resolve("EtcdDown", map[string]string{"namespace": "openshift-etcd"})
	expectFiring(t, m.Prometheus, "EtcdDown", map[string]string{"severity": "critical"})
	m.Resolve("EtcdDown", nil)
	must(t, m.Prometheus.AwaitResolved(t.Context(), "EtcdDown"))
	expectFiring(t, m.Prometheus, "Watchdog", map[string]string{})
}

// TestMissedScrapes has an alert go on firing without the exporter, for long after
// Prometheus has noticed.
func TestMissedScrapes(t *testing.T) {
	m := start(t)
	must(t, m.Prometheus.SetRules(t.Context(), AlertRule("EtcdDown"), Rule{Alert: "TargetDown", Expr: "up == 0", For: time.Second}))
	must(t, m.Fire(t.Context(), "EtcdDown", etcdDown))
	must(t, m.Prometheus.AwaitFiring(t.Context(), "EtcdDown"))
	must(t, m.Exporter.Close())
	must(t, m.Prometheus.AwaitFiring(t.Context(), "TargetDown"))
	expectFiring(t, m.Prometheus, "EtcdDown", etcdDown)
}

func TestPrometheusGoesAwayAndComesBack(t *testing.T) {
	ends := map[string]func(*Prometheus) error{"stopped": (*Prometheus).Stop, "killed": (*Prometheus).Kill}
	m := start(t)
	must(t, m.Fire(t.Context(), "Before", etcdDown))
	must(t, m.Prometheus.AwaitFiring(t.Context(), "Before"))
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			url := m.Prometheus.URL()
			must(t, end(m.Prometheus))
			if _, err := m.Prometheus.Firing(t.Context(), "Before"); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("while it is away: got %v, want a refused connection", err)
			}
			must(t, m.Fire(t.Context(), "Meanwhile "+name, nil))

			must(t, m.Prometheus.Start(t.Context()))
			if m.Prometheus.URL() != url {
				t.Errorf("got address %s, want %s as before", m.Prometheus.URL(), url)
			}
			must(t, m.Prometheus.AwaitFiring(t.Context(), "Meanwhile "+name))
			expectFiring(t, m.Prometheus, "Before", etcdDown)
			if err := m.Prometheus.Start(t.Context()); err == nil {
				t.Error("Start while it runs: no error")
			}
		})
	}
}

// TestAlertOfBefore proves that an alert which ended while Prometheus was away is told of
// no longer than Lookback, and that what it remembers from before is.
func TestAlertOfBefore(t *testing.T) {
	exporter, err := StartExporter(t.Context())
	must(t, err)
	p, err := StartPrometheus(t.Context(), PrometheusOptions{
		Exporters: []*Exporter{exporter}, Lookback: 2 * time.Second, Rules: []Rule{AlertRule("Before")},
	})
	must(t, err)
	t.Cleanup(func() { must(t, p.Close()) })
	must(t, exporter.Set("test_alert", map[string]string{"alertname": "Before"}, 1))
	must(t, p.AwaitFiring(t.Context(), "Before"))
	fired := time.Now()
	must(t, p.Stop())
	exporter.SetAll("test_alert", nil, 0)
	must(t, p.Start(t.Context()))
	must(t, p.AwaitResolved(t.Context(), "Before"))
	past, _, err := p.api.Query(t.Context(), `ALERTS{alertname="Before"}`, fired)
	must(t, err)
	if vector, ok := past.(model.Vector); !ok || len(vector) != 1 {
		t.Errorf("at the time when it fired: got %v, want one alert", past)
	}
}

func TestSilence(t *testing.T) {
	m := start(t)
	must(t, m.Fire(t.Context(), "EtcdDown", etcdDown))
	must(t, m.Fire(t.Context(), "KubeletDown", etcdDown))
	must(t, m.Alertmanager.AwaitState(t.Context(), "EtcdDown", AlertActive))

	id, err := m.Alertmanager.Silence(t.Context(), map[string]string{"alertname": "EtcdDown", "namespace": "openshift-etcd"},
		time.Now().Add(time.Hour))
	must(t, err)
	must(t, m.Alertmanager.AwaitState(t.Context(), "EtcdDown", AlertSuppressed))
	must(t, m.Alertmanager.AwaitState(t.Context(), "KubeletDown", AlertActive))
	alerts, err := m.Alertmanager.Alerts(t.Context())
	must(t, err)
	for _, alert := range alerts {
		if alert.Labels["alertname"] == "EtcdDown" && !slices.Equal(alert.Status.SilencedBy, []string{id}) {
			t.Errorf("silenced by %v, want %s", alert.Status.SilencedBy, id)
		}
	}
	expectFiring(t, m.Prometheus, "EtcdDown", etcdDown) // a silence is none of its business

	must(t, m.Alertmanager.Stop())
	must(t, m.Alertmanager.Start(t.Context()))
	must(t, m.Alertmanager.AwaitState(t.Context(), "EtcdDown", AlertSuppressed))

	must(t, m.Alertmanager.Expire(t.Context(), id))
	must(t, m.Alertmanager.AwaitState(t.Context(), "EtcdDown", AlertActive))
	if err := m.Alertmanager.Expire(t.Context(), "cheese"); err == nil {
		t.Error("expire a silence that does not exist: no error")
	}
}

func TestSilenceEndsByItself(t *testing.T) {
	m := start(t)
	must(t, m.Fire(t.Context(), "EtcdDown", etcdDown))
	must(t, m.Alertmanager.AwaitState(t.Context(), "EtcdDown", AlertActive))
	_, err := m.Alertmanager.Silence(t.Context(), map[string]string{"alertname": "EtcdDown"}, time.Now().Add(2*time.Second))
	must(t, err)
	must(t, m.Alertmanager.AwaitState(t.Context(), "EtcdDown", AlertSuppressed))
	must(t, m.Alertmanager.AwaitState(t.Context(), "EtcdDown", AlertActive))
}

func TestSetRules(t *testing.T) {
	m := start(t)
	p := m.Prometheus
	must(t, m.Exporter.Set("temperature", map[string]string{"room": "server"}, 41))
	hot := Rule{Alert: "TooHot", Expr: "temperature > 40", Labels: map[string]string{"severity": "critical"}}
	never := Rule{Alert: "Never", Expr: "temperature > 40", For: time.Hour}
	must(t, p.SetRules(t.Context(), hot, never))
	want := map[string]string{"severity": "critical", "room": "server", "job": "exporter", "instance": "exporter-0"}
	expectFiring(t, p, "TooHot", want)
	expectFiring(t, p, "Never")
	must(t, m.Fire(t.Context(), "Another", nil)) // beside the rules of the test
	must(t, p.AwaitFiring(t.Context(), "Another"))
	must(t, m.Exporter.Set("temperature", map[string]string{"room": "lab"}, 41))
	lab := maps.Clone(want)
	lab["room"] = "lab"
	expectFiring(t, p, "TooHot", want, lab)

	must(t, p.SetRules(t.Context(), hot))
	must(t, p.AwaitResolved(t.Context(), "Another"))
	m.Exporter.Delete("temperature", map[string]string{"room": "lab"})
	expectFiring(t, p, "TooHot", want)
	must(t, p.SetRules(t.Context()))
	must(t, p.AwaitResolved(t.Context(), "TooHot"))

	must(t, p.SetRules(t.Context(), hot))
	err := p.SetRules(t.Context(), Rule{Alert: "Bad", Expr: "temperature >"})
	if err == nil || !strings.Contains(err.Error(), "500") {
		t.Errorf("a bad rule: got error %v, want the answer of Prometheus", err)
	}
	must(t, p.Stop()) // reads the rules that are on disk now
	must(t, p.Start(t.Context()))
	expectFiring(t, p, "TooHot", want)
}

func TestRequests(t *testing.T) {
	m := start(t)
	must(t, m.Fire(t.Context(), "EtcdDown", nil))
	must(t, m.Prometheus.AwaitFiring(t.Context(), "EtcdDown"))
	expectRequests(t, m.Prometheus, 0)
	for _, query := range []string{"up", "up", "up ="} {
		_, _, _ = m.Prometheus.api.Query(t.Context(), query, time.Time{}) // by POST; the last one is refused
	}
	response, err := http.Get(m.Prometheus.URL() + "/api/v1/query?query=up")
	must(t, err)
	must(t, response.Body.Close())
	expectRequests(t, m.Prometheus, 4)
}

func TestClose(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	m, err := Start(t.Context(), Options{})
	must(t, err)
	running := []*programs.Process{m.Prometheus.current(), m.Alertmanager.current()}
	for range 2 {
		must(t, m.Close())
	}
	for _, process := range running {
		if err := syscall.Kill(process.PID(), 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%s: got %v, want no such process", process.Name(), err)
		}
	}
	if left, _ := os.ReadDir(temp); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
	if err := programs.GetOK(t.Context(), http.DefaultClient, m.Exporter.URL()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the exporter after Close: got %v, want a refused connection", err)
	}
}

func TestFolderStays(t *testing.T) {
	dir := t.TempDir()
	m, err := Start(t.Context(), Options{Dir: dir})
	must(t, err)
	must(t, m.Close())
	for _, name := range []string{"prometheus/prometheus.log", "prometheus/data", "alertmanager/alertmanager.log", "alertmanager/data"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	for _, server := range []*server{m.Prometheus.server, m.Alertmanager.server} {
		if err := server.Start(t.Context()); err == nil {
			t.Errorf("start %s after Close: no error", server.name())
		}
	}
}

func TestStartShowsTheLogOfWhatFails(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	_, err := StartPrometheus(t.Context(), PrometheusOptions{Rules: []Rule{{Alert: "Bad", Expr: "("}}})
	if err == nil || !strings.Contains(err.Error(), "prometheus ended before it was ready") || !strings.Contains(err.Error(), "parse error") {
		t.Errorf("got error %v, want what Prometheus says of the rule", err)
	}
	if left, _ := os.ReadDir(temp); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

// expectFiring waits until exactly the alerts with these labels fire.
func expectFiring(t *testing.T, p *Prometheus, alert string, want ...map[string]string) {
	t.Helper()
	wanted := []string{}
	for _, labels := range want {
		wanted = append(wanted, labelSet(alert, labels))
	}
	slices.Sort(wanted)
	must(t, await(t.Context(), func(ctx context.Context) error {
		firing, err := p.Firing(ctx, alert)
		if err != nil {
			return err
		}
		got := []string{}
		for _, labels := range firing {
			got = append(got, labels.String())
		}
		slices.Sort(got)
		if !slices.Equal(got, wanted) {
			return fmt.Errorf("firing: got %v, want %v", got, wanted)
		}
		return nil
	}))
}

func labelSet(alert string, labels map[string]string) string {
	set := model.LabelSet{model.AlertNameLabel: model.LabelValue(alert)}
	for name, value := range labels {
		set[model.LabelName(name)] = model.LabelValue(value)
	}
	return set.String()
}

// expectRequests checks the counter of Prometheus.
func expectRequests(t *testing.T, p *Prometheus, want float64) {
	t.Helper()
	got, err := p.Requests(t.Context())
	must(t, err)
	if got != want {
		t.Errorf("got %g requests, want %g", got, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
