// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// unusable says why the config will never create a job; empty if it may.
func unusable(config *v1beta1.UpgradeConfig) string {
	if config == nil {
		return ""
	}
	c := meta.FindStatusCondition(config.Status.Conditions, v1beta1.ConditionReady)
	if c == nil || c.Status != metav1.ConditionFalse {
		return ""
	}
	return fmt.Sprintf("UpgradeConfig %s is not ready (%s): %s", config.Name, c.Reason, c.Message)
}

// pending says what an upgrade that has not ended waits for.
func pending(s sight) string {
	switch {
	case s.config == nil:
		return "there is no UpgradeConfig"
	case s.job == nil:
		c := meta.FindStatusCondition(s.config.Status.Conditions, v1beta1.ConditionScheduling)
		if c == nil {
			return "the operator has not looked at the UpgradeConfig"
		}
		return "no UpgradeJob was created: " + describe(c)
	}
	if len(s.job.Status.Blockers) == 0 {
		for i := range s.job.Status.Conditions {
			if c := &s.job.Status.Conditions[i]; c.Status == metav1.ConditionFalse {
				return describe(c)
			}
		}
		return "the job does not say what it waits for"
	}
	lines := []string{"it waits for"}
	for i := range s.job.Status.Blockers {
		b := &s.job.Status.Blockers[i]
		lines = append(lines, fmt.Sprintf("- %s: %s (clears when %s)", b.Object, b.Message, b.ClearsWhen))
	}
	return strings.Join(lines, "\n")
}

// times are the moments at which things were seen to happen, for the summary.
type times struct {
	start   time.Time
	created time.Time
	done    map[string]time.Time // by condition
	// paused is how long the job was in phase Paused, of which pausedAt is a moment; zero while it is in another one.
	paused   time.Duration
	pausedAt time.Time
}

func newTimes(start time.Time) *times {
	return &times{start: start, done: map[string]time.Time{}}
}

// take takes the time of what is new in s.
func (t *times) take(s sight, now time.Time) {
	if s.job == nil {
		return
	}
	if t.created.IsZero() {
		t.created = now
	}
	if !t.pausedAt.IsZero() {
		t.paused += now.Sub(t.pausedAt)
	}
	t.pausedAt = time.Time{}
	if s.job.Status.Phase == v1beta1.PhasePaused {
		t.pausedAt = now
	}
	for i := range s.job.Status.Conditions {
		c := &s.job.Status.Conditions[i]
		if _, seen := t.done[c.Type]; !seen && c.Status == metav1.ConditionTrue {
			t.done[c.Type] = now
		}
	}
}

// summary says how long each step took, in the order of the steps.
func (t *times) summary(job *v1beta1.UpgradeJob) string {
	var b strings.Builder
	outcome := outcomeOf(job)
	if outcome != nil {
		b.WriteString(summaryLine("outcome", fmt.Sprintf("%s (%s)", outcome.Type, outcome.Reason)))
	}
	b.WriteString(summaryLine("job created before its start", seconds(t.start.Sub(t.created))))
	before := t.start
	for i := range job.Status.Conditions {
		c := &job.Status.Conditions[i]
		at, done := t.done[c.Type]
		if !done || isOutcome(c.Type) {
			continue
		}
		b.WriteString(summaryLine(c.Type, seconds(at.Sub(before))))
		before = at
	}
	if t.paused > 0 {
		b.WriteString(summaryLine("of that in phase Paused", seconds(t.paused)))
	}
	if outcome != nil {
		b.WriteString(summaryLine("from the start to the outcome", seconds(t.done[outcome.Type].Sub(t.start))))
	}
	return b.String()
}

func summaryLine(what, value string) string { return fmt.Sprintf("  %-30s %s\n", what, value) }

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
