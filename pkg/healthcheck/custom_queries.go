// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/common/model"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/monitoring"
)

// CustomQueries finds every query of the configuration that returns a sample.
func CustomQueries() Check { return customQueries{} }

type customQueries struct{}

func (customQueries) Name() string { return "CustomQueries" }

func (customQueries) Run(ctx context.Context, request Request) (Report, error) {
	queries := request.Config.CustomQueries
	if len(queries) == 0 {
		return Report{Skipped: skippedNone}, nil
	}
	report := Report{Recheck: request.MaxAge, Findings: invalidQueries(request.Config)}
	// An empty answer counts only if Prometheus has data at all.
	if _, err := request.Monitoring.CriticalAlerts(ctx, request.Now, request.MaxAge); err != nil {
		away, err := unavailable("custom queries", request.Config, err)
		report.Notes, report.Skipped = away.Notes, away.Skipped
		return report, err
	}
	findings := make([]*Finding, len(queries))
	var wg sync.WaitGroup
	for i, q := range queries {
		wg.Go(func() { findings[i] = askCustom(ctx, request, i, q.Query) })
	}
	wg.Wait()
	for _, f := range findings {
		if f != nil {
			report.Findings = append(report.Findings, *f)
		}
	}
	return report, nil
}

// invalidQueries are findings of the queries that need not be asked.
func invalidQueries(config v1beta1.HealthChecks) []Finding {
	var findings []Finding
	for i, q := range config.CustomQueries {
		if err := monitoring.ParseQuery(q.Query); err != nil {
			findings = append(findings, Finding{
				Object:     queryObject(i),
				Reason:     v1beta1.ReasonInvalidQuery,
				Message:    fmt.Sprintf("custom query %s: %s", quote(q.Query), err),
				ClearsWhen: "the query is corrected, in a new job",
			})
		}
	}
	return findings
}

// askCustom returns what a valid query finds, nil if that is nothing.
func askCustom(ctx context.Context, request Request, index int, query string) *Finding {
	if monitoring.ParseQuery(query) != nil {
		return nil
	}
	samples, err := request.Monitoring.Query(ctx, query, request.Now, request.MaxAge)
	switch {
	case err != nil: // Prometheus was there a moment ago: whatever it is, it is about the query
		return &Finding{
			Object:     queryObject(index),
			Reason:     CodeUnanswered,
			Message:    fmt.Sprintf("custom query %s: %s", quote(query), err),
			ClearsWhen: "the query gets an answer",
		}
	case len(samples) == 0:
		return nil
	}
	return &Finding{
		Object:     queryObject(index),
		Reason:     "CustomQueryReturnedSamples",
		Message:    fmt.Sprintf("custom query %s returns %s", quote(query), samplesText(samples)),
		ClearsWhen: "the query returns nothing",
	}
}

func queryObject(index int) string { return fmt.Sprintf("CustomQuery/%d", index) }

// samplesText shows the first samples by their labels, with their values.
func samplesText(samples model.Vector) string {
	texts := make([]string, 0, len(samples))
	for _, s := range samples {
		texts = append(texts, fmt.Sprintf("%s = %s", s.Metric, s.Value))
	}
	slices.Sort(texts)
	return list(texts)
}

func quote(query string) string {
	return "`" + v1beta1.Truncate(strings.Join(strings.Fields(query), " "), 120) + "`"
}

// Validate returns an error for what is wrong with the configuration and cannot be seen at admission.
func Validate(config v1beta1.HealthChecks) error {
	for i, q := range config.CustomQueries {
		if err := monitoring.ParseQuery(q.Query); err != nil {
			return fmt.Errorf("customQueries[%d]: %w", i, err)
		}
	}
	return nil
}
