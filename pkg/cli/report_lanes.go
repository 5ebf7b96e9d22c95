// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// Titles of the groups of lanes.
const (
	titleSteps = "Steps"
	titleHooks = "Hooks"
	titlePools = "Machine config pools"
	titleNodes = "Nodes"
)

// stepLanes returns a lane for each step, in order, also for those that have not begun.
func stepLanes(f timelineFacts, notes *notebook) laneGroup {
	status := &f.Job.Status
	group := laneGroup{Title: titleSteps}
	for _, name := range laneSteps(f) {
		i := slices.IndexFunc(status.Steps, func(s v1beta1.StepStatus) bool { return s.Condition == name })
		if i < 0 {
			group.Lanes = append(group.Lanes, lane{Label: name, Detail: "not begun", Idle: true})
			continue
		}
		group.Lanes = append(group.Lanes, stepLane(f, &status.Steps[i], notes))
	}
	return group
}

// laneSteps returns the steps of the job: those of its upgrader, and what the status has besides.
func laneSteps(f timelineFacts) []string {
	names := slices.Clone(f.Steps)
	for _, s := range f.Job.Status.Steps {
		if !slices.Contains(names, s.Condition) {
			names = append(names, s.Condition)
		}
	}
	return names
}

func stepLane(f timelineFacts, s *v1beta1.StepStatus, notes *notebook) lane {
	l := lane{Label: s.Condition}
	if s.Attempts > 1 {
		notes.add("%s was begun %d times; of a step only the last time is recorded.", s.Condition, s.Attempts)
	}
	condition := meta.FindStatusCondition(f.Job.Status.Conditions, s.Condition)
	start := s.StartTime.Time
	if s.CompletionTime != nil {
		end := ordered(start, s.CompletionTime.Time, "step "+s.Condition, notes)
		l.Detail = brief(end.Sub(start))
		l.Bars = []bar{{Start: start, End: end, State: barDone, Text: fmt.Sprintf("%s: done in %s", s.Condition, l.Detail)}}
		return l
	}
	reason := ""
	if condition != nil {
		reason = condition.Reason
	}
	if f.Job.Status.Phase.Finished() {
		b := endedStep(f, s, reason, notes)
		l.Bars, l.Detail = []bar{b}, fmt.Sprintf("%s after %s", b.State, brief(b.End.Sub(b.Start)))
		return l
	}
	l.Detail = brief(later(f.Now, start).Sub(start)) + " so far"
	l.Bars = stepInWork(f, s, cmp.Or(reason, "not done"))
	return l
}

// endedStep is the bar of the step at which a job ended.
func endedStep(f timelineFacts, s *v1beta1.StepStatus, reason string, notes *notebook) bar {
	end := f.Now
	if over := f.Job.Status.CompletionTime; over != nil {
		end = over.Time
	}
	b := bar{Start: s.StartTime.Time, End: ordered(s.StartTime.Time, end, "step "+s.Condition, notes), State: barStopped}
	b.Text = fmt.Sprintf("%s: not done when the job ended, after %s", s.Condition, brief(b.End.Sub(b.Start)))
	if f.Job.Status.Phase == v1beta1.PhaseFailed {
		b.State = barFailed
		b.Text = strings.TrimSuffix(fmt.Sprintf("%s: failed after %s: %s", s.Condition, brief(b.End.Sub(b.Start)), reason), ": ")
	}
	return b
}

// stepInWork returns the bars of the step that a job is at: work, and since when it waits for what does not come by itself.
func stepInWork(f timelineFacts, s *v1beta1.StepStatus, reason string) []bar {
	start, now := s.StartTime.Time, later(f.Now, s.StartTime.Time)
	since, blocker := waitingSince(f.Job)
	if blocker == nil || !isStepInWork(f.Job, s) {
		return []bar{{Start: start, End: now, Open: true, State: barRunning, Text: fmt.Sprintf("%s: in work for %s, %s", s.Condition, brief(now.Sub(start)), reason)}}
	}
	since = earlier(later(since, start), now)
	waits := bar{Start: since, End: now, Open: true, State: barWaiting, Text: fmt.Sprintf("%s: waits for %s: %s", s.Condition, brief(now.Sub(since)), blocker.Message)}
	if !since.After(start) {
		return []bar{waits}
	}
	return []bar{{Start: start, End: since, State: barRunning, Text: fmt.Sprintf("%s: in work for %s", s.Condition, brief(since.Sub(start)))}, waits}
}

// isStepInWork says whether the blockers of the job are those of the step: it is the last that has begun and is not done.
func isStepInWork(job *v1beta1.UpgradeJob, s *v1beta1.StepStatus) bool {
	for i := range job.Status.Steps {
		other := &job.Status.Steps[i]
		if other.CompletionTime == nil && other.StartTime.After(s.StartTime.Time) {
			return false
		}
	}
	return true
}

// waitingSince returns the oldest blocker that does not go by the upgrade's own work, and since when it stands; nil if there is none.
func waitingSince(job *v1beta1.UpgradeJob) (time.Time, *v1beta1.Blocker) {
	var oldest *v1beta1.Blocker
	for i := range job.Status.Blockers {
		b := &job.Status.Blockers[i]
		if strings.HasSuffix(b.Code, "Updating") {
			continue // ClusterVersionUpdating, MachineConfigPoolUpdating, NodeUpdating: this is the upgrade
		}
		if oldest == nil || b.Since.Before(&oldest.Since) {
			oldest = b
		}
	}
	if oldest == nil {
		return time.Time{}, nil
	}
	return oldest.Since.Time, oldest
}

// hookLanes returns a lane for each hook, those that failed or run first, then by their first run.
func hookLanes(f timelineFacts, notes *notebook) laneGroup {
	group := laneGroup{Title: titleHooks}
	index, urgent := map[string]int{}, map[string]bool{}
	for i := range f.Job.Status.HookTracker {
		run := &f.Job.Status.HookTracker[i]
		at, known := index[run.UpgradeJobHook]
		if !known {
			at = len(group.Lanes)
			index[run.UpgradeJobHook] = at
			group.Lanes = append(group.Lanes, lane{Label: run.UpgradeJobHook})
		}
		b := hookBar(f, run, notes)
		urgent[run.UpgradeJobHook] = urgent[run.UpgradeJobHook] || b.State != barDone
		group.Lanes[at].Bars = append(group.Lanes[at].Bars, b)
	}
	for i := range group.Lanes {
		group.Lanes[i].Detail = countRuns(group.Lanes[i].Bars)
	}
	if dropped := len(group.Lanes) - maxHookLanes; dropped > 0 {
		slices.SortStableFunc(group.Lanes, func(a, b lane) int { return compareBools(urgent[b.Label], urgent[a.Label]) })
		group.Lanes = group.Lanes[:maxHookLanes]
		group.More = fmt.Sprintf("and %d more hooks", dropped)
	}
	return group
}

func hookBar(f timelineFacts, run *v1beta1.HookRun, notes *notebook) bar {
	start := run.StartTime.Time
	name := fmt.Sprintf("hook %s at %s", run.UpgradeJobHook, run.HookEvent)
	if run.TrackingKey != "" {
		name += " (" + run.TrackingKey + ")"
	}
	if !run.Status.Finished() {
		now := later(f.Now, start)
		return bar{Start: start, End: now, Open: true, State: barRunning, Text: fmt.Sprintf("%s: running for %s", name, brief(now.Sub(start)))}
	}
	end := start
	if run.CompletionTime != nil {
		end = ordered(start, run.CompletionTime.Time, name, notes)
	}
	b := bar{Start: start, End: end, State: barDone, Text: fmt.Sprintf("%s: succeeded in %s", name, brief(end.Sub(start)))}
	if run.Status == v1beta1.HookRunFailed {
		b.State = barFailed
		b.Text = strings.TrimSuffix(fmt.Sprintf("%s: failed after %s: %s", name, brief(end.Sub(start)), run.Message), ": ")
	}
	return b
}

// countRuns says how the runs of a hook went: "1 failed of 3 runs".
func countRuns(bars []bar) string {
	failed, running := 0, 0
	for _, b := range bars {
		switch b.State { //nolint:exhaustive // hooks have no other states
		case barFailed:
			failed++
		case barRunning:
			running++
		}
	}
	words := fmt.Sprintf("%d runs", len(bars))
	if len(bars) == 1 {
		words = "1 run"
	}
	switch {
	case failed > 0:
		return fmt.Sprintf("%d failed of %s", failed, words)
	case running > 0:
		return fmt.Sprintf("%d running of %s", running, words)
	}
	return words
}

// ordered returns the end of something, or its start where the clocks say that it ended before that.
func ordered(start, end time.Time, what string, notes *notebook) time.Time {
	if end.Before(start) {
		notes.add("By its times, the %s ended %s before it began: the clocks of two machines differ. It is drawn as a moment.", what, brief(start.Sub(end)))
		return start
	}
	return end
}

// brief is a duration for people: "0 s", "42 s", "3 min 5 s", "2 h 10 min", "3 d 4 h".
func brief(d time.Duration) string {
	d = d.Round(time.Second)
	days, hours, minutes, seconds := d/(24*time.Hour), d/time.Hour%24, d/time.Minute%60, d/time.Second%60
	switch {
	case days > 0:
		return strings.TrimSuffix(fmt.Sprintf("%d d %d h", days, hours), " 0 h")
	case hours > 0:
		return strings.TrimSuffix(fmt.Sprintf("%d h %d min", hours, minutes), " 0 min")
	case minutes > 0:
		return strings.TrimSuffix(fmt.Sprintf("%d min %d s", minutes, seconds), " 0 s")
	}
	return fmt.Sprintf("%d s", seconds)
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// timeOf returns a time of the API; false where there is none.
func timeOf(t *metav1.Time) (time.Time, bool) {
	if t == nil || t.IsZero() {
		return time.Time{}, false
	}
	return t.Time, true
}
