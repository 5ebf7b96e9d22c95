// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/common/model"
)

// Scrape is something besides the exporters that Prometheus reads by HTTPS, as a ServiceMonitor says.
type Scrape struct {
	// Job is the label of that name, and different for each Scrape.
	Job string
	// Address is the host and port, Path where the metrics are there.
	Address, Path string
	// ServerName is the name that the certificate has to be for; the host of Address if empty.
	ServerName string
	// CAFile has the authorities of the certificate, TokenFile the bearer token; both are read for each scrape.
	CAFile, TokenFile string
	// HonorLabels keeps the labels of what is scraped where those of the scrape have the same names.
	HonorLabels bool
	// Interval between two scrapes; that of the options if zero.
	Interval time.Duration
}

// SetScrapes replaces what is scraped besides the exporters, and returns once that is in force. While Prometheus is stopped it
// is only written down for the next Start. When Prometheus refuses it, the old ones stay.
func (p *Prometheus) SetScrapes(ctx context.Context, scrapes ...Scrape) error {
	p.rulesMu.Lock()
	defer p.rulesMu.Unlock()
	old := p.scrapes
	p.scrapes = slices.Clone(scrapes)
	return p.reconfigure(ctx, func() { p.scrapes = old })
}

// SetRuleFiles replaces the files with rules besides those of SetRules, as SetScrapes does. Prometheus reads them again whenever
// anything changes.
func (p *Prometheus) SetRuleFiles(ctx context.Context, files ...string) error {
	p.rulesMu.Lock()
	defer p.rulesMu.Unlock()
	old := p.ruleFiles
	p.ruleFiles = slices.Clone(files)
	return p.reconfigure(ctx, func() { p.ruleFiles = old })
}

// reconfigure writes the configuration and has it read; what is refused is taken back.
func (p *Prometheus) reconfigure(ctx context.Context, takeBack func()) error {
	err := p.writeConfig()
	if err == nil && p.current().Running() {
		err = p.reload(ctx)
	}
	if err == nil {
		return nil
	}
	takeBack()
	return errors.Join(err, p.writeConfig())
}

func (p *Prometheus) configOf(s Scrape) object {
	interval := s.Interval
	if interval == 0 {
		interval = p.options.ScrapeInterval
	}
	tls := object{"ca_file": s.CAFile}
	if s.ServerName != "" {
		tls["server_name"] = s.ServerName
	}
	config := object{
		"job_name":        s.Job,
		"scheme":          "https",
		"metrics_path":    s.Path,
		"honor_labels":    s.HonorLabels,
		"scrape_interval": model.Duration(interval),
		"scrape_timeout":  model.Duration(interval),
		"tls_config":      tls,
		"static_configs":  []object{{"targets": []string{s.Address}}},
	}
	if s.TokenFile != "" {
		config["authorization"] = object{"credentials_file": s.TokenFile}
	}
	return config
}

// Names returns the names of the series that Prometheus had since a moment and that begin like that, sorted.
func (p *Prometheus) Names(ctx context.Context, prefix string, since time.Time) ([]string, error) {
	matcher := fmt.Sprintf(`{__name__=~"%s.*"}`, prefix)
	values, _, err := p.api.LabelValues(ctx, model.MetricNameLabel, []string{matcher}, since, time.Now())
	if err != nil {
		return nil, fmt.Errorf("ask Prometheus for names: %w", err)
	}
	var names []string
	for _, value := range values {
		names = append(names, string(value))
	}
	slices.Sort(names)
	return names, nil
}

// TargetHealth returns whether the last scrape of a job succeeded, and why not; an error if there was none.
func (p *Prometheus) TargetHealth(ctx context.Context, job string) (healthy bool, problem string, err error) {
	targets, err := p.api.Targets(ctx)
	if err != nil {
		return false, "", fmt.Errorf("ask Prometheus for its targets: %w", err)
	}
	for _, target := range targets.Active {
		if target.Labels["job"] == model.LabelValue(job) && !target.LastScrape.IsZero() {
			return target.Health == "up", target.LastError, nil
		}
	}
	return false, "", fmt.Errorf("nothing of the job %s was scraped", job)
}
