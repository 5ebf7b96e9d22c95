// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"fmt"
	"time"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/suspension"
)

// Outlook is what becomes of a start of a schedule, as far as that is known before its time. Of Job, Created and Reason exactly one is set.
type Outlook struct {
	// Job that the start has; nil if it has none.
	Job *v1beta1.UpgradeJob
	// Created is when the start gets its job; the zero time if it has one, or gets none.
	Created time.Time
	// Reason why the start gets no job: Suspended, SuspensionWindow, JobActive or Missed. Empty if it gets, or has, one.
	Reason string
	// Message says the reason in words: one sentence, in which times are UTC.
	Message string
}

// CreationTimes returns when the job of a start is due to be created, and when the operator gives that up: after last no job is created for the start.
func CreationTimes(config *v1beta1.UpgradeConfig, start time.Time) (due, last time.Time) {
	pin, late := margins(config)
	return start.Add(-pin), start.Add(late - pin)
}

// margins are how long before its start a job is due to be created, and how late it may be.
func margins(config *v1beta1.UpgradeConfig) (pin, late time.Duration) {
	pin = config.Spec.PinVersionWindow.Or(0)
	late = min(config.Spec.MaxSchedulingDelay.Or(v1beta1.DefaultMaxSchedulingDelay),
		pin+config.Spec.MaxUpgradeStartDelay.Or(v1beta1.DefaultMaxUpgradeStartDelay)) // later the job would be born expired
	return pin, late
}

// Foresee tells whether a start gets a job, and when, by the rules of Make. The start that follows it in the schedule is the zero time where it is not known.
//
// What holds now is taken to hold as long as the start may get its job, but for what is certain to end: windows do, and a job for a start that is not due yet
// may be over from its own start on. Whether the cluster will offer an update is not asked. A job that another
// start is to get is known only if the facts have it.
func Foresee(config *v1beta1.UpgradeConfig, start, following time.Time, facts Facts, now time.Time) Outlook {
	facts.Update = &openshift.Release{}
	p := &planning{config: config, facts: facts, now: now}
	if job := p.jobOf(start); job != nil {
		return Outlook{Job: job}
	}
	due, last := CreationTimes(config, start)
	if due.After(now) {
		p.now, p.ahead = due, true
	}
	out := Outlook{Reason: v1beta1.ReasonMissed, Message: missed(due, last)}
	switch {
	case !start.After(p.handled(start)):
		out.Message = "It had a job, which is gone, or it is older than the schedule."
	case p.superseded(following):
		out.Message = fmt.Sprintf("The job is that of the start at %s by then.", stamp(following))
	}
	// Who waits for a moment wakes behind it: one that is the last is too late.
	for at := p.now; p.creatable(start) && !p.superseded(following) && (p.now.Equal(at) || p.now.Before(last)); {
		reason, message := p.obstacle(start, true)
		if reason == "" {
			return Outlook{Created: p.now}
		}
		out.Reason, out.Message = reason, message
		next := p.nextTurn()
		if next.IsZero() {
			break
		}
		p.now = next
	}
	return out
}

// jobOf returns the job of the start, also if its startAfter was changed; nil if there is none.
func (p *planning) jobOf(start time.Time) *v1beta1.UpgradeJob {
	name := jobName(p.config, start)
	for i := range p.facts.Jobs {
		if job := &p.facts.Jobs[i]; job.Name == name || job.Spec.StartAfter.Time.Equal(start) {
			return job
		}
	}
	return nil
}

// superseded tells whether the start that follows is due already: of several the latest gets the job.
func (p *planning) superseded(following time.Time) bool {
	if following.IsZero() {
		return false
	}
	due, _ := CreationTimes(p.config, following)
	return !p.now.Before(due)
}

// nextTurn is when something that is in the way may be over; the zero time if nothing will be.
func (p *planning) nextTurn() time.Time {
	next := suspension.NextChange(p.facts.Windows, suspension.ForConfigs, p.config, p.now)
	for i := range p.facts.Jobs {
		if start := p.facts.Jobs[i].Spec.StartAfter.Time; p.ahead && start.After(p.now) && (next.IsZero() || start.Before(next)) {
			next = start
		}
	}
	return next
}
