// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"time"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/planner"
	"github.com/appuio/managed-upgrade-operator/pkg/schedule"
	"github.com/appuio/managed-upgrade-operator/pkg/suspension"
)

// windowsInTheWay are the suspension windows that have to do with a start, and what they do: those of the config when the job would be created or started, and
// those of the job when it would start.
func windowsInTheWay(config *v1beta1.UpgradeConfig, job *v1beta1.UpgradeJob, windows []v1beta1.UpgradeSuspensionWindow, outlook planner.Outlook, p previewStart, now time.Time) []previewWindow {
	var found []previewWindow
	add := func(w *v1beta1.UpgradeSuspensionWindow, selects, effect string) {
		found = append(found, previewWindow{Name: w.Name, Reason: w.Spec.Reason, Selects: selects, Effect: effect, End: utc(w.Spec.End.Time)})
	}
	_, last := planner.CreationTimes(config, p.start)
	created := later(p.created, now)
	free := created // of windows, one of which may begin before another ends
	for w := suspension.Active(windows, suspension.ForConfigs, config, free); w != nil; w = suspension.Active(windows, suspension.ForConfigs, config, free) {
		free = w.Spec.End.Time
	}
	for i := range windows {
		w := &windows[i]
		switch {
		case outlook.Job != nil || !suspension.Matches(w, suspension.ForConfigs, config):
		case suspension.Covers(w, p.start):
			add(w, "config", "no job is created")
			continue // which it could keep from starting
		case !w.Spec.Start.Time.Before(free) || !w.Spec.End.After(created):
		case !w.Spec.End.Time.Before(last):
			add(w, "config", "no job is created: it would be too late when the window ends")
		case outlook.Created.Equal(w.Spec.End.Time):
			add(w, "config", "the job is created when the window ends")
		default:
			add(w, "config", "the job is not created before the window ends")
		}
		if suspension.Covers(w, p.start) && suspension.Matches(w, suspension.ForJobs, job) {
			add(w, "job", "the job is skipped")
		}
	}
	return found
}

// clockChange says what a change of the clock does to a start; empty if it does nothing. What the schedule wants is found by reading it in UTC, where the clock
// never changes.
func clockChange(spec v1beta1.UpgradeConfigSchedule, start time.Time) string {
	wanted, err := schedule.Parse(spec.Cron, spec.ISOWeek, "UTC")
	if err != nil {
		return ""
	}
	year, month, day := start.Date()
	wall := time.Date(year, month, day, start.Hour(), start.Minute(), start.Second(), 0, time.UTC)
	latest, err := wanted.Prev(wall.Add(time.Nanosecond))
	if err == nil && !latest.Equal(wall) {
		return fmt.Sprintf("moved: %s does not exist, clocks go forward", latest.Format("Mon 15:04"))
	}
	// Within the time that is shown twice the first one counts.
	_, end := start.ZoneBounds()
	if end.IsZero() {
		return ""
	}
	_, before := start.Zone()
	_, after := end.Zone()
	back := time.Duration(before-after) * time.Second
	if back > 0 && !start.Before(end.Add(-back)) {
		return fmt.Sprintf("%s comes twice, clocks go back: this is the first", start.Format("15:04"))
	}
	return ""
}
