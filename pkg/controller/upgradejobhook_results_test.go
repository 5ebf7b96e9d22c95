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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// run is a run of a hook that began at the start of the job under test, and ended so many minutes later if it has ended.
func run(hook string, e v1beta1.HookEvent, status v1beta1.HookRunStatus, minutes int, overrides ...func(*v1beta1.HookRun)) v1beta1.HookRun {
	r := v1beta1.HookRun{
		HookEvent: e, UpgradeJobHook: hook, Job: fmt.Sprint(hook, "-", minutes), Status: status, StartTime: metav1.NewTime(startAfter),
	}
	if status.Finished() {
		r.CompletionTime = &metav1.Time{Time: startAfter.Add(time.Duration(minutes) * time.Minute)}
	}
	for _, override := range overrides {
		override(&r)
	}
	return r
}

func withRuns(runs ...v1beta1.HookRun) func(*v1beta1.UpgradeJob) {
	return func(job *v1beta1.UpgradeJob) { job.Status.HookTracker = runs }
}

func TestHookShowsItsLastResults(t *testing.T) {
	const start, finish, unpause = v1beta1.HookEventStart, v1beta1.HookEventFinish, v1beta1.HookEventMachineConfigPoolUnpause
	const succeeded, failed = v1beta1.HookRunSucceeded, v1beta1.HookRunFailed
	key := func(key string) func(*v1beta1.HookRun) {
		return func(r *v1beta1.HookRun) { r.TrackingKey = key }
	}
	result := func(e v1beta1.HookEvent, status v1beta1.HookRunStatus, minutes int, job string) v1beta1.HookResult {
		return v1beta1.HookResult{
			Event: e, UpgradeJob: job, Job: fmt.Sprint("notify-", minutes), Status: status,
			Time: metav1.NewTime(startAfter.Add(time.Duration(minutes) * time.Minute)),
		}
	}
	for _, tc := range []struct {
		reason string
		known  []v1beta1.HookResult
		jobs   []*v1beta1.UpgradeJob
		want   []v1beta1.HookResult
	}{
		{"it never ran", nil, []*v1beta1.UpgradeJob{newJob("a")}, nil},
		{"it runs", nil, []*v1beta1.UpgradeJob{newJob("a", withRuns(run("notify", start, v1beta1.HookRunPending, 1), run("notify", finish, v1beta1.HookRunActive, 1)))}, nil},
		{"another ran", nil, []*v1beta1.UpgradeJob{newJob("a", withRuns(run("backup", start, succeeded, 1)))}, nil},
		{"in another namespace", nil, []*v1beta1.UpgradeJob{newJob("a", withRuns(run("notify", start, succeeded, 1)), func(job *v1beta1.UpgradeJob) { job.Namespace = "elsewhere" })}, nil},
		{"once for each event, sorted", nil, []*v1beta1.UpgradeJob{newJob("a", withRuns(run("notify", start, succeeded, 1), run("notify", finish, failed, 2)))},
			[]v1beta1.HookResult{result(finish, failed, 2, "a"), result(start, succeeded, 1, "a")}},
		{"the newest of several jobs", nil, []*v1beta1.UpgradeJob{
			newJob("a", withRuns(run("notify", start, succeeded, 3))), newJob("b", withRuns(run("notify", start, failed, 5))), newJob("c", withRuns(run("notify", start, succeeded, 4))),
		}, []v1beta1.HookResult{result(start, failed, 5, "b")}},
		{"the newest of a job", nil, []*v1beta1.UpgradeJob{newJob("a", withRuns(run("notify", start, failed, 1), run("notify", start, succeeded, 3), run("notify", start, failed, 2)))},
			[]v1beta1.HookResult{result(start, succeeded, 3, "a")}},
		{"of the same second the one that failed", nil, []*v1beta1.UpgradeJob{
			newJob("a", withRuns(run("notify", start, succeeded, 1))), newJob("b", withRuns(run("notify", start, failed, 1))), newJob("c", withRuns(run("notify", start, succeeded, 1))),
		}, []v1beta1.HookResult{result(start, failed, 1, "b")}},
		{"of the same second the last pool", nil, []*v1beta1.UpgradeJob{
			newJob("a", withRuns(run("notify", unpause, succeeded, 1, key("infra")), run("notify", unpause, succeeded, 1, key("worker")), run("notify", unpause, succeeded, 1, key("storage")))),
		}, []v1beta1.HookResult{func() v1beta1.HookResult { r := result(unpause, succeeded, 1, "a"); r.Key = "worker"; return r }()}},
		{"of the same second the last job", nil, []*v1beta1.UpgradeJob{
			newJob("b", withRuns(run("notify", start, succeeded, 1))), newJob("c", withRuns(run("notify", start, succeeded, 1))), newJob("a", withRuns(run("notify", start, succeeded, 1))),
		}, []v1beta1.HookResult{result(start, succeeded, 1, "c")}},
		{"of a job that is gone", []v1beta1.HookResult{result(start, failed, 1, "gone")}, []*v1beta1.UpgradeJob{newJob("a")}, []v1beta1.HookResult{result(start, failed, 1, "gone")}},
		{"newer than that of a job that is gone", []v1beta1.HookResult{result(start, failed, 1, "gone")},
			[]*v1beta1.UpgradeJob{newJob("a", withRuns(run("notify", start, succeeded, 2)))}, []v1beta1.HookResult{result(start, succeeded, 2, "a")}},
		{"older than that of a job that is gone", []v1beta1.HookResult{result(start, failed, 3, "gone")},
			[]*v1beta1.UpgradeJob{newJob("a", withRuns(run("notify", start, succeeded, 2)))}, []v1beta1.HookResult{result(start, failed, 3, "gone")}},
		{"an event that the hook does not have any more", []v1beta1.HookResult{result(v1beta1.HookEventSkipped, failed, 1, "gone"), result(start, failed, 1, "gone")},
			[]*v1beta1.UpgradeJob{newJob("a", withRuns(run("notify", v1beta1.HookEventCreate, succeeded, 2)))}, []v1beta1.HookResult{result(start, failed, 1, "gone")}},
		{"many words", nil, []*v1beta1.UpgradeJob{newJob("a", withRuns(run("notify", start, failed, 1, func(r *v1beta1.HookRun) { r.Message = strings.Repeat("m", 2000) })))},
			[]v1beta1.HookResult{func() v1beta1.HookResult {
				r := result(start, failed, 1, "a")
				r.Message = strings.Repeat("m", 1021) + "..."
				return r
			}()}},
		{"no time of its end", nil, []*v1beta1.UpgradeJob{newJob("a", withRuns(run("notify", start, failed, 0, func(r *v1beta1.HookRun) { r.CompletionTime = nil })))},
			[]v1beta1.HookResult{result(start, failed, 0, "a")}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			hook := newHook("notify", withEvents(start, finish, unpause), ready, func(h *v1beta1.UpgradeJobHook) { h.Status.LastResults = tc.known })
			w := newWorld(t, hook).register(plain())
			for _, job := range tc.jobs {
				if err := w.client.Create(t.Context(), job); err != nil {
					t.Fatal(err)
				}
			}
			w.api.writes()
			r := w.hookReconciler()
			w.reconcile(r, hook)
			if diff := cmp.Diff(tc.want, get(w, hook).Status.LastResults); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
			if writes, changed := w.api.writes(), !cmp.Equal(tc.known, tc.want); (len(writes) > 0) != changed || len(writes) > 1 {
				t.Errorf("wrote %v, changed: %t", writes, changed)
			}
			w.reconcile(r, hook)
			if writes := w.api.writes(); len(writes) > 0 {
				t.Errorf("a pass without news wrote %v", writes)
			}
		})
	}
}

// claimedBy makes the hook one that runs for one job only, which is chosen.
func claimedBy(name, uid string) func(*v1beta1.UpgradeJobHook) {
	return func(hook *v1beta1.UpgradeJobHook) {
		hook.Spec.Run = v1beta1.HookRunNext
		hook.Status.ClaimedBy = &v1beta1.HookClaim{Name: name, UID: types.UID(uid)}
	}
}

func TestHookIsGivenFree(t *testing.T) {
	const start = v1beta1.HookEventStart
	skipped := []func(*v1beta1.UpgradeJob){withPhase(v1beta1.PhaseSkipped), byHand}
	with := func(overrides ...func(*v1beta1.UpgradeJob)) *v1beta1.UpgradeJob {
		return newJob("weekly", append(slices.Clone(skipped), overrides...)...)
	}
	for _, tc := range []struct {
		reason string
		job    *v1beta1.UpgradeJob
		free   bool
	}{
		{"the job was skipped", with(), true},
		{"its runs are over", with(withRuns(run("notify", start, v1beta1.HookRunSucceeded, 1), run("notify", "Finish", v1beta1.HookRunFailed, 1))), true},
		{"another hook runs", with(withRuns(run("backup", start, v1beta1.HookRunActive, 1))), true},
		{"a run is not over", with(withRuns(run("notify", start, v1beta1.HookRunSucceeded, 1), run("notify", "Finish", v1beta1.HookRunActive, 1))), false},
		{"a run has not begun", with(withRuns(run("notify", start, v1beta1.HookRunPending, 1))), false},
		{"the job still holds something", newJob("weekly", withPhase(v1beta1.PhaseSkipped)), false},
		{"the job is about to be resumed", with(func(job *v1beta1.UpgradeJob) { job.Spec.ResumeRequest = "again" }), false},
		{"the job was resumed, and skipped again", with(func(job *v1beta1.UpgradeJob) {
			job.Spec.ResumeRequest = "again"
			job.Status.ResumedRequests = []v1beta1.ResumedRequest{{Request: "again", Reopened: "Skipped(Expired)"}}
		}), true},
		{"the job waits", with(withPhase(v1beta1.PhasePending)), false},
		{"the job runs", with(withPhase(v1beta1.PhaseActive)), false},
		{"the job succeeded", with(withPhase(v1beta1.PhaseSucceeded)), false},
		{"the job failed", with(withPhase(v1beta1.PhaseFailed)), false},
		{"the job is gone, and there is another one of its name", with(func(job *v1beta1.UpgradeJob) { job.UID = "other" }), true},
		{"the job is gone", newJob("other", skipped...), true},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			hook := newHook("notify", ready, claimedBy("weekly", "weekly-uid"))
			w := newWorld(t, hook, tc.job).register(plain())
			r := w.hookReconciler()
			w.reconcile(r, hook)
			if got := get(w, hook).Status.ClaimedBy; (got == nil) != tc.free {
				t.Errorf("claimed by %v, want free: %t", got, tc.free)
			}
			w.api.writes()
			w.reconcile(r, hook)
			if writes := w.api.writes(); len(writes) > 0 {
				t.Errorf("a pass without news wrote %v", writes)
			}
		})
	}
}

func TestHookOfAJobThatIsGone(t *testing.T) {
	both := []v1beta1.HookEvent{"Start", "Create"}
	for _, tc := range []struct {
		reason string
		events []v1beta1.HookEvent
		result v1beta1.HookResult
		free   bool
	}{
		{"it ran for the job", both, v1beta1.HookResult{Event: "Start", UpgradeJob: "weekly", Job: "x"}, false},
		{"it ran at the creation only", both, v1beta1.HookResult{Event: "Create", UpgradeJob: "weekly", Job: "x"}, true},
		{"it was for the creation only, and ran", []v1beta1.HookEvent{"Create"}, v1beta1.HookResult{Event: "Create", UpgradeJob: "weekly", Job: "x"}, false},
		{"it could not run", both, v1beta1.HookResult{Event: "Start", UpgradeJob: "weekly"}, true},
		{"it ran for another job", both, v1beta1.HookResult{Event: "Start", UpgradeJob: "other", Job: "x"}, true},
	} {
		hook := newHook("notify", ready, claimedBy("weekly", "weekly-uid"), func(h *v1beta1.UpgradeJobHook) {
			h.Spec.Events = tc.events
			h.Status.LastResults = []v1beta1.HookResult{tc.result}
		})
		w := newWorld(t, hook).register(plain())
		w.reconcile(w.hookReconciler(), hook)
		if got := get(w, hook).Status.ClaimedBy; (got == nil) != tc.free {
			t.Errorf("%s: claimed by %v, want free: %t", tc.reason, got, tc.free)
		}
	}
}

func TestHookOfAJobThatTheCacheDoesNotKnowYet(t *testing.T) {
	hook := newHook("notify", ready, claimedBy("weekly", "weekly-uid"))
	w := newWorld(t, hook, newJob("weekly")).register(plain())
	w.api.blind = true
	w.reconcile(w.hookReconciler(), hook)
	w.api.blind = false
	if got := get(w, hook).Status.ClaimedBy; got == nil {
		t.Error("the claim is given up")
	}
}

func TestHookIsNotTakenFromAnotherJob(t *testing.T) {
	// The cache still shows the claim of a job that was skipped, but another job has claimed the hook since.
	hook := newHook("notify", ready, claimedBy("weekly", "weekly-uid"))
	w := newWorld(t, hook, newJob("weekly", withPhase(v1beta1.PhaseSkipped), byHand)).register(plain())
	old := get(w, hook)
	change(w, hook, claimedBy("next", "next-uid"))
	w.api.stale = func(o client.Object) bool {
		stale, ok := o.(*v1beta1.UpgradeJobHook)
		if ok {
			old.DeepCopyInto(stale)
		}
		return ok
	}
	if result := w.reconcile(w.hookReconciler(), hook); result.RequeueAfter != minConflictDelay {
		t.Errorf("tries again after %s, want %s", result.RequeueAfter, minConflictDelay)
	}
	if got := get(w, hook).Status.ClaimedBy; got == nil || got.Name != "next" {
		t.Errorf("claimed by %v, want next", got)
	}
}

func TestHooksOfAJob(t *testing.T) {
	elsewhere := newHook("ran", func(h *v1beta1.UpgradeJobHook) { h.Namespace = "elsewhere" })
	w := newWorld(t, newHook("ran"), newHook("ran-twice"), newHook("did-not-run"), elsewhere,
		newHook("claimed", claimedBy("weekly", "weekly-uid")), newHook("claimed-by-another", claimedBy("other", "other-uid")))
	job := newJob("weekly", withRuns(
		run("ran", v1beta1.HookEventStart, v1beta1.HookRunActive, 1), run("gone", v1beta1.HookEventStart, v1beta1.HookRunFailed, 1),
		run("ran-twice", v1beta1.HookEventStart, v1beta1.HookRunActive, 1), run("ran-twice", v1beta1.HookEventFinish, v1beta1.HookRunActive, 1)))
	r := w.hookReconciler()
	named := func(requests []ctrl.Request) []string {
		var list []string
		for _, req := range requests {
			list = append(list, req.String())
		}
		slices.Sort(list)
		return list
	}
	if got, want := named(r.hooksOf(t.Context(), job)), []string{"upgrades/claimed", "upgrades/ran", "upgrades/ran-twice"}; !slices.Equal(got, want) {
		t.Errorf("woken are %v, want %v", got, want)
	}
	w.api.fault = failing("list UpgradeJobHookList", 1, errors.New("the cache is stopped"))
	if got := r.hooksOf(t.Context(), job); len(got) > 0 {
		t.Errorf("while the manager stops, woken are %v", named(got))
	}
}

func TestHookRunsTurned(t *testing.T) {
	base := newJob("weekly", withPhase(v1beta1.PhaseActive), withRuns(run("notify", v1beta1.HookEventStart, v1beta1.HookRunActive, 1)))
	turned := func(a, b client.Object) bool {
		return hookRunsTurned.Update(event.UpdateEvent{ObjectOld: a, ObjectNew: b})
	}
	expectTurns(t, base, turned, []turn[*v1beta1.UpgradeJob]{
		{"a run is over", func(job *v1beta1.UpgradeJob) { job.Status.HookTracker[0].Status = v1beta1.HookRunFailed }, true},
		{"a run began", func(job *v1beta1.UpgradeJob) {
			job.Status.HookTracker = append(job.Status.HookTracker, run("notify", v1beta1.HookEventFinish, v1beta1.HookRunPending, 1))
		}, true},
		{"the job was skipped and let go", func(job *v1beta1.UpgradeJob) { job.Status.Phase, job.Finalizers = v1beta1.PhaseSkipped, nil }, true},
		{"the job was skipped", withPhase(v1beta1.PhaseSkipped), false},
		{"the job failed and was let go", func(job *v1beta1.UpgradeJob) { job.Status.Phase, job.Finalizers = v1beta1.PhaseFailed, nil }, false},
		{"a blocker", func(job *v1beta1.UpgradeJob) { job.Status.Blockers = []v1beta1.Blocker{{Code: "A"}} }, false},
	})
	if !hookRunsTurned.Create(event.CreateEvent{Object: base}) || !hookRunsTurned.Delete(event.DeleteEvent{Object: base}) {
		t.Error("want jobs that came, and those that went")
	}
}

func TestHookClaimed(t *testing.T) {
	free, claimed, other := newHook("notify"), newHook("notify", claimedBy("weekly", "weekly-uid")), newHook("notify", claimedBy("next", "next-uid"))
	for _, tc := range []struct {
		reason        string
		before, after *v1beta1.UpgradeJobHook
		want          bool
	}{
		{"claimed", free, claimed, true},
		{"claimed by another", claimed, other, true},
		{"given free", claimed, free, false},
		{"as before", claimed, claimed.DeepCopy(), false},
		{"free as before", free, free.DeepCopy(), false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if got := hookClaimed.Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
