// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"context"
	"errors"
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
	findings, errs := make([]*Finding, len(queries)), make([]error, len(queries))
	var wg sync.WaitGroup
	for i, q := range queries {
		wg.Go(func() { findings[i], errs[i] = askCustom(ctx, request, i, q.Query) })
	}
	wg.Wait()

	report := Report{Recheck: request.MaxAge}
	for _, f := range findings {
		if f != nil {
			report.Findings = append(report.Findings, *f)
		}
	}
	for _, err := range errs {
		if err == nil {
			continue
		}
		// The first one will do: Prometheus is as far away for the others.
		away, err := unavailable("custom queries", request.Config, err)
		report.Notes = away.Notes
		return report, err
	}
	return report, nil
}

// askCustom returns what a query finds, nil if that is nothing. The error means that Prometheus is not there.
func askCustom(ctx context.Context, request Request, index int, query string) (*Finding, error) {
	finding := &Finding{
		Object:     fmt.Sprintf("CustomQuery/%d", index),
		ClearsWhen: "the query is corrected, in a new job",
	}
	if err := monitoring.ParseQuery(query); err != nil {
		finding.Reason, finding.Message = v1beta1.ReasonInvalidQuery, fmt.Sprintf("custom query %s: %s", quote(query), err)
		return finding, nil
	}
	samples, err := request.Monitoring.Query(ctx, query, request.Now, request.MaxAge)
	switch {
	case errors.Is(err, monitoring.ErrUnavailable) || ctx.Err() != nil:
		return nil, err
	case err != nil:
		finding.Reason, finding.Message = CodeUnanswered, fmt.Sprintf("custom query %s: %s", quote(query), err)
		finding.ClearsWhen = "the query gets an answer"
		return finding, nil
	case len(samples) == 0:
		return nil, nil
	}
	finding.Reason = "CustomQueryReturnedSamples"
	finding.Message = fmt.Sprintf("custom query %s returns %s", quote(query), samplesText(samples))
	finding.ClearsWhen = "the query returns nothing"
	return finding, nil
}

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
