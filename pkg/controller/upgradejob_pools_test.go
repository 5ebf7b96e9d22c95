// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

const poolsPaused = v1beta1.ConditionMachineConfigPoolsPaused

// follow lets the machines of a pool run the new configuration.
func (w *world) follow(pool string) {
	change(w, newPool(pool), openshifttest.PoolAt("4.18.2"))
}

func TestLifeOfAJobWithDelayedPools(t *testing.T) {
	job := newJob("weekly", configuredBy(delayingPool("infra", 2*time.Hour), delayingPool("gpu", 3*time.Hour)))
	w := newWorld(t, newClusterVersion(), job).register(withPools())
	for _, name := range []string{"master", "worker", "infra", "gpu"} {
		w.add(newPool(name), openshifttest.MachineConfig(name, "4.18.1"))
	}
	r := w.jobs()
	phase := func(want v1beta1.Phase) {
		t.Helper()
		if got := get(w, job).Status.Phase; got != want {
			t.Errorf("%s after the start: got phase %s, want %s", w.clock.Now().Sub(startAfter), got, want)
		}
	}
	w.reconcile(r, job)
	w.expectMCPs("before the upgrade", "gpu paused named upgrades/weekly", "infra paused named upgrades/weekly", "master", "worker")
	expectCondition(t, get(w, job).Status.Conditions, poolsPaused, metav1.ConditionTrue, v1beta1.ReasonDelaySet, "gpu until 2026-11-25T01:00:00Z, infra until 2026-11-25T00:00:00Z")
	phase(v1beta1.PhaseActive)

	w.acceptUpdate()
	w.reconcile(r, job)
	phase(v1beta1.PhaseActive)
	w.completeUpdate()
	w.follow("master")
	w.reconcile(r, job)
	phase(v1beta1.PhaseActive) // the workers follow
	w.follow("worker")
	before := get(w, job)
	if result := w.reconcile(r, job); result.RequeueAfter != maxSleep {
		t.Errorf("wakes after %s, want %s", result.RequeueAfter, maxSleep)
	}
	phase(v1beta1.PhasePaused)
	if !phaseChanged.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: get(w, job)}) {
		t.Error("the config is not told of the pause")
	}
	w.api.writes()
	w.elapse(time.Minute)
	if w.reconcile(r, job); len(w.api.writes()) > 0 {
		t.Error("a paused job writes")
	}

	w.clock.SetTime(startAfter.Add(2*time.Hour - 7*time.Second))
	if result := w.reconcile(r, job); result.RequeueAfter != 7*time.Second {
		t.Errorf("wakes after %s, want at the time of the first pool", result.RequeueAfter)
	}
	phase(v1beta1.PhasePaused)
	w.elapse(7 * time.Second)
	w.reconcile(r, job)
	w.expectMCPs("at the time of the first pool", "gpu paused named upgrades/weekly", "infra", "master", "worker")
	phase(v1beta1.PhaseActive)
	w.follow("infra")
	w.reconcile(r, job)
	phase(v1beta1.PhasePaused)
	w.clock.SetTime(startAfter.Add(3 * time.Hour))
	w.reconcile(r, job)
	w.expectMCPs("at the time of the second", "gpu", "infra", "master", "worker")
	phase(v1beta1.PhaseActive)
	w.follow("gpu")
	w.reconcile(r, job)

	phase(v1beta1.PhaseSucceeded)
	done := get(w, job)
	expectCondition(t, done.Status.Conditions, poolsPaused, metav1.ConditionFalse, v1beta1.ReasonReleased)
	expectCondition(t, done.Status.Conditions, v1beta1.ConditionSucceeded, metav1.ConditionTrue, v1beta1.ReasonUpgraded)
	w.expectMCPs("in the end", "gpu", "infra", "master", "worker")
	if w.lock() != "" || len(done.Finalizers) > 0 {
		t.Errorf("the job still holds the lock %q, finalizers %v", w.lock(), done.Finalizers)
	}
	for _, p := range done.Status.Pools {
		if p.Paused || p.PausedBy != "" || p.State != v1beta1.PoolStateUpdated {
			t.Errorf("got the status %+v", p)
		}
	}
}

// The phase says that nothing is to be done before an agreed time: an error is something else.
func TestThePhaseIsPausedOnlyWhileNothingIsWrong(t *testing.T) {
	job := newJob("weekly")
	verdict, err := steps.Pause(time.Hour, "Delayed", "It is paused."), error(nil)
	w := newWorld(t, newClusterVersion(), job).register(waiting(func() (steps.Verdict, error) { return verdict, err }))
	r := w.jobs()
	for _, tc := range []struct {
		reason  string
		verdict steps.Verdict
		err     error
		want    v1beta1.Phase
	}{
		{"it is paused", verdict, nil, v1beta1.PhasePaused},
		{"it still is", verdict, nil, v1beta1.PhasePaused},
		{"it goes on", steps.Wait(time.Hour, "Updating", "It goes on."), nil, v1beta1.PhaseActive},
		{"it is paused again", verdict, nil, v1beta1.PhasePaused},
		{"a conflict tells nothing", verdict, errConflict, v1beta1.PhasePaused},
		{"it ends", steps.Fail("Broken", "It is broken."), nil, v1beta1.PhaseFailed},
	} {
		verdict, err = tc.verdict, tc.err
		w.reconcile(r, job)
		if got := get(w, job).Status.Phase; got != tc.want {
			t.Errorf("%s: got phase %s, want %s", tc.reason, got, tc.want)
		}
		w.elapse(time.Minute)
	}
}

func TestPoolsOfAJobThatIsSkippedAreReleased(t *testing.T) {
	job := newJob("weekly", configuredBy(delayingPool("infra", 2*time.Hour)))
	sick := step{"Healthy", func(*steps.Upgrade) (steps.Verdict, error) { return steps.Skip("Unhealthy", "It is sick."), nil }}
	w := newWorld(t, newClusterVersion(), job, newPool("infra")).register(variant{
		name: v1beta1.DefaultUpgrader, steps: []steps.Step{steps.MachineConfigPoolsPaused(), sick}, finally: withPools().finally,
	})
	w.live(w.jobs(), job)
	w.expectMCPs("in the end", "infra")
	done := get(w, job)
	expectCondition(t, done.Status.Conditions, v1beta1.ConditionSkipped, metav1.ConditionTrue, "Unhealthy")
	expectCondition(t, done.Status.Conditions, poolsPaused, metav1.ConditionFalse, v1beta1.ReasonReleased)
	if w.lock() != "" || len(done.Finalizers) > 0 || len(done.Status.Pools) != 1 || done.Status.Pools[0].Paused {
		t.Errorf("got the lock %q, finalizers %v, pools %+v", w.lock(), done.Finalizers, done.Status.Pools)
	}
}

// failedUpgrade is a world in which a job has failed after the release was accepted, and left a pool paused.
func failedUpgrade(t *testing.T, job *v1beta1.UpgradeJob, pools ...*mcfgv1.MachineConfigPool) (*world, *UpgradeJobReconciler) {
	t.Helper()
	w := newWorld(t, newClusterVersion(), job).register(withPools())
	for _, p := range pools {
		w.add(p, openshifttest.MachineConfig(p.Name, "4.18.1"))
	}
	r := w.jobs()
	w.reconcile(r, job)
	w.acceptUpdate()
	w.reconcile(r, job)
	w.clock.SetTime(startAfter.Add(12 * time.Hour))
	w.events()
	return w, r
}

func TestPoolsThatStayPausedAreTold(t *testing.T) {
	job := newJob("weekly", configuredBy(delayingPool("infra", 2*time.Hour), pausing, func(config *v1beta1.UpgradeJobConfig) {
		config.Notifications = []v1beta1.NotificationReceiver{{Name: "pager", Events: []v1beta1.NotificationFilter{v1beta1.NotificationFilter(v1beta1.NotificationStepFailed)}}}
	}))
	w, r := failedUpgrade(t, job, newPool("infra"), newPool("worker"), newPool("master"))
	told := false
	w.api.fault = func(int, string) (error, error) {
		c := describe(get(w, job).Status.Conditions)
		told = told || strings.Contains(c, "MachineConfigPoolsPaused=True(PausedOnFailure)")
		if w.lock() == "" && !told {
			t.Error("the lock is released before it is told what stays paused: the next job may have begun by then")
		}
		return nil, nil
	}
	w.reconcile(r, job)
	w.api.fault = nil
	w.expectMCPs("after the failure", "infra paused named upgrades/weekly", "master", "worker paused named upgrades/weekly")
	failed := get(w, job)
	expectCondition(t, failed.Status.Conditions, v1beta1.ConditionFailed, metav1.ConditionTrue, v1beta1.ReasonTimedOut)
	expectCondition(t, failed.Status.Conditions, poolsPaused, metav1.ConditionTrue, v1beta1.ReasonPausedOnFailure, "Left paused: infra. Paused because the job failed: worker.")
	if w.lock() != "" || len(failed.Finalizers) > 0 {
		t.Errorf("got the lock %q, finalizers %v, want both gone", w.lock(), failed.Finalizers)
	}
	for _, p := range failed.Status.Pools {
		if want := map[string]string{"infra": "upgrades/weekly", "worker": "upgrades/weekly"}[p.Name]; p.PausedBy != want || p.Paused != (want != "") {
			t.Errorf("status of pool %s: paused %t by %q", p.Name, p.Paused, p.PausedBy)
		}
	}
	w.expectEvents("of the failure", "Warning Failed TimedOut: ", "Warning PausedOnFailure Left paused: infra. Paused because the job failed: worker.")

	var notices []string
	for _, n := range failed.Status.Notifications.Outbox {
		notices = append(notices, n.Condition+" "+n.Reason+" "+n.Message)
	}
	if len(notices) != 1 || !strings.HasPrefix(notices[0], "MachineConfigPoolsPaused PausedOnFailure Left paused: infra.") {
		t.Errorf("receivers of notifications are told %q", notices)
	}

	w.api.writes()
	for range 3 {
		w.elapse(time.Hour)
		w.reconcile(w.jobs(), job) // of other processes too
	}
	if got := w.api.writes(); len(got) > 0 {
		t.Errorf("passes without news wrote %v", got)
	}
	w.expectEvents("afterwards")
}

func TestPoolsThatStayPausedAreToldOnceThoughItIsWrittenInVain(t *testing.T) {
	for _, err := range []error{errConflict, errBroken} {
		job := newJob("weekly", configuredBy(delayingPool("infra", 2*time.Hour), pausing))
		w, r := failedUpgrade(t, job, newPool("infra"), newPool("worker"))
		writes := 0
		w.api.fault = func(_ int, call string) (error, error) {
			if call == "patch UpgradeJob/status" {
				if writes++; writes == 2 { // after that of the outcome
					return err, nil
				}
			}
			return nil, nil
		}
		w.reconcile(r, job)
		if w.lock() == "" || len(get(w, job).Finalizers) == 0 {
			t.Error("the lock or the finalizer is gone before it is told what stays paused")
		}
		w.expectEvents("before it is told", "Warning Failed ")
		w.reconcile(r, job)
		w.expectEvents("when it is told", "Warning PausedOnFailure ")
		expectCondition(t, get(w, job).Status.Conditions, poolsPaused, metav1.ConditionTrue, v1beta1.ReasonPausedOnFailure, "Left paused: infra. Paused because the job failed: worker.")
	}
}

// What was left paused is somebody else's to release. Then the job that is over does not say any more that it is, and
// its name is gone: whoever pauses the pool next is somebody else.
func TestPoolsThatWereLeftAreReleased(t *testing.T) {
	for name, release := range map[string]func(*mcfgv1.MachineConfigPool){
		"by a command that takes the name off": freed(false), "by hand, and the name stays": freed(true), "another job has paused it since": heldFor("upgrades/other"),
	} {
		t.Run(name, func(t *testing.T) {
			job := newJob("weekly", configuredBy(delayingPool("infra", 2*time.Hour), delayingPool("gpu", 2*time.Hour)))
			w, r := failedUpgrade(t, job, newPool("infra"), newPool("gpu"))
			w.reconcile(r, job)
			expectCondition(t, get(w, job).Status.Conditions, poolsPaused, metav1.ConditionTrue, v1beta1.ReasonLeftPaused, "Left paused: gpu, infra.")

			change(w, newPool("gpu"), freed(true))
			w.reconcile(r, job)
			w.expectMCPs("when one is released", "gpu", "infra paused named upgrades/weekly")
			expectCondition(t, get(w, job).Status.Conditions, poolsPaused, metav1.ConditionTrue, v1beta1.ReasonLeftPaused)

			change(w, newPool("infra"), release)
			w.reconcile(r, job)
			expectCondition(t, get(w, job).Status.Conditions, poolsPaused, metav1.ConditionFalse, v1beta1.ReasonReleased, "released since")
			if got := get(w, newPool("infra")).Annotations[v1beta1.UpgradeJobAnnotation]; got == "upgrades/weekly" {
				t.Error("the pool still has the name of the job")
			}
			for _, p := range get(w, job).Status.Pools {
				if p.PausedBy != "" {
					t.Errorf("the job still says of pool %s that %s has paused it", p.Name, p.PausedBy)
				}
			}
			w.api.writes()
			w.reconcile(r, job)
			if got := w.api.writes(); len(got) > 0 {
				t.Errorf("another pass wrote %v", got)
			}
		})
	}
}

// A job keeps its finalizer until its last hooks have ended, which takes hours. Who releases a pool meanwhile does so for good.
func TestPoolsAreNotPausedAgainByTheNextProcess(t *testing.T) {
	job := newJob("weekly", configuredBy(delayingPool("infra", 2*time.Hour), delayingPool("gpu", 2*time.Hour), pausing))
	w, r := failedUpgrade(t, job, newPool("infra"), newPool("gpu"), newPool("worker"))
	w.add(hookAt("report", v1beta1.HookFailureIgnore, v1beta1.HookEventFailure))
	w.reconcile(r, job)
	w.expectMCPs("after the failure", "gpu paused named upgrades/weekly", "infra paused named upgrades/weekly", "worker paused named upgrades/weekly")
	if len(get(w, job).Finalizers) == 0 {
		t.Fatal("the job does not wait for its hook")
	}
	change(w, newPool("worker"), freed(false))
	for range 2 {
		w.elapse(time.Minute)
		w.reconcile(w.jobs(), job)
		w.expectMCPs("after a restart", "gpu paused named upgrades/weekly", "infra paused named upgrades/weekly", "worker")
	}
	w.events()
	change(w, newPool("gpu"), freed(false))
	next := w.jobs()
	w.reconcile(next, job)
	w.expectMCPs("after another restart", "gpu", "infra paused named upgrades/weekly", "worker")
	expectCondition(t, get(w, job).Status.Conditions, poolsPaused, metav1.ConditionTrue, v1beta1.ReasonLeftPaused, "Left paused: infra. The")
	w.expectEvents("that fewer stay paused")

	change(w, newPool("infra"), freed(true))
	w.reconcile(next, job)
	w.expectMCPs("when the last one is unpaused", "gpu", "infra", "worker")
	if expectCondition(t, get(w, job).Status.Conditions, poolsPaused, metav1.ConditionFalse, v1beta1.ReasonReleased); len(get(w, job).Finalizers) == 0 {
		t.Error("the job does not wait for its hook any more")
	}
	w.finishHooks()
	w.reconcile(next, job)
	w.expectMCPs("in the end", "gpu", "infra", "worker")
	expectCondition(t, get(w, job).Status.Conditions, poolsPaused, metav1.ConditionFalse, v1beta1.ReasonReleased)
	if got := get(w, job).Finalizers; len(got) > 0 {
		t.Errorf("got the finalizers %v", got)
	}
}

// The next job that gets so far releases what an earlier one has left, and the earlier one says so.
func TestTheNextJobReleasesWhatWasLeft(t *testing.T) {
	first := newJob("first", configuredBy(delayingPool("infra", 2*time.Hour)))
	w, r := failedUpgrade(t, first, newPool("infra"), newPool("worker"))
	w.reconcile(r, first)
	w.expectMCPs("after the failure", "infra paused named upgrades/first", "worker")
	second := newJob("second", func(job *v1beta1.UpgradeJob) {
		job.Spec.StartAfter, job.Spec.StartBefore = metav1.NewTime(w.clock.Now()), metav1.NewTime(w.clock.Now().Add(time.Hour))
	})
	w.add(second)
	w.reconcile(r, second)
	expectCondition(t, get(w, second).Status.Conditions, poolsPaused, metav1.ConditionTrue, v1beta1.ReasonDelaySet, "infra until the control plane is upgraded")
	w.completeUpdate()
	w.reconcile(r, second)
	w.expectMCPs("when the control plane is upgraded", "infra", "worker")
	w.follow("infra")
	w.follow("worker")
	w.live(r, second)
	expectCondition(t, get(w, second).Status.Conditions, v1beta1.ConditionSucceeded, metav1.ConditionTrue, v1beta1.ReasonUpgraded)
	w.reconcile(r, first)
	expectCondition(t, get(w, first).Status.Conditions, poolsPaused, metav1.ConditionFalse, v1beta1.ReasonReleased)
}

// A job that is resumed goes on with the pools that it has left.
func TestAResumedJobReleasesWhatItLeft(t *testing.T) {
	job := newJob("weekly", configuredBy(delayingPool("infra", 2*time.Hour), pausing))
	w, r := failedUpgrade(t, job, newPool("infra"), newPool("worker"))
	w.reconcile(r, job)
	w.completeUpdate()
	change(w, job, func(job *v1beta1.UpgradeJob) { job.Spec.ResumeRequest, job.Generation = "now", 2 })
	w.reconcile(r, job)
	w.expectMCPs("when it is resumed", "infra paused named upgrades/weekly", "worker")
	w.follow("worker")
	w.reconcile(r, job)
	w.expectMCPs("when the workers have followed", "infra", "worker")
	w.follow("infra")
	w.live(r, job)
	done := get(w, job)
	expectCondition(t, done.Status.Conditions, v1beta1.ConditionSucceeded, metav1.ConditionTrue, v1beta1.ReasonUpgraded)
	expectCondition(t, done.Status.Conditions, poolsPaused, metav1.ConditionFalse, v1beta1.ReasonReleased)
}
