// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/lifecycle"
)

// barState is what a bar of the timeline tells; it is the class of the bar in the picture too.
type barState string

const (
	// barDone is work that was finished.
	barDone barState = "done"
	// barRunning is work that goes on.
	barRunning barState = "running"
	// barWaiting is a time in which something was waited for that does not come by itself, or that was agreed.
	barWaiting barState = "waiting"
	// barFailed is work that failed.
	barFailed barState = "failed"
	// barStopped is work that was given up because the job ended.
	barStopped barState = "stopped"
	// barUnknown is a time in which something was worked on, nobody knows when exactly.
	barUnknown barState = "unknown"
)

// bar is one span of a lane.
type bar struct {
	Start, End time.Time
	// Open is a bar that is not over: it ends with what is known.
	Open  bool
	State barState
	// Text says what the bar is, for the pointer and for screen readers.
	Text string
}

// lane is a row of the timeline. Its bars may overlap; the picture stacks them.
type lane struct {
	Label string
	// Detail stands beside the label: a state or a count.
	Detail string
	Bars   []bar
	// Ticks are moments: in the lane of a pool, when each machine was done.
	Ticks []time.Time
	// Idle is a lane in which nothing has happened yet.
	Idle bool
}

// laneGroup is a heading with its lanes.
type laneGroup struct {
	Title string
	Lanes []lane
	// More says what was left out, empty if nothing.
	More string
}

// mark is a moment of the job: a vertical line through the picture.
type mark struct {
	Time time.Time
	// Kind is the class of the line: now, deadline, event.
	Kind string
	Text string
}

// Kinds of marks.
const (
	markNow      = "now"
	markDeadline = "deadline"
	markEvent    = "event"
)

// band is a span of time behind all lanes: the window of the start, silences.
type band struct {
	Start, End time.Time
	// Kind is the class of the band: window, silence.
	Kind string
	Text string
}

// Kinds of bands.
const (
	bandWindow  = "window"
	bandSilence = "silence"
)

// timeline is what happened in a job, when.
type timeline struct {
	// From and To bound the picture. What lies outside is cut, and its time told in words.
	From, To time.Time
	Bands    []band
	Marks    []mark
	Groups   []laneGroup
	// Notes say what the timeline cannot tell, or what is strange about it.
	Notes []string
}

// timelineFacts are what a timeline is made of.
type timelineFacts struct {
	Job   *v1beta1.UpgradeJob
	Pools []mcfgv1.MachineConfigPool
	// RenderedBy is the release that rendered the configuration of a pool, by the name of the pool, and Release the one that the cluster runs or is on its
	// way to; empty where that is not known.
	RenderedBy map[string]string
	Release    string
	Nodes      []nodeTimes
	// Steps are the steps of the job's upgrader, by condition and in order; those that the job's status names where it is not known.
	Steps []string
	// Now is when the facts were read.
	Now time.Time
}

// Bounds of the picture: rows beyond these are counted, not drawn.
const (
	maxHookLanes = 40
	maxPoolLanes = 64
	maxNodeLanes = 40
)

// timelineOf makes the timeline of a job. It draws nothing that the cluster does not tell, and says what that is.
func timelineOf(f timelineFacts) timeline {
	t := timeline{Bands: bandsOf(f), Marks: marksOf(f)}
	notes := &notebook{}
	for _, group := range []laneGroup{stepLanes(f, notes), hookLanes(f, notes), poolLanes(f, notes), nodeLanes(f, notes)} {
		if len(group.Lanes) > 0 || group.More != "" {
			t.Groups = append(t.Groups, group)
		}
	}
	if latest := latestOf(f, t); latest.Sub(f.Now) > tolerableSkew {
		notes.add("The newest time here is %s after the time of the computer that made this report: their clocks differ.", latest.Sub(f.Now).Round(time.Second))
	}
	t.Notes = notes.lines
	t.From, t.To = spanOf(f, t)
	return t
}

// tolerableSkew is how far the clocks of two computers may differ without a word: times in the API have whole seconds.
const tolerableSkew = 2 * time.Second

// latestOf is the newest time at which something has happened.
func latestOf(f timelineFacts, t timeline) time.Time {
	latest := f.Now
	for _, group := range t.Groups {
		for _, lane := range group.Lanes {
			for _, b := range lane.Bars {
				latest = later(latest, b.Start)
				if !b.Open {
					latest = later(latest, b.End)
				}
			}
		}
	}
	return latest
}

// notebook gathers notes, each once.
type notebook struct{ lines []string }

func (n *notebook) add(format string, values ...any) {
	if line := fmt.Sprintf(format, values...); !slices.Contains(n.lines, line) {
		n.lines = append(n.lines, line)
	}
}

// bandsOf returns the window in which the job may start, and its silences.
func bandsOf(f timelineFacts) []band {
	spec := &f.Job.Spec
	bands := []band{{Start: spec.StartAfter.Time, End: later(spec.StartBefore.Time, spec.StartAfter.Time), Kind: bandWindow, Text: "Window for the start"}}
	for i := range f.Job.Status.MaintenanceWindows {
		w := &f.Job.Status.MaintenanceWindows[i]
		end := w.Until.Time
		if over := f.Job.Status.CompletionTime; over != nil && over.Time.Before(end) {
			end = over.Time
		}
		bands = append(bands, band{Start: w.StartTime.Time, End: later(end, w.StartTime.Time), Kind: bandSilence, Text: "Alerts silenced: " + string(w.Name)})
	}
	return bands
}

// marksOf returns the moments of the job, in order.
func marksOf(f timelineFacts) []mark {
	status := &f.Job.Status
	var marks []mark
	if status.CommenceTime != nil {
		marks = append(marks, mark{status.CommenceTime.Time, markEvent, "Upgrade commenced"})
	}
	for _, s := range status.Stages {
		marks = append(marks, mark{s.Time.Time, markEvent, "Stage " + string(s.Stage)})
	}
	for _, r := range status.ResumedRequests {
		if r.Reopened != "" {
			marks = append(marks, mark{r.Time.Time, markEvent, "Resumed after " + r.Reopened})
		}
	}
	if !status.Phase.Finished() {
		marks = append(marks, mark{f.Now, markNow, "Now"})
	}
	if status.StartTime != nil {
		marks = append(marks, mark{lifecycle.Deadline(f.Job), markDeadline, "Deadline of the job"})
	}
	for i := range status.Pools {
		if p := &status.Pools[i]; p.UnpauseBefore != nil && p.PausedBy == f.Job.LockKey() {
			marks = append(marks, mark{p.UnpauseBefore.Time, markDeadline, "Latest release of pool " + p.Name})
		}
	}
	slices.SortStableFunc(marks, func(a, b mark) int { return a.Time.Compare(b.Time) })
	return marks
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
