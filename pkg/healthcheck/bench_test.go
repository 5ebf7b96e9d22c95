// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package healthcheck_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/appuio/managed-upgrade-operator/pkg/healthcheck"
	"github.com/appuio/managed-upgrade-operator/pkg/monitoring"
)

// manyAlerts answers a query with critical alerts, and Alertmanager's question with as many that are silenced.
func manyAlerts(n int) http.HandlerFunc {
	series, silenced := make([]string, 0, n), make([]string, 0, n)
	for i := range n {
		labels := fmt.Sprintf(`"alertname":"PodDown","severity":"critical","namespace":"shop-%d","pod":"shop-%d","instance":"10.0.0.1:8080","job":"shop"`, i%100, i)
		series = append(series, fmt.Sprintf(`{"metric":{"__name__":"ALERTS","alertstate":"firing",%s},"value":[1795521600.5,"1"]}`, labels))
		silenced = append(silenced, fmt.Sprintf(`{"labels":{%s,"prometheus":"openshift-monitoring/k8s"},"status":{"silencedBy":["1"]}}`, labels))
	}
	answers := map[string]string{
		"/api/v1/query":  `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"1"]},` + strings.Join(series, ",") + `]}}`,
		"/api/v2/alerts": `[` + strings.Join(silenced[:n-1], ",") + `]`,
	}
	return func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, answers[r.URL.Path]) }
}

// A storm of alerts, all but one of them silenced.
func BenchmarkCriticalAlertsInAStorm(b *testing.B) {
	server := httptest.NewServer(manyAlerts(50_000))
	b.Cleanup(server.Close)
	client, err := monitoring.New(monitoring.Options{PrometheusURL: server.URL, AlertmanagerURL: server.URL})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	now := time.Date(2026, time.November, 24, 22, 0, 0, 0, time.UTC)
	for b.Loop() {
		now = now.Add(time.Minute)
		report := healthcheck.RunAll(b.Context(), []healthcheck.Check{healthcheck.CriticalAlerts()}, healthcheck.Request{Monitoring: client, Now: now, MaxAge: time.Second})
		if len(report.Findings) != 1 || len(report.Notes) != 1 {
			b.Fatal(report)
		}
	}
}
