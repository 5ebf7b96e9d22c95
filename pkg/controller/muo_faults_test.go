// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/muo"
)

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
	lose := func() {
		change(w.world, newMUOConfig(), func(c *v1alpha1.UpgradeConfig) { c.Status = v1alpha1.UpgradeConfigStatus{} })
	}
	blindly := func() {
		w.api.blind = true
		w.restart()
		for range 3 {
			if result := w.pass(); result.RequeueAfter > time.Second {
				t.Errorf("looks again after %s", result.RequeueAfter)
			}
		}
		w.api.blind = false
	}
	w.pass()
	first := w.job()
	lose() // the process ended before it recorded the job
	w.edit(wanting("4.18.3"))
	blindly()
	if got := jobsOf(w.world); len(got) != 1 || got[0].Name != first.Name {
		t.Errorf("there are %d jobs while the cache is blind, want the first alone", len(got))
	}
	w.pass()
	w.letAllGo()
	second := w.job()
	if second.Name == first.Name {
		t.Error("the job was not replaced")
	}

	// A job that the history knows is not given up because the cache does not.
	w.play(second, v1beta1.PhaseActive)
	w.pass()
	blindly()
	w.expectHistory("while it runs", "4.18.3 Upgrading")
	lose()
	blindly()
	w.pass()
	if w.job().UID != second.UID {
		t.Error("the job that runs was replaced")
	}
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
