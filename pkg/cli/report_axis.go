// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import "time"

// axisSteps are the distances between two times on the axis.
var axisSteps = []time.Duration{
	10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 48 * time.Hour, 7 * 24 * time.Hour,
}

// maxAxisTimes is how many times stand on the axis at most.
const maxAxisTimes = 9

// axisStep is the distance that puts few enough times on the axis. Beyond years it is a share of the whole.
func axisStep(span time.Duration) time.Duration {
	for _, step := range axisSteps {
		if span/step < maxAxisTimes {
			return step
		}
	}
	return (span / maxAxisTimes).Truncate(24*time.Hour) + 24*time.Hour
}

// axes returns the scale in UTC, and in the zone where that differs, and the places of the grid.
func axes(t timeline, zone *time.Location) ([]pictureAxis, []px) {
	step := axisStep(t.To.Sub(t.From))
	var times []time.Time
	for at := t.From.UTC().Truncate(step); !at.After(t.To); at = at.Add(step) {
		if !at.Before(t.From) {
			times = append(times, at)
		}
	}
	list := []pictureAxis{axis(times, step, time.UTC, 12)}
	if _, offset := t.From.In(zone).Zone(); offset != 0 {
		list = append(list, axis(times, step, zone, 12+axisHeight))
	}
	grid := make([]px, 0, len(times))
	for _, at := range times {
		grid = append(grid, t.x(at))
	}
	for i := range list {
		for j := range list[i].At {
			list[i].At[j].X = grid[j]
		}
	}
	return list, grid
}

// axis words the times in a zone: with the date on the first one and on each that begins another day.
func axis(times []time.Time, step time.Duration, zone *time.Location, y px) pictureAxis {
	a := pictureAxis{Y: y, Zone: zone.String()}
	format := "15:04"
	if step < time.Minute {
		format = "15:04:05"
	}
	day := ""
	for _, at := range times {
		local := at.In(zone)
		text := local.Format(format)
		if date := local.Format("2 Jan"); date != day {
			day = date
			text = date + " " + text
		}
		a.At = append(a.At, pictureText{Y: y, Text: text})
	}
	if len(times) > 0 {
		a.Zone, _ = times[0].In(zone).Zone()
	}
	return a
}
