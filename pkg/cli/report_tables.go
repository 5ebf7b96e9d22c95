// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/lifecycle"
)

// reportTable is a table of the report, or a heading with a sentence where it has no rows.
type reportTable struct {
	ID, Title, Note string
	Head            []string
	Rows            [][]reportCell
	// More says how many rows were left out.
	More string
}

// reportCell is a cell: a text, and a second line in small print.
type reportCell struct{ Text, Sub, Class string }

const (
	// maxTableRows is how many rows a table has: a report is read by people.
	maxTableRows = 120
	// maxCellText is how long the text of a cell is, in bytes.
	maxCellText = 600
)

// reportTables gathers the tables of a report.
type reportTables struct {
	zone *time.Location
	now  time.Time
	list []reportTable
}

// add adds a table. One without rows is left out unless it has a note.
func (t *reportTables) add(title, note string, head []string, rows [][]reportCell) {
	if len(rows) == 0 && note == "" {
		return
	}
	table := reportTable{ID: strings.ToLower(strings.ReplaceAll(title, " ", "-")), Title: title, Note: note, Head: head, Rows: rows}
	if more := len(rows) - maxTableRows; more > 0 {
		table.Rows, table.More = rows[:maxTableRows], fmt.Sprintf("and %d more", more)
	}
	t.list = append(t.list, table)
}

// cellText is a cell of words.
func cellText(words string) reportCell { return reportCell{Text: v1beta1.Truncate(words, maxCellText)} }

// cellState is a cell of a state, in the colour that says what to think of it.
func cellState(word string) reportCell {
	c := reportCell{Text: word}
	switch strings.ToLower(word) {
	case "failed", "degraded":
		c.Class = "bad"
	case "succeeded", "completed", "updated", "true":
		c.Class = "good"
	case "waiting", "paused":
		c.Class = "held"
	}
	return c
}

// at is a cell of a time, in UTC and in the zone.
func (t *reportTables) at(at time.Time) reportCell { return timeCell(at, t.zone) }

func timeCell(at time.Time, zone *time.Location) reportCell {
	return reportCell{Text: stampUTC(at), Sub: stampLocal(at, zone), Class: "time"}
}

func (t *reportTables) maybeAt(at *metav1.Time) reportCell {
	if at, ok := timeOf(at); ok {
		return t.at(at)
	}
	return reportCell{}
}

// lasted is a cell of how long something took, or has been going on.
func (t *reportTables) lasted(from time.Time, to *metav1.Time) reportCell {
	if to != nil {
		return reportCell{Text: brief(max(to.Sub(from), 0)), Class: "time"}
	}
	return reportCell{Text: brief(max(t.now.Sub(from), 0)), Sub: "so far", Class: "time"}
}

// addJob adds what is to be told of a job.
func (t *reportTables) addJob(j *jobReport, line timeline) {
	t.addBlockers(j)
	t.addSteps(j)
	t.addMoments(line)
	t.addHooks(j)
	t.addSilences(j)
	t.addNotifications(j)
}

func (t *reportTables) addBlockers(j *jobReport) {
	var rows [][]reportCell
	for _, b := range j.Blockers {
		rows = append(rows, []reportCell{cellText(b.Object), cellText(b.Code), t.at(b.Since.Time), cellText(b.Message), cellText(b.ClearsWhen)})
	}
	title := "What it waits for"
	if v1beta1.Phase(j.Phase).Finished() {
		title = "What it waited for last"
	}
	t.add(title, "", []string{"Object", "Blocker", "Since", "Message", "Clears when"}, rows)
}

func (t *reportTables) addSteps(j *jobReport) {
	var rows [][]reportCell
	for i, s := range j.Steps {
		name := reportCell{Text: fmt.Sprintf("%d. %s", i+1, s.Name), Class: "name"}
		if s.Attempts > 1 {
			name.Sub = fmt.Sprintf("begun %d times", s.Attempts)
		}
		row := []reportCell{name, cellState(s.State), t.maybeAt(s.StartTime), t.maybeAt(s.CompletionTime), {}, cellText(reasoned(s.Reason, s.Message))}
		if s.DurationSeconds != nil {
			row[4] = reportCell{Text: brief(time.Duration(*s.DurationSeconds) * time.Second), Class: "time"}
		}
		rows = append(rows, row)
	}
	t.add("Steps", "", []string{"Step", "State", "Begin", "End", "Took", "Reason"}, rows)
}

// reasoned joins a reason and a message. The reason of what is done says nothing.
func reasoned(reason, message string) string {
	if reason == v1beta1.ReasonCompleted {
		reason = ""
	}
	return strings.TrimPrefix(strings.TrimSuffix(reason+": "+message, ": "), ": ")
}

func (t *reportTables) addMoments(line timeline) {
	var rows [][]reportCell
	for _, m := range line.Marks {
		rows = append(rows, []reportCell{t.at(m.Time), cellText(m.Text)})
	}
	t.add("Moments", "", []string{"Time", "What"}, rows)
}

func (t *reportTables) addHooks(j *jobReport) {
	var rows [][]reportCell
	for _, h := range j.Hooks {
		event := cellText(h.Event)
		event.Sub = h.Key
		rows = append(rows, []reportCell{
			cellText(h.Hook), event, cellState(h.Status), t.at(h.StartTime.Time), t.lasted(h.StartTime.Time, h.CompletionTime), cellText(h.FailurePolicy), cellText(h.Job), cellText(h.Message),
		})
	}
	t.add("Hooks", "", []string{"Hook", "Event", "Result", "Begin", "Took", "On failure", "Job", "Message"}, rows)
}

func (t *reportTables) addSilences(j *jobReport) {
	var rows [][]reportCell
	for _, s := range j.Silences {
		rows = append(rows, []reportCell{cellText(s.Name), t.at(s.StartTime.Time), t.at(s.Until.Time), cellText(fmt.Sprintf("%d held", s.Silences)), cellText(s.Warning)})
	}
	t.add("Silences", "", []string{"Maintenance window", "Begin", "At most until", "Silences", "Warning"}, rows)
}

func (t *reportTables) addNotifications(j *jobReport) {
	var rows [][]reportCell
	for _, n := range j.Notifications {
		pending := cellText(fmt.Sprint(n.Pending))
		if n.Pending > 0 {
			pending.Class = "held"
		}
		lost := cellText(fmt.Sprint(n.Lost))
		if n.Lost > 0 {
			lost.Class = "bad"
		}
		rows = append(rows, []reportCell{cellText(n.Receiver), cellText(fmt.Sprint(n.Delivered)), pending, lost, t.maybeAt(n.Last), cellText(n.LastError)})
	}
	t.add("Notifications", "", []string{"Receiver", "Delivered", "Pending", "Lost", "Last", "Last error"}, rows)
}

// addCluster adds what the cluster is like now, whatever job the report is about.
func (t *reportTables) addCluster(r statusReport) {
	t.addPools(r.Pools)
	t.addNodes(r.Nodes)
	t.addOperators(r.Operators)
	var rows [][]reportCell
	for _, c := range r.Configs {
		rows = append(rows, []reportCell{
			cellText(c.Namespace + "/" + c.Name), cellText(strings.TrimSpace(c.Cron + " " + c.ISOWeek + " " + c.Location)), t.maybeAt(c.NextStart),
			cellText(strings.Join(c.Suspended, "; ")), cellText(c.Problem),
		})
	}
	t.add("Next starts", "", []string{"Config", "Schedule", "Next start", "Suspended by", "Problem"}, rows)
	rows = nil
	for _, line := range r.NotShown {
		rows = append(rows, []reportCell{cellText(line)})
	}
	t.add("Not shown", "", []string{"What could not be read, and why"}, rows)
}

func (t *reportTables) addPools(pools []poolReport) {
	var rows [][]reportCell
	for _, p := range pools {
		paused := reportCell{}
		switch {
		case p.LeftPaused:
			paused = reportCell{Text: "left paused", Sub: "by " + p.PausedBy, Class: "bad"}
		case p.Paused:
			paused = reportCell{Text: "paused", Sub: "by " + cmp.Or(p.PausedBy, "somebody else"), Class: "held"}
		}
		rows = append(rows, []reportCell{
			cellText(p.Name), cellState(p.State), cellText(fmt.Sprintf("%d of %d", p.OnRelease, p.Machines)), cellText(fmt.Sprint(p.Unavailable)), cellText(fmt.Sprint(p.Degraded)),
			paused, t.maybeAt(p.UnpauseAfter), t.maybeAt(p.UnpauseBefore), cellText(p.Message),
		})
	}
	t.add("Machine config pools", "", []string{"Pool", "State", "Updated", "Unavailable", "Degraded", "Paused", "Released after", "Released before", "Message"}, rows)
}

func (t *reportTables) addNodes(nodes []nodeReport) {
	var rows [][]reportCell
	for _, n := range nodes {
		message := n.Message
		for _, held := range n.HeldBy {
			message = strings.TrimPrefix(message+"; "+held.Message, "; ")
		}
		rows = append(rows, []reportCell{cellText(n.Name), cellText(n.Pool), cellState(n.Phase), t.maybeAt(n.Since), cellText(message)})
	}
	t.add("Nodes in work", "", []string{"Node", "Pool", "Phase", "Since", "Message"}, rows)
}

func (t *reportTables) addOperators(o *operatorsReport) {
	if o == nil {
		return
	}
	note := fmt.Sprintf("%d of %d are at %s.", o.Updated, o.Total, o.Version)
	if len(o.Updating) > 0 {
		note += " In work: " + strings.Join(o.Updating, ", ") + "."
	}
	var rows [][]reportCell
	for _, s := range o.Sick {
		rows = append(rows, []reportCell{cellText(s.Name), {Text: s.Type + "=" + s.Status, Class: "bad"}, t.at(s.Since.Time), cellText(reasoned(s.Reason, s.Message))})
	}
	t.add("Cluster operators", note, []string{"Operator", "Condition", "Since", "Message"}, rows)
}

func (t *reportTables) addConditions(job *v1beta1.UpgradeJob) {
	var rows [][]reportCell
	for _, c := range job.Status.Conditions {
		rows = append(rows, []reportCell{cellText(c.Type), cellText(string(c.Status)), cellText(c.Reason), t.at(c.LastTransitionTime.Time), cellText(c.Message)})
	}
	t.add("Conditions", "", []string{"Condition", "Status", "Reason", "Since", "Message"}, rows)
}

// summaryFacts are the summary.
func summaryFacts(r statusReport, job *v1beta1.UpgradeJob, zone *time.Location) []reportFact {
	var facts []reportFact
	add := func(name string, value reportCell) {
		if value.Text != "" {
			facts = append(facts, reportFact{name, value})
		}
	}
	when := func(name string, at *metav1.Time) {
		if at, ok := timeOf(at); ok {
			add(name, timeCell(at, zone))
		}
	}
	add("Cluster", cellText(r.Cluster.ID))
	add("Runs", reportCell{Text: r.Cluster.Version, Sub: strings.TrimSuffix("channel "+r.Cluster.Channel, "channel ")})
	add("On its way to", cellText(r.Cluster.Desired))
	add("Cluster-version operator", cellText(cmp.Or(r.Cluster.Failing, r.Cluster.Message)))
	if j := r.Job; j != nil {
		add("Job", reportCell{Text: j.Namespace + "/" + j.Name, Sub: strings.TrimSuffix("of UpgradeConfig "+j.Config, "of UpgradeConfig ")})
		add("Upgrader", cellText(j.Upgrader))
		add("Outcome", reportCell{Text: j.Phase, Sub: j.Reason})
		if d := job.Spec.DesiredVersion; d != nil {
			add("Release image", cellText(d.Image))
		}
		when("Created", &job.CreationTimestamp)
		when("Window opens", &j.StartAfter)
		when("Window closes", &j.StartBefore)
		when("Started", j.StartTime)
		when("Commenced", j.CommenceTime)
		when("Ended", j.CompletionTime)
		if _, began, ran := lifecycle.LastRun(job); ran && j.CompletionTime != nil {
			took := reportCell{Text: brief(j.CompletionTime.Sub(began))}
			if len(j.Resumes) > 0 {
				took.Sub = "in its last run"
			}
			add("Took", took)
		}
		if j.SuspendedBy != "" {
			add("Suspended by", cellText(j.SuspendedBy))
		}
		if len(j.Resumes) > 0 {
			add("Resumed", cellText(fmt.Sprintf("%d times", len(j.Resumes))))
		}
	}
	add("Report of", timeCell(r.Time.Time, zone))
	return facts
}
