// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/healthcheck"
	"github.com/appuio/managed-upgrade-operator/pkg/lifecycle"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/planner"
	"github.com/appuio/managed-upgrade-operator/pkg/pools"
	"github.com/appuio/managed-upgrade-operator/pkg/schedule"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/pkg/upgrader"
)

// previewReport is what is to be expected of a config.
type previewReport struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// File that the config is from; empty if it is the cluster's.
	File     string `json:"file,omitempty"`
	Cron     string `json:"cron"`
	ISOWeek  string `json:"isoWeek,omitempty"`
	Location string `json:"location"`
	// Suspended is set if spec.schedule.suspend is: then none of the starts gets a job.
	Suspended bool `json:"suspended"`
	// Starts are the next ones.
	Starts []previewStart `json:"starts"`
	// Running is the version of the cluster; empty where it is not known.
	Running string `json:"running,omitempty"`
	// WouldPin is the version that a job would get now; empty for none.
	WouldPin string `json:"wouldPin,omitempty"`
	// Pinning says in words what a job would get, if a cluster was looked at.
	Pinning  string        `json:"pinning,omitempty"`
	Upgrader string        `json:"upgrader"`
	Steps    []string      `json:"steps,omitempty"`
	Hooks    []previewHook `json:"hooks,omitempty"`
	// Problems are why the operator cannot use the config; none if it can.
	Problems []problem `json:"problems,omitempty"`
	// Notes say what may surprise.
	Notes []string `json:"notes,omitempty"`

	zone *time.Location
}

// previewStart is a start of a schedule. Times are RFC 3339.
type previewStart struct {
	// Start in UTC.
	Start string `json:"start"`
	// InZone is the same in the zone of the schedule.
	InZone string `json:"inZone"`
	// Created is when the job is created and its version pinned.
	Created string `json:"created"`
	// StartBefore is the latest moment at which the job starts.
	StartBefore string `json:"startBefore"`
	// Job that exists for the start.
	Job string `json:"job,omitempty"`
	// Clock says what a change of the clock does to the start.
	Clock string `json:"clock,omitempty"`
	// InTheWay are suspension windows, and what they do.
	InTheWay []previewWindow `json:"inTheWay,omitempty"`
	// Due says what becomes of a job that should have been created by now, and what other than a suspension keeps one from being created.
	Due string `json:"due,omitempty"`

	start, created, before time.Time
}

// previewWindow is a suspension window that has to do with a start.
type previewWindow struct {
	Name   string `json:"name"`
	Reason string `json:"reason,omitempty"`
	// Selects is "config" or "job": by which of its selectors it counts.
	Selects string `json:"selects"`
	// Effect on the start, in words.
	Effect string `json:"effect"`
	End    string `json:"end"`
}

// previewHook is a hook that will run.
type previewHook struct {
	Name          string   `json:"name"`
	Events        []string `json:"events"`
	FailurePolicy string   `json:"failurePolicy"`
	Disruptive    bool     `json:"disruptive"`
	// Run is "Next" for a hook that the first of the jobs only will have.
	Run string `json:"run"`
}

// previewOf judges a config. The variant may be nil; unusable says why, if that is known.
func previewOf(config *v1beta1.UpgradeConfig, f *previewFacts, variant upgrader.Upgrader, unusable error, count int) previewReport {
	spec := &config.Spec
	report := previewReport{
		Namespace: config.Namespace, Name: config.Name, File: f.fromFile,
		Cron: spec.Schedule.Cron, ISOWeek: spec.Schedule.ISOWeek, Location: spec.Schedule.Location, Suspended: spec.Schedule.Suspend,
		Starts: []previewStart{}, Upgrader: lifecycle.UpgraderOf(&spec.JobTemplate.Spec.Config), Problems: problemsOf(&spec.JobTemplate.Spec.Config),
	}
	if unusable != nil {
		report.Problems = append(report.Problems, problem{v1beta1.ReasonUnknownUpgrader, unusable.Error()})
	}
	if variant != nil {
		for _, step := range variant.Steps() {
			report.Steps = append(report.Steps, step.Condition())
		}
	}
	if p := refusedPools(&spec.JobTemplate.Spec.Config, f.pools); p != nil {
		report.Problems = append(report.Problems, *p)
	}
	if err := report.addStarts(config, f, count); err != nil {
		report.Problems = append(report.Problems, problem{reasonOfSchedule(err), err.Error()})
	}
	report.addPinning(config, f)
	report.addHooks(config, f)
	return report
}

// addStarts lists the next starts.
func (r *previewReport) addStarts(config *v1beta1.UpgradeConfig, f *previewFacts, count int) error {
	s, err := parseSchedule(config.Spec.Schedule)
	if err != nil {
		return err
	}
	starts, err := s.NextN(f.now, count)
	if err != nil {
		return err
	}
	r.zone = starts[0].Location()
	if r.Location == "" || r.Location == localZone {
		r.Location = localZone
		r.Notes = append(r.Notes, "Location Local is the time zone of the operator: UTC, unless its environment has TZ. Times are shown as if it were UTC.")
		if next := config.Status.NextPossibleSchedules; len(next) > 0 && next[0].After(f.now) && !next[0].Time.Equal(starts[0]) {
			r.Notes = append(r.Notes, fmt.Sprintf("The operator itself has %s as the next start: its time zone is another one.", utc(next[0].Time)))
		}
	}
	facts := planned(config, f.jobs, f.windows)
	for _, start := range starts {
		after, _ := s.Next(start) // none where the calendar ends
		r.Starts = append(r.Starts, startOf(config, &facts, start, after, f.now))
	}
	return nil
}

// startOf judges one start, and adds the job that it is to get to the facts. After it comes the next one, if there is one.
func startOf(config *v1beta1.UpgradeConfig, facts *planner.Facts, start, after, now time.Time) previewStart {
	job := planner.NewJob(config, start, nil)
	outlook := planner.Foresee(config, start, after, *facts, now)
	*facts = expecting(*facts, config, start, outlook)
	created, _ := planner.CreationTimes(config, start)
	p := previewStart{
		Start: utc(start), InZone: start.Format(time.RFC3339), Created: utc(created), StartBefore: utc(job.Spec.StartBefore.Time),
		Clock: clockChange(config.Spec.Schedule, start),
		start: start, created: created, before: job.Spec.StartBefore.Time,
	}
	if outlook.Job != nil {
		p.Job, job = outlook.Job.Name, outlook.Job
	}
	p.Due = dueNow(config, start, outlook, now)
	p.InTheWay = windowsInTheWay(config, job, facts.Windows, outlook, p, now)
	return p
}

// dueNow says what becomes of a start whose job should have been created already, and what keeps another from getting one; not of what is told beside it.
func dueNow(config *v1beta1.UpgradeConfig, start time.Time, outlook planner.Outlook, now time.Time) string {
	_, last := planner.CreationTimes(config, start)
	switch {
	case outlook.Job != nil:
		return ""
	case outlook.Created.Equal(now):
		return "its job is created at once"
	case outlook.Reason == "", !last.Before(now) && (outlook.Reason == v1beta1.ReasonSuspended || outlook.Reason == v1beta1.ReasonSuspensionWindow):
		return ""
	}
	return whyNoJob(config, start, outlook, now, utc)
}

// addPinning says which version a job would get now.
func (r *previewReport) addPinning(config *v1beta1.UpgradeConfig, f *previewFacts) {
	if f.version == nil {
		return
	}
	r.Running = openshift.RunningVersion(f.version)
	highest, ok := openshift.HighestAvailable(f.version)
	switch {
	case ok:
		r.WouldPin = highest.Version
		r.Pinning = fmt.Sprintf("%s -> %s, of what the cluster offers now", r.Running, highest.Version)
	case config.Spec.NoUpdatePolicy == v1beta1.NoUpdatePolicyCreateJob:
		r.Pinning = r.Running + ", and the cluster offers no update: a job without a version would run (noUpdatePolicy CreateJob)"
	default:
		r.Pinning = r.Running + ", and the cluster offers no update: no job would be created (noUpdatePolicy Skip)"
	}
}

// addHooks lists the hooks of the config's jobs.
func (r *previewReport) addHooks(config *v1beta1.UpgradeConfig, f *previewFacts) {
	for _, hook := range matchingHooks(planner.NewJob(config, f.now, nil), f.hooks) {
		h := previewHook{Name: hook.Name, Disruptive: hook.Spec.Disruptive, Run: string(v1beta1.HookRunAll), FailurePolicy: string(v1beta1.HookFailureIgnore)}
		if hook.Spec.Run != "" {
			h.Run = string(hook.Spec.Run)
		}
		if hook.Spec.FailurePolicy != "" {
			h.FailurePolicy = string(hook.Spec.FailurePolicy)
		}
		for _, event := range hook.Spec.Events {
			h.Events = append(h.Events, string(event))
		}
		r.Hooks = append(r.Hooks, h)
	}
}

// problemsOf says why the operator cannot use the config of a job, in its own words.
func problemsOf(config *v1beta1.UpgradeJobConfig) []problem {
	var problems []problem
	add := func(reason, prefix string, err error) {
		if err != nil {
			problems = append(problems, problem{reason, prefix + err.Error()})
		}
	}
	add(v1beta1.ReasonInvalidQuery, "preUpgradeHealthChecks.", healthcheck.Validate(config.PreUpgradeHealthChecks))
	add(v1beta1.ReasonInvalidQuery, "postUpgradeHealthChecks.", healthcheck.Validate(config.PostUpgradeHealthChecks))
	add(v1beta1.ReasonInvalidPattern, "", steps.ValidatePatterns(config))
	_, err := pools.Parse(*config)
	add(v1beta1.ReasonInvalidSelector, "", err)
	return problems
}

// refusedPools says which pool cannot be delayed as the config wants it; nil if all can.
func refusedPools(config *v1beta1.UpgradeJobConfig, all []mcfgv1.MachineConfigPool) *problem {
	rules, err := pools.Parse(*config)
	if err != nil {
		return nil // a problem of its own
	}
	if why := rules.Refused(all); why != "" {
		return &problem{v1beta1.ReasonPoolCannotBeDelayed, why}
	}
	return nil
}

// reasonOfSchedule is the reason that the operator gives for a schedule that it cannot use.
func reasonOfSchedule(err error) string {
	switch {
	case errors.Is(err, schedule.ErrInvalidCron):
		return v1beta1.ReasonInvalidCron
	case errors.Is(err, schedule.ErrInvalidISOWeek):
		return v1beta1.ReasonInvalidISOWeek
	case errors.Is(err, schedule.ErrInvalidLocation):
		return v1beta1.ReasonInvalidLocation
	}
	return v1beta1.ReasonNoNextSchedule
}
