// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// progressInterval is the least time between two lines about the progress of the cluster.
const progressInterval = 2 * time.Second

// reporter says what is different from one sight of the cluster to the next.
type reporter struct {
	say func(subject string, st style, text string)
	// location is the time zone of the times that it says.
	location *time.Location

	conditions map[string]string // what was said of each condition, by object and type
	hooks      map[string]v1beta1.HookRunStatus
	paused     map[string]bool // by pool
	told       map[string]bool // what is told once
	seenJob    string
	seenPhase  v1beta1.Phase
	blockers   string
	progress   string
	progressAt time.Time
}

func newReporter(say func(subject string, st style, text string), location *time.Location) *reporter {
	return &reporter{
		say: say, location: location, conditions: map[string]string{}, hooks: map[string]v1beta1.HookRunStatus{},
		paused: map[string]bool{}, told: map[string]bool{},
	}
}

// report says what is new in s.
func (r *reporter) report(s sight, now time.Time) {
	if s.config != nil {
		r.config(s.config)
	}
	for i := range s.drains {
		r.forceDrain(&s.drains[i])
	}
	if s.job == nil {
		return
	}
	r.job(s.job, now)
	r.phase(s.job)
	r.hookRuns(s.job)
	r.pools(s)
	r.cluster(s, now)
	r.waitsFor(s.job)
	r.stuck(s.job)
	r.outcome(s.job)
}

func (r *reporter) config(config *v1beta1.UpgradeConfig) {
	conditions := config.Status.Conditions
	for i := range conditions {
		c := &conditions[i]
		if !r.turned("config", c) {
			continue
		}
		st := plain
		if c.Type == v1beta1.ConditionReady && c.Status != metav1.ConditionTrue {
			st = bad
		}
		r.say("config", st, describe(c))
	}
}

func (r *reporter) job(job *v1beta1.UpgradeJob, now time.Time) {
	if r.seenJob != job.Name {
		r.seenJob = job.Name
		version := "no version"
		if v := job.Spec.DesiredVersion; v != nil {
			version = "version " + v.Version + " pinned"
		}
		r.say("job", strong, fmt.Sprintf("%s created: %s; it starts at %s (in %s), until %s at the latest", job.Name, version,
			r.at(job.Spec.StartAfter), job.Spec.StartAfter.Sub(now).Round(time.Second), r.at(job.Spec.StartBefore)))
	}
	for i := range job.Status.Conditions {
		c := &job.Status.Conditions[i]
		if isOutcome(c.Type) || !r.turned(job.Name, c) {
			continue
		}
		subject, st := "step", wait
		switch {
		case c.Type == v1beta1.ConditionStarted:
			subject, st = "job", plain
		case c.Type == v1beta1.ConditionPreflightHealthy && c.Status == metav1.ConditionTrue:
			subject, st = "job", good
		case c.Type == v1beta1.ConditionPreflightHealthy:
			subject = "job"
		case c.Status == metav1.ConditionTrue:
			st = good
		}
		r.say(subject, st, describe(c))
	}
}

// hookRuns says how the hooks of the job fare.
func (r *reporter) hookRuns(job *v1beta1.UpgradeJob) {
	for i := range job.Status.HookTracker {
		run := &job.Status.HookTracker[i]
		if key := fmt.Sprint(run.HookEvent, run.TrackingKey, run.UpgradeJobHook); r.hooks[key] != run.Status {
			r.hooks[key] = run.Status
			text, st := fmt.Sprintf("%s at %s: %s, Job %s", run.UpgradeJobHook, run.HookEvent, run.Status, run.Job), plain
			if run.Status == v1beta1.HookRunFailed {
				text, st = text+": "+run.Message, bad
			}
			r.say("hook", st, text)
		}
	}
}

// waitsFor says what the job says that it waits for, when that is something else than before. What is being worked on
// needs no more than its name; of anything else the kind of the obstacle is said too.
func (r *reporter) waitsFor(job *v1beta1.UpgradeJob) {
	names, st := make([]string, 0, len(job.Status.Blockers)), plain
	for i := range job.Status.Blockers {
		b := &job.Status.Blockers[i]
		name := b.Object
		if !strings.HasSuffix(b.Code, "Updating") {
			name, st = fmt.Sprintf("%s (%s)", b.Object, b.Code), wait
		}
		names = append(names, name)
	}
	text := shorten(names, shownBlockers)
	if text == r.blockers {
		return
	}
	if r.blockers = text; text != "" {
		r.say("job", st, "waits for "+text)
	}
}

// shownBlockers and shownInWork bound the lists in a line.
const (
	shownBlockers = 3
	shownInWork   = 5
)

func (r *reporter) cluster(s sight, now time.Time) {
	p := s.progress
	text := fmt.Sprintf("operators %d of %d, nodes %d of %d", p.operatorsUpdated, p.operators, p.nodesUpdated, p.nodes)
	if len(p.working) > 0 {
		text += "; in work: " + shorten(p.working, shownInWork)
	}
	begun := r.progress != "" || p.operatorsUpdated+p.nodesUpdated > 0 || len(p.working) > 0
	if !begun || text == r.progress || now.Sub(r.progressAt) < progressInterval {
		return
	}
	r.progress, r.progressAt = text, now
	r.say("cluster", dim, text)
}

func (r *reporter) outcome(job *v1beta1.UpgradeJob) {
	c := outcomeOf(job)
	if c == nil || !r.turned(job.Name, c) {
		return
	}
	st := bad
	if c.Type == v1beta1.ConditionSucceeded {
		st = good
	}
	r.say("job", st, fmt.Sprintf("%s (%s): %s", c.Type, c.Reason, c.Message))
}

// turned tells whether the condition changed its status or reason since it was last seen.
func (r *reporter) turned(object string, c *metav1.Condition) bool {
	key, value := object+"/"+c.Type, string(c.Status)+"/"+c.Reason
	if r.conditions[key] == value {
		return false
	}
	r.conditions[key] = value
	return true
}

func (r *reporter) at(t metav1.Time) string { return t.In(r.location).Format("15:04:05") }

// describe puts a condition into words.
func describe(c *metav1.Condition) string {
	if c.Status == metav1.ConditionTrue {
		return fmt.Sprintf("%s: %s", c.Type, c.Message)
	}
	return fmt.Sprintf("%s is %s (%s): %s", c.Type, c.Status, c.Reason, c.Message)
}

// isOutcome tells whether a condition is one that ends a job.
func isOutcome(condition string) bool {
	return slices.Contains([]string{v1beta1.ConditionSucceeded, v1beta1.ConditionFailed, v1beta1.ConditionSkipped}, condition)
}

// outcomeOf returns the condition that ended the job, nil while it goes on.
func outcomeOf(job *v1beta1.UpgradeJob) *metav1.Condition {
	for _, t := range []string{v1beta1.ConditionSucceeded, v1beta1.ConditionFailed, v1beta1.ConditionSkipped} {
		if c := meta.FindStatusCondition(job.Status.Conditions, t); c != nil && c.Status == metav1.ConditionTrue {
			return c
		}
	}
	return nil
}

// shorten lists the first few of the names.
func shorten(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
