// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// px is a length of the picture.
type px float64

// String rounds to tenths: more is not seen, and less is smaller.
func (p px) String() string { return strconv.FormatFloat(math.Round(float64(p)*10)/10, 'f', -1, 64) }

// Measures of the picture.
const (
	pictureWidth = px(1200)
	labelWidth   = px(284)
	detailWidth  = px(172)
	plotLeft     = labelWidth
	plotRight    = pictureWidth - detailWidth
	trackHeight  = px(20)
	barHeight    = px(12)
	groupHeight  = px(26)
	axisHeight   = px(16)
	flagHeight   = px(15)
	// letterWidth is that of an average letter, generously.
	letterWidth = px(6.4)
	// leastBar is how wide a bar is at least: what took no time is to be seen.
	leastBar = px(2.5)
	// maxFlagLines is how many lines of flags there are above the lanes; what finds no room there stands in the table of moments.
	maxFlagLines = 6
	maxLabel     = 40
	maxDetail    = 24
)

// picture is a timeline with places: what the template draws.
type picture struct {
	Width, Height px
	// Title and Description for who does not see it.
	Title, Description  string
	Left, Right         px
	PlotTop, PlotBottom px
	Axes                []pictureAxis
	Grid                []px
	Bands               []pictureBand
	Flags               []pictureFlag
	Headings            []pictureText
	Rows                []pictureRow
}

// pictureAxis is the scale in one time zone.
type pictureAxis struct {
	Zone string
	Y    px
	At   []pictureText
}

type pictureText struct {
	X, Y px
	Text string
}

type pictureBand struct {
	X, Width    px
	Class, Text string
	// Edged bands have lines at both ends, which other bands do not hide.
	Edged bool
}

// pictureFlag is a mark with its text. Line is unset where it lies outside of the picture.
type pictureFlag struct {
	X, TextX, TextY px
	Anchor          string
	Class, Text     string
	// Line is set if the moment lies in the picture, Labelled if there is room for its text.
	Line, Labelled bool
}

type pictureRow struct {
	Y, Height     px
	TextY         px
	Label, Detail string
	// FullLabel and FullDetail are what Label and Detail are short for.
	FullLabel, FullDetail string
	Class                 string
	Bars                  []pictureBar
	// Ticks is the path of all ticks of the row.
	Ticks    string
	TickText string
}

type pictureBar struct {
	X, Y, Width, Height px
	Class, Text         string
}

// draw gives everything in a timeline its place. Times are told in UTC, and in the zone besides where that differs.
func draw(t timeline, zone *time.Location, title string) picture {
	p := picture{Width: pictureWidth, Left: plotLeft, Right: plotRight, Title: title}
	p.Axes, p.Grid = axes(t, zone)
	p.Flags = flags(t)
	top := px(len(p.Axes))*axisHeight + 8
	lines := 0
	for i := range p.Flags {
		lines = max(lines, int(p.Flags[i].TextY)+1) // a number of a line until now
		p.Flags[i].TextY = top + p.Flags[i].TextY*flagHeight + 9
	}
	p.PlotTop = top + px(lines)*flagHeight + 4
	for _, b := range t.Bands {
		x, end := t.x(b.Start), t.x(b.End)
		if end > x || b.Kind == bandWindow && x > plotLeft && x < plotRight {
			p.Bands = append(p.Bands, pictureBand{x, end - x, "band " + b.Kind, fmt.Sprintf("%s: %s to %s", b.Text, stampUTC(b.Start), stampUTC(b.End)), b.Kind == bandWindow})
		}
	}
	y := p.PlotTop
	for _, group := range t.Groups {
		p.Headings = append(p.Headings, pictureText{0, y + 18, strings.TrimSuffix(group.Title+" ("+group.More+")", " ()")})
		y += groupHeight
		for i := range group.Lanes {
			row := t.row(&group.Lanes[i], y)
			p.Rows = append(p.Rows, row)
			y += row.Height
		}
	}
	p.PlotBottom = y + 4
	p.Height = p.PlotBottom + 4
	p.Description = describe(t)
	return p
}

// x is the place of a moment, at the edge for what lies outside.
func (t timeline) x(at time.Time) px {
	share := float64(at.Sub(t.From)) / float64(t.To.Sub(t.From))
	return plotLeft + px(min(max(share, 0), 1))*(plotRight-plotLeft)
}

// row draws a lane: its bars in as many tracks as it takes that none covers another.
func (t timeline) row(l *lane, y px) pictureRow {
	row := pictureRow{Y: y, Label: shorten(l.Label, maxLabel), Detail: shorten(l.Detail, maxDetail), FullLabel: l.Label, FullDetail: l.Detail, TextY: y + 14}
	if l.Idle {
		row.Class = "idle"
	}
	tracks := pack(l.Bars)
	count := 1
	for i, b := range l.Bars {
		count = max(count, tracks[i]+1)
		row.Bars = append(row.Bars, t.bar(b, y+px(tracks[i])*trackHeight+(trackHeight-barHeight)/2))
	}
	row.Height = px(count) * trackHeight
	row.Ticks, row.TickText = t.ticks(l.Ticks, y)
	return row
}

func (t timeline) bar(b bar, y px) pictureBar {
	x, end := t.x(b.Start), t.x(b.End)
	width := max(end-x, leastBar)
	x = min(x, plotRight-width)
	text := fmt.Sprintf("%s (%s to %s)", b.Text, stampUTC(b.Start), stampUTC(b.End))
	if b.Open {
		text = fmt.Sprintf("%s (since %s)", b.Text, stampUTC(b.Start))
	}
	class := "bar " + string(b.State)
	if b.Open {
		class += " open"
	}
	return pictureBar{x, y, width, barHeight, class, text}
}

// ticks is one path for all moments, of which several may fall on one place.
func (t timeline) ticks(at []time.Time, y px) (path, text string) {
	if len(at) == 0 {
		return "", ""
	}
	var places []px
	for _, tick := range at {
		if x := px(math.Round(float64(t.x(tick)))); !slices.Contains(places, x) {
			places = append(places, x)
		}
	}
	var b strings.Builder
	for _, x := range places {
		fmt.Fprintf(&b, "M%s %sv%s", x, y+1, trackHeight-2)
	}
	return b.String(), fmt.Sprintf("%d nodes done, %s to %s", len(at), stampUTC(at[0]), stampUTC(at[len(at)-1]))
}

// pack returns for each bar the track that it goes to: the first that is free at its start.
func pack(bars []bar) []int {
	order := make([]int, len(bars))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return bars[a].Start.Compare(bars[b].Start) })
	tracks := make([]int, len(bars))
	var free []time.Time
	for _, i := range order {
		track := slices.IndexFunc(free, func(until time.Time) bool { return !bars[i].Start.Before(until) })
		if track < 0 {
			track = len(free)
			free = append(free, time.Time{})
		}
		free[track] = bars[i].End
		tracks[i] = track
	}
	return tracks
}

// flags places the texts of the marks in lines above the lanes, so that none covers another. TextY is the number of the line.
func flags(t timeline) []pictureFlag {
	var placed []pictureFlag
	var lines [][2]px // taken from, to
	var lineOf []int
	for _, m := range t.Marks {
		f := pictureFlag{X: t.x(m.Time), Class: "mark " + m.Kind, Text: m.Text, Line: !m.Time.Before(t.From) && !m.Time.After(t.To)}
		if !f.Line {
			f.Text = outside(m, t)
		}
		width := px(utf8.RuneCountInString(f.Text)) * letterWidth
		f.Anchor, f.TextX = "start", f.X+4
		from, to := f.TextX, f.TextX+width
		if to > plotRight+detailWidth/2 {
			f.Anchor, f.TextX = "end", f.X-4
			from, to = f.TextX-width, f.TextX
		}
		for line := range maxFlagLines {
			free := true
			for i, taken := range lines {
				free = free && (lineOf[i] != line || to+letterWidth < taken[0] || from > taken[1]+letterWidth)
			}
			if free {
				f.Labelled, f.TextY = true, px(line)
				lines, lineOf = append(lines, [2]px{from, to}), append(lineOf, line)
				break
			}
		}
		placed = append(placed, f)
	}
	return placed
}

// outside tells of a moment beyond the picture.
func outside(m mark, t timeline) string {
	if m.Time.After(t.To) {
		return fmt.Sprintf("%s: %s \u2192", m.Text, stampUTC(m.Time))
	}
	return fmt.Sprintf("\u2190 %s: %s", m.Text, stampUTC(m.Time))
}

// describe says in words what the picture shows.
func describe(t timeline) string {
	words := []string{fmt.Sprintf("From %s to %s.", stampUTC(t.From), stampUTC(t.To))}
	for _, group := range t.Groups {
		var parts []string
		for _, lane := range group.Lanes {
			if len(parts) == maxLabel {
				parts = append(parts, fmt.Sprintf("and %d more", len(group.Lanes)-len(parts)))
				break
			}
			parts = append(parts, strings.TrimSuffix(lane.Label+" ("+lane.Detail+")", " ()"))
		}
		words = append(words, group.Title+": "+strings.Join(parts, ", ")+".")
	}
	return strings.Join(words, " ")
}

func shorten(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit-1]) + "\u2026"
}

// stampUTC is a time in UTC, for programs of people: "2026-11-22 03:04:05 UTC".
func stampUTC(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }
