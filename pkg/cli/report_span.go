// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import "time"

const (
	// shortestSpan is the least that a picture covers, so that a job of seconds does not look like one of days.
	shortestSpan = time.Minute
	// stretch is how much longer the picture may get for something that is not the upgrade itself, like a deadline, as a share of its length. What is
	// further away stands at the edge.
	stretch = 0.35
	// spanMargin is the free space at both ends, as a share of the length.
	spanMargin = 0.02
)

// spanOf returns what the picture covers: the time from the start to the end of the work, or the window of a job that never worked; then as much
// more as does not squeeze that.
func spanOf(f timelineFacts, t timeline) (time.Time, time.Time) {
	from, to := coreOf(f, t)
	if to.Sub(from) < shortestSpan {
		to = from.Add(shortestSpan)
	}
	slack := time.Duration(float64(to.Sub(from)) * stretch)
	start, end := from, to
	for _, at := range extrasOf(t) {
		if at.Before(start) && from.Sub(at) <= slack {
			start = at
		}
		if at.After(end) && at.Sub(to) <= slack {
			end = at
		}
	}
	margin := time.Duration(float64(end.Sub(start)) * spanMargin)
	return start.Add(-margin), end.Add(margin)
}

// coreOf is the time that has to be in the picture.
func coreOf(f timelineFacts, t timeline) (from, to time.Time) {
	started := f.Job.Status.StartTime
	if started == nil {
		return f.Job.Spec.StartAfter.Time, later(f.Job.Spec.StartBefore.Time, f.Job.Spec.StartAfter.Time)
	}
	from, to = earlier(started.Time, f.Job.Spec.StartAfter.Time), started.Time
	for _, group := range t.Groups {
		for _, lane := range group.Lanes {
			for _, b := range lane.Bars {
				to = later(to, b.End)
				if group.Title == titleSteps {
					from = earlier(from, b.Start)
				}
			}
		}
	}
	if over := f.Job.Status.CompletionTime; over != nil {
		to = later(to, over.Time)
	}
	return from, to
}

// extrasOf are the times that are in the picture if there is room.
func extrasOf(t timeline) []time.Time {
	var extras []time.Time
	for _, b := range t.Bands {
		extras = append(extras, b.Start, b.End)
	}
	for _, m := range t.Marks {
		extras = append(extras, m.Time)
	}
	for _, group := range t.Groups {
		for _, lane := range group.Lanes {
			for _, b := range lane.Bars {
				extras = append(extras, b.Start, b.End)
			}
		}
	}
	return extras
}
