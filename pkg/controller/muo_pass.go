// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/muo"
)

// muoPass is one look at an UpgradeConfig of the Managed Upgrade Operator.
type muoPass struct {
	*MUOUpgradeConfigReconciler
	config *v1alpha1.UpgradeConfig
	now    time.Time
	// name of the job for the spec as it is now; empty if its time cannot be read.
	name string
	// entry of the history for the spec as it is now.
	entry *v1alpha1.UpgradeHistory
	// jobs of the object.
	jobs []v1beta1.UpgradeJob
}

// list reads the jobs of the object. A job that the history knows of and the cache does not is gone only if the API server says so.
func (p *muoPass) list(ctx context.Context) error {
	jobs := &v1beta1.UpgradeJobList{}
	if err := p.Client.List(ctx, jobs, client.InNamespace(p.config.Namespace), client.MatchingFields{ownerIndex: string(p.config.UID)}); err != nil {
		return fmt.Errorf("list UpgradeJobs: %w", err)
	}
	p.jobs = jobs.Items
	for i := range p.config.Status.History {
		h := &p.config.Status.History[i]
		unfinished := h.Phase == v1alpha1.UpgradePhasePending || h.Phase == v1alpha1.UpgradePhaseUpgrading
		if unfinished && h.UpgradeJob != "" && muo.FindJob(p.jobs, h.UpgradeJob) == nil {
			var err error
			p.jobs, err = p.liveJobs(ctx)
			return err
		}
	}
	return nil
}

func (p *muoPass) liveJobs(ctx context.Context) ([]v1beta1.UpgradeJob, error) {
	jobs := &v1beta1.UpgradeJobList{}
	if err := p.Live.List(ctx, jobs, client.InNamespace(p.config.Namespace), client.MatchingLabels{v1alpha1.UpgradeConfigLabel: p.config.Name}); err != nil {
		return nil, fmt.Errorf("list UpgradeJobs past the cache: %w", err)
	}
	return slices.DeleteFunc(jobs.Items, func(job v1beta1.UpgradeJob) bool { return !metav1.IsControlledBy(&job, p.config) }), nil
}

// mirror tells in the history how the jobs go.
func (p *muoPass) mirror() {
	history := p.config.Status.History
	for i := range history {
		h := &history[i]
		job := muo.FindJob(p.jobs, h.UpgradeJob)
		switch {
		case job != nil:
			muo.Mirror(h, job, p.now)
		case h.UpgradeJob != "" && h.Phase == v1alpha1.UpgradePhaseUpgrading:
			muo.GiveUp(h, p.now)
		}
	}
	if job := muo.FindJob(p.jobs, p.name); job != nil && job.DeletionTimestamp.IsZero() {
		p.adopt(job)
	}
}

// adopt makes the entry of the spec as it is now that of its job.
func (p *muoPass) adopt(job *v1beta1.UpgradeJob) {
	muo.Begin(p.entry, job)
	muo.Mirror(p.entry, job, p.now)
	muo.SetCondition(p.entry, muo.Scheduled(job), p.now)
}

// advance sees to it that there is the job that the spec asks for, and no other that has not started.
func (p *muoPass) advance(ctx context.Context) (time.Duration, error) {
	if err := p.dropFormer(ctx); err != nil {
		return 0, err
	}
	current := muo.FindJob(p.jobs, p.name)
	switch {
	case current != nil && muo.Began(current):
		if c := muo.FindCondition(p.entry, v1alpha1.ConditionValid); c == nil || c.Status != metav1.ConditionTrue {
			p.valid(metav1.ConditionTrue, muo.ReasonValid, "The upgrade was begun.")
		}
		return 0, nil // the job wakes us
	case current == nil && p.name != "" && muo.Ran(p.entry, p.name):
		return 0, nil // a change of the spec wakes us
	}
	settings, judgement, after, err := p.judge(ctx)
	if err != nil {
		return 0, err
	}
	for _, note := range settings.NotesFor(p.config) {
		judgement.Message += " Note: " + note + "."
	}
	if judgement.Verdict == muo.Valid {
		p.valid(metav1.ConditionTrue, judgement.Reason, judgement.Message)
		if judgement.UnderWay {
			return 0, p.watch(ctx, current, judgement) // the cluster wakes us
		}
		return p.schedule(ctx, current, muo.Job(p.config, settings, judgement, p.now))
	}
	return after, p.withhold(ctx, current, judgement)
}

// watch tells of an update that is under way though there is no job of it that has started: it is left to itself. What a job looks at before it begins would
// be found in a cluster that is half way. current is the job of the spec that has not started, or nil.
func (p *muoPass) watch(ctx context.Context, current *v1beta1.UpgradeJob, judgement muo.Judgement) error {
	if p.awaits() {
		return nil
	}
	former := muo.FindJob(p.jobs, p.entry.UpgradeJob)
	switch {
	case current != nil:
		p.entry.UpgradeJob = ""
	case former != nil: // it failed, which stays true until somebody resumes it
		p.notScheduled(muo.ReasonUpgradeInProgress, "The cluster updates to %s already. No other UpgradeJob is made meanwhile; a spec.resumeRequest has UpgradeJob %s go on.",
			judgement.Release, former.Name)
		return nil
	}
	if p.entry.Phase != v1alpha1.UpgradePhaseFailed {
		p.entry.Phase = v1alpha1.UpgradePhaseUpgrading
	}
	p.notScheduled(muo.ReasonUpgradeInProgress, "The cluster updates to %s already, and not for an UpgradeJob: it is left to itself.", judgement.Release)
	if current == nil {
		return nil
	}
	return p.drop(ctx, current, judgement.Message)
}

// awaits tells, and notes, whether a job goes on that the object asked for before.
func (p *muoPass) awaits() bool {
	for i := range p.jobs {
		if job := &p.jobs[i]; muo.Began(job) && !job.Status.Phase.Finished() {
			p.notScheduled(muo.ReasonUpgradeInProgress, "UpgradeJob %s, which the object asked for before, goes on. Its end is waited for.", job.Name)
			return true
		}
	}
	return false
}

// withhold records why there is to be no job, and deletes the one that is there and has not started, or nil.
func (p *muoPass) withhold(ctx context.Context, current *v1beta1.UpgradeJob, judgement muo.Judgement) error {
	switch judgement.Verdict {
	case muo.Unknown: // a job that is there stays: its steps look again
		p.valid(metav1.ConditionUnknown, judgement.Reason, judgement.Message)
		return nil
	case muo.Done:
		p.valid(metav1.ConditionTrue, judgement.Reason, judgement.Message)
		if muo.FindJob(p.jobs, p.entry.UpgradeJob) == nil { // else the job tells: machines may be on their way, or it failed
			p.entry.Phase = v1alpha1.UpgradePhaseUpgraded
			muo.RemoveCondition(p.entry, v1alpha1.ConditionFailed)
		}
	case muo.Invalid, muo.Valid:
		p.valid(metav1.ConditionFalse, judgement.Reason, judgement.Message)
	}
	muo.RemoveCondition(p.entry, v1alpha1.ConditionScheduled)
	if current == nil {
		return nil
	}
	p.entry.UpgradeJob = ""
	return p.drop(ctx, current, judgement.Message)
}

func (p *muoPass) valid(status metav1.ConditionStatus, reason, message string) {
	muo.SetCondition(p.entry, metav1.Condition{Type: v1alpha1.ConditionValid, Status: status, Reason: reason, Message: message}, p.now)
}

func (p *muoPass) notScheduled(reason, format string, args ...any) {
	muo.SetCondition(p.entry, metav1.Condition{
		Type: v1alpha1.ConditionScheduled, Status: metav1.ConditionFalse, Reason: reason, Message: fmt.Sprintf(format, args...),
	}, p.now)
}

// schedule sees to it that there is a job as described. current is the one of its name that is there and has not started, or nil.
func (p *muoPass) schedule(ctx context.Context, current, wanted *v1beta1.UpgradeJob) (time.Duration, error) {
	switch {
	case current == nil:
	case !current.DeletionTimestamp.IsZero():
		p.notScheduled(muo.ReasonJobReplaced, "UpgradeJob %s is being deleted.", current.Name)
		return 0, nil // its end wakes us
	case current.Annotations[muo.SettingsAnnotation] != wanted.Annotations[muo.SettingsAnnotation]:
		p.notScheduled(muo.ReasonJobReplaced, "UpgradeJob %s is being replaced: it was made of other settings.", current.Name)
		return 0, p.drop(ctx, current, "It was made of other settings.")
	default:
		return 0, nil
	}
	if p.awaits() {
		return 0, nil // its end wakes us
	}
	return p.create(ctx, wanted)
}
