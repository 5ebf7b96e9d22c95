// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"golang.org/x/net/html"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

// render writes the report of the first job of a snapshot, or of none.
func render(t *testing.T, s *snapshot, times []nodeTimes) string {
	t.Helper()
	var job *v1beta1.UpgradeJob
	if len(s.Jobs) > 0 {
		job = &s.Jobs[0]
	}
	var out bytes.Buffer
	if err := writeReport(&out, s, job, times, "oc managed-upgrade"); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestReports compares with what test/browser looks at.
func TestReports(t *testing.T) {
	for name, night := range map[string]func() (*snapshot, []nodeTimes){
		"failed": failedNight, "running": runningNight,
		"nothing": func() (*snapshot, []nodeTimes) {
			return &snapshot{Now: night, Version: openshifttest.ClusterVersion()}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := render(t, first(night()), second(night()))
			golden(t, "report/"+name+".html", got)
		})
	}
}

func first(s *snapshot, _ []nodeTimes) *snapshot    { return s }
func second(_ *snapshot, n []nodeTimes) []nodeTimes { return n }

// TestReportIsSelfContained looks at every attribute: nothing is loaded, nothing runs, and the one style sheet is allowed by its hash.
func TestReportIsSelfContained(t *testing.T) {
	page := render(t, first(failedNight()), second(failedNight()))
	policy := ""
	for node := range parse(t, page).Descendants() {
		if node.Type != html.ElementNode {
			continue
		}
		switch node.Data {
		case "script", "link", "img", "iframe", "object", "embed", "image", "use", "a":
			t.Errorf("there is a <%s>", node.Data)
		}
		for _, a := range node.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "src" || a.Key == "href" {
				t.Errorf("<%s> has the attribute %s", node.Data, a.Key)
			}
			if a.Key == "content" && strings.Contains(a.Val, "default-src") {
				policy = a.Val
			}
		}
	}
	_, style, _ := strings.Cut(page, "<style>")
	style, _, _ = strings.Cut(style, "</style>")
	hash := sha256.Sum256([]byte(style))
	if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "style-src 'sha256-"+base64.StdEncoding.EncodeToString(hash[:])+"'") {
		t.Errorf("the policy is %q", policy)
	}
	if urls := regexp.MustCompile(`url\(|@import|https?://`).FindAllString(strings.ReplaceAll(page, "http://www.w3.org/2000/svg", ""), -1); len(urls) > 0 {
		t.Errorf("the page refers to something outside: %v", urls)
	}
}

// TestReportEscapes puts markup, and characters that turn words round, into every text that others write.
func TestReportEscapes(t *testing.T) {
	const evil = `</title></style></svg><script>alert(1)</script><b onclick="x">"'&` + "\u202edeliaf\u2066\u200b\x1b"
	s, times := runningNight()
	job := &s.Jobs[0]
	job.Status.Blockers[0].Message, job.Status.Blockers[0].Object, job.Status.Blockers[0].ClearsWhen = evil, evil, evil
	job.Status.HookTracker[0].UpgradeJobHook, job.Status.HookTracker[0].Message = evil, evil
	job.Status.Conditions[0].Message = evil
	job.Status.Steps[0].Condition = evil
	job.Status.FromVersion, job.Spec.DesiredVersion.Version = evil, evil
	job.Name = evil
	s.Pools[0].Name, s.Nodes[0].Name, s.Nodes[0].Progress.Message = evil, evil, evil
	s.Version.Spec.Channel = evil
	times[0].Pool, times[0].Name = evil, evil
	page := render(t, s, times)
	for node := range parse(t, page).Descendants() {
		if node.Type == html.ElementNode && (node.Data == "script" || node.Data == "b") {
			t.Fatalf("markup of others became an element <%s>", node.Data)
		}
	}
	if strings.Contains(page, "<script") || strings.Contains(page, "<b ") {
		t.Error("markup of others is in the page")
	}
	if !strings.Contains(page, "&lt;script&gt;") || !strings.Contains(page, "deliaf") {
		t.Error("the texts are not in the page at all")
	}
	if strings.ContainsAny(page, "\u202e\u2066\u200b\x1b") {
		t.Error("characters that nobody sees are in the page")
	}
}

// TestReportIsAccessible checks what a screen reader needs: a name and words for the picture, and the steps in a table beside it.
func TestReportIsAccessible(t *testing.T) {
	root := parse(t, render(t, first(failedNight()), second(failedNight())))
	ids := map[string]bool{}
	var svg *html.Node
	rows := 0
	for node := range root.Descendants() {
		if id := attribute(node, "id"); id != "" {
			if ids[id] {
				t.Errorf("two elements have the id %q", id)
			}
			ids[id] = true
		}
		if node.Type == html.ElementNode && node.Data == "svg" && attribute(node, "id") == "picture" {
			svg = node
		}
		if node.Type == html.ElementNode && node.Data == "tr" {
			rows++
		}
	}
	if svg == nil || attribute(svg, "role") != "img" {
		t.Fatal("the picture is no image to a screen reader")
	}
	for id := range strings.FieldsSeq(attribute(svg, "aria-labelledby")) {
		if !ids[id] {
			t.Errorf("the picture is labelled by %q, which is not there", id)
		}
	}
	page := words(root)
	for _, want := range []string{"17. CompletedNotificationSent", "WorkerNodesUpgraded (failed after 1 h 43 min)", "12. WorkerNodesUpgraded"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if rows < 17 {
		t.Errorf("the tables have %d rows, fewer than there are steps", rows)
	}
}

// TestReportOfLargeCluster has 64 pools, 2000 nodes of which 200 are in work, and as many runs of hooks as a job can have.
func TestReportOfLargeCluster(t *testing.T) {
	s, times := runningNight()
	job := &s.Jobs[0]
	long := strings.Repeat("nobody wants to read this & ", 36)
	for i := range 60 {
		s.Pools = append(s.Pools, *openshifttest.Pool(fmt.Sprintf("pool-%02d", i), openshifttest.PoolTowards("4.18.2", 1), poolSince(mcfgv1.MachineConfigPoolUpdating, 75, 30, 1)))
	}
	for i := range 1800 {
		times = append(times, nodeTimes{Name: fmt.Sprintf("node-%04d", i), Pool: fmt.Sprintf("pool-%02d", i%60), Done: minute(70 + float64(i)/60).Time})
	}
	for i := range 200 {
		times = append(times, nodeTimes{Name: fmt.Sprintf("node-9%03d", i), Pool: "worker", Message: long, Stages: []nodeStage{{"preparing", minute(90).Time}, {"draining", minute(91).Time}}})
	}
	for i := len(job.Status.HookTracker); i < v1beta1.MaxHookRuns; i++ {
		hook(fmt.Sprintf("hook-%03d", i/2), "MachineConfigPoolUnpause", fmt.Sprint("pool-", i), 60, 61+float64(i%7), map[bool]string{true: long}[i%3 == 0])(job)
	}
	for i := len(job.Status.Blockers); i < 32; i++ {
		job.Status.Blockers = append(job.Status.Blockers, v1beta1.Blocker{Code: "DrainBlocked", Object: fmt.Sprint("Pod/shop/cart-", i), Since: minute(80), Message: long[:500], ClearsWhen: long[:500]})
	}
	page := render(t, s, times)
	const limit = 500 * 1000
	if len(page) >= limit {
		t.Errorf("the report has %d bytes, want fewer than %d", len(page), limit)
	}
	for _, want := range []string{"and 162 more in work", "more hooks", "Nodes that are done (1806) have no rows", "pool-59"} {
		if !strings.Contains(page, want) {
			t.Errorf("the report does not say %q", want)
		}
	}
}

// TestReportTellsBothTimes has the time of the user's zone besides UTC, and only UTC where that is the same.
func TestReportTellsBothTimes(t *testing.T) {
	s, times := runningNight()
	if page := render(t, s, times); !strings.Contains(page, "2026-11-22 01:00:00 UTC") || !strings.Contains(page, "2026-11-22 02:00:00 CET") {
		t.Error("the start is not told in both zones")
	}
	s.Now = s.Now.UTC()
	if page := render(t, s, times); strings.Contains(page, "CET") || strings.Count(page, "01:00:00 UTC") == 0 {
		t.Error("another zone than UTC is told of")
	}
}

// TestReportOfJobThatNeverStarted has a window and no bars.
func TestReportOfJobThatNeverStarted(t *testing.T) {
	s, _ := runningNight()
	job := nightJob("pending", v1beta1.PhasePending)
	job.Status = v1beta1.UpgradeJobStatus{Phase: v1beta1.PhasePending}
	s.Jobs, s.Now = []v1beta1.UpgradeJob{*job}, night.Add(-time.Hour)
	page := render(t, s, nil)
	if strings.Contains(page, `<rect class="bar`) && strings.Contains(page, "<g class=\"lane \"") {
		t.Error("something is drawn as if it had happened")
	}
	if !strings.Contains(page, "ClusterHealthyBeforeUpgrade") || !strings.Contains(page, "Waits for its start") {
		t.Error("the report does not tell what is to come")
	}
}

// TestReportLead joins a reason and a message only where they are there.
func TestReportLead(t *testing.T) {
	of := func(job *v1beta1.UpgradeJob) string {
		s := seen(time.Hour, job)
		return leadOf(statusOf(s, &s.Jobs[0]))[0]
	}
	unseen := upgradeJob(func(job *v1beta1.UpgradeJob) { job.Status = v1beta1.UpgradeJobStatus{} })
	for _, tc := range []struct {
		reason string
		job    *v1beta1.UpgradeJob
		want   string
	}{
		{"a job that the operator has not seen yet", unseen, "Waits for its start."},
		{"one that it has", upgradeJob(preflight(v1beta1.PreflightHealthy(""))), "Waits for its start. WaitingForStart: The job starts at 2026-11-24T21:00:00Z."},
		{"a step without a reason", upgradeJob(started(0, "StartHooksCompleted"), waiting("MachineConfigPoolsPaused", time.Minute, "", "")), "At step 2 of 10, MachineConfigPoolsPaused."},
		{"a step with a reason alone", upgradeJob(started(0, "StartHooksCompleted"), waiting("MachineConfigPoolsPaused", time.Minute, "Busy", "")), "At step 2 of 10, MachineConfigPoolsPaused. Busy"},
		{"an outcome without a message", upgradeJob(finished(v1beta1.Skipped("Expired", ""), time.Hour)), "Skipped. Expired"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if got := of(tc.job); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestBrief(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0 s": 400 * time.Millisecond, "42 s": 42 * time.Second, "3 min": 3 * time.Minute, "3 min 5 s": 185 * time.Second,
		"2 h": 2 * time.Hour, "2 h 10 min": 130*time.Minute + 20*time.Second, "3 d 4 h": 76 * time.Hour, "1 d": 24 * time.Hour,
	} {
		if got := brief(d); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
}

func parse(t *testing.T, page string) *html.Node {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// words are all texts of a page.
func words(root *html.Node) string {
	var b strings.Builder
	for node := range root.Descendants() {
		if node.Type == html.TextNode {
			b.WriteString(node.Data)
			b.WriteString(" ")
		}
	}
	return b.String()
}
