// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/muo"
)

// newMUOJob returns the job of the object, in a phase.
func newMUOJob(config *v1alpha1.UpgradeConfig, phase v1beta1.Phase, overrides ...func(*v1beta1.UpgradeJob)) *v1beta1.UpgradeJob {
	judgement := muo.Judge(config, muo.Facts{Settings: muo.DefaultSettings(), Version: newClusterVersion(offering("4.18.2", "4.18.3"))})
	job := muo.Job(config, muo.DefaultSettings(), judgement, startAfter)
	job.UID = "job-uid"
	job.Status.Phase = phase
	if phase != v1beta1.PhasePending {
		job.Status.StartTime = &metav1.Time{Time: startAfter}
	}
	for _, override := range overrides {
		override(job)
	}
	return job
}

func TestMUOChangeBeforeTheStartReplacesTheJob(t *testing.T) {
	w := newMUOWorld(t, newClusterVersion(offering("4.18.2", "4.18.3")), newMUOConfig())
	w.pass()
	first := w.job()
	w.play(first, v1beta1.PhasePending)
	w.events()

	w.edit(wanting("4.18.3"))
	w.pass()
	second := w.job()
	if second.Name == first.Name || second.Spec.DesiredVersion.Version != "4.18.3" {
		t.Errorf("got job %s for %s", second.Name, second.Spec.DesiredVersion.Version)
	}
	w.expectEvents("changed", "Normal JobReplaced Deleted UpgradeJob "+first.Name, "Normal JobCreated Created UpgradeJob "+second.Name)
	w.letAllGo()
	w.pass()
	w.expectHistory("changed", "4.18.3 Pending", "4.18.2 New")

	w.edit(wanting("4.18.2"))
	w.pass()
	if third := w.job(); third.Name != first.Name || third.UID == first.UID {
		t.Errorf("changed back: got job %s %s", third.Name, third.UID)
	}
	w.letAllGo()
	w.pass()
	w.expectHistory("changed back", "4.18.2 Pending", "4.18.3 New")

	w.edit(wanting("4.18.9"))
	w.pass()
	w.letAllGo()
	w.pass()
	w.expectNoJob()
	w.expectHistory("nonsense", "4.18.9 Pending", "4.18.2 New", "4.18.3 New")
	w.edit(wanting("4.18.3"))
	w.pass()
	w.expectHistory("nonsense leaves nothing", "4.18.3 Pending", "4.18.2 New")
}

func TestMUOSettingsBeforeTheStartReplaceTheJob(t *testing.T) {
	w := newMUOWorld(t, newClusterVersion(), newMUOConfig(), muoSettings(""))
	w.pass()
	first := w.job()
	w.set(func(c *corev1.ConfigMap) { c.Data[muo.ConfigMapKey] = "maintenance: {controlPlaneTime: 10}" })
	w.pass()
	w.expectFirst("while the old one is there", "UpgradeScheduled", metav1.ConditionFalse, muo.ReasonJobReplaced, first.Name)
	w.pass()
	w.expectFirst("still", "UpgradeScheduled", metav1.ConditionFalse, muo.ReasonJobReplaced, first.Name)
	w.letAllGo()
	w.pass()
	second := w.job()
	if second.Name != first.Name || second.UID == first.UID || second.Spec.Config.Maintenance.ControlPlaneTime.Duration != 10*time.Minute {
		t.Errorf("got job %s with %s", second.Name, second.Spec.Config.Maintenance.ControlPlaneTime)
	}
	w.expectFirst("replaced", "UpgradeScheduled", metav1.ConditionTrue, muo.ReasonJobCreated)

	w.play(second, v1beta1.PhaseActive)
	w.set(func(c *corev1.ConfigMap) { c.Data[muo.ConfigMapKey] = "nonsense" })
	w.pass()
	if w.job().UID != second.UID {
		t.Error("a job that runs was replaced")
	}
	w.expectHistory("while it runs", "4.18.2 Upgrading")
}

// A job that starts while it is being replaced is not.
func TestMUOJobThatHasJustStartedIsNotReplaced(t *testing.T) {
	w := newMUOWorld(t, newClusterVersion(offering("4.18.2", "4.18.3")), newMUOConfig())
	w.pass()
	job := w.job()
	pending := job.DeepCopy()
	w.play(job, v1beta1.PhaseActive)
	w.edit(wanting("4.18.3"))
	w.r.Client = listing{w.client, pending}
	w.pass()
	if got := w.job(); got.Name != job.Name {
		t.Errorf("the job that had started was replaced by %s", got.Name)
	}
	w.r.Client = w.client
	w.pass()
	w.expectHistory("after", "4.18.3 Pending", "4.18.2 Upgrading")
	w.expectFirst("after", "UpgradeScheduled", metav1.ConditionFalse, muo.ReasonUpgradeInProgress, job.Name)
}

func TestMUOChangeDuringTheUpgradeWaits(t *testing.T) {
	w := newMUOWorld(t, newClusterVersion(offering("4.18.2", "4.18.3")), newMUOConfig())
	w.pass()
	first := w.job()
	w.play(first, v1beta1.PhaseActive)
	w.pass()
	w.events()
	w.edit(wanting("4.18.3"))
	for range 3 {
		w.pass()
	}
	if w.job().Name != first.Name {
		t.Error("the running job was replaced")
	}
	w.expectFirst("while it runs", "UpgradeScheduled", metav1.ConditionFalse, muo.ReasonUpgradeInProgress, "UpgradeJob "+first.Name)
	w.expectHistory("while it runs", "4.18.3 Pending", "4.18.2 Upgrading")
	w.expectEvents("while it runs", "Normal UpgradeInProgress UpgradeJob "+first.Name)
	change(w.world, first, func(j *v1beta1.UpgradeJob) {
		j.Status.Steps = []v1beta1.StepStatus{{Condition: "UpgradeCommenced", StartTime: metav1.NewTime(startAfter)}}
		setCondition(&j.Status.Conditions, v1beta1.StepDone("UpgradeCommenced", "Done."), 1, w.clock)
	})
	w.api.writes()
	w.pass()
	if writes := w.api.writes(); len(writes) != 1 {
		t.Errorf("a step made the writes %v, want one", writes)
	}
	w.expectEvents("a step later")

	w.play(first, v1beta1.PhaseFailed)
	w.pass()
	jobs := jobsOf(w.world)
	if len(jobs) != 2 {
		t.Fatalf("there are %d jobs, want the old and the new one", len(jobs))
	}
	w.expectHistory("after its end", "4.18.3 Pending", "4.18.2 Failed")
}

// A new time for the same version, while it is being upgraded to, is not taken for a new upgrade unless the upgrade fails.
func TestMUOSameVersionAgain(t *testing.T) {
	for _, outcome := range []v1beta1.Phase{v1beta1.PhaseSucceeded, v1beta1.PhaseFailed} {
		t.Run(string(outcome), func(t *testing.T) {
			w := newMUOWorld(t, newClusterVersion(), newMUOConfig())
			w.pass()
			first := w.job()
			w.play(first, v1beta1.PhaseActive)
			w.edit(upgradeAt("2026-12-01T22:00:00Z"))
			w.pass()
			w.expectHistory("while it runs", "4.18.2 Upgrading")
			w.api.writes()
			w.elapse(time.Minute)
			w.pass()
			if writes := w.api.writes(); len(writes) > 0 {
				t.Errorf("a pass without news wrote %v", writes)
			}
			if outcome == v1beta1.PhaseSucceeded {
				change(w.world, newClusterVersion(), func(cv *configv1.ClusterVersion) {
					cv.Status.History = []configv1.UpdateHistory{{State: configv1.CompletedUpdate, Version: "4.18.2", Image: "image:4.18.2"}}
				})
				w.pass()
				w.expectHistory("machines are on their way", "4.18.2 Upgrading")
			}
			w.play(first, outcome)
			if outcome == v1beta1.PhaseSucceeded {
				w.pass()
				w.expectHistory("it is done", "4.18.2 Upgraded")
				if got := w.config().Status.History[0]; w.job().Name != first.Name || got.UpgradeJob != first.Name || got.PrecedingVersion != "4.18.1" {
					t.Errorf("got %+v", got)
				}
				return
			}
			w.pass()
			w.expectHistory("it is tried again", "4.18.2 Pending")
			if got := w.config().Status.History[0]; got.UpgradeJob == first.Name || got.StartTime != nil {
				t.Errorf("the entry is still that of the failed job: %+v", got)
			}
		})
	}
}

// An update that the cluster does already gets no job: it would look at a cluster that is half way.
func TestMUOUpdateUnderWayIsLeftToItself(t *testing.T) {
	underWay := func(cv *configv1.ClusterVersion) {
		cv.Status.History = append([]configv1.UpdateHistory{{State: configv1.PartialUpdate, Version: "4.18.2", Image: "image:4.18.2"}}, cv.Status.History...)
	}
	done := func(cv *configv1.ClusterVersion) { cv.Status.History[0].State = configv1.CompletedUpdate }

	w := newMUOWorld(t, newClusterVersion(underWay), newMUOConfig())
	w.pass()
	w.expectNoJob()
	w.expectHistory("somebody else's", "4.18.2 Upgrading")
	w.expectFirst("somebody else's", "UpgradeScheduled", metav1.ConditionFalse, muo.ReasonUpgradeInProgress, "left to itself")

	w = newMUOWorld(t, newClusterVersion(), newMUOConfig())
	w.pass()
	change(w.world, newClusterVersion(), underWay)
	w.pass()
	w.letAllGo()
	w.pass()
	w.expectNoJob()
	w.expectHistory("begun by somebody else before the start", "4.18.2 Upgrading")
	change(w.world, newClusterVersion(), done)
	w.pass()
	w.expectHistory("done", "4.18.2 Upgraded")
	w.expectFirst("done", "UpgradeConfigValid", metav1.ConditionTrue, muo.ReasonUpgraded)

	w = newMUOWorld(t, newClusterVersion(), newMUOConfig())
	w.pass()
	failed := w.job()
	w.play(failed, v1beta1.PhaseFailed)
	w.pass()
	change(w.world, newClusterVersion(), underWay)
	w.edit(upgradeAt("2026-12-01T22:00:00Z"))
	for range 2 {
		w.elapse(time.Minute)
		w.api.writes()
		w.pass()
	}
	if writes := w.api.writes(); len(writes) > 0 {
		t.Errorf("a pass without news wrote %v", writes)
	}
	w.expectHistory("after a failure", "4.18.2 Failed")
	w.expectFirst("after a failure", "UpgradeScheduled", metav1.ConditionFalse, muo.ReasonUpgradeInProgress, "a spec.resumeRequest has UpgradeJob "+failed.Name+" go on")
	w.remove(failed)
	w.letGo(failed)
	change(w.world, newClusterVersion(), done)
	w.pass()
	w.expectHistory("done after a failure", "4.18.2 Upgraded")
	if c := muo.FindCondition(&w.config().Status.History[0], v1alpha1.ConditionFailed); c != nil {
		t.Errorf("an upgrade that is done has %+v", c)
	}
}

func TestMUOJobThatIsDeletedWhileItRuns(t *testing.T) {
	w := newMUOWorld(t, newClusterVersion(), newMUOConfig())
	w.pass()
	job := w.job()
	w.play(job, v1beta1.PhaseActive)
	w.pass()
	w.events()
	w.remove(job)
	w.pass()
	w.expectHistory("while it gives back", "4.18.2 Upgrading")
	w.letAllGo()
	for range 2 {
		w.pass()
	}
	w.expectHistory("gone", "4.18.2 Failed")
	w.expectFirst("gone", "FailedUpgrade", metav1.ConditionTrue, muo.ReasonJobDeleted, job.Name)
	w.expectNoJob()
	w.expectEvents("gone", "Warning JobDeleted UpgradeJob "+job.Name)
}

func TestMUOJobThatIsDeletedBeforeItsStartIsMadeAgain(t *testing.T) {
	w := newMUOWorld(t, newClusterVersion(), newMUOConfig())
	w.pass()
	job := w.job()
	w.remove(job)
	w.pass()
	w.expectFirst("while it goes", "UpgradeScheduled", metav1.ConditionFalse, muo.ReasonJobReplaced)
	w.letAllGo()
	w.pass()
	if again := w.job(); again.Name != job.Name || again.UID == job.UID {
		t.Errorf("got %s %s", again.Name, again.UID)
	}
}
