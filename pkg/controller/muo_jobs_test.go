// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
			w.play(first, outcome)
			if outcome == v1beta1.PhaseSucceeded {
				change(w.world, newClusterVersion(), func(cv *configv1.ClusterVersion) {
					cv.Status.History = []configv1.UpdateHistory{{State: configv1.CompletedUpdate, Version: "4.18.2", Image: "image:4.18.2"}}
				})
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

// Whatever call fails or ends the process: there is one job in the end, and the history is the same.
func TestMUOCrashesMakeNoSecondJob(t *testing.T) {
	for _, effect := range []string{"before", "after"} {
		for n := range 14 {
			t.Run(fmt.Sprintf("%s call %d", effect, n), func(t *testing.T) {
				w := newMUOWorld(t, newClusterVersion(offering("4.18.2", "4.18.3")), newMUOConfig())
				calls := 0
				w.api.fault = func(int, string) (error, error) {
					if calls++; calls-1 != n {
						return nil, nil
					}
					if effect == "before" {
						return errBroken, nil
					}
					return nil, errBroken
				}
				work := func() {
					for range 4 {
						w.pass()
						w.restart()
						w.letAllGo()
						w.api.calls = nil
					}
				}
				work()
				first := w.job()
				w.edit(wanting("4.18.3"))
				work()
				if second := w.job(); second.Name == first.Name {
					t.Error("the job was not replaced")
				}
				w.expectHistory("in the end", "4.18.3 Pending", "4.18.2 New")
			})
		}
	}
}

// A cache that has not seen the job yet makes no second one.
func TestMUOStaleCacheMakesNoSecondJob(t *testing.T) {
	w := newMUOWorld(t, newClusterVersion(offering("4.18.2", "4.18.3")), newMUOConfig())
	w.pass()
	first := w.job()
	w.api.blind = true
	w.edit(wanting("4.18.3"))
	w.restart()
	for range 3 {
		if result := w.pass(); result.RequeueAfter > time.Second {
			t.Errorf("looks again after %s", result.RequeueAfter)
		}
	}
	if got := jobsOf(w.world); len(got) != 1 {
		t.Errorf("there are %d jobs while the cache is blind, want the first alone", len(got))
	}
	w.api.blind = false
	w.pass()
	if w.letAllGo(); w.job().Name == first.Name {
		t.Error("the job was not replaced")
	}

	// A job that runs is not given up because the cache does not have it.
	w.play(w.job(), v1beta1.PhaseActive)
	w.pass()
	w.api.blind = true
	w.restart()
	w.pass()
	w.expectHistory("while it runs", "4.18.3 Upgrading", "4.18.2 New")

	// An object whose status was lost.
	change(w.world, newMUOConfig(), func(c *v1alpha1.UpgradeConfig) { c.Status = v1alpha1.UpgradeConfigStatus{} })
	w.restart()
	w.pass()
	w.api.blind = false
	w.pass()
	w.job()
	w.expectHistory("status lost", "4.18.3 Upgrading")
}

func TestMUORunningJobIsFoundAgainAfterItsRecordWasLost(t *testing.T) {
	job := newMUOJob(newMUOConfig(), v1beta1.PhaseActive)
	w := newMUOWorld(t, newClusterVersion(offering("4.18.3")), newMUOConfig(wanting("4.18.3")), job)
	w.pass()
	w.expectHistory("a former spec", "4.18.3 Pending", "4.18.2 Upgrading")
	w.edit(wanting("4.18.2"))
	w.pass()
	w.expectHistory("the spec", "4.18.2 Upgrading")
	if c := muo.FindCondition(&w.config().Status.History[0], v1alpha1.ConditionValid); c == nil || c.Status != metav1.ConditionTrue {
		t.Errorf("valid is %+v", c)
	}
}

func TestMUONameOfTheJobIsTaken(t *testing.T) {
	for _, tc := range []struct {
		reason, because string
		owner           func(*v1beta1.UpgradeJob)
		again           bool
	}{
		{"by that of an object that was deleted", muo.ReasonJobReplaced, func(job *v1beta1.UpgradeJob) { job.OwnerReferences[0].UID = "former" }, false},
		{"by somebody else's", muo.ReasonCreateFailed, func(job *v1beta1.UpgradeJob) { job.OwnerReferences = nil }, true},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			taken := newMUOJob(newMUOConfig(), v1beta1.PhasePending, tc.owner)
			w := newMUOWorld(t, newClusterVersion(), newMUOConfig(), taken)
			result := w.pass()
			w.expectFirst("taken", "UpgradeScheduled", metav1.ConditionFalse, tc.because, taken.Name)
			if (result.RequeueAfter > 0) != tc.again {
				t.Errorf("tries again after %s", result.RequeueAfter)
			}
			w.remove(taken)
			w.letAllGo()
			w.pass()
			if got := w.job(); got.UID == taken.UID {
				t.Error("the job was not made")
			}
			w.expectFirst("free", "UpgradeScheduled", metav1.ConditionTrue, muo.ReasonJobCreated)
		})
	}
}

func TestMUORefusedJobIsShown(t *testing.T) {
	w := newMUOWorld(t, newClusterVersion(), newMUOConfig())
	refused := apierrors.NewInvalid(v1beta1.GroupVersion.WithKind("UpgradeJob").GroupKind(), "x", nil)
	refused.ErrStatus.Message = "spec.config.notifications[0]: exactly one of url and urlFrom must be set"
	w.api.fault = failing("create UpgradeJob", 1, refused)
	if result := w.pass(); result.RequeueAfter == 0 {
		t.Error("a refused job is never tried again")
	}
	w.expectFirst("refused", "UpgradeScheduled", metav1.ConditionFalse, muo.ReasonCreateFailed, "exactly one of url and urlFrom must be set")
	w.expectEvents("refused", "Warning CreateFailed The UpgradeJob is refused: ")
	w.api.fault = failing("create UpgradeJob", 1, errors.New("boom"))
	if result := w.pass(); result.RequeueAfter == 0 || result.RequeueAfter > time.Second {
		t.Errorf("an error is tried again after %s", result.RequeueAfter)
	}
	w.expectFirst("failed", "UpgradeScheduled", metav1.ConditionFalse, muo.ReasonCreateFailed, "boom")
	w.pass()
	w.expectFirst("created", "UpgradeScheduled", metav1.ConditionTrue, muo.ReasonJobCreated)
}

func TestMUOOldJobsAreDeleted(t *testing.T) {
	config := newMUOConfig(wanting("4.18.1"))
	objects := []client.Object{newClusterVersion(), config}
	for i := range 6 {
		old := newMUOConfig(upgradeAt(startAfter.AddDate(0, 0, i-10).Format(time.RFC3339)))
		objects = append(objects, newMUOJob(old, v1beta1.PhaseFailed))
	}
	w := newMUOWorld(t, objects...)
	w.pass()
	w.letAllGo()
	jobs := jobsOf(w.world)
	if len(jobs) != 4 {
		t.Fatalf("%d jobs are left, want the newest four", len(jobs))
	}
	for _, job := range jobs {
		if job.Spec.StartAfter.Time.Before(startAfter.AddDate(0, 0, -8)) {
			t.Errorf("job of %s is left", job.Spec.StartAfter)
		}
	}
	w.pass()
	w.expectHistory("in the end", "4.18.1 Upgraded", "4.18.2 Failed")
}

// listing is a client whose lists have one job as it was.
type listing struct {
	client.Client
	job *v1beta1.UpgradeJob
}

func (l listing) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*v1beta1.UpgradeJobList).Items = []v1beta1.UpgradeJob{*l.job}
	return nil
}
