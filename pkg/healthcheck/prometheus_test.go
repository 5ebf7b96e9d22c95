// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package healthcheck_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/healthcheck"
	"github.com/appuio/managed-upgrade-operator/pkg/monitoring"
	realmonitoring "github.com/appuio/managed-upgrade-operator/test/monitoring"
)

// prometheus is a real Prometheus with a real Alertmanager, which all tests share that need them.
var prometheus = sync.OnceValues(func() (*realmonitoring.Monitoring, error) {
	var err error
	started, err = realmonitoring.Start(context.Background(), realmonitoring.Options{Progress: os.Stderr})
	return started, err
})

// started is the one that has to be stopped, if there is one.
var started *realmonitoring.Monitoring

func TestMain(m *testing.M) {
	code := m.Run()
	if started != nil {
		_ = started.Close()
	}
	os.Exit(code)
}

// watched is a cluster with alerts.
type watched struct {
	*realmonitoring.Monitoring
	t *testing.T
}

func newWatched(t *testing.T) *watched {
	t.Helper()
	m, err := prometheus()
	if err != nil {
		t.Fatal(err)
	}
	return &watched{m, t}
}

// alert is one that fires for the time of a test.
type alert struct {
	name   string
	labels map[string]string
}

func critical(name string, labels ...string) alert {
	a := alert{name, map[string]string{"severity": "critical"}}
	for i := 0; i < len(labels); i += 2 {
		a.labels[labels[i]] = labels[i+1]
	}
	return a
}

// fire makes alerts fire until the test ends.
func (w *watched) fire(alerts ...alert) {
	w.t.Helper()
	names := map[string]int{}
	for _, a := range alerts {
		if err := w.Fire(w.t.Context(), a.name, a.labels); err != nil {
			w.t.Fatal(err)
		}
		names[a.name]++
	}
	w.t.Cleanup(func() {
		for name := range names {
			w.Resolve(name, nil)
			if err := w.Prometheus.AwaitResolved(context.Background(), name); err != nil {
				w.t.Error(err)
			}
		}
	})
	for name, n := range names {
		w.eventually(fmt.Sprintf("%d alerts %s fire", n, name), func() bool {
			firing, err := w.Prometheus.Firing(w.t.Context(), name)
			return err == nil && len(firing) == n
		})
	}
}

// silence silences alerts until the test ends, and waits until Alertmanager says so of the named one.
func (w *watched) silence(name string, matchers map[string]string) {
	w.t.Helper()
	if err := w.Alertmanager.AwaitState(w.t.Context(), name, realmonitoring.AlertActive); err != nil {
		w.t.Fatal(err)
	}
	id, err := w.Alertmanager.Silence(w.t.Context(), matchers, time.Now().Add(time.Hour))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := w.Alertmanager.Expire(context.Background(), id); err != nil {
			w.t.Error(err)
		}
	})
	w.eventually("alert "+name+" is silenced", func() bool {
		alerts, _ := w.Alertmanager.Alerts(w.t.Context())
		for _, a := range alerts {
			if a.Labels["alertname"] == name && a.Status.State == realmonitoring.AlertSuppressed {
				return true
			}
		}
		return false
	})
}

func (w *watched) eventually(what string, check func() bool) {
	w.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	tooLate := time.After(30 * time.Second)
	for !check() {
		select {
		case <-tick.C:
		case <-tooLate:
			w.t.Fatal("not yet: " + what)
		}
	}
}

// ask asks the check with a client of its own, so that nothing is known from before.
func (w *watched) ask(check healthcheck.Check, config v1beta1.HealthChecks, change func(*monitoring.Options)) healthcheck.Report {
	w.t.Helper()
	options := monitoring.Options{PrometheusURL: w.Prometheus.URL(), AlertmanagerURL: w.Alertmanager.URL()}
	if change != nil {
		change(&options)
	}
	return askThrough(w.t, check, config, options)
}

func askThrough(t *testing.T, check healthcheck.Check, config v1beta1.HealthChecks, options monitoring.Options) healthcheck.Report {
	t.Helper()
	client, err := monitoring.New(options)
	if err != nil {
		t.Fatal(err)
	}
	return healthcheck.RunAll(t.Context(), []healthcheck.Check{check}, healthcheck.Request{
		Config: config, Monitoring: client, Now: time.Now(), MaxAge: 30 * time.Second,
	})
}
