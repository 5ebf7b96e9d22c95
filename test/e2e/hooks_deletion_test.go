// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/test/environment"
)

func TestDeletedJobTakesItsHooksAlong(t *testing.T) {
	for _, event := range []v1beta1.HookEvent{v1beta1.HookEventStart, v1beta1.HookEventFinish} {
		t.Run(string(event), func(t *testing.T) {
			c := newCluster(t)
			create(c, aHook(at(event), hanging))
			create(c, aHook(hookNamed("done"), at(v1beta1.HookEventCreate))) // and what has finished goes too
			c.startOperator()
			job := create(c, aJob())
			c.active(job, "backup", event)
			c.remove(job)
			c.gone(job)
			if err := awaitNoHookJobs(c.ctx); err != nil {
				t.Error(err)
			}
			c.waitVersion("the lock is released", unlocked)
		})
	}
}

// Somebody takes the finalizer of a job away, while no operator is there to see it. The Jobs of its hooks have a
// finalizer too, which nobody would take away any more.
func TestJobThatIsTornAwayLeavesNoJobsOfHooks(t *testing.T) {
	c := newCluster(t)
	create(c, aHook(at(v1beta1.HookEventCreate), hanging))
	running := c.startOperator()
	job := create(c, aJob(startingAt(soon(30*time.Minute)))) // which holds no lock yet
	c.active(job, "backup", v1beta1.HookEventCreate)
	running.Kill()
	c.remove(job)
	edit(c, job, func(job *v1beta1.UpgradeJob) { job.Finalizers = nil })
	c.gone(job)
	c.eventually("the garbage collector deletes the Job", func() error {
		jobs := c.liveHookJobs()
		if len(jobs) != 1 || jobs[0].DeletionTimestamp.IsZero() {
			return errors.New("it does not")
		}
		return nil
	})
	c.startOperator()
	if err := awaitNoHookJobs(c.ctx); err != nil {
		t.Error(err)
	}
}

// The same, while the operator looks on.
func TestJobThatIsTornAwayFromTheOperatorLeavesNoJobsOfHooks(t *testing.T) {
	c := newCluster(t)
	create(c, aHook(at(v1beta1.HookEventCreate), hanging))
	c.startOperator()
	job := create(c, aJob(startingAt(soon(30*time.Minute)))) // which holds no lock yet
	c.active(job, "backup", v1beta1.HookEventCreate)
	edit(c, job, func(job *v1beta1.UpgradeJob) { job.Finalizers = nil })
	c.remove(job)
	c.gone(job)
	if err := awaitNoHookJobs(c.ctx); err != nil {
		t.Error(err)
	}
}

func (c *cluster) liveHookJobs() []batchv1.Job {
	c.t.Helper()
	list := &batchv1.JobList{}
	if err := env.Client.List(c.ctx, list, client.InNamespace(environment.Namespace)); err != nil {
		c.t.Fatal(err)
	}
	return list.Items
}
