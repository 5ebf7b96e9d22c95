// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// judge records the result of a Job, if it has one.
func (p *Pass) judge(ctx context.Context, run *v1beta1.HookRun) error {
	job, err := p.find(ctx, run)
	if apierrors.IsNotFound(err) {
		p.finish(run, v1beta1.HookRunFailed, fmt.Sprintf("Job %s was removed before its result was known.", run.Job), p.Now)
		return nil
	}
	if err != nil {
		return err
	}
	p.follow(ctx, run, job)
	return nil
}

// follow records that the run has this Job, and its result if it has one: there may be no further event of it.
func (p *Pass) follow(ctx context.Context, run *v1beta1.HookRun, job *batchv1.Job) {
	run.Status = v1beta1.HookRunActive
	completed, failed := condition(job, batchv1.JobComplete), condition(job, batchv1.JobFailed)
	// Failed comes only when the last pod is gone, which may never be on a node that is lost.
	if target := condition(job, batchv1.JobFailureTarget); failed == nil && target != nil && p.Now.Sub(target.LastTransitionTime.Time) >= podGrace {
		failed = target
	}
	switch {
	case completed != nil:
		p.finish(run, v1beta1.HookRunSucceeded, "", completed.LastTransitionTime.Time)
	case failed != nil:
		message := failed.Message
		if last := p.lastWords(ctx, job); last != "" {
			message = last + " (" + message + ")"
		}
		p.finish(run, v1beta1.HookRunFailed, message, failed.LastTransitionTime.Time)
	case !job.DeletionTimestamp.IsZero(): // nobody runs its pods any more
		p.finish(run, v1beta1.HookRunFailed, fmt.Sprintf("Job %s was deleted before it finished.", run.Job), job.DeletionTimestamp.Time)
	case p.patience(run) == 0:
		p.finish(run, v1beta1.HookRunFailed, fmt.Sprintf("Job %s did not finish within %s of the end of the UpgradeJob.", run.Job, p.endurance()), p.Now)
	}
}

// minEndurance is how long at least the result of a hook is waited for after its UpgradeJob has ended. Its Job has a
// deadline, but not while it is suspended.
const minEndurance = 24 * time.Hour

// endurance is how long that is: longer than the deadline that a Job without one of its own gets.
func (p *Pass) endurance() time.Duration {
	return max(minEndurance, p.Job.Spec.Config.UpgradeTimeout.Or(v1beta1.DefaultUpgradeTimeout)+time.Hour)
}

// patience is how long the result of the run is still waited for; zero if it is not any more. While the UpgradeJob has
// not ended its own deadline is the bound.
func (p *Pass) patience(run *v1beta1.HookRun) time.Duration {
	from := run.StartTime.Time
	switch completed := p.Job.Status.CompletionTime; {
	case completed == nil:
		return p.endurance()
	case completed.After(from):
		from = completed.Time
	}
	return max(from.Add(p.endurance()).Sub(p.Now), 0)
}

// Patience is how long at most the first of the runs that have not finished is still waited for; zero if there is none.
func (p *Pass) Patience() time.Duration {
	var first time.Duration
	for i := range p.Job.Status.HookTracker {
		if run := &p.Job.Status.HookTracker[i]; !run.Status.Finished() {
			if left := max(p.patience(run), time.Minute); first == 0 || left < first {
				first = left
			}
		}
	}
	return first
}

func condition(job *batchv1.Job, conditionType batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		if c := &job.Status.Conditions[i]; c.Type == conditionType && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// podGrace is how long the pods of a Job that is bound to fail are given to end.
const podGrace = 5 * time.Minute

// Bound of what is read and recorded of a hook's message.
const (
	maxPods          = 20
	maxMessageLength = 384
)

// lastWords returns the termination message of the pod that failed last; empty if there is none. A hook tells by it why
// it aborts an upgrade. Without it there is still the message of the Job, so an error does not matter.
func (p *Pass) lastWords(ctx context.Context, job *batchv1.Job) string {
	pods := &corev1.PodList{}
	err := p.Live.List(ctx, pods, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name}, client.Limit(maxPods))
	if err != nil {
		return ""
	}
	var words string
	var last time.Time
	for i := range pods.Items {
		status := &pods.Items[i].Status
		for _, container := range append(status.InitContainerStatuses, status.ContainerStatuses...) {
			ended := container.State.Terminated
			if ended == nil {
				ended = container.LastTerminationState.Terminated
			}
			if ended != nil && ended.ExitCode != 0 && ended.Message != "" && !ended.FinishedAt.Time.Before(last) {
				words, last = ended.Message, ended.FinishedAt.Time
			}
		}
	}
	printable := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' ' // a terminal shows it
	}, words)
	return v1beta1.Truncate(strings.TrimSpace(printable), maxMessageLength*2/3)
}

// refuse records that the Job of a run is never created.
func (p *Pass) refuse(run *v1beta1.HookRun, message string) {
	run.Job = ""
	p.finish(run, v1beta1.HookRunFailed, message, p.Now)
}

// finish records the end of a run.
func (p *Pass) finish(run *v1beta1.HookRun, status v1beta1.HookRunStatus, message string, at time.Time) {
	run.Status = status
	run.Message = v1beta1.Truncate(message, maxMessageLength)
	run.CompletionTime = &metav1.Time{Time: at}
	p.Tell(*run)
}
