// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

func TestLifeOfAJob(t *testing.T) {
	job := newJob("weekly")
	w := newWorld(t, newClusterVersion(), job).register(plain())
	r := w.jobs()

	w.clock.SetTime(startAfter.Add(-30 * time.Second))
	if result := w.reconcile(r, job); result.RequeueAfter != 30*time.Second {
		t.Errorf("wakes after %s, want at the start", result.RequeueAfter)
	}
	waiting := get(w, job)
	expectCondition(t, waiting.Status.Conditions, v1beta1.ConditionStarted, metav1.ConditionFalse, v1beta1.ReasonWaitingForStart)
	if waiting.Status.Phase != v1beta1.PhasePending || waiting.Status.ObservedGeneration != 1 {
		t.Errorf("got phase %s, observed generation %d, want Pending, 1", waiting.Status.Phase, waiting.Status.ObservedGeneration)
	}
	if cv := get(w, newClusterVersion()); len(cv.Annotations) > 0 {
		t.Errorf("the cluster is locked before the start: %v", cv.Annotations)
	}
	w.api.writes()

	w.clock.SetTime(startAfter)
	w.reconcile(r, job)
	running, cv := get(w, job), get(w, newClusterVersion())
	if cv.Annotations[v1beta1.UpgradeJobAnnotation] != "upgrades/weekly" {
		t.Errorf("the lock is %v, want the job", cv.Annotations)
	}
	if cv.Spec.DesiredUpdate == nil || *cv.Spec.DesiredUpdate != (configv1.Update{Version: "4.18.2", Image: "image:4.18.2"}) {
		t.Errorf("the desired update is %v, want 4.18.2", cv.Spec.DesiredUpdate)
	}
	if running.Status.Phase != v1beta1.PhaseActive || running.Status.FromVersion != "4.18.1" || !running.Status.StartTime.Time.Equal(startAfter) {
		t.Errorf("got phase %s from %s at %s, want Active from 4.18.1 at its start", running.Status.Phase, running.Status.FromVersion, running.Status.StartTime)
	}
	// The fence before the point of no return, the point of no return with the lock, the status.
	want := []string{"patch UpgradeJob/status", "patch openshift.ClusterVersion", "patch UpgradeJob/status"}
	if diff := cmp.Diff(want, w.api.writes()); diff != "" {
		t.Errorf("writes of the first pass (-want +got):\n%s", diff)
	}

	w.live(r, job)
	if got, want := w.outcome(job), `phase Succeeded, from 4.18.1, finalizers []
Started=True(Started): The job has started.
Healthy=True(Completed): It is well.
UpgradeCommenced=True(Completed): ClusterVersion/version is asked to update to 4.18.2.
Upgraded=True(Completed): The cluster runs it.
Succeeded=True(Upgraded): The cluster runs the desired version.
step Healthy: attempts 1, completed true
step UpgradeCommenced: attempts 1, completed true
step Upgraded: attempts 1, completed true
blockers []
lock "", desired &{ 4.18.2 image:4.18.2 false}, history 4.18.2
updates written [4.18.2]
`; got != want {
		t.Errorf("outcome (-want +got):\n%s", cmp.Diff(want, got))
	}
	if diff := cmp.Diff([]string{"Started", "Healthy", "UpgradeCommenced", "Updating", "Upgraded", "Succeeded"}, reasons(w.events())); diff != "" {
		t.Errorf("reasons of the Events (-want +got):\n%s", diff)
	}

	w.api.writes()
	for range 3 {
		w.elapse(time.Hour)
		if result := w.reconcile(r, job); result.RequeueAfter != 0 {
			t.Errorf("a finished job wakes after %s", result.RequeueAfter)
		}
	}
	if got := w.api.writes(); len(got) > 0 {
		t.Errorf("a finished job is written: %v", got)
	}
}

// reasons are the second words of Events.
func reasons(published []string) []string {
	var list []string
	for _, e := range published {
		list = append(list, strings.Fields(e)[1])
	}
	return list
}

func TestFaultAtEachCall(t *testing.T) {
	type scenario struct {
		override func(*v1beta1.UpgradeJob)
		stuck    bool
	}
	live := func(t *testing.T, s scenario, fault func(int, string) (error, error)) (*world, string) {
		job := newJob("weekly", s.override)
		w := newWorld(t, newClusterVersion(), job).register(plain())
		w.api.fault, w.stuck = fault, s.stuck
		w.live(w.jobs(), job)
		return w, w.outcome(job)
	}
	for name, s := range map[string]scenario{
		"of a job that succeeds": {override: byHand},
		"of a job that is expired": {override: func(job *v1beta1.UpgradeJob) {
			job.Spec.StartAfter.Time, job.Spec.StartBefore.Time = startAfter.Add(-2*time.Hour), startAfter.Add(-time.Hour)
		}},
		"of a job whose update is never taken up": {stuck: true, override: func(job *v1beta1.UpgradeJob) {
			job.Spec.Config.UpgradeTimeout = &v1beta1.Duration{Duration: 2 * time.Minute}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			clean, want := live(t, s, nil)
			calls := slices.Clone(clean.api.calls)
			if len(calls) < 5 {
				t.Fatalf("a life of %d calls: the test is blind", len(calls))
			}
			for i, call := range calls {
				for when, err := range map[string][2]error{
					"breaks before its effect":   {errBroken, nil},
					"breaks after its effect":    {nil, errBroken},
					"conflicts":                  {errConflict, nil},
					"times out after its effect": {nil, apierrors.NewTimeoutError("too slow", 1)},
				} {
					t.Run(fmt.Sprintf("call %d, %s, %s", i, call, when), func(t *testing.T) {
						_, got := live(t, s, func(n int, c string) (error, error) {
							if n == i {
								return err[0], err[1]
							}
							return nil, nil
						})
						if got != want {
							t.Errorf("outcome (-without fault +got):\n%s", cmp.Diff(want, got))
						}
					})
				}
			}
		})
	}
}

func TestCrashAfterEachWrite(t *testing.T) {
	// A process that ends after a write knows nothing but what stands in the cluster. Another one carries on.
	job := newJob("weekly", byHand)
	w := newWorld(t, newClusterVersion(), job).register(plain())
	w.live(w.jobs(), job)
	want := w.outcome(job)
	calls := slices.Clone(w.api.calls)

	for i, call := range calls {
		if strings.HasPrefix(call, "get ") || strings.HasPrefix(call, "list ") {
			continue
		}
		t.Run(fmt.Sprintf("call %d, %s", i, call), func(t *testing.T) {
			job := newJob("weekly", byHand)
			w := newWorld(t, newClusterVersion(), job).register(plain())
			crashed := false
			w.api.fault = func(n int, _ string) (error, error) {
				if n == i {
					crashed = true
					return nil, nil
				}
				if crashed {
					return errors.New("the process has ended"), nil
				}
				return nil, nil
			}
			first := w.jobs()
			for range 20 {
				w.reconcile(first, job)
				if crashed {
					break
				}
				w.updateCluster()
			}
			if !crashed {
				t.Fatal("the call was never made")
			}
			w.events()
			w.api.fault = nil
			w.live(w.jobs(), job)
			if got := w.outcome(job); got != want {
				t.Errorf("outcome (-without crash +got):\n%s", cmp.Diff(want, got))
			}
		})
	}
}

func TestFinalizerOfAJobMadeByHand(t *testing.T) {
	job := newJob("by-hand", byHand)
	w := newWorld(t, newClusterVersion(), job).register(plain())
	w.clock.SetTime(startAfter.Add(-time.Hour))
	r := w.jobs()
	w.reconcile(r, job)
	if got := get(w, job).Finalizers; !slices.Equal(got, []string{v1beta1.UpgradeJobFinalizer}) {
		t.Errorf("finalizers are %v, want that of the operator", got)
	}
	w.api.writes()
	w.reconcile(r, job)
	if got := w.api.writes(); len(got) > 0 {
		t.Errorf("it is written again: %v", got)
	}
}

func TestNothingIsTakenWithoutFinalizer(t *testing.T) {
	job := newJob("by-hand", byHand)
	w := newWorld(t, newClusterVersion(), job).register(plain())
	w.api.fault = failing("patch UpgradeJob", 1, errBroken)
	w.reconcile(w.jobs(), job)
	if cv := get(w, newClusterVersion()); len(cv.Annotations) > 0 || cv.Spec.DesiredUpdate != nil {
		t.Errorf("got lock %v, update %v, want the cluster untouched", cv.Annotations, cv.Spec.DesiredUpdate)
	}
}

func TestLock(t *testing.T) {
	noFinalizer := func(job *v1beta1.UpgradeJob) { job.Finalizers = nil }
	for _, tc := range []struct {
		reason string
		holder string
		other  *v1beta1.UpgradeJob
		// all makes the operator watch all namespaces.
		all  bool
		free bool
		word string
	}{
		{"nobody holds it", "", nil, false, true, ""},
		{"the job itself holds it: its process ended before that was recorded", "upgrades/weekly", nil, false, true, ""},
		{"a running job holds it", "upgrades/other", newJob("other", withPhase(v1beta1.PhaseActive)), false, false, "UpgradeJob upgrades/other"},
		{"a waiting job holds it", "upgrades/other", newJob("other", withPhase(v1beta1.PhasePending)), false, false, "UpgradeJob upgrades/other"},
		{"a job that is gone", "upgrades/other", nil, false, true, ""},
		{"a finished job that has given everything back", "upgrades/other", newJob("other", withPhase(v1beta1.PhaseFailed), noFinalizer), false, true, ""},
		{"a finished job that has not given everything back", "upgrades/other", newJob("other", withPhase(v1beta1.PhaseFailed)), false, false, "UpgradeJob upgrades/other"},
		{"a job of a namespace that is not watched", "elsewhere/other", nil, false, false, `"elsewhere/other", which this operator does not watch`},
		{"a job of another namespace that is watched and gone", "elsewhere/other", nil, true, true, ""},
		{"words that no job wrote", "somebody", nil, false, false, `"somebody", which this operator does not watch; if it is not in use any more, remove the annotation`},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			job := newJob("weekly")
			objects := []client.Object{newClusterVersion(lockedBy(tc.holder)), job}
			if tc.other != nil {
				objects = append(objects, tc.other)
			}
			w := newWorld(t, objects...).register(plain())
			r := w.jobs()
			if tc.all {
				r.Namespace = ""
			}
			result := w.reconcile(r, job)
			got, cv := get(w, job), get(w, newClusterVersion())
			if tc.free {
				if cv.Annotations[v1beta1.UpgradeJobAnnotation] != "upgrades/weekly" || cv.Spec.DesiredUpdate == nil {
					t.Errorf("got lock %v, update %v, want it taken over", cv.Annotations, cv.Spec.DesiredUpdate)
				}
				return
			}
			expectCondition(t, got.Status.Conditions, v1beta1.ConditionStarted, metav1.ConditionFalse, v1beta1.ReasonClusterLocked, tc.word)
			if got.Status.Phase != v1beta1.PhasePending || cv.Annotations[v1beta1.UpgradeJobAnnotation] != tc.holder || cv.Spec.DesiredUpdate != nil {
				t.Errorf("got phase %s, lock %v, update %v, want it to wait", got.Status.Phase, cv.Annotations, cv.Spec.DesiredUpdate)
			}
			if result.RequeueAfter != maxSleep {
				t.Errorf("looks again after %s, want %s", result.RequeueAfter, maxSleep)
			}
			w.live(r, job)
			expectCondition(t, get(w, job).Status.Conditions, v1beta1.ConditionSkipped, metav1.ConditionTrue, v1beta1.ReasonExpired, tc.word)
			if cv := get(w, newClusterVersion()); cv.Annotations[v1beta1.UpgradeJobAnnotation] != tc.holder {
				t.Errorf("the lock became %v: it is somebody else's", cv.Annotations)
			}
		})
	}
}

func TestOneJobAtATime(t *testing.T) {
	a, b := newJob("a"), newJob("b")
	w := newWorld(t, newClusterVersion(), a, b).register(plain())
	r := w.jobs()
	w.reconcile(r, a)
	w.reconcile(r, b)
	expectCondition(t, get(w, b).Status.Conditions, v1beta1.ConditionStarted, metav1.ConditionFalse, v1beta1.ReasonClusterLocked, "upgrades/a")
	w.live(r, a)
	w.live(r, b)
	expectCondition(t, get(w, b).Status.Conditions, v1beta1.ConditionSucceeded, metav1.ConditionTrue, v1beta1.ReasonUpgraded)
	if !slices.Equal(w.api.updates, []string{"4.18.2"}) {
		t.Errorf("updates written are %v, want one: the second job has nothing to upgrade", w.api.updates)
	}
}

func TestLostRaceForTheLock(t *testing.T) {
	// Two jobs start at once. The second one judges a cluster of which the cache does not know yet that it is locked.
	for _, target := range []string{"4.18.2", "4.18.3"} {
		for name, v := range map[string]variant{"a job that commences": plain(), "a job that waits": waiting(func() (steps.Verdict, error) {
			return steps.Wait(time.Minute, "Unhealthy", "It is sick."), nil
		})} {
			t.Run(name+" to "+target, func(t *testing.T) {
				first := newJob("first", withPhase(v1beta1.PhaseActive))
				second := newJob("second", func(job *v1beta1.UpgradeJob) {
					job.Spec.DesiredVersion.Version, job.Spec.DesiredVersion.Image = target, "image:"+target
				})
				w := newWorld(t, newClusterVersion(), first, second).register(v)
				r := w.jobs()
				old := get(w, newClusterVersion())
				change(w, old, func(cv *configv1.ClusterVersion) {
					lockedBy("upgrades/first")(cv)
					cv.Spec.DesiredUpdate = &configv1.Update{Version: "4.18.2", Image: "image:4.18.2"}
				})
				w.api.stale = func(o client.Object) bool {
					stale, ok := o.(*configv1.ClusterVersion)
					if ok {
						old.DeepCopyInto(stale)
					}
					return ok
				}
				w.reconcile(r, second)
				w.api.stale = nil
				for range 3 {
					w.reconcile(r, second)
				}
				if holder := get(w, newClusterVersion()).Annotations[v1beta1.UpgradeJobAnnotation]; holder != "upgrades/first" {
					t.Errorf("the lock became that of %s", holder)
				}
				got := get(w, second)
				expectCondition(t, got.Status.Conditions, v1beta1.ConditionStarted, metav1.ConditionFalse, v1beta1.ReasonClusterLocked, "upgrades/first")
				if got.Status.Phase != v1beta1.PhasePending || len(w.api.updates) > 0 {
					t.Errorf("got phase %s, updates %v, want it to wait", got.Status.Phase, w.api.updates)
				}
			})
		}
	}
}

// onceWaiting is a step that waits in its first pass and is done in the next.
func onceWaiting() step {
	seen := false
	return step{"OnceWaiting", func(*steps.Upgrade) (steps.Verdict, error) {
		if seen {
			return steps.Done("It is done."), nil
		}
		seen = true
		return steps.Wait(time.Second, "Test", "It waits once."), nil
	}}
}

func TestCleanUpOrder(t *testing.T) {
	job := newJob("weekly")
	var seen []string
	w := newWorld(t, newClusterVersion(), job)
	note := func(name string, left int) step {
		return step{name, func(*steps.Upgrade) (steps.Verdict, error) {
			cv, job := get(w, newClusterVersion()), get(w, job)
			seen = append(seen, fmt.Sprintf("%s in phase %s, locked %t, finalizers %d", name, job.Status.Phase, cv.Annotations[v1beta1.UpgradeJobAnnotation] != "", len(job.Finalizers)))
			if left--; left >= 0 {
				return steps.Wait(5*time.Second, "Busy", "Not yet."), nil
			}
			return steps.Done(""), nil
		}}
	}
	w.register(variant{name: v1beta1.DefaultUpgrader, steps: []steps.Step{onceWaiting()}, finally: []steps.Step{note("first", 1), note("second", 0)}})
	r := w.jobs()
	w.reconcile(r, job)
	if result := w.reconcile(r, job); result.RequeueAfter != 5*time.Second {
		t.Errorf("cleans up again after %s, want what the step says", result.RequeueAfter)
	}
	if job := get(w, job); len(job.Finalizers) == 0 || job.Status.Phase != v1beta1.PhaseSucceeded {
		t.Errorf("got phase %s, finalizers %v, want the job finished and held", job.Status.Phase, job.Finalizers)
	}
	w.live(r, job)
	want := []string{
		"first in phase Succeeded, locked true, finalizers 1", "second in phase Succeeded, locked true, finalizers 1",
		"first in phase Succeeded, locked true, finalizers 1", "second in phase Succeeded, locked true, finalizers 1",
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("cleanup (-want +got):\n%s", diff)
	}
	if cv := get(w, newClusterVersion()); cv.Annotations[v1beta1.UpgradeJobAnnotation] != "" || len(get(w, job).Finalizers) > 0 {
		t.Error("the job still holds something")
	}
	writes := w.api.writes()
	if last := writes[len(writes)-2:]; !slices.Equal(last, []string{"patch openshift.ClusterVersion", "patch UpgradeJob"}) {
		t.Errorf("the last writes are %v, want the lock, then the finalizer", last)
	}
}

func TestCleanUpGoesOnAfterAnError(t *testing.T) {
	job := newJob("weekly")
	broken := true
	w := newWorld(t, newClusterVersion(), job).register(variant{name: v1beta1.DefaultUpgrader, steps: []steps.Step{onceWaiting()}, finally: []steps.Step{
		step{"Stubborn", func(*steps.Upgrade) (steps.Verdict, error) {
			if broken {
				return steps.Verdict{}, errors.New("no such thing")
			}
			return steps.Done(""), nil
		}},
	}})
	r := w.jobs()
	w.reconcile(r, job)
	for range 3 {
		if result := w.reconcile(r, job); result.RequeueAfter <= 0 || result.RequeueAfter > maxBackoff {
			t.Errorf("tries again after %s", result.RequeueAfter)
		}
	}
	if cv := get(w, newClusterVersion()); cv.Annotations[v1beta1.UpgradeJobAnnotation] == "" || len(get(w, job).Finalizers) == 0 {
		t.Error("the lock or the finalizer was given back before everything else")
	}
	broken = false
	w.live(r, job)
	if cv := get(w, newClusterVersion()); cv.Annotations[v1beta1.UpgradeJobAnnotation] != "" || len(get(w, job).Finalizers) > 0 {
		t.Error("the job still holds something")
	}
}

// The next job waits for a lock that is not released: who looks for the reason finds it on the job that holds it.
func TestCleanUpThatTakesLongIsTold(t *testing.T) {
	job := newJob("weekly")
	var verdict steps.Verdict
	var err error
	w := newWorld(t, newClusterVersion(), job).register(variant{name: v1beta1.DefaultUpgrader, steps: []steps.Step{onceWaiting()}, finally: []steps.Step{
		step{"MachinesGivenBack", func(*steps.Upgrade) (steps.Verdict, error) { return verdict, err }},
	}})
	r := w.jobs()
	verdict = steps.Wait(5*time.Second, "Busy", "Machines are on their way out.")
	w.reconcile(r, job)
	w.reconcile(r, job)
	w.elapse(9 * time.Second)
	w.reconcile(r, job)
	if c := meta.FindStatusCondition(get(w, job).Status.Conditions, v1beta1.ConditionGivenBack); c != nil {
		t.Errorf("it is told after 9s already: %+v", c)
	}
	w.elapse(time.Second)
	for message, fail := range map[string]error{
		"MachinesGivenBack: Machines are on their way out.": nil, "MachinesGivenBack: deletion is forbidden": errors.New("deletion is forbidden"),
	} {
		err = fail
		w.reconcile(r, job)
		expectCondition(t, get(w, job).Status.Conditions, v1beta1.ConditionGivenBack, metav1.ConditionFalse, v1beta1.ReasonGivingBack)
		if c := meta.FindStatusCondition(get(w, job).Status.Conditions, v1beta1.ConditionGivenBack); c.Message != message {
			t.Errorf("it says %q, want %q", c.Message, message)
		}
	}
	verdict, err = steps.Done(""), nil
	w.reconcile(r, job)
	expectCondition(t, get(w, job).Status.Conditions, v1beta1.ConditionGivenBack, metav1.ConditionTrue, v1beta1.ReasonReleased)
	if w.lock() != "" || get(w, job).Status.Phase != v1beta1.PhaseSucceeded {
		t.Errorf("got the lock %q, phase %s", w.lock(), get(w, job).Status.Phase)
	}
}

func TestDeletion(t *testing.T) {
	for _, tc := range []struct {
		reason string
		// passes is how many passes the job had before it is deleted; the cluster takes the update up at accepted.
		passes   int
		accepted bool
		now      time.Time
		update   string
	}{
		{"before anybody saw it", 0, false, startAfter, ""},
		{"while it waits", 1, false, startAfter.Add(-time.Hour), ""},
		{"while the update is not accepted: it is taken back", 1, false, startAfter, ""},
		{"while the cluster updates: that goes on", 1, true, startAfter, "4.18.2"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			job := newJob("weekly")
			w := newWorld(t, newClusterVersion(), job).register(plain())
			w.clock.SetTime(tc.now)
			r := w.jobs()
			for range tc.passes {
				w.reconcile(r, job)
			}
			if tc.accepted {
				w.updateCluster()
			}
			w.remove(job)
			for i := 0; !w.gone(job); i++ {
				if i == 3 {
					t.Fatalf("the job stays: %v", get(w, job).Finalizers)
				}
				w.reconcile(r, job)
			}
			cv := get(w, newClusterVersion())
			if cv.Annotations[v1beta1.UpgradeJobAnnotation] != "" {
				t.Errorf("the lock stays: %v", cv.Annotations)
			}
			if got := version(cv.Spec.DesiredUpdate); got != tc.update {
				t.Errorf("the desired update is %q, want %q", got, tc.update)
			}
			if result := w.reconcile(r, job); result.RequeueAfter != 0 {
				t.Errorf("a job that is gone wakes after %s", result.RequeueAfter)
			}
		})
	}
}

func TestDeletionNeverHangs(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		objects []client.Object
		job     *v1beta1.UpgradeJob
	}{
		{"without a ClusterVersion", nil, newJob("weekly")},
		{"with an upgrader that is not known any more", []client.Object{newClusterVersion(lockedBy("upgrades/weekly"))}, newJob("weekly", withUpgrader("Gone"))},
		{"of a finished job", []client.Object{newClusterVersion()}, newJob("weekly", withPhase(v1beta1.PhaseFailed))},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, append(tc.objects, tc.job)...).register(plain())
			w.remove(tc.job)
			w.reconcile(w.jobs(), tc.job)
			if !w.gone(tc.job) {
				t.Error("the job stays")
			}
			if len(tc.objects) > 0 {
				if cv := get(w, newClusterVersion()); cv.Annotations[v1beta1.UpgradeJobAnnotation] != "" {
					t.Errorf("the lock stays: %v", cv.Annotations)
				}
			}
		})
	}
}

func TestNoLockIsLeftOfAJobThatNeverStarted(t *testing.T) {
	// The process takes the lock and ends before it records the start; another one comes when the window is over.
	job := newJob("weekly")
	w := newWorld(t, newClusterVersion(lockedBy("upgrades/weekly")), job).register(plain())
	w.clock.SetTime(startAfter.Add(2 * time.Hour))
	w.live(w.jobs(), job)
	expectCondition(t, get(w, job).Status.Conditions, v1beta1.ConditionSkipped, metav1.ConditionTrue, v1beta1.ReasonExpired)
	if cv := get(w, newClusterVersion()); cv.Annotations[v1beta1.UpgradeJobAnnotation] != "" {
		t.Errorf("the lock stays: %v", cv.Annotations)
	}
}

func TestStatusIsWrittenOnceAPass(t *testing.T) {
	job := newJob("weekly")
	w := newWorld(t, newClusterVersion(), job).register(waiting(func() (steps.Verdict, error) {
		return steps.Wait(time.Minute, "Test", "The same.", v1beta1.Blocker{Code: "Test", Object: "Node/a", Message: "The same."}), nil
	}))
	r := w.jobs()
	w.reconcile(r, job)
	if got, want := w.api.writes(), []string{"patch openshift.ClusterVersion", "patch UpgradeJob/status"}; !slices.Equal(got, want) {
		t.Errorf("the first pass wrote %v, want %v", got, want)
	}
	for range 5 {
		w.elapse(time.Minute)
		w.reconcile(r, job)
	}
	if got := w.api.writes(); len(got) > 0 {
		t.Errorf("passes without news wrote %v", got)
	}
}

func TestProgressIsHeldBack(t *testing.T) {
	job := newJob("weekly")
	reason, message := "Updating", "0 of 9"
	w := newWorld(t, newClusterVersion(), job).register(waiting(func() (steps.Verdict, error) {
		return steps.Wait(0, reason, message, v1beta1.Blocker{Code: "Test", Message: message}), nil
	}))
	r := w.jobs()
	says := func(want string) {
		t.Helper()
		expectCondition(t, get(w, job).Status.Conditions, "Waiting", metav1.ConditionFalse, reason, want)
	}
	w.reconcile(r, job)
	says("0 of 9")

	w.elapse(4 * time.Second)
	message = "1 of 9"
	if result := w.reconcile(r, job); result.RequeueAfter != 6*time.Second {
		t.Errorf("comes back after %s, want when the progress may be written", result.RequeueAfter)
	}
	says("0 of 9")

	w.elapse(6*time.Second - time.Nanosecond)
	message = "2 of 9"
	w.reconcile(r, job)
	says("0 of 9")

	w.elapse(time.Nanosecond)
	w.reconcile(r, job)
	says("2 of 9")

	w.elapse(time.Second)
	reason, message = "Verifying", "3 of 9"
	w.reconcile(r, job)
	says("3 of 9") // a transition is written at once, with all that changed since

	w.elapse(time.Second)
	message = "4 of 9"
	w.reconcile(r, job)
	says("3 of 9")
	change(w, job, func(job *v1beta1.UpgradeJob) { job.Generation = 2 })
	w.reconcile(r, job)
	says("4 of 9") // so is that a change of the spec was seen
}

// Somebody mends what the cluster's health is waiting for, one thing after the other, and looks whether it helps.
func TestHealthIsNoMereProgress(t *testing.T) {
	job := newJob("weekly")
	reason, sick := v1beta1.ReasonUnhealthy, []string{"Node/a", "Node/b"}
	w := newWorld(t, newClusterVersion(), job).register(waiting(func() (steps.Verdict, error) {
		var blockers []v1beta1.Blocker
		for _, object := range sick {
			blockers = append(blockers, v1beta1.Blocker{Code: "NodeNotReady", Object: object})
		}
		return steps.Wait(0, reason, strings.Join(sick, " "), blockers...), nil
	}))
	r := w.jobs()
	w.reconcile(r, job)
	w.elapse(time.Second)
	sick = []string{"Node/b"}
	w.reconcile(r, job)
	expectCondition(t, get(w, job).Status.Conditions, "Waiting", metav1.ConditionFalse, reason, "Node/b")
	if blockers := get(w, job).Status.Blockers; len(blockers) != 1 || blockers[0].Object != "Node/b" {
		t.Errorf("blockers %v a second after Node/a was mended, want Node/b alone", blockers)
	}
	reason = "Updating"
	w.elapse(10 * time.Second)
	w.reconcile(r, job)
	w.elapse(time.Second)
	sick = nil
	w.reconcile(r, job)
	if blockers := get(w, job).Status.Blockers; len(blockers) != 1 {
		t.Errorf("blockers %v, want that those of an update that goes on are held back", blockers)
	}
}

func TestOutcomeNamesProgressThatWasHeldBack(t *testing.T) {
	job := newJob("weekly", func(job *v1beta1.UpgradeJob) {
		job.Spec.Config.UpgradeTimeout = &v1beta1.Duration{Duration: 5 * time.Second}
	})
	message := "Node a drains."
	w := newWorld(t, newClusterVersion(), job).register(waiting(func() (steps.Verdict, error) {
		return steps.Wait(0, "Updating", message, v1beta1.Blocker{Code: "Test", Message: message}), nil
	}))
	r := w.jobs()
	w.reconcile(r, job)
	w.elapse(4 * time.Second)
	message = "Node b drains."
	w.reconcile(r, job)
	expectCondition(t, get(w, job).Status.Conditions, "Waiting", metav1.ConditionFalse, "Updating", "Node a drains.")
	w.elapse(time.Second)
	w.reconcile(r, job)
	expectCondition(t, get(w, job).Status.Conditions, v1beta1.ConditionFailed, metav1.ConditionTrue, v1beta1.ReasonTimedOut, "Node b drains.")
}

func TestLockIsReleasedThoughTheCacheHasNotSeenIt(t *testing.T) {
	job := newJob("weekly")
	w := newWorld(t, newClusterVersion(), job).register(waiting(func() (steps.Verdict, error) {
		return steps.Wait(0, "Unhealthy", "It is sick."), nil
	}))
	r := w.jobs()
	old := get(w, newClusterVersion())
	w.reconcile(r, job)
	if get(w, old).Annotations[v1beta1.UpgradeJobAnnotation] == "" {
		t.Fatal("the job does not hold the lock")
	}
	w.api.stale = func(o client.Object) bool {
		stale, ok := o.(*configv1.ClusterVersion)
		if ok {
			old.DeepCopyInto(stale)
		}
		return ok
	}
	w.elapse(12 * time.Hour)
	w.reconcile(w.jobs(), job) // another process, which does not know what this one wrote
	if done := get(w, job); done.Status.Phase != v1beta1.PhaseFailed || len(done.Finalizers) > 0 {
		t.Errorf("got phase %s, finalizers %v, want it failed and let go", done.Status.Phase, done.Finalizers)
	}
	w.api.stale = nil
	if got := get(w, old).Annotations[v1beta1.UpgradeJobAnnotation]; got != "" {
		t.Errorf("the lock of %s stays", got)
	}
}

func TestDeadlinesAreNotLostToBackoff(t *testing.T) {
	job := newJob("weekly", func(job *v1beta1.UpgradeJob) {
		job.Spec.Config.UpgradeTimeout = &v1beta1.Duration{Duration: 5 * time.Minute}
	})
	w := newWorld(t, newClusterVersion(), job).register(waiting(func() (steps.Verdict, error) {
		return steps.Verdict{}, errors.New("no route to host")
	}))
	r := w.jobs()
	deadline := startAfter.Add(5 * time.Minute)
	longest := time.Duration(0)
	for w.clock.Now().Before(deadline) {
		result := w.reconcile(r, job)
		if result.RequeueAfter <= 0 || result.RequeueAfter > maxBackoff {
			t.Fatalf("tries again after %s, want at most %s", result.RequeueAfter, maxBackoff)
		}
		if at := w.clock.Now().Add(result.RequeueAfter); at.After(deadline) {
			t.Fatalf("sleeps until %s, past the deadline %s", at, deadline)
		}
		longest = max(longest, result.RequeueAfter)
		w.elapse(result.RequeueAfter)
	}
	if longest != maxBackoff {
		t.Errorf("the longest backoff is %s, want it to grow to %s", longest, maxBackoff)
	}
	expectCondition(t, get(w, job).Status.Conditions, "Waiting", metav1.ConditionFalse, v1beta1.ReasonError, "no route to host")
	w.live(r, job)
	expectCondition(t, get(w, job).Status.Conditions, v1beta1.ConditionFailed, metav1.ConditionTrue, v1beta1.ReasonTimedOut, "2026-11-24T22:05:00Z", "no route to host")
}

// Something hangs for a while: what is to be done later is not done later still.
func TestDeadlinesCountFromTheBeginningOfThePass(t *testing.T) {
	job := newJob("weekly")
	w := newWorld(t, newClusterVersion(), job)
	takes := 3 * time.Second
	w.register(waiting(func() (steps.Verdict, error) {
		w.elapse(takes)
		return steps.Wait(10*time.Second, "Waiting", "It waits."), nil
	}))
	r := w.jobs()
	if result := w.reconcile(r, job); result.RequeueAfter != 7*time.Second {
		t.Errorf("wakes after %s, want after what is left of 10s", result.RequeueAfter)
	}
	takes = time.Minute
	if result := w.reconcile(r, job); result.RequeueAfter != time.Millisecond {
		t.Errorf("wakes after %s, want at once", result.RequeueAfter)
	}
}

func TestBackoffBeginsAnewAfterSuccess(t *testing.T) {
	job := newJob("weekly")
	var err error
	w := newWorld(t, newClusterVersion(), job).register(waiting(func() (steps.Verdict, error) {
		return steps.Wait(time.Hour, "Test", "Fine."), err
	}))
	r := w.jobs()
	err = errors.New("no route to host")
	for want := minBackoff; want < maxBackoff; want *= 2 {
		if got := w.reconcile(r, job).RequeueAfter; got != want {
			t.Fatalf("tries again after %s, want %s", got, want)
		}
	}
	err = nil
	if got := w.reconcile(r, job).RequeueAfter; got != maxSleep {
		t.Errorf("looks again after %s, want %s", got, maxSleep)
	}
	err = errors.New("no route to host")
	if got := w.reconcile(r, job).RequeueAfter; got != minBackoff {
		t.Errorf("tries again after %s, want %s", got, minBackoff)
	}
}

func TestConflictIsNoNews(t *testing.T) {
	for _, call := range []string{"patch openshift.ClusterVersion", "patch UpgradeJob/status"} {
		t.Run(call, func(t *testing.T) {
			job := newJob("weekly")
			w := newWorld(t, newClusterVersion(), job).register(plain())
			w.api.fault = failing(call, 1, errConflict)
			r := w.jobs()
			if result := w.reconcile(r, job); result.RequeueAfter != minConflictDelay {
				t.Errorf("tries again after %s, want %s", result.RequeueAfter, minConflictDelay)
			}
			for _, e := range w.events() {
				if strings.Contains(e, "Warning") || strings.Contains(e, "modified") {
					t.Errorf("a conflict is told: %s", e)
				}
			}
			if strings.Contains(describe(get(w, job).Status.Conditions), "modified") {
				t.Errorf("a conflict is recorded:\n%s", describe(get(w, job).Status.Conditions))
			}
			w.live(r, job)
			expectCondition(t, get(w, job).Status.Conditions, v1beta1.ConditionSucceeded, metav1.ConditionTrue, v1beta1.ReasonUpgraded)
		})
	}
}

func TestStaleCacheIsWaitedFor(t *testing.T) {
	job := newJob("weekly")
	w := newWorld(t, newClusterVersion(), job).register(plain())
	r := w.jobs()
	old := get(w, job)
	w.reconcile(r, job)
	w.api.writes()

	w.api.stale = func(o client.Object) bool {
		stale, ok := o.(*v1beta1.UpgradeJob)
		if ok {
			old.DeepCopyInto(stale)
		}
		return ok
	}
	last := time.Duration(0)
	for range 20 {
		result := w.reconcile(r, job)
		if result.RequeueAfter <= 0 || result.RequeueAfter > time.Second || result.RequeueAfter < last {
			t.Fatalf("looks again after %s, the last time after %s", result.RequeueAfter, last)
		}
		last = result.RequeueAfter
	}
	if got := w.api.writes(); len(got) > 0 {
		t.Errorf("a pass over a stale job wrote %v", got)
	}
	w.api.stale = nil
	w.live(r, job)
	expectCondition(t, get(w, job).Status.Conditions, v1beta1.ConditionSucceeded, metav1.ConditionTrue, v1beta1.ReasonUpgraded)
}

func TestStaleCacheOfAnotherProcessCommencesNothing(t *testing.T) {
	// A second process, which has not seen the first one's writes, stops at the fence: no update is written by it.
	job := newJob("weekly")
	w := newWorld(t, newClusterVersion(), job).register(plain())
	oldJob, oldVersion := get(w, job), get(w, newClusterVersion())
	w.reconcile(w.jobs(), job)

	second := w.jobs()
	w.api.stale = func(o client.Object) bool {
		switch o := o.(type) {
		case *v1beta1.UpgradeJob:
			oldJob.DeepCopyInto(o)
		case *configv1.ClusterVersion:
			oldVersion.DeepCopyInto(o)
		default:
			return false
		}
		return true
	}
	for i := range 8 {
		want := min(minConflictDelay<<i, maxConflictDelay)
		if result := w.reconcile(second, job); result.RequeueAfter != want {
			t.Errorf("tries again after %s, want %s", result.RequeueAfter, want)
		}
	}
	if !slices.Equal(w.api.updates, []string{"4.18.2"}) {
		t.Errorf("updates written are %v, want one", w.api.updates)
	}
}

func TestStaleJobIsStoppedByTheFence(t *testing.T) {
	// A process has recorded that it is about to commence. A second one does not know of the record: it must not commence
	// beside the first.
	job := newJob("weekly")
	w := newWorld(t, newClusterVersion(), job).register(plain())
	old := get(w, job)
	w.api.fault = func(int, string) (error, error) {
		if get(w, job).Status.StartTime != nil {
			return errBroken, nil
		}
		return nil, nil
	}
	w.reconcile(w.jobs(), job)
	if get(w, job).Status.StartTime == nil || len(w.api.updates) > 0 {
		t.Fatalf("the first process did not stop between its record and the update: %v", w.api.updates)
	}
	w.api.fault = nil
	w.api.stale = func(o client.Object) bool {
		stale, ok := o.(*v1beta1.UpgradeJob)
		if ok {
			old.DeepCopyInto(stale)
		}
		return ok
	}
	if result := w.reconcile(w.jobs(), job); result.RequeueAfter != minConflictDelay {
		t.Errorf("tries again after %s, want %s", result.RequeueAfter, minConflictDelay)
	}
	if len(w.api.updates) > 0 {
		t.Errorf("updates written are %v, want none", w.api.updates)
	}
}

func TestNothingIsToldThatIsNotRecorded(t *testing.T) {
	for _, err := range []error{errConflict, errBroken} {
		job := newJob("weekly")
		w := newWorld(t, newClusterVersion(), job).register(waiting(func() (steps.Verdict, error) {
			return steps.Wait(time.Minute, "Test", "It waits."), nil
		}))
		w.api.fault = failing("patch UpgradeJob/status", 1, err)
		r := w.jobs()
		w.reconcile(r, job)
		if got := w.events(); len(got) > 0 {
			t.Errorf("%v: told %v", err, got)
		}
		w.reconcile(r, job)
		if diff := cmp.Diff([]string{"Started", "Test"}, reasons(w.events())); diff != "" {
			t.Errorf("%v: reasons of the Events once it is recorded (-want +got):\n%s", err, diff)
		}
	}
}

// How long a step took is told once, when it is recorded: not if another write came first, and not again with a later write.
func TestStepDurationsAreTold(t *testing.T) {
	job := newJob("weekly")
	var done bool
	v := plain()
	v.steps = []steps.Step{
		step{"First", func(*steps.Upgrade) (steps.Verdict, error) {
			if done {
				return steps.Done("It is done."), nil
			}
			return steps.Wait(time.Minute, "Test", "It waits."), nil
		}},
		step{"Second", func(u *steps.Upgrade) (steps.Verdict, error) {
			return steps.Wait(time.Minute, "Test", u.Now.String()), nil
		}},
	}
	w := newWorld(t, newClusterVersion(), job).register(v)
	r := w.jobs()
	var told []string
	r.StepCompleted = func(upgrader, step string, took time.Duration) {
		told = append(told, upgrader+" "+step+" "+took.String())
	}
	w.reconcile(r, job)
	w.elapse(10 * time.Minute)
	w.reconcile(r, job)
	if len(told) > 0 {
		t.Errorf("told %q of a step that waits", told)
	}
	done = true
	w.api.fault = failing("patch UpgradeJob/status", 1, errConflict)
	w.reconcile(r, job)
	if len(told) > 0 {
		t.Errorf("told %q of what is not recorded", told)
	}
	for range 3 {
		w.elapse(time.Minute)
		w.reconcile(r, job)
	}
	if diff := cmp.Diff([]string{"OpenShift First 11m0s"}, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

func TestResumedJob(t *testing.T) {
	job := newJob("weekly")
	w := newWorld(t, newClusterVersion(), job).register(plain())
	r := w.jobs()
	w.clock.SetTime(startAfter.Add(2 * time.Hour))
	w.live(r, job)
	expectCondition(t, get(w, job).Status.Conditions, v1beta1.ConditionSkipped, metav1.ConditionTrue, v1beta1.ReasonExpired)
	w.events()

	w.elapse(24 * time.Hour)
	change(w, job, func(job *v1beta1.UpgradeJob) { job.Spec.ResumeRequest, job.Generation = "now", 2 })
	w.live(r, job)
	done := get(w, job)
	expectCondition(t, done.Status.Conditions, v1beta1.ConditionSucceeded, metav1.ConditionTrue, v1beta1.ReasonUpgraded)
	if strings.Contains(describe(done.Status.Conditions), "Skipped=") {
		t.Errorf("the old outcome stays:\n%s", describe(done.Status.Conditions))
	}
	if len(done.Status.ResumedRequests) != 1 || done.Status.ResumedRequests[0].Reopened != "Skipped(Expired)" {
		t.Errorf("resumed requests are %v, want the one", done.Status.ResumedRequests)
	}
	if got := reasons(w.events()); got[0] != "Resumed" || got[len(got)-1] != "Succeeded" {
		t.Errorf("reasons of the Events are %v", got)
	}
	if len(done.Finalizers) > 0 || get(w, newClusterVersion()).Annotations[v1beta1.UpgradeJobAnnotation] != "" {
		t.Error("the job still holds something")
	}
	w.api.writes()
	w.reconcile(r, job)
	if got := w.api.writes(); len(got) > 0 {
		t.Errorf("the same request was carried out again: %v", got)
	}
}

func TestRequestFromTheBeginningResumesNothing(t *testing.T) {
	job := newJob("weekly", func(job *v1beta1.UpgradeJob) { job.Spec.ResumeRequest = "from the beginning" })
	w := newWorld(t, newClusterVersion(), job).register(plain())
	w.clock.SetTime(startAfter.Add(2 * time.Hour))
	w.live(w.jobs(), job)
	expectCondition(t, get(w, job).Status.Conditions, v1beta1.ConditionSkipped, metav1.ConditionTrue, v1beta1.ReasonExpired)
	if len(w.api.updates) > 0 {
		t.Errorf("updates written are %v, outside of the window", w.api.updates)
	}
}

func TestJobThatCannotRun(t *testing.T) {
	freeze := &v1beta1.UpgradeSuspensionWindow{
		ObjectMeta: metav1.ObjectMeta{Name: "freeze", Namespace: namespace},
		Spec: v1beta1.UpgradeSuspensionWindowSpec{
			Start: metav1.NewTime(startAfter), End: metav1.NewTime(startAfter.Add(time.Minute)), JobSelector: &metav1.LabelSelector{},
		},
	}
	for _, tc := range []struct {
		reason    string
		objects   []client.Object
		overrides []func(*v1beta1.UpgradeJob)
		condition string
		because   string
		words     []string
		events    []string
	}{
		{"in a suspension window", []client.Object{newClusterVersion(), freeze}, nil, v1beta1.ConditionSkipped, v1beta1.ReasonSuspended, []string{"freeze"},
			[]string{"Skipped"}},
		{"with an unknown upgrader", []client.Object{newClusterVersion()}, []func(*v1beta1.UpgradeJob){withUpgrader("Custom")},
			v1beta1.ConditionSkipped, v1beta1.ReasonExpired, []string{`there is no upgrader "Custom"; known: OpenShift`},
			[]string{"UnknownUpgrader", "Skipped"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			job := newJob("weekly", tc.overrides...)
			w := newWorld(t, append(tc.objects, job)...).register(plain())
			w.live(w.jobs(), job)
			done := get(w, job)
			expectCondition(t, done.Status.Conditions, tc.condition, metav1.ConditionTrue, tc.because, tc.words...)
			cv := get(w, newClusterVersion())
			if cv.Spec.DesiredUpdate != nil || len(cv.Annotations) > 0 || len(done.Finalizers) > 0 {
				t.Errorf("got update %v, lock %v, finalizers %v, want nothing left", cv.Spec.DesiredUpdate, cv.Annotations, done.Finalizers)
			}
			if got := reasons(w.events()); !slices.Equal(got, tc.events) {
				t.Errorf("reasons of the Events are %v, want %v", got, tc.events)
			}
		})
	}
}

func TestStartedJobOfAnUnknownUpgraderWaits(t *testing.T) {
	// The operator was replaced by one that does not know the variant: the job is not lost until its timeout.
	job := newJob("weekly", withUpgrader("Custom"))
	w := newWorld(t, newClusterVersion(), job)
	w.register(variant{name: "Custom", steps: plain().steps})
	w.reconcile(w.jobs(), job)
	other := newWorld(t, get(w, newClusterVersion()), get(w, job)).register(plain())
	r := other.jobs()
	if result := other.reconcile(r, job); result.RequeueAfter != maxSleep {
		t.Errorf("looks again after %s, want %s", result.RequeueAfter, maxSleep)
	}
	if b := get(other, job).Status.Blockers; len(b) != 1 || b[0].Code != v1beta1.ReasonUnknownUpgrader {
		t.Errorf("the blockers are %+v, want the unknown upgrader", b)
	}
	other.clock.SetTime(startAfter.Add(12 * time.Hour))
	other.live(r, job)
	expectCondition(t, get(other, job).Status.Conditions, v1beta1.ConditionFailed, metav1.ConditionTrue, v1beta1.ReasonTimedOut)
	if cv := get(other, newClusterVersion()); cv.Annotations[v1beta1.UpgradeJobAnnotation] != "" {
		t.Errorf("the lock stays: %v", cv.Annotations)
	}
}

func TestEventsAreNotTooLong(t *testing.T) {
	job := newJob("weekly")
	w := newWorld(t, newClusterVersion(), job).register(waiting(func() (steps.Verdict, error) {
		return steps.Fail("Test", strings.Repeat("100% ", 1000)), nil
	}))
	w.reconcile(w.jobs(), job)
	for _, e := range w.events() {
		if len(e) > 1024+len("Warning Waiting ") || strings.Contains(e, "%!") {
			t.Errorf("got an Event of %d bytes: %s...", len(e), e[:100])
		}
	}
}

// Versions that come after a restore from a backup are older than those before, and stay so.
func TestAnOlderVersionIsNotWaitedForForEver(t *testing.T) {
	f := newFreshness()
	written, restored := newJob("weekly"), newJob("weekly")
	written.ResourceVersion, restored.ResourceVersion = "1000", "7"
	f.wrote(written)
	var waited time.Duration
	for wait := f.wait(restored); wait > 0; wait = f.wait(restored) {
		if waited += wait; waited > time.Minute {
			t.Fatal("it waits for more than a minute")
		}
	}
	if waited < 5*time.Second {
		t.Errorf("it gives up after %s", waited)
	}
}

func TestOnlyConflicts(t *testing.T) {
	other := errors.New("no route to host")
	for _, tc := range []struct {
		reason string
		err    error
		want   bool
	}{
		{"a conflict", errConflict, true},
		{"a conflict with the act", fmt.Errorf("patch: %w", errConflict), true},
		{"several", errors.Join(errConflict, errConflict), true},
		{"one among others is no excuse for them", errors.Join(other, errConflict), false},
		{"something else", other, false},
	} {
		if got := onlyConflicts(tc.err); got != tc.want {
			t.Errorf("%s: got %t", tc.reason, got)
		}
	}
}
