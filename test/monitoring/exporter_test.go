// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestExporter(t *testing.T) {
	e, err := StartExporter(t.Context())
	must(t, err)
	must(t, e.Set("a", nil, 1))
	must(t, e.Set("a", map[string]string{"x": "1"}, 2))
	must(t, e.Set("a", map[string]string{"x": "1", "y": `"2"`}, 3))
	must(t, e.Set("b", map[string]string{"x": "1"}, 4))
	expectMetrics(t, e, "a 1", `a{x="1"} 2`, `a{x="1",y="\"2\""} 3`, `b{x="1"} 4`)

	must(t, e.Set("a", map[string]string{"x": "1"}, 2.5))
	expectMetrics(t, e, "a 1", `a{x="1"} 2.5`, `a{x="1",y="\"2\""} 3`, `b{x="1"} 4`)

	e.SetAll("a", map[string]string{"x": "1"}, 7)
	expectMetrics(t, e, "a 1", `a{x="1"} 7`, `a{x="1",y="\"2\""} 7`, `b{x="1"} 4`)
	must(t, e.Set("a", map[string]string{"x": "1"}, 8)) // the same series still
	expectMetrics(t, e, "a 1", `a{x="1"} 8`, `a{x="1",y="\"2\""} 7`, `b{x="1"} 4`)

	e.Delete("a", map[string]string{"x": "1"})
	expectMetrics(t, e, "a 1", `b{x="1"} 4`)
	e.Delete("a", nil)
	expectMetrics(t, e, `b{x="1"} 4`)

	if err := e.Set("a", map[string]string{"__reserved": "1"}, 1); err == nil {
		t.Error("a label that Prometheus keeps to itself: no error")
	}
	expectMetrics(t, e, `b{x="1"} 4`) // and it does no harm
}

// expectMetrics compares the series, without comments.
func expectMetrics(t *testing.T, e *Exporter, want ...string) {
	t.Helper()
	response, err := http.Get(e.URL())
	must(t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	must(t, err)
	var got []string
	for line := range strings.Lines(string(body)) {
		if !strings.HasPrefix(line, "#") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, want %q", got, want)
	}
}
