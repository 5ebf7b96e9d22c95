// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

const (
	// alertMetric is 1 for each alert that Monitoring.Fire has fired, and 0 once it
	// is resolved.
	alertMetric = "test_alert"
	// alertHold is how long alertMetric may be missing. On a busy machine a scrape
	// fails now and then, and what fires must not seem to be gone for that.
	alertHold = time.Minute

	// awaitTimeout is generous, for what usually takes half a second.
	awaitTimeout      = 30 * time.Second
	awaitPollInterval = 20 * time.Millisecond
)

// AlertRule is the rule by which the alert fires for each gauge test_alert that has
// its name as label alertname and is 1, until it is anything else; a gauge that is gone
// counts as what it was for a minute. The other labels become those of the alert.
func AlertRule(alert string) Rule {
	return Rule{
		Alert:       alert,
		Expr:        fmt.Sprintf("last_over_time(%s{alertname=%q}[%s]) == 1", alertMetric, alert, model.Duration(alertHold)),
		Annotations: map[string]string{"summary": "A test has fired " + alert + "."},
	}
}

// Firing returns the labels of those alerts of the name that fire, sorted. It reads the
// series ALERTS, by query_range: Requests does not count it.
func (p *Prometheus) Firing(ctx context.Context, alert string) ([]model.LabelSet, error) {
	now := time.Now()
	query := fmt.Sprintf("ALERTS{alertstate=%q,alertname=%q}", "firing", alert)
	value, _, err := p.api.QueryRange(ctx, query, promv1.Range{Start: now, End: now, Step: time.Second})
	if err != nil {
		return nil, fmt.Errorf("ask Prometheus for %s: %w", alert, err)
	}
	series, ok := value.(model.Matrix)
	if !ok {
		return nil, fmt.Errorf("ask Prometheus for %s: got a %s, want a matrix", alert, value.Type())
	}
	var firing []model.LabelSet
	for _, one := range series {
		labels := model.LabelSet(maps.Clone(one.Metric))
		delete(labels, model.MetricNameLabel)
		delete(labels, "alertstate")
		firing = append(firing, labels)
	}
	slices.SortFunc(firing, func(a, b model.LabelSet) int {
		if a.Before(b) {
			return -1
		}
		return 1
	})
	return firing, nil
}

// AwaitData returns once Prometheus has data of a target. It also waits for Prometheus, if
// that is away.
func (p *Prometheus) AwaitData(ctx context.Context) error {
	err := await(ctx, func(ctx context.Context) error {
		now := time.Now()
		value, _, err := p.api.QueryRange(ctx, "up", promv1.Range{Start: now, End: now, Step: time.Second})
		if series, ok := value.(model.Matrix); err == nil && (!ok || len(series) == 0) {
			err = errors.New("it has none")
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("wait for Prometheus to have data: %w", err)
	}
	return nil
}

// AwaitFiring returns once Prometheus tells that an alert of the name fires. It also
// waits for Prometheus, if that is away.
func (p *Prometheus) AwaitFiring(ctx context.Context, alert string) error {
	return p.await(ctx, alert, true)
}

// AwaitResolved returns once Prometheus tells that no alert of the name fires. It also
// waits for Prometheus, if that is away.
func (p *Prometheus) AwaitResolved(ctx context.Context, alert string) error {
	return p.await(ctx, alert, false)
}

func (p *Prometheus) await(ctx context.Context, alert string, want bool) error {
	err := await(ctx, func(ctx context.Context) error {
		firing, err := p.Firing(ctx, alert)
		if err == nil && (len(firing) > 0) != want {
			err = fmt.Errorf("%d of them fire", len(firing))
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("wait for alert %s, firing=%t: %w", alert, want, err)
	}
	return nil
}

// await polls until the condition returns no error.
func await(ctx context.Context, condition func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, awaitTimeout)
	defer cancel()
	ticker := time.NewTicker(awaitPollInterval)
	defer ticker.Stop()
	var last error
	for {
		err := condition(ctx)
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil { // else it tells only that it was cut short
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; last answer: %w", ctx.Err(), last)
		case <-ticker.C:
		}
	}
}

// Requests is how many requests to its query API, /api/v1/query, this Prometheus has
// served since it was started, whatever came of them.
func (p *Prometheus) Requests(ctx context.Context) (float64, error) {
	response, err := p.do(ctx, http.MethodGet, "/metrics", http.NoBody)
	if err != nil {
		return 0, fmt.Errorf("read the metrics of Prometheus: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return 0, fmt.Errorf("read the metrics of Prometheus: %w", err)
	}
	var requests float64
	for _, metric := range families["prometheus_http_requests_total"].GetMetric() {
		for _, label := range metric.GetLabel() {
			if label.GetName() == "handler" && label.GetValue() == "/api/v1/query" {
				requests += metric.GetCounter().GetValue()
			}
		}
	}
	return requests, nil
}
