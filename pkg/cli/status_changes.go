// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// fact is something that a report says, in words that stay the same while nothing happens.
type fact struct {
	// about names what the fact is about: a changed text of the same thing replaces the earlier one. No two facts of a report are about the same.
	about, text string
	// passing is set if it is news that the fact is gone.
	passing bool
}

// changes says what is new in facts, and which passing ones are gone.
func changes(before, after []fact) []string {
	var lines []string
	for _, f := range after {
		i := slices.IndexFunc(before, func(b fact) bool { return b.about == f.about })
		if (i < 0 || before[i].text != f.text) && f.text != "" {
			lines = append(lines, f.about+": "+f.text)
		}
	}
	for _, f := range before {
		if f.passing && !slices.ContainsFunc(after, func(a fact) bool { return a.about == f.about }) {
			lines = append(lines, f.about+": not any more")
		}
	}
	return lines
}

// factsOf lists what a report says, without times that pass by themselves.
func factsOf(r *statusReport) []fact {
	facts := []fact{{about: "cluster", text: strings.TrimSuffix(r.Cluster.Version+" -> "+r.Cluster.Desired, " -> ")}}
	add := func(about, format string, values ...any) {
		facts = append(facts, fact{about: about, text: fmt.Sprintf(format, values...)})
	}
	passing := func(about, text string) { facts = append(facts, fact{about, text, true}) }
	if r.Cluster.Failing != "" {
		passing("cluster failing", r.Cluster.Failing)
	}
	if p := r.Cluster.Progress; p != nil {
		add("release", "%d of %d done", p.Done, p.Total)
	}
	if o := r.Operators; o != nil {
		add("operators", "%d of %d run %s", o.Updated, o.Total, o.Version)
		for _, sick := range o.Sick {
			passing(fmt.Sprintf("operator %s %s=%s", sick.Name, sick.Type, cmp.Or(sick.Status, "missing")), cmp.Or(sick.Message, sick.Reason, "it does not say why"))
		}
	}
	for i := range r.Pools {
		p := &r.Pools[i]
		words := fmt.Sprintf("%s, %d of %d machines updated", p.State, p.OnRelease, p.Machines)
		if p.Paused {
			words += ", paused by " + cmp.Or(p.PausedBy, "somebody else")
		}
		add("pool "+p.Name, "%s", words)
	}
	for i := range r.Nodes {
		n := &r.Nodes[i]
		passing("node "+n.Name, strings.TrimSuffix(n.Phase+": "+n.doing(), ": "))
	}
	if r.Job != nil {
		facts = append(facts, jobFacts(r.Job)...)
	}
	return numbered(facts)
}

// numbered tells facts apart that are about the same, such as a hook that runs for two pools: the second one is about it (2).
func numbered(facts []fact) []fact {
	times := make(map[string]int, len(facts))
	for i := range facts {
		about := facts[i].about
		if times[about]++; times[about] > 1 {
			facts[i].about = fmt.Sprintf("%s (%d)", about, times[about])
		}
	}
	return facts
}

// aboutBlocker names a blocker: several may be on one object, and several checks may have the same to say of none.
func aboutBlocker(b *blockerReport) string {
	what := b.Code
	if b.Check != "" {
		what += " of check " + b.Check
	}
	if b.Object != "" {
		what = b.Object + " (" + what + ")"
	}
	return "waits for " + what
}

func jobFacts(j *jobReport) []fact {
	name := "job " + j.Namespace + "/" + j.Name
	words := j.Phase
	if j.Reason != "" {
		words += " (" + j.Reason + ")"
	}
	if j.CompletionTime != nil {
		words = strings.TrimSuffix(words+": "+j.Message, ": ")
	}
	facts := []fact{{about: name, text: words}}
	if p := j.Preflight; p != nil {
		facts = append(facts, fact{about: "preflight", text: strings.TrimSuffix(p.Reason+": "+p.Message, ": ")})
	}
	for i := range j.Steps {
		s := &j.Steps[i]
		switch {
		case s.State == stepCompleted:
			facts = append(facts, fact{about: "step " + s.Name, text: "completed after " + seconds(s.DurationSeconds)})
		case s.State != stepPending:
			facts = append(facts, fact{about: "step " + s.Name, text: strings.TrimSuffix(s.State+" "+s.Reason, " ")})
		}
	}
	for i := range j.Blockers {
		b := &j.Blockers[i]
		facts = append(facts, fact{aboutBlocker(b), cmp.Or(b.Message, b.Code), true})
	}
	for _, h := range j.Hooks {
		facts = append(facts, fact{about: "hook " + strings.TrimSuffix(h.Hook+" at "+h.Event+" "+h.Key, " "), text: strings.TrimSuffix(h.Status+": "+h.Message, ": ")})
	}
	for _, d := range j.Deadlines {
		facts = append(facts, fact{about: strings.TrimSuffix("deadline "+d.Name+" "+d.Object, " "), text: d.Time.UTC().Format(time.RFC3339)})
	}
	for _, n := range j.Notifications {
		if n.LastError != "" {
			facts = append(facts, fact{"receiver " + n.Receiver, n.LastError, true})
		}
	}
	return facts
}
