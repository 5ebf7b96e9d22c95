// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// forbiddenPatience is how long it is tried to create a Job that is forbidden: a quota may be used up for a moment, and an
// API server that has just been started forbids everything, as one is in every upgrade.
const forbiddenPatience = 5 * time.Minute

// start creates the Job of a run, or finds it. What the API server refuses for good is a failure of the hook.
func (p *Pass) start(ctx context.Context, hook *v1beta1.UpgradeJobHook, run *v1beta1.HookRun, env []corev1.EnvVar) error {
	if hook == nil {
		return p.lost(ctx, run, "The UpgradeJobHook was deleted or changed before its Job was created.")
	}
	job, err := p.build(hook, run, env)
	if err != nil {
		return err
	}
	switch err := p.Client.Create(ctx, job); {
	case err == nil:
		run.Status = v1beta1.HookRunActive
	case apierrors.IsAlreadyExists(err): // by a process that died before it could record it
		return p.adopt(ctx, run)
	case apierrors.IsForbidden(err) && p.Now.Sub(run.StartTime.Time) < forbiddenPatience:
		return fmt.Errorf("create the Job of UpgradeJobHook %s: %w", run.UpgradeJobHook, err)
	case apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err):
		p.refuse(run, "The Job could not be created: "+refusal(err))
	default:
		return fmt.Errorf("create the Job of UpgradeJobHook %s: %w", run.UpgradeJobHook, err)
	}
	return nil
}

// refusal is what the API server says about an object that it refuses.
func refusal(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Message
	}
	return err.Error()
}

// build returns the Job of a run.
func (p *Pass) build(hook *v1beta1.UpgradeJobHook, run *v1beta1.HookRun, env []corev1.EnvVar) (*batchv1.Job, error) {
	template := hook.Spec.Template.DeepCopy()
	Inject(template, env)
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   p.Job.Namespace,
			Name:        run.Job,
			Labels:      maps.Clone(template.Labels),
			Annotations: maps.Clone(template.Annotations),
			Finalizers:  []string{v1beta1.HookJobFinalizer},
		},
		Spec: template.Spec,
	}
	for key, value := range map[string]string{
		v1beta1.HookLabel:           hook.Name,
		v1beta1.HookEventLabel:      string(run.HookEvent),
		v1beta1.HookKeyLabel:        run.TrackingKey,
		v1beta1.HookUpgradeJobLabel: p.Job.Name,
	} {
		metav1.SetMetaDataLabel(&job.ObjectMeta, key, LabelValue(value))
		metav1.SetMetaDataAnnotation(&job.ObjectMeta, key, value)
	}
	if job.Spec.ActiveDeadlineSeconds == nil {
		left := math.Ceil(p.Deadline.Sub(p.Now).Seconds())
		job.Spec.ActiveDeadlineSeconds = new(int64(max(left, 1)))
	}
	if err := controllerutil.SetControllerReference(p.Job, job, p.Client.Scheme()); err != nil {
		return nil, fmt.Errorf("make the Job of UpgradeJobHook %s: %w", hook.Name, err)
	}
	return job, nil
}

// adopt takes the Job that has the name of the run for its own, if it is.
func (p *Pass) adopt(ctx context.Context, run *v1beta1.HookRun) error {
	job, err := p.find(ctx, run)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("get Job %s of UpgradeJobHook %s: it was there a moment ago: %w", run.Job, run.UpgradeJobHook, err)
	case err != nil:
		return err
	case !metav1.IsControlledBy(job, p.Job):
		p.refuse(run, fmt.Sprintf("The Job could not be created: somebody else has a Job of the name %s.", run.Job))
		return nil
	}
	p.follow(ctx, run, job)
	return nil
}

// lost ends a run that cannot be started any more, unless its Job was created by a process that died before it could
// record it.
func (p *Pass) lost(ctx context.Context, run *v1beta1.HookRun, message string) error {
	job, err := p.find(ctx, run)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil && metav1.IsControlledBy(job, p.Job) {
		p.follow(ctx, run, job)
		return nil
	}
	p.refuse(run, message)
	return nil
}

// find reads the Job of a run, from the API server if the cache does not know it.
func (p *Pass) find(ctx context.Context, run *v1beta1.HookRun) (*batchv1.Job, error) {
	job := &batchv1.Job{}
	key := client.ObjectKey{Namespace: p.Job.Namespace, Name: run.Job}
	err := p.Client.Get(ctx, key, job)
	if apierrors.IsNotFound(err) {
		err = p.Live.Get(ctx, key, job)
	}
	if err != nil {
		return nil, fmt.Errorf("get Job %s of UpgradeJobHook %s: %w", run.Job, run.UpgradeJobHook, err)
	}
	return job, nil
}

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
	if failed == nil { // it comes only when the last pod is gone, which may never be on a node that is lost
		failed = condition(job, batchv1.JobFailureTarget)
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
			if left := max(p.patience(run), time.Millisecond); first == 0 || left < first {
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

// Release lets go of the Jobs whose results are recorded, by removing their finalizer, and of those of an UpgradeJob of
// the same name that is gone. It is called when the status is written.
func (p *Pass) Release(ctx context.Context) error {
	jobs, err := p.jobsOf(ctx, p.Client, client.ObjectKeyFromObject(p.Job))
	if err != nil {
		return err
	}
	recorded := map[string]bool{}
	for _, run := range p.Job.Status.HookTracker {
		recorded[run.Job] = run.Status.Finished()
	}
	var errs []error
	for i := range jobs {
		job := &jobs[i]
		if !metav1.IsControlledBy(job, p.Job) && !p.isCurrent(ctx) {
			continue
		}
		if recorded[job.Name] || !metav1.IsControlledBy(job, p.Job) {
			errs = append(errs, p.release(ctx, job))
		}
	}
	return errors.Join(errs...)
}

// isCurrent tells whether the UpgradeJob is still the one of its name: to one that was replaced the Jobs of its successor
// look like those of a predecessor.
func (p *Pass) isCurrent(ctx context.Context) bool {
	live := &v1beta1.UpgradeJob{}
	err := p.Live.Get(ctx, client.ObjectKeyFromObject(p.Job), live)
	return err == nil && live.UID == p.Job.UID
}

// jobsOf returns the Jobs of the hooks of an UpgradeJob. They are told by their annotation and not by their owner: who
// deletes an UpgradeJob and orphans its Jobs takes that away.
func (e *Engine) jobsOf(ctx context.Context, reader client.Reader, upgradeJob client.ObjectKey) ([]batchv1.Job, error) {
	jobs := &batchv1.JobList{}
	err := reader.List(ctx, jobs, client.InNamespace(upgradeJob.Namespace), client.MatchingLabels{v1beta1.HookUpgradeJobLabel: LabelValue(upgradeJob.Name)})
	if err != nil {
		return nil, fmt.Errorf("list the Jobs of the hooks of UpgradeJob %s: %w", upgradeJob.Name, err)
	}
	return slices.DeleteFunc(jobs.Items, func(job batchv1.Job) bool {
		return job.Annotations[v1beta1.HookUpgradeJobLabel] != upgradeJob.Name || !controllerutil.ContainsFinalizer(&job, v1beta1.HookJobFinalizer)
	}), nil
}

// ReleaseAll lets go of all Jobs of an UpgradeJob that goes, or is gone; the garbage collector deletes them.
func (e *Engine) ReleaseAll(ctx context.Context, upgradeJob client.ObjectKey) error {
	// The cache may not know of the last one yet, and who comes too late here leaves it for ever.
	jobs, err := e.jobsOf(ctx, e.Live, upgradeJob)
	if err != nil {
		return err
	}
	var errs []error
	for i := range jobs {
		errs = append(errs, e.release(ctx, &jobs[i]))
	}
	return errors.Join(errs...)
}

// ReleaseOrphans lets go of the Jobs of an UpgradeJob that is gone: somebody took its finalizer away.
func (e *Engine) ReleaseOrphans(ctx context.Context, upgradeJob client.ObjectKey) error {
	if jobs, err := e.jobsOf(ctx, e.Client, upgradeJob); err != nil || len(jobs) == 0 {
		return err
	}
	switch err := e.Live.Get(ctx, upgradeJob, &v1beta1.UpgradeJob{}); { // the cache may not know a new one yet
	case err == nil:
		return nil
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("get UpgradeJob %s, of which there are Jobs of hooks: %w", upgradeJob.Name, err)
	}
	return e.ReleaseAll(ctx, upgradeJob)
}

func (e *Engine) release(ctx context.Context, job *batchv1.Job) error {
	base := job.DeepCopy()
	if !controllerutil.RemoveFinalizer(job, v1beta1.HookJobFinalizer) {
		return nil
	}
	err := e.Client.Patch(ctx, job, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the finalizer of Job %s: %w", job.Name, err)
	}
	return nil
}
