// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// Engine runs the hooks of UpgradeJobs.
type Engine struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Live reads from the API server: what the cache does not know yet may exist.
	Live client.Reader
}

// Pass is the engine at work on one UpgradeJob in one pass over it. It changes the job's status in memory.
type Pass struct {
	*Engine
	// Job whose hooks run.
	Job *v1beta1.UpgradeJob
	// Now is the time of the pass.
	Now time.Time
	// Deadline is when a Job without a deadline of its own is ended.
	Deadline time.Time
	// Fence writes the job's status, and fails with a conflict if it is not the one that the pass began with. It is
	// called before Jobs are created.
	Fence func(ctx context.Context) error
	// Tell is told of each run that has finished.
	Tell func(run v1beta1.HookRun)

	noRoom *v1beta1.HookRun // a run that should have ended the job, and could not be recorded
}

// Progress is how far the hooks of an event are.
type Progress struct {
	// Event of the hooks.
	Event v1beta1.HookEvent
	// Running are the runs that have not finished, in order of their names.
	Running []v1beta1.HookRun
	// Succeeded counts the runs that have.
	Succeeded int
	// Ignored are the runs that failed, and do not matter.
	Ignored []v1beta1.HookRun
	// Aborted is a run that failed and ends the job; nil if there is none.
	Aborted *v1beta1.HookRun
}

// Emit sees to it that the hooks of the event run, and tells how far they are. Which hooks these are is settled when the
// event is emitted for the first time with a hook that wants it: those that come later are too late. When the job is resumed
// those that had ended it count as they are then. After an error it is to be called again.
func (p *Pass) Emit(ctx context.Context, event Event) (Progress, error) {
	if _, err := p.Plan(ctx, event); err != nil {
		return Progress{}, err
	}
	err := p.launch(ctx, event)
	return p.Progress(event), err
}

// Plan settles which hooks of the event run, and records that in the status, without running them. Emit does the rest.
func (p *Pass) Plan(ctx context.Context, event Event) (Progress, error) {
	var err error
	if len(p.runsOf(event)) > 0 {
		err = p.planAgain(ctx, event)
	} else {
		err = p.plan(ctx, event)
	}
	if err != nil {
		return Progress{}, fmt.Errorf("hooks of %s: %w", event.Name, err)
	}
	return p.Progress(event), nil
}

// runsOf returns the runs of the event, with all keys that it has had.
func (p *Pass) runsOf(event Event) []*v1beta1.HookRun {
	var runs []*v1beta1.HookRun
	for i := range p.Job.Status.HookTracker {
		if run := &p.Job.Status.HookTracker[i]; event.has(run, p.Job) {
			runs = append(runs, run)
		}
	}
	return runs
}

// plan records a run for each hook that wants the event.
func (p *Pass) plan(ctx context.Context, event Event) error {
	selected, err := p.selectHooks(ctx, event)
	if err != nil {
		return err
	}
	for i := range selected {
		p.add(event, selected[i].Name, selected[i].Spec.FailurePolicy)
	}
	return nil
}

// planAgain gives the hooks that have ended the job another chance when it is resumed, because somebody has mended
// something, and those whose Job was never created. Those that did what they had to are not run again. What was mended may
// be the hook: it counts as it is now, and one that does not want the event any more, or is gone, is not in the way.
func (p *Pass) planAgain(ctx context.Context, event Event) error {
	again := p.chances(event)
	if len(again) == 0 {
		return nil
	}
	all, err := p.list(ctx, event)
	if err != nil {
		return err
	}
	var hooks []*v1beta1.UpgradeJobHook
	for _, run := range again {
		i := slices.IndexFunc(all, func(h v1beta1.UpgradeJobHook) bool { return h.Name == run.UpgradeJobHook })
		switch {
		case i >= 0 && !takenAway(&all[i], p.Job, event):
			hooks = append(hooks, &all[i])
		case aborts(run):
			run.FailurePolicy = v1beta1.HookFailureIgnore
			run.Message = v1beta1.Truncate("The hook was taken away before the job was resumed. "+run.Message, maxMessageLength)
		}
	}
	for _, hook := range hooks { // after the rest: it moves the runs
		p.add(event, hook.Name, hook.Spec.FailurePolicy)
	}
	return nil
}

// chances returns the runs that hooks have another chance after, since the job was resumed.
func (p *Pass) chances(event Event) []*v1beta1.HookRun {
	runs := p.runsOf(event)
	latest := map[string]*v1beta1.HookRun{}
	for _, run := range runs {
		latest[run.UpgradeJobHook] = run
	}
	return slices.DeleteFunc(runs, func(run *v1beta1.HookRun) bool {
		again := aborts(run) || (run.Status == v1beta1.HookRunFailed && run.Job == "")
		return !again || latest[run.UpgradeJobHook] != run || run.TrackingKey == event.key(p.Job)
	})
}

// add records a run. One that there is no room for has failed: the status of a job is bounded.
func (p *Pass) add(event Event, hook string, policy v1beta1.HookFailurePolicy) {
	run := v1beta1.HookRun{
		HookEvent: event.Name, TrackingKey: event.key(p.Job), UpgradeJobHook: hook, FailurePolicy: policy,
		Job:    JobName(p.Job, hook, event.Name, event.key(p.Job)),
		Status: v1beta1.HookRunPending, StartTime: metav1.NewTime(p.Now),
	}
	if len(p.Job.Status.HookTracker) < v1beta1.MaxHookRuns {
		p.Job.Status.HookTracker = append(p.Job.Status.HookTracker, run)
		return
	}
	p.refuse(&run, fmt.Sprintf("It was not run: an UpgradeJob has %d runs of hooks at most.", v1beta1.MaxHookRuns))
	if aborts(&run) {
		p.noRoom = &run
	}
}

// launch creates the Jobs of the event's runs that are not known to have one.
func (p *Pass) launch(ctx context.Context, event Event) error {
	pending := func(run *v1beta1.HookRun) bool { return run.Status == v1beta1.HookRunPending }
	if !slices.ContainsFunc(p.runsOf(event), pending) {
		return nil
	}
	// A status that is stale may not know that a run is over and its Job gone.
	if err := p.Fence(ctx); err != nil {
		return fmt.Errorf("record that hooks of %s are about to run: %w", event.Name, err)
	}
	all, err := p.hooksFor(ctx, event)
	if err != nil {
		return err
	}
	meta := Meta{MatchesDisruptiveHooks: slices.ContainsFunc(all, func(h v1beta1.UpgradeJobHook) bool { return h.Spec.Disruptive })}
	env, err := Environment(event, p.Job, meta)
	if err != nil {
		return fmt.Errorf("make the environment of hooks of %s: %w", event.Name, err)
	}
	byName := map[string]*v1beta1.UpgradeJobHook{}
	for i := range all {
		byName[all[i].Name] = &all[i]
	}
	var errs []error
	for _, run := range p.runsOf(event) { // anew: the fence may have replaced the status
		if pending(run) {
			errs = append(errs, p.start(ctx, byName[run.UpgradeJobHook], run, env))
		}
	}
	return errors.Join(errs...)
}

// Refresh records the results of Jobs that have finished.
func (p *Pass) Refresh(ctx context.Context) error {
	var errs []error
	for i := range p.Job.Status.HookTracker {
		run := &p.Job.Status.HookTracker[i]
		if run.Status == v1beta1.HookRunActive {
			errs = append(errs, p.judge(ctx, run))
		}
	}
	return errors.Join(errs...)
}

// Abandon gives up the runs of a job that has ended that have no Job yet, and that nobody would create one for: those
// that the job waited for, those of an earlier end, before the job was resumed, and those that could not be created for
// too long.
func (p *Pass) Abandon(ctx context.Context) error {
	var errs []error
	for i := range p.Job.Status.HookTracker {
		run := &p.Job.Status.HookTracker[i]
		if run.Status == v1beta1.HookRunPending && (run.HookEvent.Holds() || run.TrackingKey != Event{}.key(p.Job) || p.patience(run) == 0) {
			errs = append(errs, p.lost(ctx, run, "The UpgradeJob ended before the Job was created."))
		}
	}
	return errors.Join(errs...)
}

// HasRun tells whether the job has runs of the event.
func HasRun(job *v1beta1.UpgradeJob, event v1beta1.HookEvent) bool {
	return slices.ContainsFunc(job.Status.HookTracker, func(run v1beta1.HookRun) bool { return run.HookEvent == event })
}

// Progress tells how far the hooks of the event are that run already.
func (p *Pass) Progress(event Event) Progress {
	progress := Progress{Event: event.Name, Aborted: p.noRoom}
	latest := map[string]*v1beta1.HookRun{} // those that were run again count as they fare now
	var order []string
	for _, run := range p.runsOf(event) {
		if latest[run.UpgradeJobHook] == nil {
			order = append(order, run.UpgradeJobHook)
		}
		latest[run.UpgradeJobHook] = run
	}
	for _, name := range order {
		switch run := latest[name]; {
		case !run.Status.Finished():
			progress.Running = append(progress.Running, *run)
		case run.Status == v1beta1.HookRunSucceeded:
			progress.Succeeded++
		case aborts(run):
			if progress.Aborted == nil {
				progress.Aborted = run.DeepCopy()
			}
		default:
			progress.Ignored = append(progress.Ignored, *run)
		}
	}
	return progress
}

// aborts tells whether the run ends the job.
func aborts(run *v1beta1.HookRun) bool {
	return run.Status == v1beta1.HookRunFailed && run.FailurePolicy == v1beta1.HookFailureAbort && run.HookEvent.Holds()
}
