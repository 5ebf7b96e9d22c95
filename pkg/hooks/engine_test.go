// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package hooks_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/hooks"
)

const (
	start  = v1beta1.HookEventStart
	finish = v1beta1.HookEventFinish
)

func TestAHookRunsAsAJob(t *testing.T) {
	hook := newHook("backup")
	hook.Spec.Template.Labels = map[string]string{"app": "backup"}
	hook.Spec.Template.Annotations = map[string]string{"note": "kept"}
	w := newWorld(t, newJob("job"), hook)
	progress := w.mustEmit("job", start)

	if len(progress.Running) != 1 || progress.Running[0].UpgradeJobHook != "backup" {
		t.Errorf("got the progress %+v, want the hook running", progress)
	}
	if diff := cmp.Diff([]string{"backup Start Active"}, w.runs("job")); diff != "" {
		t.Error(diff)
	}
	job := w.only()
	if owner := metav1.GetControllerOf(job); owner == nil || owner.Name != "job" || owner.Kind != "UpgradeJob" {
		t.Errorf("got the owner %+v", owner)
	}
	if !controllerutil.ContainsFinalizer(job, v1beta1.HookJobFinalizer) {
		t.Error("the Job has no finalizer: its TTL would delete it before its result is recorded")
	}
	if diff := cmp.Diff(map[string]string{
		"app": "backup", v1beta1.HookLabel: "backup", v1beta1.HookEventLabel: "Start", v1beta1.HookUpgradeJobLabel: "job", v1beta1.HookKeyLabel: "",
	}, job.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if job.Annotations["note"] != "kept" {
		t.Errorf("got the annotations %v", job.Annotations)
	}
	if deadline := job.Spec.ActiveDeadlineSeconds; deadline == nil || *deadline != 12*3600 {
		t.Errorf("got the deadline %v, want that of the UpgradeJob", deadline)
	}
	env := job.Spec.Template.Spec.Containers[0].Env
	if !slices.Contains(env, corev1.EnvVar{Name: "EVENT_NAME", Value: `"Start"`}) {
		t.Errorf("got the environment %v", env)
	}
}

func TestAJobKeepsItsOwnDeadline(t *testing.T) {
	w := newWorld(t, newJob("job"), newHook("backup", func(h *v1beta1.UpgradeJobHook) {
		h.Spec.Template.Spec.ActiveDeadlineSeconds = new(int64(300))
	}))
	w.mustEmit("job", start)
	if got := *w.only().Spec.ActiveDeadlineSeconds; got != 300 {
		t.Errorf("got %d", got)
	}
}

func TestWhichHooksRun(t *testing.T) {
	selecting := func(labels map[string]string) func(*v1beta1.UpgradeJobHook) {
		return func(h *v1beta1.UpgradeJobHook) { h.Spec.Selector.MatchLabels = labels }
	}
	claimed := func(uid string) func(*v1beta1.UpgradeJobHook) {
		return func(h *v1beta1.UpgradeJobHook) {
			h.Status.ClaimedBy = &v1beta1.HookClaim{Name: "x", UID: types.UID(uid)}
		}
	}
	late := func(h *v1beta1.UpgradeJobHook) { h.CreationTimestamp = metav1.NewTime(begin.Add(time.Minute)) }
	for _, tc := range []struct {
		reason string
		hook   *v1beta1.UpgradeJobHook
		event  v1beta1.HookEvent
		runs   bool
	}{
		{"no selector selects every job", newHook("h"), start, true},
		{"its labels match", newHook("h", selecting(map[string]string{"upgrade-config": "nightly"})), start, true},
		{"its labels do not match", newHook("h", selecting(map[string]string{"upgrade-config": "weekly"})), start, false},
		{"it wants another event", newHook("h", on(finish)), start, false},
		{"its selector cannot be used", newHook("h", func(h *v1beta1.UpgradeJobHook) {
			h.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}}
		}), start, false},
		{"it stands in another namespace", newHook("h", func(h *v1beta1.UpgradeJobHook) { h.Namespace = "elsewhere" }), start, false},
		{"it is being deleted", newHook("h", func(h *v1beta1.UpgradeJobHook) {
			h.DeletionTimestamp, h.Finalizers = new(metav1.NewTime(begin)), []string{"example.com/stay"}
		}), start, false},
		{"another job has claimed it", newHook("h", next, claimed("uid-of-other")), start, false},
		{"this job has claimed it before", newHook("h", next, claimed("uid-of-job")), start, true},
		{"a claim means nothing to a hook for all jobs", newHook("h", claimed("uid-of-other")), start, true},
		{"it was created after the job ended", newHook("h", on(finish), late), finish, false},
		{"it was created after its event, but the upgrade waits for it", newHook("h", late), start, true},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, newJob("job"), tc.hook)
			w.mustEmit("job", tc.event)
			if got := len(w.jobs()) == 1; got != tc.runs {
				t.Errorf("runs: got %v, want %v", got, tc.runs)
			}
		})
	}
}

// A process may die after any write, and any write may fail. Whatever happens there is one Job, and its result counts,
// though its TTL deletes it at once.
func TestExactlyOnceAcrossCrashes(t *testing.T) {
	died := errors.New("the process died")
	for _, kind := range []string{"fail", "after"} {
		for n := range 12 {
			t.Run(fmt.Sprintf("%s write %d", kind, n), func(t *testing.T) {
				w := newWorld(t, newJob("job"), newHook("a", next), newHook("b", abort), newHook("c"))
				writes := 0
				crash := func(string, client.Object) error {
					writes++
					if writes == n+1 {
						return died
					}
					return nil
				}
				if kind == "fail" {
					w.fail = crash
				} else {
					w.after = crash
				}
				for range 6 {
					if _, err := w.emit("job", start); err != nil && !errors.Is(err, died) {
						t.Fatal(err)
					}
					w.end(batchv1.JobComplete, "")
					w.delete()
				}
				if diff := cmp.Diff([]string{"a Start Succeeded", "b Start Succeeded", "c Start Succeeded"}, w.runs("job")); diff != "" {
					t.Errorf("runs (-want +got):\n%s", diff)
				}
				if len(w.created) != 3 {
					t.Errorf("got %d Jobs created, want 3", len(w.created))
				}
				w.unique()
				if left := w.jobs(); len(left) > 0 {
					t.Errorf("got %d Jobs left, want all let go", len(left))
				}
			})
		}
	}
}

func TestAStaleStatusCreatesNothing(t *testing.T) {
	w := newWorld(t, newJob("job"), newHook("backup"))
	stale := w.job("job")
	w.mustEmit("job", start)
	w.end(batchv1.JobComplete, "")
	w.mustEmit("job", start)
	w.delete()

	err := w.passOn(stale, func(p *hooks.Pass) error {
		_, err := p.Emit(t.Context(), hooks.Event{Name: start, Time: w.now})
		return err
	})
	if !apierrors.IsConflict(err) {
		t.Errorf("got %v, want a conflict", err)
	}
	if len(w.created) != 1 {
		t.Errorf("got the Jobs %v, want one only", w.created)
	}
}

func TestOneJobClaimsANextHook(t *testing.T) {
	w := newWorld(t, newJob("one"), newJob("two"), newHook("backup", next))
	stale := *w.hook("backup")
	w.mustEmit("one", start)
	if claim := w.hook("backup").Status.ClaimedBy; claim == nil || claim.Name != "one" || claim.UID != "uid-of-one" {
		t.Fatalf("got the claim %+v", claim)
	}
	w.staleHooks = []v1beta1.UpgradeJobHook{stale}
	if _, err := w.emit("two", start); !apierrors.IsConflict(err) {
		t.Errorf("a stale cache: got %v, want a conflict", err)
	}
	w.staleHooks = nil
	w.mustEmit("two", start)
	if len(w.created) != 1 || len(w.runs("two")) != 0 {
		t.Errorf("got the Jobs %v, and %v of the second UpgradeJob", w.created, w.runs("two"))
	}
}

func TestResults(t *testing.T) {
	pod := func(message string, ended time.Duration, exitCode int32) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", GenerateName: "pod-"}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: exitCode, Message: message, FinishedAt: metav1.NewTime(begin.Add(ended)),
		}}}}
		return pod
	}
	const limit = "Job has reached the specified backoff limit"
	for _, tc := range []struct {
		reason string
		pods   []*corev1.Pod
		happen func(*world)
		want   string
		after  time.Duration // the end, as recorded
	}{
		{"it completes", nil, func(w *world) { w.end(batchv1.JobComplete, "") }, "backup Start Succeeded: ", -time.Minute},
		{"it fails", nil, func(w *world) { w.end(batchv1.JobFailed, limit) }, "backup Start Failed: " + limit, -time.Minute},
		{
			"its last pod that failed says why",
			[]*corev1.Pod{pod("no space", 2*time.Second, 1), pod("no network", time.Second, 1), pod("fine", 3*time.Second, 0)},
			func(w *world) { w.end(batchv1.JobFailed, limit) }, "backup Start Failed: no space (" + limit + ")", -time.Minute,
		},
		{
			"it says too much", []*corev1.Pod{pod(strings.Repeat("x", 5000), 0, 1)},
			func(w *world) { w.end(batchv1.JobFailed, limit) }, "backup Start Failed: " + strings.Repeat("x", 253) + "... (" + limit + ")", -time.Minute,
		},
		{
			"what it says is not for terminals", []*corev1.Pod{pod("\x1b[31mno\nspace", 0, 1)},
			func(w *world) { w.end(batchv1.JobFailed, limit) }, "backup Start Failed: [31mno space (" + limit + ")", -time.Minute,
		},
		{"it has failed, but a pod of it is on a node that is lost", nil, func(w *world) {
			w.end(batchv1.JobFailureTarget, limit)
			w.now = begin.Add(podGrace)
		}, "backup Start Failed: " + limit, -time.Minute},
		{"it is finished and its TTL deletes it", nil, func(w *world) { w.end(batchv1.JobComplete, ""); w.delete() }, "backup Start Succeeded: ", -time.Minute},
		{"somebody deletes it before it is finished", nil, func(w *world) { w.delete() }, "backup Start Failed: Job %s was deleted before it finished.", 0},
		{"somebody tears it out", nil, func(w *world) {
			job := w.only()
			job.Finalizers = nil
			w.must(w.store.Update(w.t.Context(), job))
			w.delete()
		}, "backup Start Failed: Job %s was removed before its result was known.", 0},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, newJob("job"), newHook("backup"))
			w.mustEmit("job", start)
			name := w.only().Name
			for i, pod := range tc.pods {
				pod.Name, pod.Labels = fmt.Sprintf("pod-%d", i), map[string]string{batchv1.JobNameLabel: name}
				w.must(w.store.Create(t.Context(), pod))
			}
			tc.happen(w)
			progress := w.mustEmit("job", start)

			if len(progress.Running) > 0 || progress.Aborted != nil || progress.Succeeded+len(progress.Ignored) != 1 {
				t.Errorf("got the progress %+v, want it over", progress)
			}
			if diff := cmp.Diff([]string{strings.ReplaceAll(tc.want, "%s", name)}, w.told); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
			if run := w.job("job").Status.HookTracker[0]; run.CompletionTime == nil || (tc.after != 0 && !run.CompletionTime.Time.Equal(begin.Add(tc.after))) {
				t.Errorf("got the end %v", run.CompletionTime)
			}
			w.mustEmit("job", start)
			if len(w.told) != 1 || len(w.created) != 1 {
				t.Errorf("later: told %v, created %v, want no more", w.told, w.created)
			}
			for _, job := range w.jobs() {
				if controllerutil.ContainsFinalizer(&job, v1beta1.HookJobFinalizer) {
					t.Error("the Job is not let go")
				}
			}
		})
	}
}

// podGrace is how long the pods of a Job that is bound to fail are given to end.
const podGrace = 5 * time.Minute

// A pod that is being stopped may still write its backup.
func TestAJobThatIsBoundToFailRunsOn(t *testing.T) {
	w := newWorld(t, newJob("job"), newHook("backup"))
	w.mustEmit("job", start)
	w.end(batchv1.JobFailureTarget, "its deadline is over")
	if progress := w.mustEmit("job", start); len(progress.Running) != 1 {
		t.Errorf("got %+v, want it to run until its pods are gone", progress)
	}
}

// A webhook of the cluster may be away for days.
func TestAJobThatCannotBeCreatedForDays(t *testing.T) {
	w := newWorld(t, newJob("job"), newHook("report", on(finish)))
	w.update("job", func(job *v1beta1.UpgradeJob) { job.Status.CompletionTime = new(metav1.NewTime(begin)) })
	w.fail = func(verb string, _ client.Object) error {
		if verb == "create" {
			return apierrors.NewInternalError(errors.New("failed calling webhook"))
		}
		return nil
	}
	if _, err := w.emit("job", finish); err == nil {
		t.Fatal("no error")
	}
	w.now = begin.Add(25 * time.Hour)
	w.must(w.pass("job", func(p *hooks.Pass) error { return p.Abandon(t.Context()) }))
	if diff := cmp.Diff([]string{"report Finish Failed"}, w.runs("job")); diff != "" {
		t.Error(diff)
	}
	w.mustEmit("job", finish)
	if len(w.created) > 0 || w.unfinished() {
		t.Errorf("created %v, unfinished %v", w.created, w.unfinished())
	}
}

func TestAJobThatCannotBeCreated(t *testing.T) {
	resource := schema.GroupResource{Group: "batch", Resource: "jobs"}
	for _, tc := range []struct {
		reason string
		err    error
		final  bool
	}{
		{"the API server finds it invalid", apierrors.NewInvalid(schema.GroupKind{Group: "batch", Kind: "Job"}, "x", nil), true},
		{"a quota forbids it", apierrors.NewForbidden(resource, "x", errors.New("exceeded quota")), false},
		{"it is too large", apierrors.NewRequestEntityTooLargeError("it is too large"), true},
		{"the API server is away", errors.New("connection refused"), false},
		{"an admission webhook is away", apierrors.NewInternalError(errors.New("failed calling webhook")), false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, newJob("job"), newHook("backup", abort))
			w.fail = func(verb string, _ client.Object) error {
				if verb == "create" {
					return tc.err
				}
				return nil
			}
			progress, err := w.emit("job", start)
			if tc.final {
				if err != nil || progress.Aborted == nil || !strings.HasPrefix(progress.Aborted.Message, "The Job could not be created: ") {
					t.Errorf("got %+v and %v, want the job aborted", progress, err)
				}
				return
			}
			if err == nil || len(w.told) > 0 {
				t.Errorf("got %v, told %v, want an error that is tried again", err, w.told)
			}
			w.fail = nil
			if progress := w.mustEmit("job", start); len(progress.Running) != 1 || len(w.created) != 1 {
				t.Errorf("later: got %+v, created %v", progress, w.created)
			}
		})
	}
}

// A quota may be used up for a moment, and an API server that starts forbids everything; but not for ever.
func TestAJobThatIsForbiddenForLong(t *testing.T) {
	w := newWorld(t, newJob("job"), newHook("backup", abort))
	w.fail = func(verb string, _ client.Object) error {
		if verb == "create" {
			return apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, "x", errors.New("exceeded quota"))
		}
		return nil
	}
	for _, at := range []time.Duration{0, time.Minute, 4 * time.Minute} {
		w.now = begin.Add(at)
		if _, err := w.emit("job", start); !apierrors.IsForbidden(err) || len(w.told) > 0 {
			t.Errorf("after %s: got %v, told %v", at, err, w.told)
		}
	}
	w.now = begin.Add(5 * time.Minute)
	if progress := w.mustEmit("job", start); progress.Aborted == nil || !strings.Contains(progress.Aborted.Message, "exceeded quota") {
		t.Errorf("got %+v", progress)
	}
}

// A job that ended, and was resumed before the Job of its end could be created, ends anew.
func TestAResumeOvertakesAHookOfTheEnd(t *testing.T) {
	w := newWorld(t, newJob("job"), newHook("report", on(finish)))
	w.fail = func(verb string, _ client.Object) error {
		if verb == "create" {
			return errors.New("connection refused")
		}
		return nil
	}
	if _, err := w.emit("job", finish); err == nil {
		t.Fatal("no error")
	}
	w.fail = nil
	w.update("job", func(job *v1beta1.UpgradeJob) {
		job.Status.ResumedRequests = []v1beta1.ResumedRequest{{Request: "again", Reopened: "Failed(TimedOut)", Time: metav1.NewTime(begin)}}
	})
	w.must(w.pass("job", func(p *hooks.Pass) error { return p.Abandon(t.Context()) }))
	w.mustEmit("job", finish)
	if diff := cmp.Diff([]string{"report Finish Failed", "report Finish[resumed:again] Active"}, w.runs("job")); diff != "" {
		t.Error(diff)
	}
}

// The clock of the Job controller may be ahead of the operator's, or behind.
func TestAHookThatFailsAgainAfterAResumeAborts(t *testing.T) {
	w := newWorld(t, newJob("job"), newHook("ticket", abort))
	w.mustEmit("job", start)
	w.end(batchv1.JobFailed, "not approved")
	w.mustEmit("job", start)
	w.update("job", func(job *v1beta1.UpgradeJob) {
		job.Status.ResumedRequests = []v1beta1.ResumedRequest{{Request: "again", Reopened: "Failed(HookFailed)", Time: metav1.NewTime(begin)}}
	})
	w.mustEmit("job", start)
	w.end(batchv1.JobFailed, "not approved") // a minute before the resume, by its own clock
	for range 3 {
		if progress := w.mustEmit("job", start); progress.Aborted == nil {
			t.Errorf("got %+v", progress)
		}
	}
	if diff := cmp.Diff([]string{"ticket Start Failed", "ticket Start[resumed:again] Failed"}, w.runs("job")); diff != "" {
		t.Error(diff)
	}
}

// Whoever resumes a job has mended what ended it. A hook can be mended by taking it away.
func TestAResumeGoesByTheHooksThatThereAre(t *testing.T) {
	for _, tc := range []struct {
		reason string
		mend   func(w *world)
		want   []string
		ends   bool
	}{
		{"the hook is as it was", func(*world) {}, []string{"ticket Start Failed", "ticket Start[resumed:again] Failed"}, true},
		{"it was deleted", func(w *world) { w.must(w.store.Delete(w.t.Context(), w.hook("ticket"))) }, []string{"ticket Start Failed"}, false},
		{
			"it is for other events now", func(w *world) {
				w.change("ticket", func(h *v1beta1.UpgradeJobHook) { h.Spec.Events = []v1beta1.HookEvent{finish} })
			},
			[]string{"ticket Start Failed"}, false,
		},
		{
			"it is for other jobs now", func(w *world) {
				w.change("ticket", func(h *v1beta1.UpgradeJobHook) { h.Spec.Selector.MatchLabels = map[string]string{"for": "others"} })
			},
			[]string{"ticket Start Failed"}, false,
		},
		{
			"its failures are ignored now", func(w *world) {
				w.change("ticket", func(h *v1beta1.UpgradeJobHook) { h.Spec.FailurePolicy = v1beta1.HookFailureIgnore })
			},
			[]string{"ticket Start Failed", "ticket Start[resumed:again] Failed"}, false,
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, newJob("job"), newHook("ticket", abort))
			w.mustEmit("job", start)
			w.end(batchv1.JobFailed, "not approved")
			w.mustEmit("job", start)
			tc.mend(w)
			if progress := w.mustEmit("job", start); progress.Aborted == nil {
				t.Errorf("before the job is resumed it is %+v", progress)
			}
			w.resume("job", "again")
			w.mustEmit("job", start)
			if len(tc.want) > 1 {
				w.end(batchv1.JobFailed, "not approved")
			}
			for range 2 {
				progress := w.mustEmit("job", start)
				if got := progress.Aborted != nil; got != tc.ends || len(progress.Running) > 0 {
					t.Errorf("got %+v, want one that ends the job: %t", progress, tc.ends)
				}
				if !tc.ends && (len(progress.Ignored) != 1 || !strings.Contains(progress.Ignored[0].Message, "not approved")) {
					t.Errorf("got %+v, want the failure told", progress)
				}
			}
			if diff := cmp.Diff(tc.want, w.runs("job")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A hook and the resume are often changed in one go, and the cache may know of the resume first. Of an approval it must not forget.
func TestAResumeDoesNotGoByAStaleCache(t *testing.T) {
	for _, tc := range []struct {
		reason string
		stale  []v1beta1.UpgradeJobHook
		image  string
	}{
		{"it knows that the hook was deleted, and not that there is another", []v1beta1.UpgradeJobHook{}, "new"},
		{"it does not know that the hook was mended", []v1beta1.UpgradeJobHook{*newHook("ticket", abort)}, "new"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, newJob("job"), newHook("ticket", abort))
			w.mustEmit("job", start)
			w.end(batchv1.JobFailed, "not approved")
			w.mustEmit("job", start)
			w.change("ticket", func(h *v1beta1.UpgradeJobHook) {
				h.Spec.Template.Spec.Template.Spec.Containers = []corev1.Container{{Name: "ticket", Image: tc.image}}
			})
			w.staleHooks = tc.stale
			w.resume("job", "again")
			if progress := w.mustEmit("job", start); len(progress.Running) != 1 {
				t.Errorf("got %+v, want the hook asked again", progress)
			}
			if got := w.jobs()[len(w.jobs())-1].Spec.Template.Spec.Containers; len(got) != 1 || got[0].Image != tc.image {
				t.Errorf("it runs %+v", got)
			}
		})
	}
}

// A hook that is for one job only may have gone on to another, which does not free the first of it.
func TestAResumeDoesNotPassAHookThatAnotherJobHas(t *testing.T) {
	w := newWorld(t, newJob("job"), newHook("ticket", abort, next))
	w.mustEmit("job", start)
	w.end(batchv1.JobFailed, "not approved")
	w.mustEmit("job", start)
	hook := w.hook("ticket")
	hook.Status.ClaimedBy = &v1beta1.HookClaim{Name: "other", UID: "uid-other"}
	w.must(w.store.Status().Update(t.Context(), hook))
	w.resume("job", "again")
	for range 2 {
		if progress := w.mustEmit("job", start); progress.Aborted == nil {
			t.Errorf("got %+v, want the job ended", progress)
		}
	}
}

func TestJobsThatWereOrphanedAreLetGo(t *testing.T) {
	w := newWorld(t, newJob("job"), newHook("a"))
	w.mustEmit("job", start)
	job := w.only()
	job.OwnerReferences = nil
	w.must(w.store.Update(t.Context(), job))
	engine := &hooks.Engine{Client: w.client(), Live: w.store}
	w.must(engine.ReleaseAll(t.Context(), client.ObjectKey{Namespace: "ns", Name: "job"}))
	if len(w.only().Finalizers) > 0 {
		t.Error("the Job can never go")
	}
}

// GitOps may delete a job and create it again while the operator is away.
func TestJobsOfAnUpgradeJobThatWasReplacedAreLetGo(t *testing.T) {
	w := newWorld(t, newJob("job"), newHook("a"))
	w.mustEmit("job", start)
	old := w.only().Name
	w.must(w.store.Delete(t.Context(), w.job("job")))
	replaced := newJob("job")
	replaced.UID = "uid-of-another"
	w.must(w.store.Create(t.Context(), replaced))
	w.mustEmit("job", start)
	for _, job := range w.jobs() {
		if held := controllerutil.ContainsFinalizer(&job, v1beta1.HookJobFinalizer); held == (job.Name == old) {
			t.Errorf("Job %s: held %v, want that of the old one let go, and that of the new one kept", job.Name, held)
		}
	}
}

// A Job that is suspended never ends.
func TestTheResultOfAHookIsNotWaitedForForEver(t *testing.T) {
	w := newWorld(t, newJob("job"), newHook("report", on(finish)))
	w.mustEmit("job", finish)
	patience := func() (left time.Duration) {
		w.must(w.pass("job", func(p *hooks.Pass) error { left = p.Patience(); return nil }))
		return left
	}
	w.now = begin.Add(48 * time.Hour)
	w.mustEmit("job", finish)
	if left := patience(); left != 24*time.Hour || !w.unfinished() {
		t.Errorf("while the job goes on: got %s", left)
	}
	w.update("job", func(job *v1beta1.UpgradeJob) {
		job.Status.CompletionTime = new(metav1.NewTime(begin.Add(47 * time.Hour)))
	})
	if left := patience(); left != 23*time.Hour {
		t.Errorf("an hour after its end: got %s", left)
	}
	w.now = begin.Add(71 * time.Hour)
	w.mustEmit("job", finish)
	if left := patience(); left != 0 || w.unfinished() || len(w.told) != 1 || !strings.Contains(w.told[0], "did not finish within 24h") {
		t.Errorf("a day after its end: got %s, told %v", left, w.told)
	}
	if job := w.only(); len(job.Finalizers) > 0 {
		t.Error("the Job is not let go")
	}
}

func TestSomebodyElsesJobOfThatName(t *testing.T) {
	w := newWorld(t, newJob("job"), newHook("backup"))
	other := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: hooks.JobName(newJob("job"), "backup", start, "")}}
	w.must(w.store.Create(t.Context(), other))
	if progress := w.mustEmit("job", start); len(progress.Ignored) != 1 || !strings.Contains(progress.Ignored[0].Message, "somebody else") {
		t.Errorf("got %+v", progress)
	}
}

func TestAHookThatGoesBeforeItsJobIsCreated(t *testing.T) {
	w := newWorld(t, newJob("job"), newHook("backup", abort))
	w.fail = func(verb string, _ client.Object) error {
		if verb == "create" {
			return errors.New("connection refused")
		}
		return nil
	}
	if _, err := w.emit("job", start); err == nil {
		t.Fatal("no error")
	}
	w.fail = nil
	w.must(w.store.Delete(t.Context(), w.hook("backup")))
	if progress := w.mustEmit("job", start); progress.Aborted == nil || !strings.Contains(progress.Aborted.Message, "deleted") {
		t.Errorf("got %+v", progress)
	}
}

func TestHooksThatComeLater(t *testing.T) {
	w := newWorld(t, newJob("job"), newHook("early"))
	w.mustEmit("job", start)
	w.must(w.store.Create(t.Context(), newHook("late")))
	w.mustEmit("job", start)
	if diff := cmp.Diff([]string{"early Start Active"}, w.runs("job")); diff != "" {
		t.Error(diff)
	}
}

func TestProgress(t *testing.T) {
	w := newWorld(t, newJob("job"), newHook("a", abort), newHook("b"), newHook("c", abort), newHook("d", abort, on(finish)))
	w.mustEmit("job", start)
	w.update("job", func(job *v1beta1.UpgradeJob) {
		for i, status := range []v1beta1.HookRunStatus{v1beta1.HookRunSucceeded, v1beta1.HookRunFailed, v1beta1.HookRunFailed} {
			job.Status.HookTracker[i].Status = status
		}
	})
	got := w.mustEmit("job", start)
	if got.Succeeded != 1 || len(got.Ignored) != 1 || got.Ignored[0].UpgradeJobHook != "b" || got.Aborted == nil || got.Aborted.UpgradeJobHook != "c" {
		t.Errorf("got %+v", got)
	}
	w.mustEmit("job", finish)
	w.update("job", func(job *v1beta1.UpgradeJob) { job.Status.HookTracker[3].Status = v1beta1.HookRunFailed })
	if got := w.mustEmit("job", finish); got.Aborted != nil || len(got.Ignored) != 1 {
		t.Errorf("an event that only informs: got %+v, want nothing aborted", got)
	}
}

func TestResume(t *testing.T) {
	w := newWorld(t, newJob("job"), newHook("a", abort, on(start, finish)), newHook("b", abort), newHook("c"))
	w.mustEmit("job", start)
	w.update("job", func(job *v1beta1.UpgradeJob) {
		for i, status := range []v1beta1.HookRunStatus{v1beta1.HookRunFailed, v1beta1.HookRunSucceeded, v1beta1.HookRunFailed} {
			job.Status.HookTracker[i].Status, job.Status.HookTracker[i].CompletionTime = status, new(metav1.NewTime(begin))
		}
	})
	w.mustEmit("job", finish)
	w.update("job", func(job *v1beta1.UpgradeJob) {
		job.Status.ResumedRequests = []v1beta1.ResumedRequest{{Request: "mended", Reopened: "Failed(HookFailed)", Time: metav1.NewTime(begin.Add(time.Hour))}}
	})
	w.now = begin.Add(time.Hour)
	if progress := w.mustEmit("job", start); progress.Aborted != nil || len(progress.Running) != 1 || progress.Succeeded != 1 || len(progress.Ignored) != 1 {
		t.Errorf("got %+v, want the one that failed running again", progress)
	}
	w.mustEmit("job", start)
	w.mustEmit("job", finish)
	if diff := cmp.Diff([]string{
		"a Start Failed", "b Start Succeeded", "c Start Failed", "a Finish Active", "a Start[resumed:mended] Active", "a Finish[resumed:mended] Active",
	}, w.runs("job")); diff != "" {
		t.Error(diff)
	}
	w.unique()
}

func TestPoolsHaveRunsOfTheirOwn(t *testing.T) {
	unpause := v1beta1.HookEventMachineConfigPoolUnpause
	w := newWorld(t, newJob("job"), newHook("drain", on(unpause)))
	for _, pool := range []string{"worker", "infra", "worker"} {
		w.must(w.pass("job", func(p *hooks.Pass) error {
			_, err := p.Emit(t.Context(), hooks.Event{Name: unpause, Time: w.now, Pool: pool})
			return err
		}))
	}
	if diff := cmp.Diff([]string{
		"drain MachineConfigPoolUnpause[worker] Active", "drain MachineConfigPoolUnpause[infra] Active",
	}, w.runs("job")); diff != "" {
		t.Error(diff)
	}
	w.unique()
}

func TestRunsAreBounded(t *testing.T) {
	w := newWorld(t, newJob("job"), newHook("a"), newHook("b", abort))
	w.update("job", func(job *v1beta1.UpgradeJob) {
		for range v1beta1.MaxHookRuns - 1 {
			job.Status.HookTracker = append(job.Status.HookTracker, v1beta1.HookRun{
				HookEvent: v1beta1.HookEventCreate, UpgradeJobHook: "x", Status: v1beta1.HookRunSucceeded,
			})
		}
	})
	progress := w.mustEmit("job", start)
	if progress.Aborted == nil || progress.Aborted.UpgradeJobHook != "b" || len(w.created) != 1 {
		t.Errorf("got %+v, created %v, want the one without room to abort the job", progress.Aborted, w.created)
	}
	if got := len(w.runs("job")); got != v1beta1.MaxHookRuns {
		t.Errorf("got %d runs", got)
	}
}

func TestAbandon(t *testing.T) {
	w := newWorld(t, newJob("job"), newHook("a"), newHook("b"))
	w.after = func(verb string, _ client.Object) error {
		if verb == "create" && len(w.created) == 1 {
			return errors.New("the process died")
		}
		return nil
	}
	w.fail = func(verb string, _ client.Object) error {
		if verb == "create" && len(w.created) == 1 {
			return errors.New("the process is dead")
		}
		return nil
	}
	if _, err := w.emit("job", start); err == nil {
		t.Fatal("no error")
	}
	w.fail, w.after = nil, nil
	w.must(w.pass("job", func(p *hooks.Pass) error { return p.Abandon(t.Context()) }))
	if diff := cmp.Diff([]string{"a Start Active", "b Start Failed"}, w.runs("job")); diff != "" {
		t.Errorf("the Job that exists is followed, the other is not created any more (-want +got):\n%s", diff)
	}
	if !w.unfinished() {
		t.Error("the first is not finished")
	}
}

func TestOrphansAreLetGo(t *testing.T) {
	w := newWorld(t, newJob("job"), newHook("a"), newHook("b"))
	w.mustEmit("job", start)
	engine := &hooks.Engine{Client: w.client(), Live: w.store}
	key := client.ObjectKey{Namespace: "ns", Name: "job"}
	held := func() (n int) {
		for _, job := range w.jobs() {
			if controllerutil.ContainsFinalizer(&job, v1beta1.HookJobFinalizer) {
				n++
			}
		}
		return n
	}
	w.must(engine.ReleaseOrphans(t.Context(), key))
	if held() != 2 {
		t.Fatalf("got %d Jobs held, want those of an UpgradeJob that exists left alone", held())
	}
	w.must(w.store.Delete(t.Context(), w.job("job")))
	w.must(engine.ReleaseOrphans(t.Context(), key))
	if held() != 0 {
		t.Errorf("got %d Jobs held", held())
	}
}
