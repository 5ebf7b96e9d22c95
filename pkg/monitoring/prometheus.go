// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/appuio/managed-upgrade-operator/pkg/poll"
)

// query is a query with its last answer.
type query = poll.Question[model.Vector]

// Query returns the samples that Prometheus has at present for a PromQL expression, as of at most maxAge before now.
// Whoever asks the same shares the answer: there is one request in that time, also where it fails. An error that is
// ErrUnavailable means that Prometheus is not there. The answer must not be changed.
func (c *Client) Query(ctx context.Context, expression string, now time.Time, maxAge time.Duration) (model.Vector, error) {
	if c == nil || c.prometheus == nil {
		return nil, failure{"no Prometheus is configured (--prometheus-url)", true}
	}
	return c.question(expression).Get(ctx, now, maxAge, func(ctx context.Context) (model.Vector, error) {
		return c.ask(ctx, expression)
	})
}

// question returns the one that all share who ask for the expression.
func (c *Client) question(expression string) *query {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	q, ok := c.queries[expression]
	if !ok {
		q = &query{}
		c.queries[expression] = q
	}
	return q
}

func (c *Client) ask(ctx context.Context, expression string) (model.Vector, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	value, warnings, err := c.prometheus.Query(ctx, expression, time.Time{}, promv1.WithTimeout(c.timeout))
	if err != nil {
		return nil, explain("Prometheus", err)
	}
	if serious := withoutInfos(warnings); len(serious) > 0 {
		return nil, failure{"the answer of Prometheus may be incomplete: " + strings.Join(serious, "; "), false}
	}
	vector, ok := value.(model.Vector)
	if !ok {
		return nil, failure{fmt.Sprintf("the query returns a %s, want a vector", value.Type()), false}
	}
	return vector, nil
}

// withoutInfos returns what may be wrong with an answer, sorted: Thanos warns when a store is away, in the order in which
// it finds out. It also passes on what Prometheus has to say about the query itself, which is not wrong.
func withoutInfos(warnings []string) []string {
	serious := slices.DeleteFunc(slices.Clone(warnings), func(w string) bool { return strings.HasPrefix(w, "PromQL info: ") })
	slices.Sort(serious)
	return slices.Compact(serious)
}

// criticalAlertsQuery asks for the critical alerts that are firing: ALERTS is what Prometheus records of its rules. With
// them comes one sample without labels as a proof of life: a Prometheus that has data of no target has none of alerts
// either, and Thanos answers a query with nothing at all when every Prometheus is gone.
const criticalAlertsQuery = `ALERTS{alertstate="firing",severity="critical"} or group(up)`

// CriticalAlerts returns the labels of all alerts of severity critical that are firing, as of at most maxAge before now.
// The answer is shared, and the errors are those of Query. The labels must not be changed.
func (c *Client) CriticalAlerts(ctx context.Context, now time.Time, maxAge time.Duration) ([]model.LabelSet, error) {
	samples, err := c.Query(ctx, criticalAlertsQuery, now, maxAge)
	if err != nil {
		return nil, err
	}
	alive := false
	alerts := make([]model.LabelSet, 0, len(samples))
	for _, s := range samples {
		if len(s.Metric) == 0 {
			alive = true
			continue
		}
		alerts = append(alerts, model.LabelSet(s.Metric))
	}
	if !alive {
		return nil, failure{"Prometheus answers, but has no data: not even of the metric up", true}
	}
	return alerts, nil
}

// ParseQuery returns an error if the query is no PromQL, or does not return a vector: the result of any other expression
// is never empty, or cannot be.
func ParseQuery(expression string) error {
	parsed, err := parser.ParseExpr(expression)
	if err != nil {
		return fmt.Errorf("the query is not PromQL: %w", err)
	}
	if t := parsed.Type(); t != parser.ValueTypeVector {
		return fmt.Errorf("the query returns a %s, want a vector", parser.DocumentedType(t))
	}
	return nil
}
