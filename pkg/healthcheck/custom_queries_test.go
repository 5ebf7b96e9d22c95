// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package healthcheck_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/healthcheck"
	"github.com/appuio/managed-upgrade-operator/pkg/monitoring"
)

func TestCustomQueries(t *testing.T) {
	w := newWatched(t)
	set := func(labels map[string]string, value float64) {
		t.Helper()
		if err := w.Exporter.Set("shop_open", labels, value); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5 {
		set(map[string]string{"shop": fmt.Sprintf("s%d", i)}, float64(i))
	}
	t.Cleanup(func() { w.Exporter.Delete("shop_open", nil) })
	client, err := monitoring.New(monitoring.Options{PrometheusURL: w.Prometheus.URL()})
	if err != nil {
		t.Fatal(err)
	}
	w.eventually("the samples are scraped", func() bool {
		got, err := client.Query(t.Context(), "shop_open", time.Now(), time.Nanosecond)
		return err == nil && len(got) == 5
	})

	finding := func(index int, reason, message, clears string) healthcheck.Finding {
		return healthcheck.Finding{
			Check: "CustomQueries", Object: fmt.Sprintf("CustomQuery/%d", index), Reason: reason, Message: message, ClearsWhen: clears,
		}
	}
	returns := func(index int, message string) healthcheck.Finding {
		return finding(index, "CustomQueryReturnedSamples", message, "the query returns nothing")
	}
	long := `sum by (shop) (shop_open{shop=~"` + strings.Repeat("s4|", 50) + `s4"}) == 4`
	for _, tc := range []struct {
		reason  string
		queries []string
		want    []healthcheck.Finding
	}{
		{reason: "none"},
		{reason: "healthy", queries: []string{"shop_open == 7", "absent(shop_open)"}},
		{
			reason: "labels and value", queries: []string{"shop_open == 7", "sum by (shop) (shop_open == 3)"},
			want: []healthcheck.Finding{returns(1, "custom query `sum by (shop) (shop_open == 3)` returns {shop=\"s3\"} = 3")},
		},
		{
			reason: "of the first ones", queries: []string{"sum by (shop) (shop_open)"},
			want: []healthcheck.Finding{returns(0, "custom query `sum by (shop) (shop_open)` returns {shop=\"s0\"} = 0, {shop=\"s1\"} = 1, {shop=\"s2\"} = 2 and 2 more")},
		},
		{
			reason: "a sample of value 0 is one", queries: []string{"vector(0)"},
			want: []healthcheck.Finding{returns(0, "custom query `vector(0)` returns {} = 0")},
		},
		{
			reason: "a long query over several lines", queries: []string{strings.ReplaceAll(long, "shop)", "shop)\n\t")},
			want: []healthcheck.Finding{returns(0, "custom query `"+v1beta1.Truncate(long, 120)+"` returns {shop=\"s4\"} = 4")},
		},
		{
			reason: "what is no PromQL does not keep the others from being asked", queries: []string{"shop_open ==", "sum(shop_open) == 10"},
			want: []healthcheck.Finding{
				finding(0, v1beta1.ReasonInvalidQuery, "custom query `shop_open ==`: the query is not PromQL: 1:13: parse error: unexpected end of input", "the query is corrected, in a new job"),
				returns(1, "custom query `sum(shop_open) == 10` returns {} = 10"),
			},
		},
		{
			reason: "what Prometheus cannot evaluate", queries: []string{`shop_open * on() group_left shop_open`, "shop_open == 7"},
			want: []healthcheck.Finding{finding(0, healthcheck.CodeUnanswered, "", "the query gets an answer")},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			var config v1beta1.HealthChecks
			for _, q := range tc.queries {
				config.CustomQueries = append(config.CustomQueries, v1beta1.CustomQuery{Query: q})
			}
			got := w.ask(healthcheck.CustomQueries(), config, nil)
			if len(tc.want) == 1 && tc.want[0].Message == "" && len(got.Findings) == 1 { // in Prometheus's own words
				if !strings.Contains(got.Findings[0].Message, "Prometheus answers with an error (execution): ") {
					t.Errorf("got %q", got.Findings[0].Message)
				}
				got.Findings[0].Message = ""
			}
			if diff := cmp.Diff(tc.want, got.Findings); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if want := 30 * time.Second; len(got.Findings) > 0 && got.Recheck != want {
				t.Errorf("asked again after %s, want %s", got.Recheck, want)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	for _, tc := range []struct {
		queries []string
		want    string
	}{
		{nil, ""},
		{[]string{`up{job=~"^argocd-.+$",namespace="syn"} != 1`}, ""},
		{[]string{"up", "up !="}, "customQueries[1]: the query is not PromQL: 1:6: parse error: unexpected end of input"},
		{[]string{"1"}, "customQueries[0]: the query returns a scalar, want a vector"},
	} {
		var config v1beta1.HealthChecks
		for _, q := range tc.queries {
			config.CustomQueries = append(config.CustomQueries, v1beta1.CustomQuery{Query: q})
		}
		got := ""
		if err := healthcheck.Validate(config); err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%q: got %q, want %q", tc.queries, got, tc.want)
		}
	}
}
