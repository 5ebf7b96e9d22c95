// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// dashboard is what both dashboards have in common, and what the tests look at.
type dashboard struct {
	Rows []struct {
		Title  string  `json:"title"`
		Panels []panel `json:"panels"`
	} `json:"rows"`
	Panels []panel `json:"panels"`
}

type panel struct {
	ID        int    `json:"id"`
	Title     string `json:"title"`
	Type      string `json:"type"`
	Span      int    `json:"span"`
	Transform string `json:"transform"`
	Styles    []struct {
		Pattern string `json:"pattern"`
		Alias   string `json:"alias"`
		Type    string `json:"type"`
	} `json:"styles"`
	Targets []struct {
		RefID string `json:"refId"`
		Expr  string `json:"expr"`
	} `json:"targets"`
	Panels []panel `json:"panels"`
}

func loadDashboard(t *testing.T, name string) dashboard {
	t.Helper()
	root, err := root()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(root, "deploy", "monitoring", "dashboards", name))
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(content, &d); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return d
}

// panelsOf are all panels of a dashboard, also those in rows.
func panelsOf(d dashboard) []panel {
	panels := slices.Clone(d.Panels)
	for _, row := range d.Rows {
		panels = append(panels, row.Panels...)
	}
	for _, p := range slices.Clone(panels) {
		panels = append(panels, p.Panels...)
	}
	return slices.DeleteFunc(panels, func(p panel) bool { return p.Type == "row" })
}

const (
	consoleDashboard = "managed-upgrades.json"
	grafanaDashboard = "managed-upgrades-grafana.json"
	// rowLabel is the first label of each series of a table: the console takes series with the same first label, by name, for one row.
	rowLabel = "_row"
)

func TestDashboardsGoByMetricsOfTheOperator(t *testing.T) {
	panels := panelsOf(loadDashboard(t, consoleDashboard))
	if len(panels) < 20 {
		t.Fatalf("found %d panels, the test is blind", len(panels))
	}
	for _, p := range panels {
		for _, target := range p.Targets {
			checkQuery(t, p.Title, target.Expr, rowLabel, "highest")
		}
	}
}

// The console shows nothing of a panel that it does not understand, without a word.
func TestTheConsoleUnderstandsTheDashboard(t *testing.T) {
	d := loadDashboard(t, consoleDashboard)
	seen := map[int]bool{}
	for _, row := range d.Rows {
		width := 0
		for _, p := range row.Panels {
			if seen[p.ID] {
				t.Errorf("%s: the id %d is taken", p.Title, p.ID)
			}
			seen[p.ID] = true
			width += p.Span
			if !slices.Contains([]string{"graph", "singlestat", "table"}, p.Type) || len(p.Targets) == 0 {
				t.Errorf("%s: type %q with %d queries", p.Title, p.Type, len(p.Targets))
			}
			if p.Type == "table" && p.Transform != "table" {
				t.Errorf("%s: the transform is %q", p.Title, p.Transform)
			}
		}
		if width%12 != 0 {
			t.Errorf("row %s is %d columns wide, want a multiple of 12", row.Title, width)
		}
	}
}

func TestGrafanaGetsTheSameDashboard(t *testing.T) {
	list := func(name string) (lines []string) {
		for _, p := range panelsOf(loadDashboard(t, name)) {
			for _, target := range p.Targets {
				lines = append(lines, fmt.Sprint(p.ID, p.Title, target.RefID, target.Expr))
			}
		}
		slices.Sort(lines)
		return lines
	}
	console, grafana := list(consoleDashboard), list(grafanaDashboard)
	if !slices.Equal(console, grafana) {
		t.Errorf("the queries differ, run make generate:\nconsole %q\ngrafana %q", console, grafana)
	}
}

// Every query is asked of a Prometheus that has a scrape of an operator in the midst of an upgrade: each has an answer, in tables one for each
// row, and with a value for each column.
func TestDashboardsShowSomething(t *testing.T) {
	scrape, err := os.ReadFile(filepath.Join("testdata", "dashboard", "scrape.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var series []map[string]string
	for line := range strings.Lines(string(scrape)) {
		at := strings.LastIndex(line, " ")
		series = append(series, map[string]string{"series": line[:at], "values": strings.TrimSpace(line[at:]) + "x10"})
	}
	var recorded, asked []map[string]any
	ask := func(expr string, want float64) {
		asked = append(asked, map[string]any{"expr": expr, "eval_time": "10m", "exp_samples": []map[string]any{{"labels": "{}", "value": want}}})
	}
	for _, p := range panelsOf(loadDashboard(t, consoleDashboard)) {
		for _, target := range p.Targets {
			name := fmt.Sprintf("panel_%d_%s", p.ID, target.RefID)
			recorded = append(recorded, map[string]any{"record": name, "expr": target.Expr})
			ask(fmt.Sprintf("count(%s) > bool 0", name), 1)
			if p.Type == "table" {
				ask(fmt.Sprintf("max(count by (%s) (%s))", rowLabel, name), 1)
				ask(fmt.Sprintf("count(%s{%s!=\"\"}) == bool count(%s)", name, rowLabel, name), 1)
			}
		}
		for _, column := range p.Styles {
			if column.Type == "string" {
				ask(fmt.Sprintf("count(panel_%d_A{%s!=\"\"}) > bool 0", p.ID, column.Pattern), 1)
			}
		}
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "rules.yaml"), map[string]any{"groups": []map[string]any{{"name": "panels", "rules": recorded}}})
	write(t, filepath.Join(dir, "test.yaml"), map[string]any{"rule_files": []string{"rules.yaml"}, "evaluation_interval": "1m", "tests": []map[string]any{
		{"name": "dashboard", "interval": "1m", "input_series": series, "promql_expr_test": asked},
	}})
	promtool(t, "test", "rules", filepath.Join(dir, "test.yaml"))
}

func write(t *testing.T, path string, content any) {
	t.Helper()
	text, err := yaml.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
