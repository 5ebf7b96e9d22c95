// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// TestSpan says which minutes the picture covers, to the whole minute.
func TestSpan(t *testing.T) {
	ended := func(at float64) func(*v1beta1.UpgradeJob) {
		return func(job *v1beta1.UpgradeJob) { job.Status.CompletionTime = ptr.To(minute(at)) }
	}
	timeout := func(job *v1beta1.UpgradeJob) {
		job.Spec.Config.UpgradeTimeout = &v1beta1.Duration{Duration: 130 * time.Minute}
	}
	for _, c := range []struct {
		reason   string
		job      *v1beta1.UpgradeJob
		now      float64
		from, to float64
	}{
		{"the work and the window; the deadline in 12 h is too far", nightJob("j", v1beta1.PhaseSucceeded, step("A", 0, 100, "", ""), ended(100)), 500, -2, 102},
		{"a deadline that is near enough", nightJob("j", v1beta1.PhaseSucceeded, step("A", 0, 100, "", ""), ended(100), timeout), 500, -3, 133},
		{"the end of the window is too far from a short job", nightJob("j", v1beta1.PhaseSucceeded, step("A", 0, 10, "", ""), ended(10)), 500, 0, 10},
		{"hooks long before the start are too far", nightJob("j", v1beta1.PhaseSucceeded, hook("h", "Create", "", -300, -290, ""), step("A", 0, 100, "", ""), ended(100)), 500, -2, 102},
		{"hooks shortly before the start are not", nightJob("j", v1beta1.PhaseSucceeded, hook("h", "Create", "", -20, -10, ""), step("A", 0, 100, "", ""), ended(100)), 500, -22, 102},
		{"a running job until now", nightJob("j", v1beta1.PhaseActive, step("A", 0, 0, "", "")), 80, -2, 82},
		{"a job of a moment has a minute", nightJob("j", v1beta1.PhaseFailed, ended(0.1), func(job *v1beta1.UpgradeJob) { job.Spec.StartBefore = minute(0.001) }), 80, 0, 1},
		{"a job that never started has its window", nightJob("j", v1beta1.PhasePending, func(job *v1beta1.UpgradeJob) { job.Status.StartTime = nil }), -600, -1, 61},
		{"a window that ends before it begins", nightJob("j", v1beta1.PhasePending, func(job *v1beta1.UpgradeJob) {
			job.Status.StartTime, job.Spec.StartBefore = nil, minute(-30)
		}), -600, 0, 1},
	} {
		t.Run(c.reason, func(t *testing.T) {
			line := timelineOf(factsAt(c.now, c.job))
			from, to := line.From.Round(time.Minute), line.To.Round(time.Minute)
			if minutesOf(from) != c.from || minutesOf(to) != c.to {
				t.Errorf("from %g to %g, want %g to %g", minutesOf(from), minutesOf(to), c.from, c.to)
			}
		})
	}
}

func TestPack(t *testing.T) {
	spans := func(minutes ...float64) []bar {
		var bars []bar
		for i := 0; i < len(minutes); i += 2 {
			bars = append(bars, bar{Start: minute(minutes[i]).Time, End: minute(minutes[i+1]).Time})
		}
		return bars
	}
	for _, c := range []struct {
		reason string
		bars   []bar
		want   []int
	}{
		{"one after the other", spans(0, 1, 1, 2, 5, 6), []int{0, 0, 0}},
		{"overlapping", spans(0, 5, 1, 6, 2, 3), []int{0, 1, 2}},
		{"a track is used again", spans(0, 5, 1, 2, 3, 4), []int{0, 1, 1}},
		{"in any order", spans(3, 4, 0, 5), []int{1, 0}},
		{"moments at one time", spans(1, 1, 1, 1), []int{0, 0}},
		{"none", nil, []int{}},
	} {
		if got := pack(c.bars); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.reason, got, c.want)
		}
	}
}

// TestPictureHoldsEverything looks whether anything is drawn outside of the picture or on top of something else.
func TestPictureHoldsEverything(t *testing.T) {
	job := nightJob("j", v1beta1.PhaseActive, func(job *v1beta1.UpgradeJob) {
		job.Status.CommenceTime = ptr.To(minute(10))
		for i := range 32 {
			job.Status.ResumedRequests = append(job.Status.ResumedRequests, v1beta1.ResumedRequest{Time: minute(float64(i)), Reopened: "Failed(TimedOut)"})
		}
	}, hook("h", "Create", "", -9000, -8000, ""), hook("i", "Start", "", 3, 20, ""), hook("i", "Start", "", 4, 9, ""), step("A", 0, 90, "", ""), step("B", 90, 90, "", ""), step("C", 90, 0, "", ""))
	p := draw(timelineOf(factsAt(90, job)), time.UTC, "title")
	bottom := p.PlotTop
	for _, row := range p.Rows {
		if row.Y < bottom {
			t.Errorf("the row %s begins at %s, in the one before that ends at %s", row.Label, row.Y, bottom)
		}
		bottom = row.Y + row.Height
		for i, b := range row.Bars {
			if b.X < p.Left || b.X+b.Width > p.Right || b.Y < row.Y || b.Y+b.Height > bottom {
				t.Errorf("a bar of %s lies outside: %+v", row.Label, b)
			}
			if b.Width < leastBar {
				t.Errorf("a bar of %s cannot be seen: %+v", row.Label, b)
			}
			for _, other := range row.Bars[:i] {
				if b.Y == other.Y && b.X < other.X+other.Width-leastBar && other.X < b.X+b.Width-leastBar {
					t.Errorf("two bars of %s lie on each other: %+v %+v", row.Label, b, other)
				}
			}
		}
	}
	if bottom > p.PlotBottom || p.PlotBottom > p.Height {
		t.Errorf("the rows end at %s, the picture at %s", bottom, p.Height)
	}
	var labelled []pictureFlag
	for _, f := range p.Flags {
		if f.Labelled {
			labelled = append(labelled, f)
		}
	}
	if len(labelled) < 3 || len(labelled) == len(p.Flags) {
		t.Errorf("%d of %d moments are labelled", len(labelled), len(p.Flags))
	}
	for i, f := range labelled {
		for _, other := range labelled[:i] {
			from, to := reach(f)
			otherFrom, otherTo := reach(other)
			if f.TextY == other.TextY && from < otherTo && otherFrom < to {
				t.Errorf("%q lies on %q", f.Text, other.Text)
			}
		}
		if f.TextY >= p.PlotTop {
			t.Errorf("%q lies in the plot", f.Text)
		}
	}
}

func reach(f pictureFlag) (px, px) {
	width := px(len(f.Text)) * letterWidth
	if f.Anchor == "end" {
		return f.TextX - width, f.TextX
	}
	return f.TextX, f.TextX + width
}

// TestPictureTellsWhatIsBeyond writes moments outside of the picture at its edges, with their times.
func TestPictureTellsWhatIsBeyond(t *testing.T) {
	job := nightJob("j", v1beta1.PhasePending, func(job *v1beta1.UpgradeJob) { job.Status.StartTime = nil })
	p := draw(timelineOf(factsAt(-600, job)), time.UTC, "title")
	if len(p.Flags) != 1 || p.Flags[0].Line || p.Flags[0].X != p.Left || p.Flags[0].Text != "\u2190 Now: 2026-11-21 15:00:00 UTC" {
		t.Errorf("the moments are %+v", p.Flags)
	}
	job = nightJob("j", v1beta1.PhaseActive, step("A", 0, 0, "", ""))
	p = draw(timelineOf(factsAt(50, job)), time.UTC, "title")
	last := p.Flags[len(p.Flags)-1]
	if last.Line || last.X != p.Right || last.Text != "Deadline of the job: 2026-11-22 13:00:00 UTC \u2192" {
		t.Errorf("the deadline is %+v", last)
	}
}

// TestPictureKeepsMomentsAtItsEnd draws what takes no time at the very end inside.
func TestPictureKeepsMomentsAtItsEnd(t *testing.T) {
	end := minute(100).Time
	line := timeline{From: minute(0).Time, To: end, Groups: []laneGroup{{Title: titleSteps, Lanes: []lane{{Label: "A", Bars: []bar{{Start: end, End: end, State: barDone}}}}}}}
	p := draw(line, time.UTC, "")
	if b := p.Rows[0].Bars[0]; b.Width < leastBar || b.X+b.Width > p.Right {
		t.Errorf("the bar is %+v, the plot ends at %s", b, p.Right)
	}
}

// TestPictureMergesTicks draws as many ticks as there are places, not as there are nodes.
func TestPictureMergesTicks(t *testing.T) {
	line := timeline{From: minute(0).Time, To: minute(100).Time, Groups: []laneGroup{{Title: titlePools, Lanes: []lane{{Label: "worker"}}}}}
	for i := range 2000 {
		line.Groups[0].Lanes[0].Ticks = append(line.Groups[0].Lanes[0].Ticks, minute(float64(i)/2000).Time)
	}
	row := draw(line, time.UTC, "").Rows[0]
	if n := strings.Count(row.Ticks, "M"); n < 5 || n > 10 {
		t.Errorf("2000 nodes that were done within a minute make %d ticks: %s", n, row.Ticks)
	}
	if !strings.HasPrefix(row.TickText, "2000 nodes done") {
		t.Errorf("the ticks are told as %q", row.TickText)
	}
}

func TestAxis(t *testing.T) {
	zurich := time.FixedZone("CET", 3600)
	kolkata := time.FixedZone("IST", 5*3600+1800)
	for _, c := range []struct {
		reason   string
		from, to float64
		zone     *time.Location
		want     []string
	}{
		{"in UTC there is one scale", 60, 62, time.UTC, []string{"UTC 22 Nov 02:00:00 02:00:30 02:01:00 02:01:30 02:02:00"}},
		{"two zones", -3, 130, zurich, []string{"UTC 22 Nov 01:00 01:15 01:30 01:45 02:00 02:15 02:30 02:45 03:00", "CET 22 Nov 02:00 02:15 02:30 02:45 03:00 03:15 03:30 03:45 04:00"}},
		{"half an hour off", 60, 190, kolkata, []string{"UTC 22 Nov 02:00 02:15 02:30 02:45 03:00 03:15 03:30 03:45 04:00", "IST 22 Nov 07:30 07:45 08:00 08:15 08:30 08:45 09:00 09:15 09:30"}},
		{"over midnight", -120, 120, zurich, []string{"UTC 21 Nov 23:00 23:30 22 Nov 00:00 00:30 01:00 01:30 02:00 02:30 03:00", "CET 22 Nov 00:00 00:30 01:00 01:30 02:00 02:30 03:00 03:30 04:00"}},
		{"years", 0, 60 * 24 * 900, time.UTC, []string{"UTC 16 Feb 00:00 28 May 00:00 6 Sep 00:00 16 Dec 00:00 26 Mar 00:00 5 Jul 00:00 14 Oct 00:00 23 Jan 00:00 4 May 00:00"}},
	} {
		line := timeline{From: minute(c.from).Time, To: minute(c.to).Time}
		list, grid := axes(line, c.zone)
		var got []string
		for _, a := range list {
			var times []string
			for _, at := range a.At {
				times = append(times, at.Text)
			}
			got = append(got, a.Zone+" "+strings.Join(times, " "))
			if len(a.At) != len(grid) {
				t.Errorf("%s: %d times, %d lines", c.reason, len(a.At), len(grid))
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\ngot  %q\nwant %q", c.reason, got, c.want)
		}
		for _, x := range grid {
			if x < plotLeft || x > plotRight {
				t.Errorf("%s: a line at %s", c.reason, x)
			}
		}
	}
}

func TestShorten(t *testing.T) {
	for _, c := range [][2]string{{"short", "short"}, {strings.Repeat("ä", 10), strings.Repeat("ä", 10)}, {strings.Repeat("ä", 11), strings.Repeat("ä", 9) + "\u2026"}} {
		if got := shorten(c[0], 10); got != c[1] {
			t.Errorf("%q becomes %q, want %q", c[0], got, c[1])
		}
	}
	if got := fmt.Sprint(px(3.14159), px(7), px(-0.04)); got != "3.1 7 -0" && got != "3.1 7 0" {
		t.Errorf("lengths are written %q", got)
	}
}
