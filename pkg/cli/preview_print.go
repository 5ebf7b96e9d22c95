// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"
	"time"
)

// printPreview prints a preview for people. Wide names the steps.
func (t *tool) printPreview(result previewResult, wide bool) error {
	for _, p := range result.Problems {
		t.say("INVALID: %s (%s)", p.Message, p.Reason)
	}
	for i := range result.Configs {
		if i > 0 || len(result.Problems) > 0 {
			t.say("")
		}
		if err := t.printPreviewOf(&result.Configs[i], wide); err != nil {
			return err
		}
	}
	if len(result.Configs)+len(result.Problems)+len(result.Notes) == 0 {
		t.say("There is no UpgradeConfig.")
	}
	for _, note := range result.Notes {
		t.say("note: %s", note)
	}
	if len(result.LeftOut) > 0 {
		t.say("")
		t.say("Left out:")
	}
	for _, what := range result.LeftOut {
		t.say("  %s", what)
	}
	return nil
}

func (t *tool) printPreviewOf(r *previewReport, wide bool) error {
	title := fmt.Sprintf("UpgradeConfig %s/%s", r.Namespace, r.Name)
	if r.File != "" {
		title += fmt.Sprintf(" (file %s)", r.File)
	}
	t.say("%s", title)
	for _, p := range r.Problems {
		t.say("INVALID: %s (%s)", p.Message, p.Reason)
	}
	if err := columns(t.Out, r.facts(wide)); err != nil {
		return err
	}
	if len(r.Starts) > 0 {
		t.say("")
	}
	if err := columns(t.Out, r.table(t.location())); err != nil {
		return err
	}
	for _, note := range r.Notes {
		t.say("note: %s", note)
	}
	return nil
}

// facts are the lines above the starts.
func (r *previewReport) facts(wide bool) [][]string {
	cron := r.Cron
	if r.ISOWeek != "" {
		cron += ", ISO week " + r.ISOWeek
	}
	rows := [][]string{{"Schedule:", fmt.Sprintf("%s (%s)", cron, orDash(r.Location))}}
	if r.Suspended {
		rows = append(rows, []string{"Suspended:", "spec.schedule.suspend is set: no jobs are created"})
	}
	if r.Pinning != "" {
		rows = append(rows, []string{"Version:", r.Pinning})
	}
	upgrader := r.Upgrader
	switch {
	case wide && len(r.Steps) > 0:
		upgrader += ": " + strings.Join(r.Steps, ", ")
	case len(r.Steps) > 0:
		upgrader += fmt.Sprintf(", %d steps", len(r.Steps))
	}
	rows = append(rows, []string{"Upgrader:", upgrader})
	name := "Hooks:"
	for _, hook := range r.Hooks {
		text := fmt.Sprintf("%s at %s, on failure %s", hook.Name, strings.Join(hook.Events, ", "), hook.FailurePolicy)
		if hook.Run == "Next" {
			text += ", for the next job only"
		}
		if hook.Disruptive {
			text += ", disruptive"
		}
		rows = append(rows, []string{name, text})
		name = ""
	}
	return rows
}

// table lists the starts. The user's time has a column of its own where it is not that of the schedule.
func (r *previewReport) table(local *time.Location) [][]string {
	if len(r.Starts) == 0 {
		return nil
	}
	differs := false
	for _, s := range r.Starts {
		_, zone := s.start.Zone()
		_, own := s.start.In(local).Zone()
		differs = differs || (own != zone && own != 0) // UTC has its column
	}
	header := []string{"START"}
	if differs {
		header = append(header, "LOCAL TIME")
	}
	rows := [][]string{append(header, "UTC", "VERSION PINNED", "START BEFORE", "REMARKS")}
	for i := range r.Starts {
		s := &r.Starts[i]
		row := []string{moment(s.start, r.zone)}
		if differs {
			row = append(row, moment(s.start, local))
		}
		pinned := "at the start"
		if s.created.Before(s.start) {
			pinned = moment(s.created, r.zone)
		}
		rows = append(rows, append(row, s.Start, pinned, moment(s.before, r.zone), s.remarks(r.Suspended)))
	}
	return rows
}

// remarks say what is special about the start.
func (s *previewStart) remarks(suspended bool) string {
	var texts []string
	if s.Job != "" {
		texts = append(texts, "UpgradeJob "+s.Job)
	}
	if suspended && s.Job == "" {
		texts = append(texts, "suspended")
	}
	for _, text := range []string{s.Clock, s.Due} {
		if text != "" {
			texts = append(texts, text)
		}
	}
	for _, w := range s.InTheWay {
		text := fmt.Sprintf("%s (window %s", w.Effect, w.Name)
		if w.Reason != "" {
			text += ": " + strings.TrimSuffix(w.Reason, ".")
		}
		texts = append(texts, text+")")
	}
	return strings.Join(texts, "; ")
}
