// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// maxShown is how many lines a list has at most where the whole is not asked for by -o wide.
const maxShown = 10

// printStatus adds the report for people: what is needed at once stands first.
func (v *view) printStatus(r *statusReport, wide bool) {
	v.printCluster(r)
	if r.Job == nil {
		v.printf("Job       none: no UpgradeJob is there\n")
	} else {
		v.printJob(r.Job)
	}
	v.printResume(r.Job)
	v.printSummary("Next job", r.Next)
	v.printSummary("Last job", r.Last)
	v.printLeftPaused(r.Pools)
	if r.Job != nil {
		v.printBlockers(r.Job, wide)
	}
	v.printNodes(r.Nodes, wide)
	if r.Job != nil {
		v.printDeadlines(r.Job.Deadlines)
		v.printSteps(r.Job, wide)
	}
	v.printProgress(r)
	if r.Job != nil {
		v.printHooks(r.Job.Hooks, wide)
		v.printNotifications(r.Job.Notifications, wide)
	}
	v.printSchedules(r)
	if len(r.NotShown) > 0 {
		v.heading("NOT SHOWN")
		for _, what := range r.NotShown {
			v.wrap(2, what)
		}
	}
}

func (v *view) printCluster(r *statusReport) {
	c := &r.Cluster
	version := cmp.Or(c.Version, "unknown")
	switch {
	case c.Desired != "" && c.Progress == nil && c.Message == "":
		version += " -> " + c.Desired + " (asked for)"
	case c.Desired != "":
		version += " -> " + c.Desired + " (updating)"
	case c.Available != "":
		version += ", up to " + c.Available + " available"
	}
	v.printf("Cluster   %s, channel %s\n", version, cmp.Or(c.Channel, "none"))
	if c.Failing != "" {
		v.WriteString(v.paint(red, "Failing") + "   " + strings.TrimLeft(v.wrapped(10, c.Failing), " "))
	}
	if c.LockedBy != "" && (r.Job == nil || c.LockedBy != r.Job.Namespace+"/"+r.Job.Name) {
		v.printf("Locked by %s\n", c.LockedBy)
	}
}

// wrapped is a text in lines as wrap makes them.
func (v *view) wrapped(indent int, text string) string {
	w := &view{now: v.now, width: v.width}
	w.wrap(indent, text)
	return w.String()
}

var phaseStyles = map[string]style{
	string(v1beta1.PhaseActive): yellow, string(v1beta1.PhasePaused): yellow,
	string(v1beta1.PhaseSucceeded): green, string(v1beta1.PhaseFailed): red, string(v1beta1.PhaseSkipped): red,
}

func (v *view) printJob(j *jobReport) {
	v.printf("Job       %s/%s, %s, upgrader %s\n", j.Namespace, j.Name, versions(&j.jobSummary), j.Upgrader)
	v.WriteString("Phase     " + v.paint(phaseStyles[j.Phase], j.Phase))
	if j.Reason != "" {
		v.printf(" (%s)", j.Reason)
	}
	v.WriteString(", " + v.when(&j.jobSummary) + "\n")
	if j.Step > 0 {
		s := &j.Steps[j.Step-1]
		v.printf("Step      %d of %d: %s", j.Step, len(j.Steps), s.Name)
		if s.DurationSeconds != nil {
			v.printf(", for %s", seconds(s.DurationSeconds))
		}
		v.WriteString("\n")
	}
	if j.Message != "" {
		v.wrap(10, j.Message)
	}
	if p := j.Preflight; p != nil {
		words, s := "the cluster is healthy", green
		if p.Status != "True" {
			words, s = p.Reason+": "+p.Message, red
		}
		v.WriteString("Preflight " + v.paint(s, strings.TrimSpace(v.wrapped(10, words))) + "\n")
	}
	if j.SuspendedBy != "" {
		v.WriteString(v.paint(red, "Suspended") + " by " + strings.TrimSpace(v.wrapped(10, j.SuspendedBy+": the job will be skipped")) + "\n")
	}
	for _, c := range j.Conditions {
		v.WriteString("Note      " + strings.TrimSpace(v.wrapped(10, fmt.Sprintf("%s is %s (%s): %s", c.Type, c.Status, c.Reason, c.Message))) + "\n")
	}
	for _, s := range j.Silences {
		if s.Warning != "" {
			v.WriteString("Note      " + strings.TrimSpace(v.wrapped(10, fmt.Sprintf("no silences in window %s: %s", s.Name, s.Warning))) + "\n")
		}
	}
}

// versions says from where to where a job goes.
func versions(j *jobSummary) string {
	switch {
	case j.DesiredVersion == "":
		return "no version to upgrade to"
	case j.FromVersion == "":
		return "to " + j.DesiredVersion
	}
	return j.FromVersion + " -> " + j.DesiredVersion
}

// when says when a job starts, started, or ended.
func (v *view) when(j *jobSummary) string {
	switch {
	case j.CompletionTime != nil && j.StartTime != nil:
		return fmt.Sprintf("%s to %s, %s", v.moment(j.StartTime.Time), v.moment(j.CompletionTime.Time), v.distance(j.CompletionTime.Time))
	case j.CompletionTime != nil:
		return fmt.Sprintf("never started, ended %s, %s", v.moment(j.CompletionTime.Time), v.distance(j.CompletionTime.Time))
	case j.StartTime != nil:
		return fmt.Sprintf("started %s, %s", v.moment(j.StartTime.Time), v.distance(j.StartTime.Time))
	case j.StartAfter.After(v.now):
		return fmt.Sprintf("starts %s, %s", v.moment(j.StartAfter.Time), v.distance(j.StartAfter.Time))
	}
	return fmt.Sprintf("was to start %s, %s", v.moment(j.StartAfter.Time), v.distance(j.StartAfter.Time))
}

// printResume says how a job that has ended before it was done goes on.
func (v *view) printResume(j *jobReport) {
	if j == nil || j.Phase != string(v1beta1.PhaseFailed) && j.Phase != string(v1beta1.PhaseSkipped) {
		return
	}
	v.printf("Go on by  %s resume %s -n %s\n", v.program, j.Name, j.Namespace)
}

func (v *view) printSummary(title string, j *jobSummary) {
	if j == nil {
		return
	}
	v.printf("%-9s %s/%s, %s, ", title, j.Namespace, j.Name, versions(j))
	v.WriteString(v.paint(phaseStyles[j.Phase], j.Phase))
	if j.Reason != "" {
		v.printf(" (%s)", j.Reason)
	}
	v.WriteString(", " + v.when(j) + "\n")
	if j.CompletionTime != nil && j.Phase != string(v1beta1.PhaseSucceeded) {
		v.wrap(10, j.Message)
	}
}

func (v *view) printLeftPaused(pools []poolReport) {
	for i := range pools {
		if p := &pools[i]; p.LeftPaused {
			v.WriteString(v.paint(red, "Attention") + " " + strings.TrimSpace(v.wrapped(10, fmt.Sprintf(
				"pool %s was left paused by %s, which is over: %d of %d machines are updated. The next job releases it, or %s release-pools does.",
				p.Name, p.PausedBy, p.OnRelease, p.Machines, v.program))) + "\n")
		}
	}
}

func (v *view) printBlockers(j *jobReport, wide bool) {
	if len(j.Blockers) == 0 {
		return
	}
	switch {
	case j.CompletionTime != nil:
		v.heading("LAST WAITED FOR")
	case j.StartTime == nil:
		v.heading("WOULD WAIT FOR")
	default:
		v.heading("WAITS FOR")
	}
	for i, b := range j.Blockers {
		if i == maxShown && !wide {
			v.printf("  and %d more: see -o wide\n", len(j.Blockers)-i)
			return
		}
		since := b.Since
		v.WriteString("  " + v.paint(yellow, clean(cmp.Or(b.Object, b.Code))))
		v.printf(" (%s), for %s\n", b.Code, v.age(&since))
		v.wrap(4, b.Message)
		if b.ClearsWhen != "" {
			v.wrap(4, "Clears when "+b.ClearsWhen+".")
		}
	}
}

func (v *view) printDeadlines(list []deadlineReport) {
	if len(list) == 0 {
		return
	}
	v.heading("DEADLINES")
	t := &table{indent: 2}
	for _, d := range list {
		effect := d.Effect
		if d.Object != "" {
			effect = strings.Replace(d.Object, "MachineConfigPool/", "pool ", 1) + ": " + effect
		}
		t.add(v.distance(d.Time.Time), v.moment(d.Time.Time), d.Name, effect)
	}
	v.printTable(t)
}

// marks of the states of a step.
var marks = map[string]cell{
	stepPending: {"[ ]", grey}, stepWaiting: {"[>]", yellow}, stepCompleted: {"[x]", green}, stepFailed: {"[!]", red},
}

func (v *view) printSteps(j *jobReport, wide bool) {
	if len(j.Steps) == 0 || j.StartTime == nil && !wide {
		return
	}
	v.heading("STEPS")
	t := &table{indent: 2, wide: wide}
	for i := range j.Steps {
		s := &j.Steps[i]
		remark := ""
		if s.State == stepWaiting || s.State == stepFailed || s.State == stepCompleted && s.Reason != v1beta1.ReasonCompleted {
			remark = s.Reason
		}
		if wide && s.Message != "" {
			remark = strings.TrimPrefix(remark+": "+s.Message, ": ")
		}
		state := marks[s.State]
		t.rows = append(t.rows, []cell{state, {s.Name, noStyle}, {seconds(s.DurationSeconds), noStyle}, {clean(remark), noStyle}})
	}
	v.printTable(t)
}

// seconds says a duration; nothing where there is none.
func seconds(s *int64) string {
	if s == nil {
		return ""
	}
	return span(time.Duration(*s) * time.Second)
}
