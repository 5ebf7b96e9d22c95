// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/appuio/managed-upgrade-operator/pkg/cli"
)

const runbookURL = "https://github.com/appuio/managed-upgrade-operator/blob/main/docs/runbooks/"

func TestAlertsSayWhatToDo(t *testing.T) {
	seen := map[string]bool{}
	for _, rule := range alerts(t) {
		if seen[rule.Alert] {
			t.Errorf("there are two alerts %s", rule.Alert)
		}
		seen[rule.Alert] = true
		if !strings.HasPrefix(rule.Alert, "ManagedUpgrade") {
			t.Errorf("%s does not begin with ManagedUpgrade, so that health checks would count it", rule.Alert)
		}
		if severity := rule.Labels["severity"]; !slices.Contains([]string{"warning", "info"}, severity) {
			t.Errorf("%s has severity %q", rule.Alert, severity)
		}
		if summary := rule.Annotations["summary"]; summary == "" || len(summary) > 100 || strings.Contains(summary, "{{") {
			t.Errorf("%s has the summary %q, want a short one without labels", rule.Alert, summary)
		}
		if len(rule.Annotations["description"]) < len(rule.Annotations["summary"]) {
			t.Errorf("%s has the description %q", rule.Alert, rule.Annotations["description"])
		}
		if want := runbookURL + rule.Alert + ".md"; rule.Annotations["runbook_url"] != want {
			t.Errorf("%s has the runbook %q, want %q", rule.Alert, rule.Annotations["runbook_url"], want)
		}
	}
}

func TestEachAlertHasItsRunbook(t *testing.T) {
	var names []string
	for _, rule := range alerts(t) {
		names = append(names, rule.Alert)
		page := runbook(t, rule.Alert+".md")
		if !strings.HasPrefix(page, "# "+rule.Alert+"\n") {
			t.Errorf("the runbook of %s has another title", rule.Alert)
		}
		at := 0
		for _, section := range []string{"Meaning", "Impact", "Diagnosis", "Mitigation"} {
			next := strings.Index(page, "\n## "+section+"\n")
			if next < at {
				t.Errorf("the runbook of %s lacks the section %s, or has it out of order", rule.Alert, section)
			}
			at = max(at, next)
		}
		if index := runbook(t, "README.md"); !strings.Contains(index, "["+rule.Alert+"]("+rule.Alert+".md)") {
			t.Errorf("the index does not list %s", rule.Alert)
		}
	}
	for _, path := range runbooks(t) {
		if name := strings.TrimSuffix(filepath.Base(path), ".md"); name != "README" && !slices.Contains(names, name) {
			t.Errorf("the runbook %s has no alert", name)
		}
	}
}

// A reason by which an alert fires is the first thing that is looked up.
func TestRunbooksNameTheReasonsOfTheirAlerts(t *testing.T) {
	found := 0
	for _, rule := range alerts(t) {
		parsed, err := parser.ParseExpr(rule.Expr)
		if err != nil {
			t.Fatal(err)
		}
		page := runbook(t, rule.Alert+".md")
		parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
			selector, ok := node.(*parser.VectorSelector)
			if !ok {
				return nil
			}
			for _, matcher := range selector.LabelMatchers {
				if matcher.Name != "reason" {
					continue
				}
				for reason := range strings.SplitSeq(matcher.Value, "|") {
					found++
					if !strings.Contains(page, "`"+reason+"`") {
						t.Errorf("the runbook of %s does not name the reason %s", rule.Alert, reason)
					}
				}
			}
			return nil
		})
	}
	if found < 3 {
		t.Errorf("found %d reasons, the test is blind", found)
	}
}

// A name that several groups have is that of the first one to oc, which is OpenShift's for ClusterVersion.
func TestCommandsOfRunbooksNameTheGroup(t *testing.T) {
	command := regexp.MustCompile(`oc .*\b(?:get|describe|delete|edit|patch) (KIND|upgradeconfigs?|UpgradeConfig)([^\s]*)`)
	for _, path := range runbooks(t) {
		for _, match := range command.FindAllStringSubmatch(runbook(t, filepath.Base(path)), -1) {
			if !strings.HasPrefix(match[2], ".managedupgrade.appuio.io") && !strings.HasPrefix(match[2], ".upgrade.managed.openshift.io") {
				t.Errorf("%s: %s does not say of which group", filepath.Base(path), match[0])
			}
		}
	}
}

// Each kind that may be not ready is on the page of the alert.
func TestScheduleInvalidHasAllKinds(t *testing.T) {
	page := runbook(t, "ManagedUpgradeScheduleInvalid.md")
	kinds := slices.Concat(kindsOfGroup(t, "managedupgrade.appuio.io"), []string{"UpgradeConfig.upgrade.managed.openshift.io"})
	for _, kind := range kinds {
		if kind != "UpgradeJob" && !strings.Contains(page, "\n| "+kind+" | ") {
			t.Errorf("the table of kinds lacks %s", kind)
		}
	}
}

// kindsOfGroup returns the kinds that the operator brings.
func kindsOfGroup(t *testing.T, group string) []string {
	t.Helper()
	root, err := root()
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(root, "deploy", "crds", group+"_*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("found %d CRDs: %v", len(paths), err)
	}
	var kinds []string
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		crd := struct {
			Spec struct {
				Names struct {
					Kind string `json:"kind"`
				} `json:"names"`
			} `json:"spec"`
		}{}
		if err := yaml.Unmarshal(content, &crd); err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, crd.Spec.Names.Kind)
	}
	return kinds
}

// Whoever was woken up must not have to find out that a command does not exist.
func TestCommandsOfRunbooksExist(t *testing.T) {
	command := regexp.MustCompile(`oc managed-upgrade ([a-z-]+)`)
	found := 0
	for _, path := range runbooks(t) {
		for _, match := range command.FindAllStringSubmatch(runbook(t, filepath.Base(path)), -1) {
			found++
			var out, errOut bytes.Buffer
			streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}
			status := cli.Run(t.Context(), []string{match[1], "--help"}, streams, cli.Options{Clock: clock.RealClock{}})
			if status != cli.ExitOK || !strings.Contains(out.String(), "managed-upgrade "+match[1]) {
				t.Errorf("%s: %s: %s", filepath.Base(path), match[0], errOut.String())
			}
		}
	}
	if found < 10 {
		t.Errorf("found %d commands, the test is blind", found)
	}
}

// Links of the runbooks lead to pages, and to headings on them, that exist.
func TestLinksOfRunbooksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^):]+)\)`)
	for _, path := range runbooks(t) {
		for _, match := range link.FindAllStringSubmatch(runbook(t, filepath.Base(path)), -1) {
			file, heading, _ := strings.Cut(match[1], "#")
			content, err := os.ReadFile(filepath.Join(filepath.Dir(path), file))
			if err != nil {
				t.Errorf("%s: %v", filepath.Base(path), err)
				continue
			}
			if title := strings.ReplaceAll(heading, "-", " "); heading != "" && !strings.Contains(strings.ToLower(string(content)), "\n## "+title+"\n") {
				t.Errorf("%s: %s has no heading %q", filepath.Base(path), file, heading)
			}
		}
	}
}

func runbooks(t *testing.T) []string {
	t.Helper()
	root, err := root()
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(root, "docs", "runbooks", "*.md"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("found %d runbooks: %v", len(paths), err)
	}
	return paths
}

func runbook(t *testing.T, name string) string {
	t.Helper()
	root, err := root()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(root, "docs", "runbooks", name))
	if err != nil {
		t.Error(err)
	}
	return string(content)
}
