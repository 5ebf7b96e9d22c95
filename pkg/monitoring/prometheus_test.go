// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package monitoring_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"

	"github.com/appuio/managed-upgrade-operator/pkg/monitoring"
)

func TestQuery(t *testing.T) {
	const sample = `{"metric":{"job":"shop"},"value":[1795521600.5,"0"]}`
	hangUp := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	for _, tc := range []struct {
		reason      string
		answer      http.HandlerFunc
		want        string // the samples
		err         string
		unavailable bool
	}{
		{reason: "nothing", answer: vector(""), want: ""},
		{reason: "a sample", answer: vector(sample), want: `{job="shop"} => 0 @[1795521600.5]`},
		{reason: "information about the query is no warning", answer: reply(200, `{"status":"success","infos":["might not be a counter"],"data":{"resultType":"vector","result":[]}}`)},

		// What is no answer must never look like an empty one.
		{reason: "a warning", answer: reply(200, `{"status":"success","warnings":["store b is away","store a is away","store b is away"],"data":{"resultType":"vector","result":[]}}`),
			err: "the answer of Prometheus may be incomplete: store a is away; store b is away"},
		{reason: "information that Thanos calls a warning", answer: reply(200, `{"status":"success","warnings":["PromQL info: metric might not be a counter"],"data":{"resultType":"vector","result":[]}}`)},
		{reason: "an error with status 200", answer: reply(200, `{"status":"error","errorType":"internal","error":"expanding series: no"}`),
			err: "Prometheus answers with an error (internal): expanding series: no"},
		{reason: "an error with a result", answer: reply(200, `{"status":"error","errorType":"internal","error":"no","data":{"resultType":"vector","result":[]}}`),
			err: "Prometheus answers with an error (internal): no"},
		{reason: "another status", answer: reply(200, `{"status":"partial","data":{"resultType":"vector","result":[]}}`),
			err: `Prometheus cannot be asked: the response has status "partial", want success`},
		{reason: "no status", answer: reply(200, `{"data":{"resultType":"vector","result":[]}}`), err: `the response has status "", want success`},
		{reason: "a status that is no text", answer: reply(200, `{"status":7,"data":{"resultType":"vector","result":[]}}`), err: `the response has status "", want success`},
		{reason: "no data", answer: reply(200, `{"status":"success"}`), err: "Prometheus cannot be asked: "},
		{reason: "another kind of result", answer: reply(200, `{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}`), err: "the query returns a scalar, want a vector"},
		{reason: "a page for people", answer: reply(200, `<html>Log in</html>`), err: "Prometheus cannot be asked: "},
		{reason: "an empty body", answer: reply(200, ``), err: "Prometheus cannot be asked: "},
		{reason: "no content", answer: reply(204, ``), err: "Prometheus answers 204 No Content"},
		{reason: "half of it", answer: reply(200, `{"status":"success","data":{"resultType":"vector","result":[`), err: "Prometheus"},
		{reason: "a bad query", answer: reply(400, `{"status":"error","errorType":"bad_data","error":"1:3: parse error: unexpected end of input"}`),
			err: "Prometheus does not understand the query: 1:3: parse error: unexpected end of input"},
		{reason: "a query that cannot be evaluated", answer: reply(422, `{"status":"error","errorType":"execution","error":"too many samples"}`),
			err: "Prometheus answers with an error (execution): too many samples"},
		{reason: "a redirect to somebody else", answer: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		},
			err: "Prometheus answers 302 Found"},
		{reason: "no token", answer: reply(401, `Unauthorized`), err: "Prometheus answers 401 Unauthorized: the operator's service account may not ask it"},
		{reason: "no permission", answer: reply(403, `Forbidden`), err: "Prometheus answers 403 Forbidden: the operator's service account may not ask it"},
		{reason: "no such path", answer: reply(404, `404 page not found`), err: "Prometheus answers 404 Not Found"},
		{reason: "it could not evaluate the query in time", answer: reply(503, `{"status":"error","errorType":"timeout","error":"query timed out in expression evaluation"}`),
			err: "Prometheus answers with an error (timeout): query timed out in expression evaluation"},
		{reason: "something broke in it", answer: reply(500, `{"status":"error","errorType":"internal","error":"mmap"}`), err: "Prometheus answers with an error (internal): mmap"},
		{reason: "a panic behind a proxy", answer: reply(500, `oops`), err: "Prometheus answers 500 Internal Server Error"},

		// What means that it is not there.
		{reason: "nobody behind the gateway", answer: reply(503, `<html>Application is not available</html>`), err: "Prometheus answers 503 Service Unavailable", unavailable: true},
		{reason: "it is not ready", answer: reply(503, `{"status":"error","errorType":"unavailable","error":"TSDB not ready"}`),
			err: "Prometheus answers with an error (unavailable): TSDB not ready", unavailable: true},
		{reason: "a bad gateway", answer: reply(502, ``), err: "Prometheus answers 502 Bad Gateway", unavailable: true},
		{reason: "a gateway that waited in vain", answer: reply(504, ``), err: "Prometheus answers 504 Gateway Timeout", unavailable: true},
		{reason: "it hangs up", answer: hangUp, err: "Prometheus does not answer: connection closed", unavailable: true},
		{reason: "it hangs", answer: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, err: "Prometheus does not answer in time", unavailable: true},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			s := serve(t, tc.answer)
			c := newClient(t, monitoring.Options{PrometheusURL: s.URL, Timeout: 500 * time.Millisecond})
			got, err := c.Query(t.Context(), "up", noon, time.Minute)
			expect(t, err, tc.err, tc.unavailable)
			if got.String() != tc.want {
				t.Errorf("got samples %q, want %q", got, tc.want)
			}
		})
	}
}

// expect fails unless the error says so, and tells rightly whether monitoring is there.
func expect(t *testing.T, err error, says string, unavailable bool) {
	t.Helper()
	if says == "" {
		if err != nil {
			t.Errorf("got error %v", err)
		}
		return
	}
	if err == nil || !strings.Contains(err.Error(), says) || errors.Is(err, monitoring.ErrUnavailable) != unavailable {
		t.Errorf("got error %v (unavailable: %t), want one with %q (unavailable: %t)", err, errors.Is(err, monitoring.ErrUnavailable), says, unavailable)
	}
	if err != nil && strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("the error %q has an address in it: it would change from one request to the next", err)
	}
}

func TestQueryWithoutPrometheus(t *testing.T) {
	gone := serve(t, vector(""))
	gone.Close()
	for _, tc := range []struct{ reason, url, err string }{
		{"none is configured", "", "no Prometheus is configured (--prometheus-url)"},
		{"nobody listens", gone.URL, "Prometheus does not answer: connection refused"},
		{"an unknown name", "http://prometheus..svc:9090", "Prometheus does not answer: its name is not known"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			_, err := newClient(t, monitoring.Options{PrometheusURL: tc.url}).Query(t.Context(), "up", noon, time.Minute)
			expect(t, err, tc.err, true)
		})
	}
}

func TestResponseThatIsTooLong(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		chunk := []byte(strings.Repeat(" ", 1<<20))
		for range 65 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	_, err := newClient(t, monitoring.Options{PrometheusURL: s.URL}).Query(t.Context(), "up", noon, time.Minute)
	expect(t, err, "Prometheus answers with more than 64 MiB", false)
}

func TestPrometheusBehindAGatewayThatKnowsOnlyGET(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		vector(`{"metric":{},"value":[1,"1"]}`)(w, r)
	})
	got, err := newClient(t, monitoring.Options{PrometheusURL: s.URL + "/prometheus/"}).Query(t.Context(), `up{a="b"}`, noon, time.Minute)
	if err != nil || len(got) != 1 {
		t.Fatalf("got %v, %v", got, err)
	}
	last := s.seen()[len(s.seen())-1]
	if last.path != "/prometheus/api/v1/query" || last.form["query"][0] != `up{a="b"}` {
		t.Errorf("asked %+v", last)
	}
}

func TestOneRequestPerQueryAndInterval(t *testing.T) {
	s := serve(t, vector(""))
	c := newClient(t, monitoring.Options{PrometheusURL: s.URL})
	ask := func(after time.Duration, queries ...string) {
		var wg sync.WaitGroup
		for _, q := range queries {
			for range 4 {
				wg.Go(func() {
					if _, err := c.Query(t.Context(), q, noon.Add(after), 30*time.Second); err != nil {
						t.Error(err)
					}
				})
			}
		}
		wg.Wait()
	}
	ask(0, "a", "b")
	ask(10*time.Second, "a", "b")
	ask(30*time.Second, "a")
	ask(40*time.Second, "b")
	ask(50*time.Second, "a", "b")
	got := map[string]int{}
	for _, r := range s.seen() {
		got[r.form["query"][0]]++
	}
	if diff := cmp.Diff(map[string]int{"a": 2, "b": 2}, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// Thanos answers with nothing when every Prometheus is gone, and so does a Prometheus that has just begun.
func TestCriticalAlertsNeedAProofOfLife(t *testing.T) {
	const alive, firing = `{"metric":{},"value":[1,"1"]}`, `{"metric":{"__name__":"ALERTS","alertname":"EtcdDown"},"value":[1,"1"]}`
	for _, tc := range []struct {
		reason string
		answer http.HandlerFunc
		want   []model.LabelSet
		err    string
	}{
		{"healthy", vector(alive), []model.LabelSet{}, ""},
		{"an alert", vector(firing + "," + alive), []model.LabelSet{{"__name__": "ALERTS", "alertname": "EtcdDown"}}, ""},
		{"no data at all", vector(""), nil, "Prometheus answers, but has no data"},
		{"old alerts alone", vector(firing), nil, "Prometheus answers, but has no data"},
		{"away", reply(502, ""), nil, "Prometheus answers 502 Bad Gateway"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			s := serve(t, tc.answer)
			got, err := newClient(t, monitoring.Options{PrometheusURL: s.URL}).CriticalAlerts(t.Context(), noon, time.Minute)
			expect(t, err, tc.err, true)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := s.seen()[0].form["partial_response"]; len(got) == 0 || got[0] != "false" {
				t.Errorf("Thanos may answer with a part: partial_response is %q", got)
			}
		})
	}
}

func TestForget(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v2/alerts" {
			reply(200, `[]`)(w, r)
			return
		}
		vector("")(w, r)
	})
	c := newClient(t, monitoring.Options{PrometheusURL: s.URL, AlertmanagerURL: s.URL})
	for range 2 {
		for range 2 {
			_, err := c.Query(t.Context(), "up", noon, time.Hour)
			_, silences := c.SilencedAlerts(t.Context(), noon, time.Hour)
			if err = errors.Join(err, silences); err != nil {
				t.Fatal(err)
			}
		}
		c.Forget()
	}
	if n := len(s.seen()); n != 4 {
		t.Errorf("%d requests, want each question asked once before it is forgotten, and once after", n)
	}
}

func TestParseQuery(t *testing.T) {
	for query, want := range map[string]string{
		`up{job=~"^argocd-.+$",namespace="syn"} != 1`: "",
		`absent(up)`:         "",
		`vector(1)`:          "",
		`up{job="shop" != 1`: "the query is not PromQL: 1:",
		`up != `:             "the query is not PromQL: ",
		``:                   "the query is not PromQL: ",
		`rate(up)`:           "the query is not PromQL: ",
		`1 + 1`:              "the query returns a scalar, want a vector",
		`"text"`:             "the query returns a string, want a vector",
		`up[5m]`:             "the query returns a range vector, want a vector",
	} {
		switch err := monitoring.ParseQuery(query); {
		case want == "" && err != nil:
			t.Errorf("%s: got %v", query, err)
		case want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)):
			t.Errorf("%s: got %v, want %q", query, err, want)
		}
	}
}

func BenchmarkQueryWith50000Alerts(b *testing.B) {
	var samples strings.Builder
	for i := range 50_000 {
		if i > 0 {
			samples.WriteByte(',')
		}
		fmt.Fprintf(&samples, `{"metric":{"__name__":"ALERTS","alertname":"PodDown","alertstate":"firing","severity":"critical","namespace":"shop-%d","pod":"shop-%d","instance":"10.0.0.1:8080","job":"shop","prometheus":"openshift-monitoring/k8s"},"value":[1795521600.5,"1"]}`, i%100, i)
	}
	c := newClient(b, monitoring.Options{PrometheusURL: serve(b, vector(samples.String())).URL})
	b.ReportAllocs()
	now := noon
	for b.Loop() {
		now = now.Add(time.Hour)
		if got, err := c.Query(b.Context(), "ALERTS", now, time.Minute); err != nil || len(got) != 50_000 {
			b.Fatal(len(got), err)
		}
	}
}
