// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/muo"
	"github.com/appuio/managed-upgrade-operator/pkg/planner"
	"github.com/appuio/managed-upgrade-operator/pkg/suspension"
)

// freezeEffect is what a window does.
type freezeEffect struct {
	// configs that create no jobs in the window.
	configs []frozenConfig
	// skipped are jobs that were to start in the window, and will be skipped.
	skipped []frozenJob
	// starting are jobs that start in the window all the same.
	starting []frozenJob
	// running are jobs that run now, and go on.
	running []string
}

type frozenConfig struct {
	name string
	// starts that get no job; more says that there are others.
	starts []time.Time
	more   bool
	// invalid says why the starts are not known.
	invalid error
}

type frozenJob struct {
	name  string
	start time.Time
}

// maxFrozenStarts is how many starts of a config are listed.
const maxFrozenStarts = 5

// effectOf finds out what the window does to configs and jobs of its namespace.
func effectOf(window *v1beta1.UpgradeSuspensionWindow, configs []v1beta1.UpgradeConfig, jobs []v1beta1.UpgradeJob, now time.Time) freezeEffect {
	var effect freezeEffect
	for i := range configs {
		if suspension.Matches(window, suspension.ForConfigs, &configs[i]) {
			effect.configs = append(effect.configs, frozenStarts(window, &configs[i], jobs, now))
		}
	}
	for i := range jobs {
		job := &jobs[i]
		start := job.Spec.StartAfter.Time
		switch {
		case job.Status.Phase.Finished():
		case job.Status.StartTime != nil:
			effect.running = append(effect.running, job.Name)
		case !suspension.Covers(window, start) && !suspension.Covers(window, later(start, now)):
		case suspension.Matches(window, suspension.ForJobs, job):
			effect.skipped = append(effect.skipped, frozenJob{job.Name, start})
		default:
			effect.starting = append(effect.starting, frozenJob{job.Name, start})
		}
	}
	return effect
}

// addManaged adds what the window does to the objects of the Managed Upgrade Operator's kind, of which it selects the jobs only: to those that have none yet.
// A time that cannot be read, or that has passed when the object is created, starts at once, and is none of which the window can tell.
func (e *freezeEffect) addManaged(window *v1beta1.UpgradeSuspensionWindow, configs []v1alpha1.UpgradeConfig, jobs []v1beta1.UpgradeJob) {
	for i := range configs {
		config := &configs[i]
		start, err := time.Parse(time.RFC3339, config.Spec.UpgradeAt)
		if err != nil || !suspension.Covers(window, start) || muo.FindJob(jobs, muo.JobName(config)) != nil {
			continue
		}
		job := &v1beta1.UpgradeJob{ObjectMeta: metav1.ObjectMeta{Namespace: config.Namespace, Labels: map[string]string{v1alpha1.UpgradeConfigLabel: config.Name}}}
		to, skipped := &e.starting, suspension.Matches(window, suspension.ForJobs, job)
		if skipped {
			to = &e.skipped
		}
		*to = append(*to, frozenJob{"of the Managed Upgrade Operator's UpgradeConfig " + config.Name, start})
	}
}

// frozenStarts lists the starts of the config that get no job because of the window: those that lie in it, and those whose job would be created in it and could not
// be made up for behind it.
func frozenStarts(window *v1beta1.UpgradeSuspensionWindow, config *v1beta1.UpgradeConfig, jobs []v1beta1.UpgradeJob, now time.Time) frozenConfig {
	frozen := frozenConfig{name: config.Name}
	s, err := parseSchedule(config.Spec.Schedule)
	if err != nil {
		frozen.invalid = err
		return frozen
	}
	facts := planned(config, jobs, []v1beta1.UpgradeSuspensionWindow{*window})
	end := window.Spec.End.Time
	for start, err := s.Next(later(window.Spec.Start.Time, now).Add(-time.Nanosecond)); err == nil; {
		if created, _ := planner.CreationTimes(config, start); !start.Before(end) && !created.Before(end) {
			break
		}
		var after time.Time
		after, err = s.Next(start)
		outlook := planner.Foresee(config, start, after, facts, now)
		if outlook.Job == nil && (suspension.Covers(window, start) || outlook.Reason == v1beta1.ReasonSuspensionWindow) {
			if len(frozen.starts) == maxFrozenStarts {
				frozen.more = true
				break
			}
			frozen.starts = append(frozen.starts, start)
		}
		start = after
	}
	return frozen
}

// lines says the effect in sentences.
func (e freezeEffect) lines(zone *time.Location) []string {
	var lines []string
	for _, c := range e.configs {
		switch {
		case c.invalid != nil:
			lines = append(lines, fmt.Sprintf("UpgradeConfig %s creates no jobs in it. Its starts are not known: %v.", c.name, c.invalid))
		case len(c.starts) == 0:
			lines = append(lines, fmt.Sprintf("UpgradeConfig %s creates no jobs in it, and has no start in it.", c.name))
		default:
			lines = append(lines, fmt.Sprintf("UpgradeConfig %s creates no jobs for its starts: %s.", c.name, c.list(zone)))
		}
	}
	for _, job := range e.skipped {
		lines = append(lines, fmt.Sprintf("UpgradeJob %s, which starts at %s, will be skipped.", job.name, moment(job.start, zone)))
	}
	if len(lines) == 0 {
		lines = append(lines, "It selects no UpgradeConfig, and no UpgradeJob that starts in it.")
	}
	for _, job := range e.starting {
		lines = append(lines, fmt.Sprintf("UpgradeJob %s starts at %s all the same: the window does not select it (--jobs, --all).", job.name, moment(job.start, zone)))
	}
	for _, name := range e.running {
		lines = append(lines, fmt.Sprintf("UpgradeJob %s runs, and goes on.", name))
	}
	return lines
}

func (c frozenConfig) list(zone *time.Location) string {
	texts := make([]string, 0, len(c.starts)+1)
	for _, start := range c.starts {
		texts = append(texts, moment(start, zone))
	}
	if c.more {
		texts = append(texts, "and others")
	}
	return strings.Join(texts, ", ")
}
