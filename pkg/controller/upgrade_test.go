// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// step is a step made of a function.
type step struct {
	condition string
	run       func(*steps.Upgrade) (steps.Verdict, error)
}

func (s step) Condition() string { return s.condition }

func (s step) Run(_ context.Context, u *steps.Upgrade) (steps.Verdict, error) { return s.run(u) }

// variant is an upgrader made of lists.
type variant struct {
	name           string
	steps, finally []steps.Step
}

func (v variant) Name() string          { return v.name }
func (v variant) Steps() []steps.Step   { return v.steps }
func (v variant) Finally() []steps.Step { return v.finally }

// plain is an upgrade in three steps: a preflight, the real point of no return, and the wait for the cluster.
func plain() variant {
	return variant{
		name: v1beta1.DefaultUpgrader,
		steps: []steps.Step{
			steps.UntilCommenced(step{"Healthy", func(*steps.Upgrade) (steps.Verdict, error) { return steps.Done("It is well."), nil }}),
			steps.UpgradeCommenced(),
			step{"Upgraded", upgraded},
		},
		finally: []steps.Step{steps.UnacceptedUpdateWithdrawn()},
	}
}

func upgraded(u *steps.Upgrade) (steps.Verdict, error) {
	if u.Needed() {
		return steps.Wait(time.Hour, "Updating", "The cluster updates.", v1beta1.Blocker{Code: "Updating", Object: "ClusterVersion/version", Message: "It updates."}), nil
	}
	return steps.Done("The cluster runs it."), nil
}

// waiting is a variant of one step, which answers what verdict says at the time.
func waiting(verdict func() (steps.Verdict, error)) variant {
	return variant{name: v1beta1.DefaultUpgrader, steps: []steps.Step{
		step{"Waiting", func(*steps.Upgrade) (steps.Verdict, error) { return verdict() }},
	}}
}

// register makes the variant one that jobs can choose.
func (w *world) register(v variant) *world {
	w.t.Helper()
	if err := w.upgraders.Register(v); err != nil {
		w.t.Fatal(err)
	}
	return w
}

// updateCluster does what the cluster-version operator would do next, and tells whether that was anything.
func (w *world) updateCluster() bool {
	cv := get(w, newClusterVersion())
	desired := cv.Spec.DesiredUpdate
	newest := &cv.Status.History[0]
	if newest.State == configv1.PartialUpdate {
		change(w, cv, func(cv *configv1.ClusterVersion) { cv.Status.History[0].State = configv1.CompletedUpdate })
		return true
	}
	if w.stuck || desired == nil || desired.Version == newest.Version {
		return false
	}
	change(w, cv, func(cv *configv1.ClusterVersion) {
		entry := configv1.UpdateHistory{State: configv1.PartialUpdate, Version: desired.Version, Image: desired.Image}
		cv.Status.History = append([]configv1.UpdateHistory{entry}, cv.Status.History...)
	})
	return true
}

// live leads a job to its end: passes follow each other as the watches and the results ask for them, the clock is
// moved on when there is nothing else to do, and the cluster updates itself when it is asked to.
func (w *world) live(r reconcile.Reconciler, job *v1beta1.UpgradeJob) {
	w.t.Helper()
	for range 100 {
		jobBefore, cvBefore := get(w, job), get(w, newClusterVersion())
		result := w.reconcile(r, job)
		w.updateCluster()
		finished := w.finishHooks()
		if w.gone(job) {
			return
		}
		jobNow, cvNow := get(w, job), get(w, newClusterVersion())
		woken := finished || phaseChanged.Update(event.UpdateEvent{ObjectOld: jobBefore, ObjectNew: jobNow}) ||
			(!jobNow.Status.Phase.Finished() && !jobNow.Spec.StartAfter.After(w.clock.Now()) && clusterVersionTurned(cvBefore, cvNow))
		switch {
		case woken:
		case jobNow.Status.Phase.Finished() && result.RequeueAfter >= maxSleep:
			return // it waits for nothing but the hooks of its end
		case result.RequeueAfter > 0:
			w.elapse(result.RequeueAfter)
		case jobNow.Status.Phase.Finished():
			return
		default:
			w.t.Fatalf("nothing wakes the job any more; it is %s:\n%s", jobNow.Status.Phase, describe(jobNow.Status.Conditions))
		}
	}
	w.t.Fatalf("the job does not end:\n%s", describe(get(w, job).Status.Conditions))
}

// outcome is what is left of a job that has ended, without the times.
func (w *world) outcome(job *v1beta1.UpgradeJob) string {
	job = get(w, job)
	cv := get(w, newClusterVersion())
	var b strings.Builder
	fmt.Fprintf(&b, "phase %s, from %s, finalizers %v\n%s\n", job.Status.Phase, job.Status.FromVersion, job.Finalizers, describe(job.Status.Conditions))
	for _, s := range job.Status.Steps {
		fmt.Fprintf(&b, "step %s: attempts %d, completed %t\n", s.Condition, s.Attempts, s.CompletionTime != nil)
	}
	for _, run := range job.Status.HookTracker {
		fmt.Fprintf(&b, "hook %s at %s: %s\n", run.UpgradeJobHook, run.HookEvent, run.Status)
	}
	fmt.Fprintf(&b, "blockers %v\nlock %q, desired %v, history %v\nupdates written %v\n",
		job.Status.Blockers, cv.Annotations[v1beta1.UpgradeJobAnnotation], cv.Spec.DesiredUpdate, openshift.RunningVersion(cv), w.api.updates)
	return b.String()
}
