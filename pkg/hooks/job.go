// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"time"

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
