// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Package planner decides which UpgradeJob an UpgradeConfig creates, and when. It
// is pure: everything that it needs to know is given.
//
// For a start s of the schedule, with pinVersionWindow and maxSchedulingDelay:
//
//	  create at           give up at                 start
//	──────┼───────────────────┼─────────────────────────┼─────▶
//	    s - pin      s - pin + maxSchedulingDelay       s
//
// Between the first two the start is due: its job is created as soon as nothing
// is in the way. After the second, or once maxUpgradeStartDelay has passed since s,
// it is skipped, which is recorded with the reason.
package planner

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/schedule"
	"github.com/appuio/managed-upgrade-operator/pkg/suspension"
)

// shownStarts is how many starts the status of an UpgradeConfig lists.
const shownStarts = 10

// Facts is what a plan needs to know beside the config and its schedule.
type Facts struct {
	// Jobs of the config.
	Jobs []v1beta1.UpgradeJob
	// Windows of the config's namespace.
	Windows []v1beta1.UpgradeSuspensionWindow
	// Update is the highest available update, if there is one.
	Update *openshift.Release
}

// Plan is what is to be done for a config at a point in time.
type Plan struct {
	// Create is the job to create, or nil.
	Create *v1beta1.UpgradeJob
	// Scheduling is the condition that explains the plan.
	Scheduling metav1.Condition
	// Skipped is the latest start that was, or is about to be, skipped. Nil if there is none since the schedule
	// was first seen.
	Skipped *v1beta1.SkippedStart
	// Starts are the next starts; the first is that of the unfinished job while there is one.
	Starts []time.Time
	// LastScheduled is the latest start that has a job; the zero time if none ever had.
	LastScheduled time.Time
	// After is when to plan anew at the latest.
	After time.Duration
}

// Make plans for a config whose spec was first seen at status.scheduleObservedTime. It fails only if the schedule has
// no next start: schedule.ErrNoNextSchedule.
func Make(config *v1beta1.UpgradeConfig, s *schedule.Schedule, facts Facts, now time.Time) (Plan, error) {
	p := &planning{config: config, schedule: s, facts: facts, now: now}
	starts, err := s.NextN(now, shownStarts)
	if err != nil {
		return Plan{}, fmt.Errorf("find the next starts: %w", err)
	}
	plan := Plan{Skipped: config.Status.LastSkippedStart}
	pin, late := margins(config)

	p.wakeAt(starts[0]) // the list of starts changes
	p.wakeAt(suspension.NextChange(facts.Windows, suspension.ForConfigs, config, now))
	next, err := s.Next(now.Add(pin))
	if err != nil {
		return Plan{}, fmt.Errorf("find the next start: %w", err)
	}
	p.wakeAt(next.Add(-pin))

	due, isDue := p.due(pin)
	plan.LastScheduled = p.lastScheduled(due)
	reason, message := p.obstacle(due, isDue)
	switch {
	case isDue && reason == "":
		plan.Create = NewJob(config, due, facts.Update)
		plan.LastScheduled = due
		if skipped := plan.Skipped; skipped != nil && skipped.StartAfter.Time.Equal(due) {
			plan.Skipped = nil // what was in the way has gone in time
		}
		plan.Scheduling = v1beta1.NotScheduling(v1beta1.ReasonJobActive, jobActive(plan.Create.Name))
	case isDue:
		plan.Skipped = &v1beta1.SkippedStart{StartAfter: metav1.NewTime(due), Reason: reason, Message: message}
		plan.Scheduling = v1beta1.NotScheduling(reason, fmt.Sprintf("%s No job is created for the start at %s.", message, stamp(due)))
		p.wakeAt(due.Add(late - pin).Add(time.Millisecond))
	default:
		p.noteMissed(&plan, pin, late)
		plan.Scheduling = p.idle(&plan, reason, message, next, pin)
	}
	plan.Starts = p.shown(plan.Create, starts)
	plan.After = p.after
	return plan, nil
}

type planning struct {
	config   *v1beta1.UpgradeConfig
	schedule *schedule.Schedule
	facts    Facts
	now      time.Time
	after    time.Duration
	// ahead is set if now is a time that is yet to come: a job whose start has come by then may be over.
	ahead bool
}

// wakeAt makes the plan last until t at most; a time that is not in the future does not count.
func (p *planning) wakeAt(t time.Time) {
	if d := t.Sub(p.now); d > 0 && (p.after == 0 || d < p.after) {
		p.after = d
	}
}

// shown puts the start of the unfinished job, if it has come, before the next starts. It stays there until the job has
// ended: that is what is next for whoever looks, and nothing need be written at the very moment of the start.
func (p *planning) shown(created *v1beta1.UpgradeJob, next []time.Time) []time.Time {
	job := created
	for i := range p.facts.Jobs {
		if !p.facts.Jobs[i].Status.Phase.Finished() {
			job = &p.facts.Jobs[i]
		}
	}
	if job == nil || job.Spec.StartAfter.After(p.now) {
		return next
	}
	return append([]time.Time{job.Spec.StartAfter.Time}, next[:min(len(next), shownStarts-1)]...)
}

// lastScheduled is the latest start that has a job. It does not rest on the record alone, which a crash between the
// creation of a job and the write of it leaves behind; and a job's name tells its start even if its startAfter was
// changed.
func (p *planning) lastScheduled(start time.Time) time.Time {
	var latest time.Time
	if t := p.config.Status.LastScheduledUpgrade; t != nil {
		latest = t.Time
	}
	for i := range p.facts.Jobs {
		job := &p.facts.Jobs[i]
		if t := job.Spec.StartAfter.Time; t.After(latest) {
			latest = t
		}
		if start.After(latest) && job.Name == jobName(p.config, start) {
			latest = start
		}
	}
	return latest
}

// handled is the time up to which starts are dealt with, as far as start: they have a job, or are older than the
// schedule.
func (p *planning) handled(start time.Time) time.Time {
	latest := p.config.CreationTimestamp.Time
	if t := p.config.Status.ScheduleObservedTime; t != nil && t.After(latest) {
		latest = t.Time
	}
	// A job for a later start, which may be gone, says nothing of an earlier one that the schedule has got since.
	if t := p.lastScheduled(start); t.After(latest) && (!t.After(p.now) || t.Equal(start)) {
		latest = t
	}
	return latest
}

// due returns the latest start whose job may be created now. When several are due, because the operator was away, the
// older ones are history: an upgrade is wanted once.
func (p *planning) due(pin time.Duration) (time.Time, bool) {
	s, err := p.schedule.Prev(p.now.Add(pin).Add(time.Nanosecond))
	return s, err == nil && p.creatable(s)
}

// creatable tells whether it is not too late for the job of a start that is due, and whether the start is not dealt with.
func (p *planning) creatable(start time.Time) bool {
	_, last := CreationTimes(p.config, start)
	return start.After(p.handled(start)) && !p.now.After(last)
}

// active tells whether the job keeps others from being created.
func (p *planning) active(job *v1beta1.UpgradeJob) bool {
	return !job.Status.Phase.Finished() && (!p.ahead || job.Spec.StartAfter.After(p.now))
}

// obstacle says what keeps the config from creating a job: for the start that is due, or in general.
func (p *planning) obstacle(due time.Time, isDue bool) (reason, message string) {
	if p.config.Spec.Schedule.Suspend {
		return v1beta1.ReasonSuspended, "spec.schedule.suspend is set."
	}
	w := suspension.Active(p.facts.Windows, suspension.ForConfigs, p.config, p.now)
	if w == nil && isDue {
		w = suspension.Active(p.facts.Windows, suspension.ForConfigs, p.config, due)
	}
	if w != nil {
		message := fmt.Sprintf("UpgradeSuspensionWindow %s suspends upgrades until %s", w.Name, stamp(w.Spec.End.Time))
		if w.Spec.Reason != "" {
			message += ": " + strings.TrimSuffix(w.Spec.Reason, ".")
		}
		return v1beta1.ReasonSuspensionWindow, message + "."
	}
	for i := range p.facts.Jobs {
		if job := &p.facts.Jobs[i]; p.active(job) {
			return v1beta1.ReasonJobActive, jobActive(job.Name)
		}
	}
	if isDue && p.facts.Update == nil && p.config.Spec.NoUpdatePolicy != v1beta1.NoUpdatePolicyCreateJob {
		return v1beta1.ReasonNoUpdateAvailable, "The cluster offers no update."
	}
	return "", ""
}

// noteMissed records the latest start that cannot get a job any more, unless it is recorded with a better reason.
func (p *planning) noteMissed(plan *Plan, pin, late time.Duration) {
	start, err := p.schedule.Prev(p.now.Add(pin).Add(-late))
	if err != nil || !start.After(p.handled(start)) {
		return
	}
	if plan.Skipped != nil && !plan.Skipped.StartAfter.Time.Before(start) {
		return
	}
	due, last := CreationTimes(p.config, start)
	plan.Skipped = &v1beta1.SkippedStart{StartAfter: metav1.NewTime(start), Reason: v1beta1.ReasonMissed, Message: missed(due, last)}
}

func missed(due, last time.Time) string {
	return fmt.Sprintf("The job was due at %s and was not created by %s.", stamp(due), stamp(last))
}

// idle explains a plan in which no start is due.
func (p *planning) idle(plan *Plan, reason, message string, next time.Time, pin time.Duration) metav1.Condition {
	var text strings.Builder
	if reason != "" {
		text.WriteString(message)
	} else {
		fmt.Fprintf(&text, "The next job is created at %s for the start at %s.", stamp(next.Add(-pin)), stamp(next))
	}
	if s := plan.Skipped; s != nil && s.StartAfter.After(p.handled(s.StartAfter.Time)) {
		fmt.Fprintf(&text, " The start at %s was skipped (%s): %s", stamp(s.StartAfter.Time), s.Reason, s.Message)
	}
	if reason != "" {
		return v1beta1.NotScheduling(reason, text.String())
	}
	return v1beta1.Scheduling(text.String())
}

func jobActive(name string) string { return fmt.Sprintf("UpgradeJob %s is not finished.", name) }

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
