// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/test/environment"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// order is a place in the history of the whole cluster: all objects are kept in one etcd, which numbers every write.
type order uint64

func orderOf(object client.Object) order {
	n, _ := strconv.ParseUint(object.GetResourceVersion(), 10, 64) // what is no number is the beginning
	return order(n)
}

// hookJob is what the journal has of one batch Job of a hook.
type hookJob struct {
	owner     types.UID
	hook, key string
	event     v1beta1.HookEvent
	// created and finished are when that was written; finished is 0 as long as it was not.
	created, finished order
	object            *batchv1.Job
}

// hookJobs returns every batch Job that a hook has ever had since the test began, in the order of their creation.
func (c *cluster) hookJobs() []*hookJob {
	var all []*hookJob
	byUID := map[types.UID]*hookJob{}
	for _, r := range past.hookJobsSince(c.began) {
		o := r.object
		j := byUID[o.UID]
		if j == nil {
			j = &hookJob{
				hook: o.Annotations[v1beta1.HookLabel], key: o.Annotations[v1beta1.HookKeyLabel],
				event: v1beta1.HookEvent(o.Annotations[v1beta1.HookEventLabel]), created: orderOf(o),
			}
			if owner := metav1.GetControllerOf(o); owner != nil {
				j.owner = owner.UID
			}
			byUID[o.UID] = j
			all = append(all, j)
		}
		if j.object = o; j.finished == 0 && slices.ContainsFunc(o.Status.Conditions, isFinal) {
			j.finished = orderOf(o)
		}
	}
	return all
}

func isFinal(condition batchv1.JobCondition) bool {
	return condition.Status == corev1.ConditionTrue && (condition.Type == batchv1.JobComplete || condition.Type == batchv1.JobFailed)
}

// hookJobsOf returns the batch Jobs that hooks had for a job, in the order of their creation. It waits until the journal
// has all that exist.
func (c *cluster) hookJobsOf(job *v1beta1.UpgradeJob) []*hookJob {
	c.t.Helper()
	live := &batchv1.JobList{}
	if err := env.Client.List(c.ctx, live, client.InNamespace(job.Namespace)); err != nil {
		c.t.Fatal(err)
	}
	c.eventually("the journal of batch Jobs", func() error {
		revisions := past.hookJobsSince(c.began)
		for i := range live.Items {
			if !knows(revisions, &live.Items[i]) {
				return fmt.Errorf("revision %s of %s has not arrived", live.Items[i].ResourceVersion, live.Items[i].Name)
			}
		}
		return nil
	})
	return slices.DeleteFunc(c.hookJobs(), func(j *hookJob) bool { return j.owner != job.UID })
}

// checkHookJobs judges every batch Job of the test: each run of a hook had exactly one.
func (c *cluster) checkHookJobs() {
	c.t.Helper()
	type run struct {
		owner     types.UID
		hook, key string
		event     v1beta1.HookEvent
	}
	names := map[run][]string{}
	for _, j := range c.hookJobs() {
		of := run{j.owner, j.hook, j.key, j.event}
		names[of] = append(names[of], j.object.Name)
		if j.owner == "" || j.hook == "" || j.event == "" {
			c.t.Errorf("Job %s does not tell whose it is: %+v", j.object.Name, of)
		}
	}
	for of, jobs := range names {
		if len(jobs) != 1 {
			c.t.Errorf("hook %s had %d Jobs at %s with key %q for one UpgradeJob: %v", of.hook, len(jobs), of.event, of.key, jobs)
		}
	}
}

// awaitNoHookJobs waits until the Jobs of hooks and their pods are gone: nothing may be left of an UpgradeJob that is.
func awaitNoHookJobs(ctx context.Context) error {
	var left []client.Object
	err := poll(ctx, func() error {
		var errs []error
		left = nil
		for _, list := range []client.ObjectList{&batchv1.JobList{}, &corev1.PodList{}} {
			if err := env.Client.List(ctx, list, client.InNamespace(environment.Namespace)); err != nil {
				return err
			}
			left = append(left, objectsOf(list)...)
		}
		for _, o := range left {
			errs = append(errs, fmt.Errorf("%T %s is left, finalizers %v, deleted at %v", o, o.GetName(), o.GetFinalizers(), o.GetDeletionTimestamp()))
		}
		return errors.Join(errs...)
	})
	if err == nil {
		return nil
	}
	for _, o := range left { // the next test shall not suffer from it
		o.SetFinalizers(nil)
		_ = env.Client.Update(context.WithoutCancel(ctx), o)
		_ = env.Client.Delete(context.WithoutCancel(ctx), o, client.GracePeriodSeconds(0), client.PropagationPolicy(metav1.DeletePropagationBackground))
	}
	return err
}

// orderWhen returns the first write of a job that made it as expected.
func (c *cluster) orderWhen(job *v1beta1.UpgradeJob, expected ...expectation) order {
	c.t.Helper()
	var first order
	c.eventually("the journal of UpgradeJob "+job.Name, func() error {
		for _, r := range past.jobsSince(c.began) {
			if r.object.UID == job.UID && check(r.object, expected...) == nil {
				first = orderOf(r.object)
				return nil
			}
		}
		return errors.New("the job was never as expected")
	})
	return first
}

// runsOf returns the runs of a hook at an event.
func runsOf(job *v1beta1.UpgradeJob, hook string, event v1beta1.HookEvent) []v1beta1.HookRun {
	return slices.DeleteFunc(slices.Clone(job.Status.HookTracker), func(run v1beta1.HookRun) bool {
		return run.UpgradeJobHook != hook || run.HookEvent != event
	})
}

// ran expects the runs of a hook at an event to be these.
func ran(hook string, event v1beta1.HookEvent, want ...v1beta1.HookRunStatus) expectation {
	return func(job *v1beta1.UpgradeJob) error {
		var got []v1beta1.HookRunStatus
		for _, run := range runsOf(job, hook, event) {
			got = append(got, run.Status)
			if run.Status.Finished() != (run.CompletionTime != nil) || (run.Status == v1beta1.HookRunFailed) != (run.Message != "") {
				return fmt.Errorf("the record of hook %s is not complete: %+v", hook, run)
			}
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("the runs of hook %s at %s are %v, want %v", hook, event, got, want)
		}
		return nil
	}
}

// podOf waits until a pod of a batch Job runs, or ran.
func (c *cluster) podOf(batchJob string) *corev1.Pod {
	c.t.Helper()
	var pod *corev1.Pod
	c.eventually("a pod of Job "+batchJob, func() error {
		list := &corev1.PodList{}
		if err := env.Client.List(c.ctx, list, client.InNamespace(environment.Namespace), client.MatchingLabels{batchv1.JobNameLabel: batchJob}); err != nil {
			return err
		}
		if len(list.Items) == 0 || list.Items[0].Annotations[sim.AnnotationRan] == "" {
			return errors.New("there is none that was started")
		}
		pod = &list.Items[0]
		return nil
	})
	return pod
}

// ranIn returns what a container of a batch Job was started with. The pod may be gone.
func (c *cluster) ranIn(batchJob, container string) sim.Ran {
	c.t.Helper()
	var ran map[string]sim.Ran
	c.eventually("the start of a pod of Job "+batchJob, func() error {
		for _, r := range past.podsSince(c.began) {
			if r.object.Labels[batchv1.JobNameLabel] == batchJob && r.object.Annotations[sim.AnnotationRan] != "" {
				var err error
				ran, err = sim.RanIn(r.object)
				return err
			}
		}
		return errors.New("the journal has none")
	})
	return ran[container]
}

// active waits until a hook runs at an event, and returns the pod in which it does.
func (c *cluster) active(job *v1beta1.UpgradeJob, hook string, event v1beta1.HookEvent) *corev1.Pod {
	c.t.Helper()
	c.wait(job, ran(hook, event, v1beta1.HookRunActive))
	return c.podOf(runsOf(job, hook, event)[0].Job)
}

// let tells a pod that runs how to end.
func (c *cluster) let(pod *corev1.Pod, outcome string) {
	c.t.Helper()
	edit(c, pod, func(pod *corev1.Pod) { metav1.SetMetaDataAnnotation(&pod.ObjectMeta, sim.AnnotationOutcome, outcome) })
}
