// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

//go:embed report/page.html.tmpl
var reportTemplate string

//go:embed report/style.css
var reportStyle string

// reportPage is the template of the report. Everything that it prints is escaped, but for the style sheet above.
var reportPage = template.Must(template.New("report").Funcs(template.FuncMap{
	"fill":   fillOf,
	"even":   func(i int) bool { return i%2 == 0 },
	"height": func(top, bottom px) px { return bottom - top },
	"add":    func(a, b px) px { return a + b },
	"above":  func(y px) px { return y - 10 },
}).Parse(reportTemplate))

// reportData is what the template shows.
type reportData struct {
	Title, Badge string
	Style        template.CSS
	// StyleHash allows the style sheet in the page's policy, and nothing else.
	StyleHash string
	Lead      []string
	Facts     []reportFact
	// Picture is nil without a job.
	Picture *picture
	Legend  []legendEntry
	Notes   []string
	Tables  []reportTable
	Footer  string
}

type reportFact struct {
	Name  string
	Value reportCell
}

type legendEntry struct{ Class, Text string }

// fills are the colours of the picture in the light, for a viewer without the style sheet. Classes of the style sheet have others in the dark.
var fills = map[string]string{
	string(barDone): "#2da160", string(barRunning): "#2f6fde", string(barWaiting): "#e0a100", string(barFailed): "#d1242f",
	string(barStopped): "#8c959f", string(barUnknown): "#8fcfab",
	bandWindow: "#dbe9ff", bandSilence: "#efe2fb", markNow: "#2f6fde", markDeadline: "#d1242f", markEvent: "#57606a",
}

// fillOf is the colour of an element by its classes, as in "bar done open".
func fillOf(classes string) string {
	for _, class := range strings.Fields(classes) {
		if fill, ok := fills[class]; ok {
			return fill
		}
	}
	return "#8c959f"
}

// printHTML writes the report of a job, as one file that needs nothing else. Without a name it is the job that status shows; where there is none, the report is of the
// cluster alone.
func (t *tool) printHTML(ctx context.Context, c client.Client, name string) error {
	s, job, err := t.readStatus(ctx, c, openshift.NewCluster(c, c), name)
	if err != nil {
		return err
	}
	times, err := s.readNodeTimes(ctx, c)
	if err != nil {
		return err
	}
	return writeReport(t.Out, s, job, times, t.program)
}

// writeReport writes the report of what a snapshot and the times of nodes tell. The program is named at the foot.
func writeReport(w io.Writer, s *snapshot, job *v1beta1.UpgradeJob, times []nodeTimes, program string) error {
	data := reportOf(s, job, times)
	data.Footer = fmt.Sprintf("Written by %q on %s, from what the cluster told at that time.", program+" status --output html", stampUTC(s.Now))
	var page bytes.Buffer
	if err := reportPage.Execute(&page, data); err != nil {
		return fmt.Errorf("make the report: %w", err)
	}
	// A text of the cluster may have characters that nobody sees, and that turn the words around them.
	if _, err := io.WriteString(w, printable(page.String())); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// reportOf puts the report together.
func reportOf(s *snapshot, job *v1beta1.UpgradeJob, times []nodeTimes) reportData {
	status := statusOf(s, job)
	zone := s.Now.Location()
	hash := sha256.Sum256([]byte(reportStyle))
	data := reportData{
		Style:     template.CSS(reportStyle), //nolint:gosec // a constant of this program
		StyleHash: "sha256-" + base64.StdEncoding.EncodeToString(hash[:]),
		Title:     titleOf(status), Lead: leadOf(status), Facts: summaryFacts(status, job, zone),
	}
	tables := reportTables{zone: zone, now: s.Now}
	if job != nil {
		data.Badge = status.Job.Phase
		line := timelineOf(timelineFacts{
			Job: job, Pools: s.Pools, RenderedBy: s.RenderedBy, Release: s.release(), Nodes: mergeNodes(times, status.Nodes), Steps: stepReportNames(status.Job.Steps), Now: s.Now,
		})
		p := draw(line, zone, "Timeline of "+status.Job.Namespace+"/"+status.Job.Name)
		data.Picture, data.Notes, data.Legend = &p, line.Notes, legendOf(line)
		tables.addJob(status.Job, line)
	}
	tables.addCluster(status)
	if job != nil {
		tables.addConditions(job)
	}
	data.Tables = tables.list
	return data
}

func stepReportNames(steps []stepReport) []string {
	names := make([]string, 0, len(steps))
	for _, s := range steps {
		names = append(names, s.Name)
	}
	return names
}

// reportLegend explains the colours.
var reportLegend = []legendEntry{
	{"bar " + string(barDone), "done"},
	{"bar " + string(barRunning), "in work"},
	{"bar " + string(barWaiting), "waits, or is held"},
	{"bar " + string(barFailed), "failed, or left behind"},
	{"bar " + string(barStopped), "given up when the job ended"},
	{"bar " + string(barUnknown), "done at its end; its beginning is not recorded"},
	{"ticks", "a node is done"},
	{"band " + bandWindow, "window for the start"},
	{"band " + bandSilence, "alerts silenced"},
}

// legendOf explains the colours that a timeline has.
func legendOf(t timeline) []legendEntry {
	used := map[string]bool{}
	for _, b := range t.Bands {
		used["band "+b.Kind] = true
	}
	for _, group := range t.Groups {
		for _, lane := range group.Lanes {
			for _, b := range lane.Bars {
				used["bar "+string(b.State)] = true
			}
			used["ticks"] = used["ticks"] || len(lane.Ticks) > 0
		}
	}
	var entries []legendEntry
	for _, e := range reportLegend {
		if used[e.Class] {
			entries = append(entries, e)
		}
	}
	return entries
}

// titleOf is the heading: "Upgrade from 4.18.1 to 4.18.2".
func titleOf(r statusReport) string {
	if r.Job == nil {
		return "OpenShift " + r.Cluster.Version + ": no upgrade"
	}
	title := "Upgrade"
	if r.Job.FromVersion != "" && r.Job.DesiredVersion != "" {
		title += " from " + r.Job.FromVersion
	}
	if r.Job.DesiredVersion != "" {
		return title + " to " + r.Job.DesiredVersion
	}
	return title + " job without a version"
}

// leadOf says in a few sentences how the job stands.
func leadOf(r statusReport) []string {
	if r.Job == nil {
		return []string{"There is no UpgradeJob."}
	}
	j := r.Job
	var lead []string
	switch v1beta1.Phase(j.Phase) {
	case v1beta1.PhaseSucceeded, v1beta1.PhaseFailed, v1beta1.PhaseSkipped:
		lead = append(lead, sentence(j.Phase+tookInProse(j), j.Reason, j.Message))
	case v1beta1.PhaseActive, v1beta1.PhasePaused:
		if j.Step > 0 {
			step := j.Steps[j.Step-1]
			lead = append(lead, sentence(fmt.Sprintf("At step %d of %d, %s", j.Step, len(j.Steps), step.Name), step.Reason, step.Message))
		}
	case v1beta1.PhasePending:
		lead = append(lead, sentence("Waits for its start", j.Reason, j.Message))
	}
	if left := leftPaused(r.Pools); left != "" {
		lead = append(lead, "Left paused: "+left+". Their machines do not follow, and get no other changes of their configuration either, until somebody or the next job releases them.")
	}
	return lead
}

// sentence says something, and then the reason and the message where they are there.
func sentence(what, reason, message string) string {
	return strings.TrimSpace(what + ". " + reasoned(reason, message))
}

// tookInProse says how long a job has taken that has ended, since it was resumed if it was; empty if it never started.
func tookInProse(j *jobReport) string {
	switch {
	case j.CompletionTime == nil:
		return ""
	case len(j.Resumes) > 0:
		return fmt.Sprintf(" %s after it was resumed", brief(j.CompletionTime.Sub(j.Resumes[len(j.Resumes)-1].Time.Time)))
	case j.StartTime != nil:
		return " after " + brief(j.CompletionTime.Sub(j.StartTime.Time))
	}
	return ""
}

func leftPaused(pools []poolReport) string {
	var names []string
	for _, p := range pools {
		if p.LeftPaused {
			names = append(names, p.Name)
		}
	}
	return strings.Join(names, ", ")
}

// stampLocal is a time in a zone for people; empty where it says the same as stampUTC.
func stampLocal(t time.Time, zone *time.Location) string {
	if _, offset := t.In(zone).Zone(); offset == 0 {
		return ""
	}
	return t.In(zone).Format("2006-01-02 15:04:05 MST")
}
