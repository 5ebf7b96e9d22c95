// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"errors"
	"io"
	"maps"
	"path/filepath"
	"time"
)

// Options say what to start. The zero value is complete.
type Options struct {
	// Dir takes a folder each of Prometheus and Alertmanager, and stays. When unset,
	// temporary folders are used and removed by Close.
	Dir string
	// Progress is told, in lines, what takes long. Nil keeps silent.
	Progress io.Writer
	// ScrapeInterval, EvaluationInterval and Lookback are those of PrometheusOptions.
	// What scrapes tens of thousands of gauges needs longer intervals: a scrape may take
	// no longer than one.
	ScrapeInterval, EvaluationInterval, Lookback time.Duration
}

// Monitoring is an exporter, a Prometheus that scrapes it, and an Alertmanager that is
// sent the alerts.
type Monitoring struct {
	Exporter     *Exporter
	Prometheus   *Prometheus
	Alertmanager *Alertmanager
}

// Start starts all three, and returns once they are ready, and the exporter is scraped. They live until Close is
// called, ctx ends, or this process dies. Call Close in any case. On an error nothing is
// left running.
func Start(ctx context.Context, options Options) (*Monitoring, error) {
	m := &Monitoring{}
	if err := m.start(ctx, options); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

func (m *Monitoring) start(ctx context.Context, options Options) error {
	var prometheusDir, alertmanagerDir string
	if options.Dir != "" {
		prometheusDir = filepath.Join(options.Dir, prometheusModule.Name)
		alertmanagerDir = filepath.Join(options.Dir, alertmanagerModule.Name)
	}
	var err error
	if m.Exporter, err = StartExporter(ctx); err != nil {
		return err
	}
	if m.Alertmanager, err = StartAlertmanager(ctx, AlertmanagerOptions{Dir: alertmanagerDir, Progress: options.Progress}); err != nil {
		return err
	}
	m.Prometheus, err = StartPrometheus(ctx, PrometheusOptions{
		Dir:                prometheusDir,
		Progress:           options.Progress,
		ScrapeInterval:     options.ScrapeInterval,
		EvaluationInterval: options.EvaluationInterval,
		Lookback:           options.Lookback,
		Exporters:          []*Exporter{m.Exporter},
		Alertmanagers:      []*Alertmanager{m.Alertmanager},
	})
	if err != nil {
		return err
	}
	return m.Prometheus.AwaitData(ctx)
}

// Fire makes an alert of the name fire, with exactly these labels besides its name, until
// Resolve. It returns at once: see Prometheus.AwaitFiring. The first Fire of a name adds
// AlertRule to the rules, unless they have one of that name. Several alerts of one name
// that differ in their labels may fire at a time. It works while Prometheus is stopped, too.
func (m *Monitoring) Fire(ctx context.Context, alert string, labels map[string]string) error {
	if err := m.Prometheus.ensureRule(ctx, AlertRule(alert)); err != nil {
		return err
	}
	return m.Exporter.Set(alertMetric, withAlertname(alert, labels), 1)
}

// Resolve ends those alerts of the name that have these labels, and whatever others: with
// no labels, all of the name.
func (m *Monitoring) Resolve(alert string, labels map[string]string) {
	m.Exporter.SetAll(alertMetric, withAlertname(alert, labels), 0)
}

func withAlertname(alert string, labels map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, labels)
	all["alertname"] = alert
	return all
}

// Close ends all three for good. Further calls do nothing.
func (m *Monitoring) Close() error {
	var errs []error
	if m.Prometheus != nil {
		errs = append(errs, m.Prometheus.Close())
	}
	if m.Alertmanager != nil {
		errs = append(errs, m.Alertmanager.Close())
	}
	if m.Exporter != nil {
		errs = append(errs, m.Exporter.Close())
	}
	return errors.Join(errs...)
}
