// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
)

const (
	defaultInterval = 200 * time.Millisecond
	// defaultLookback outlasts any pause of a busy machine, in which an alert that
	// fires must not seem to be gone.
	defaultLookback = 10 * time.Second
)

// PrometheusOptions say what kind of Prometheus to start. The zero value is one that
// scrapes nothing and has no rules.
type PrometheusOptions struct {
	// Dir takes data, configuration and log. It is made if need be, has to be empty,
	// and stays. When unset, a temporary folder is used and removed by Close.
	Dir string
	// Progress is told, in lines, what takes long. Nil keeps silent.
	Progress io.Writer
	// ScrapeInterval and EvaluationInterval are 200 ms if zero.
	ScrapeInterval, EvaluationInterval time.Duration
	// Lookback is how old a sample may be to be told; 10 s if zero.
	Lookback time.Duration
	// Rules to begin with; see SetRules.
	Rules []Rule
	// Exporters are scraped.
	Exporters []*Exporter
	// Alertmanagers are sent the alerts.
	Alertmanagers []*Alertmanager
}

// withDefaults fills in what is not set.
func (o PrometheusOptions) withDefaults() PrometheusOptions {
	for _, interval := range []*time.Duration{&o.ScrapeInterval, &o.EvaluationInterval} {
		if *interval == 0 {
			*interval = defaultInterval
		}
	}
	if o.Lookback == 0 {
		o.Lookback = defaultLookback
	}
	return o
}

// Prometheus is a Prometheus server. Its methods may be called from any goroutine.
type Prometheus struct {
	*server
	options PrometheusOptions
	api     promv1.API

	rulesMu   sync.Mutex // guards what follows
	rules     []Rule
	scrapes   []Scrape
	ruleFiles []string
}

// StartPrometheus starts a Prometheus and returns once it is ready. It lives until
// Close is called, ctx ends, or this process dies. Call Close in any case, as it also
// waits for the end. On an error nothing is left running.
func StartPrometheus(ctx context.Context, options PrometheusOptions) (*Prometheus, error) {
	options = options.withDefaults()
	server, err := newServer(ctx, prometheusModule, options.Dir, options.Progress)
	if err != nil {
		return nil, err
	}
	p := &Prometheus{server: server, options: options, rules: slices.Clone(options.Rules)}
	if err := p.prepare(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	if err := p.open(ctx, options.Progress); err != nil {
		return nil, err
	}
	return p, nil
}

// prepare writes the files, and makes the client and the arguments.
func (p *Prometheus) prepare() error {
	if err := p.writeConfig(); err != nil {
		return err
	}
	if err := p.writeRules(p.rules); err != nil {
		return err
	}
	client, err := api.NewClient(api.Config{Address: p.URL(), Client: p.client})
	if err != nil {
		return fmt.Errorf("make a client of Prometheus: %w", err)
	}
	p.api = promv1.NewAPI(client)
	p.args = []string{
		"--config.file=" + p.folder.Join(configFile),
		"--storage.tsdb.path=" + p.folder.Join("data"),
		"--query.lookback-delta=" + p.options.Lookback.String(),
		// What is to be scraped is known from the beginning; the default is to look
		// for it every 5 s.
		"--scrape.discovery-reload-interval=100ms",
		// Alertmanager takes an alert for resolved when it has heard nothing of it for
		// four times as long. The default of a minute would leave one that was started
		// again without alerts for that long.
		"--rules.alert.resend-delay=2s",
		// Beyond this many alerts at once it would drop some; the default is 10,000.
		"--alertmanager.notification-queue-capacity=100000",
		"--web.enable-lifecycle",
		"--no-auto-gomemlimit",
	}
	return nil
}

// SetRules replaces the alerting rules, and returns once they are in force. A rule
// that is given again, unchanged, goes on undisturbed. While Prometheus is stopped
// they are only written down for the next Start. When Prometheus refuses them, the
// old ones stay.
func (p *Prometheus) SetRules(ctx context.Context, rules ...Rule) error {
	p.rulesMu.Lock()
	defer p.rulesMu.Unlock()
	return p.setRules(ctx, rules)
}

// ensureRule adds the rule unless there is one for the same alert.
func (p *Prometheus) ensureRule(ctx context.Context, rule Rule) error {
	p.rulesMu.Lock()
	defer p.rulesMu.Unlock()
	if slices.ContainsFunc(p.rules, func(r Rule) bool { return r.Alert == rule.Alert }) {
		return nil
	}
	return p.setRules(ctx, append(slices.Clone(p.rules), rule))
}

func (p *Prometheus) setRules(ctx context.Context, rules []Rule) error {
	if err := p.writeRules(rules); err != nil {
		return err
	}
	if p.current().Running() {
		if err := p.reload(ctx); err != nil {
			return errors.Join(err, p.writeRules(p.rules))
		}
	}
	p.rules = slices.Clone(rules)
	return nil
}

// reload has Prometheus read its configuration and rules. It answers once they are in
// force.
func (p *Prometheus) reload(ctx context.Context) error {
	response, err := p.do(ctx, http.MethodPost, "/-/reload", http.NoBody)
	if err != nil {
		return fmt.Errorf("reload Prometheus: %w", err)
	}
	return response.Body.Close()
}
