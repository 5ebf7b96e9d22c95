// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/appuio/managed-upgrade-operator/pkg/metrics"
)

// checkQuery fails the test if the query cannot be parsed, or names a metric or label that the operator does not have. Labels that the query
// makes itself are in made.
func checkQuery(t *testing.T, where, query string, made ...string) {
	t.Helper()
	parsed, err := parser.ParseExpr(query)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return
	}
	labels := slices.Clone(made)
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		has, known := labelsOf(selector.Name)
		if !known {
			t.Errorf("%s: the operator has no metric %q", where, selector.Name)
		}
		labels = append(labels, has...)
		for _, matcher := range selector.LabelMatchers {
			if matcher.Name != "__name__" && !slices.Contains(has, matcher.Name) {
				t.Errorf("%s: %s has no label %q", where, selector.Name, matcher.Name)
			}
		}
		return nil
	})
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		var named []string
		switch n := node.(type) {
		case *parser.AggregateExpr:
			named = n.Grouping
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				named = slices.Concat(n.VectorMatching.MatchingLabels, n.VectorMatching.Include)
			}
		}
		for _, name := range named {
			if !slices.Contains(labels, name) {
				t.Errorf("%s: no metric in it has the label %q", where, name)
			}
		}
		return nil
	})
}

// labelsOf returns the labels of a metric, by the name of its series.
func labelsOf(name string) (labels []string, known bool) {
	for _, d := range metrics.Descriptors() {
		if d.Name == name && d.Type != metrics.Histogram {
			return d.Labels, true
		}
		if d.Type == metrics.Histogram && slices.Contains([]string{"_bucket", "_sum", "_count"}, strings.TrimPrefix(name, d.Name)) {
			return append(slices.Clone(d.Labels), "le"), true
		}
	}
	return nil, false
}

func TestAlertsGoByMetricsOfTheOperator(t *testing.T) {
	for _, rule := range alerts(t) {
		checkQuery(t, rule.Alert, rule.Expr)
	}
}
