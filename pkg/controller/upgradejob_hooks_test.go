// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// hookAt returns a hook that runs at the events.
func hookAt(name string, policy v1beta1.HookFailurePolicy, events ...v1beta1.HookEvent) *v1beta1.UpgradeJobHook {
	hook := &v1beta1.UpgradeJobHook{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, UID: types.UID(name + "-uid")}}
	hook.Spec = v1beta1.UpgradeJobHookSpec{Events: events, Run: v1beta1.HookRunAll, FailurePolicy: policy}
	hook.Spec.Template.Spec.Template.Spec.Containers = []corev1.Container{{Name: "hook", Image: "example.com/hook"}}
	return hook
}

// batchJobs returns the Jobs of hooks that exist.
func (w *world) batchJobs() []batchv1.Job {
	w.t.Helper()
	list := &batchv1.JobList{}
	if err := w.api.past(func() error { return w.client.List(w.t.Context(), list) }); err != nil {
		w.t.Fatal(err)
	}
	if w.hookJobs == nil {
		w.hookJobs = map[types.UID]string{}
	}
	for i := range list.Items {
		w.hookJobs[list.Items[i].UID] = list.Items[i].Name
	}
	return list.Items
}

// finishHooks does what the Job controller and the TTL controller would do next, and tells whether that was anything.
func (w *world) finishHooks() bool {
	w.t.Helper()
	var turned bool
	for _, job := range w.batchJobs() {
		hook := job.Labels[v1beta1.HookLabel]
		condition := batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.clock.Now())}
		if slices.Contains(w.hookFails, hook) {
			condition.Type, condition.Message = batchv1.JobFailed, "It reached its limit."
		}
		switch {
		case slices.Contains(w.hookHangs, hook) || !job.DeletionTimestamp.IsZero():
			continue
		case len(job.Status.Conditions) == 0:
			change(w, &job, func(job *batchv1.Job) { job.Status.Conditions = []batchv1.JobCondition{condition} })
		default:
			w.remove(&job)
		}
		turned = true
	}
	return turned
}

// noneTwice fails the test if a run of a hook had two Jobs.
func (w *world) noneTwice() {
	w.t.Helper()
	names := slices.Sorted(maps.Values(w.hookJobs))
	if len(slices.Compact(slices.Clone(names))) != len(names) {
		w.t.Errorf("a hook ran twice: %v", names)
	}
}

// everywhere are hooks at every kind of event.
func everywhere() []client.Object {
	next := hookAt("once", v1beta1.HookFailureAbort, v1beta1.HookEventCreate)
	next.Spec.Run = v1beta1.HookRunNext
	return []client.Object{
		next,
		hookAt("audit", v1beta1.HookFailureIgnore, v1beta1.HookEventStepStarted("Healthy"), v1beta1.HookEventStepCompleted("UpgradeCommenced"), v1beta1.HookEventFinish),
		hookAt("tell", v1beta1.HookFailureAbort, v1beta1.HookEventSuccess, v1beta1.HookEventFailure, v1beta1.HookEventSkipped),
	}
}

// inOrder sorts the hooks of an outcome: those of one moment are run in any order.
func inOrder(outcome string) string {
	lines := strings.Split(outcome, "\n")
	first := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "hook ") })
	last := first
	for strings.HasPrefix(lines[last], "hook ") {
		last++
	}
	slices.Sort(lines[first:last])
	return strings.Join(lines, "\n")
}

func TestFaultAtEachCallWithHooks(t *testing.T) {
	ran := strings.NewReplacer( // while a hook holds the step the cluster may get there
		"ClusterVersion/version is asked to update to 4.18.2.", "(asked)", "The cluster runs 4.18.2 already.", "(asked)")
	live := func(t *testing.T, fault func(int, string) (error, error)) (*world, string) {
		job := newJob("weekly")
		w := newWorld(t, append(everywhere()[:2], newClusterVersion(), job)...).register(plain())
		w.api.fault, w.hookFails = fault, []string{"audit"}
		w.live(w.jobs(), job)
		w.noneTwice()
		return w, inOrder(ran.Replace(w.outcome(job)))
	}
	clean, want := live(t, nil)
	for _, line := range []string{
		"phase Succeeded", "finalizers []", "hook once at Create: Succeeded", "hook audit at StepStarted/Healthy: Failed",
		"hook audit at StepCompleted/UpgradeCommenced: Failed", "hook audit at Finish: Failed",
	} {
		if !strings.Contains(want, line) {
			t.Fatalf("without a fault: got %s\nwant %q in it", want, line)
		}
	}
	for i, call := range slices.Clone(clean.api.calls) {
		read := strings.HasPrefix(call, "get ") || strings.HasPrefix(call, "list ")
		for when, err := range map[string][2]error{"breaks before its effect": {errBroken, nil}, "breaks after its effect": {nil, errBroken}} {
			if read && err[0] == nil {
				continue // it has no effect
			}
			t.Run(fmt.Sprintf("call %d, %s, %s", i, call, when), func(t *testing.T) {
				_, got := live(t, func(n int, _ string) (error, error) {
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
}

func TestCrashAfterEachWriteWithHooks(t *testing.T) {
	lives := func() (*world, *v1beta1.UpgradeJob) {
		job := newJob("weekly")
		w := newWorld(t, append(everywhere(), newClusterVersion(), job)...).register(plain())
		return w, job
	}
	w, job := lives()
	w.live(w.jobs(), job)
	want := w.outcome(job)
	for i, call := range slices.Clone(w.api.calls) {
		if strings.HasPrefix(call, "get ") || strings.HasPrefix(call, "list ") {
			continue
		}
		t.Run(fmt.Sprintf("call %d, %s", i, call), func(t *testing.T) {
			w, job := lives()
			w.t = t
			crashed := false
			w.api.fault = func(n int, _ string) (error, error) {
				if crashed {
					return errors.New("the process has ended"), nil
				}
				crashed = n == i
				return nil, nil
			}
			first := w.jobs()
			for range 40 {
				w.reconcile(first, job)
				if crashed {
					break
				}
				w.updateCluster()
				w.finishHooks()
			}
			if !crashed {
				t.Fatal("the call was never made")
			}
			w.api.fault = nil
			w.finishHooks() // and the TTL controller comes before the next process does
			w.finishHooks()
			w.live(w.jobs(), job)
			w.noneTwice()
			if got := w.outcome(job); got != want {
				t.Errorf("outcome (-without crash +got):\n%s", cmp.Diff(want, got))
			}
		})
	}
}

func TestCreateHooksHoldTheStart(t *testing.T) {
	job := newJob("weekly")
	w := newWorld(t, newClusterVersion(), job, hookAt("ticket", v1beta1.HookFailureAbort, v1beta1.HookEventCreate)).register(plain())
	w.hookHangs = []string{"ticket"}
	w.clock.SetTime(startAfter.Add(-time.Hour))
	r := w.jobs()
	w.reconcile(r, job)
	early := get(w, job)
	expectCondition(t, early.Status.Conditions, v1beta1.ConditionCreateHooksCompleted, metav1.ConditionFalse, v1beta1.ReasonHooksRunning, "ticket")
	if b := early.Status.Blockers; len(b) != 1 || b[0].Code != v1beta1.ReasonHookRunning || b[0].Object != "UpgradeJobHook/ticket" || !b[0].Since.Time.Equal(w.clock.Now()) {
		t.Errorf("got the blockers %+v", b)
	}
	w.clock.SetTime(startAfter)
	w.reconcile(r, job)
	late := get(w, job)
	expectCondition(t, late.Status.Conditions, v1beta1.ConditionStarted, metav1.ConditionFalse, v1beta1.ReasonHooksRunning, "ticket")
	if b := late.Status.Blockers; len(b) != 1 || !b[0].Since.Time.Equal(startAfter.Add(-time.Hour)) {
		t.Errorf("got the blockers %+v, want the one since when it stands", b)
	}
	w.live(r, job)
	expectCondition(t, get(w, job).Status.Conditions, v1beta1.ConditionSkipped, metav1.ConditionTrue, v1beta1.ReasonExpired, "ticket")
	if cv := get(w, newClusterVersion()); cv.Spec.DesiredUpdate != nil || len(cv.Annotations) > 0 {
		t.Errorf("got the update %v, lock %v", cv.Spec.DesiredUpdate, cv.Annotations)
	}
	if !controllerutil.ContainsFinalizer(get(w, job), v1beta1.UpgradeJobFinalizer) {
		t.Error("the job is let go while the result of a hook is not known")
	}
	w.hookHangs = nil
	w.finishHooks()
	w.live(r, job)
	if done := get(w, job); len(done.Finalizers) > 0 || done.Status.HookTracker[0].Status != v1beta1.HookRunSucceeded {
		t.Errorf("got the finalizers %v, runs %+v", done.Finalizers, done.Status.HookTracker)
	}
}

func TestCreateHooksAbort(t *testing.T) {
	job := newJob("weekly")
	w := newWorld(t, newClusterVersion(), job, hookAt("ticket", v1beta1.HookFailureAbort, v1beta1.HookEventCreate)).register(plain())
	w.hookFails = []string{"ticket"}
	w.clock.SetTime(startAfter.Add(-time.Hour))
	r := w.jobs()
	w.live(r, job)
	failed := get(w, job)
	expectCondition(t, failed.Status.Conditions, v1beta1.ConditionFailed, metav1.ConditionTrue, v1beta1.ReasonHookFailed, "ticket", "It reached its limit.")
	if w.clock.Now().After(startAfter.Add(-time.Hour)) || failed.Status.StartTime != nil {
		t.Errorf("it failed at %s, started %v, want at once", w.clock.Now(), failed.Status.StartTime)
	}

	w.hookFails = nil
	change(w, job, func(job *v1beta1.UpgradeJob) { job.Spec.ResumeRequest = "approved" })
	w.live(r, job)
	if done := get(w, job); done.Status.Phase != v1beta1.PhaseSucceeded || len(done.Status.HookTracker) != 2 || done.Status.HookTracker[1].TrackingKey != "resumed:approved" {
		t.Errorf("resumed: got phase %s, runs %+v, want the hook asked again", done.Status.Phase, done.Status.HookTracker)
	}
}

func TestHooksThatComeAfterTheJobAreNotForIt(t *testing.T) {
	job := newJob("weekly")
	w := newWorld(t, newClusterVersion(), job).register(plain())
	w.clock.SetTime(startAfter.Add(-time.Hour))
	r := w.jobs()
	w.reconcile(r, job)
	for _, event := range []v1beta1.HookEvent{v1beta1.HookEventCreate, v1beta1.HookEventFinish} {
		hook := hookAt("late-"+strings.ToLower(string(event)), v1beta1.HookFailureAbort, event)
		if event == v1beta1.HookEventFinish {
			w.live(r, job)
		}
		if err := w.api.past(func() error { return w.client.Create(t.Context(), hook) }); err != nil {
			t.Fatal(err)
		}
	}
	w.live(w.jobs(), job) // an operator that starts looks at all jobs
	if len(w.batchJobs()) > 0 || len(get(w, job).Status.HookTracker) > 0 {
		t.Errorf("got %d Jobs, runs %+v", len(w.batchJobs()), get(w, job).Status.HookTracker)
	}
}

func TestAHookOfTheOutcomeHoldsNothing(t *testing.T) {
	job, second := newJob("first"), newJob("second")
	w := newWorld(t, newClusterVersion(), job, second, hookAt("report", v1beta1.HookFailureAbort, v1beta1.HookEventFinish)).register(plain())
	w.hookHangs = []string{"report"}
	r := w.jobs()
	w.live(r, job)
	first := get(w, job)
	if first.Status.Phase != v1beta1.PhaseSucceeded || len(first.Finalizers) != 1 {
		t.Fatalf("got phase %s, finalizers %v", first.Status.Phase, first.Finalizers)
	}
	if lock := get(w, newClusterVersion()).Annotations; len(lock) > 0 {
		t.Errorf("the lock is kept: %v", lock)
	}
	w.live(r, second)
	if phase := get(w, second).Status.Phase; phase != v1beta1.PhaseSucceeded {
		t.Errorf("the next job is %s", phase)
	}
}

func TestADeletedJobLetsGoOfItsHooks(t *testing.T) {
	job := newJob("weekly")
	w := newWorld(t, newClusterVersion(), job, hookAt("backup", v1beta1.HookFailureAbort, v1beta1.HookEventStepStarted("Healthy"))).register(plain())
	w.hookHangs = []string{"backup"}
	r := w.jobs()
	w.reconcile(r, job)
	jobs := w.batchJobs()
	if len(jobs) != 1 || get(w, newClusterVersion()).Annotations[v1beta1.UpgradeJobAnnotation] == "" {
		t.Fatalf("got %d Jobs, lock %v", len(jobs), get(w, newClusterVersion()).Annotations)
	}
	w.remove(job)
	for range 3 {
		w.reconcile(r, job)
	}
	if !w.gone(job) || len(get(w, newClusterVersion()).Annotations) > 0 {
		t.Error("the job or its lock is still there")
	}
	if job := w.batchJobs()[0]; len(job.Finalizers) > 0 {
		t.Error("its batch Job can never go")
	}
}

func TestJobsOfHooksWhoseUpgradeJobWasTornOut(t *testing.T) {
	job := newJob("weekly")
	w := newWorld(t, newClusterVersion(), job, hookAt("backup", v1beta1.HookFailureAbort, v1beta1.HookEventStepStarted("Healthy"))).register(plain())
	w.hookHangs = []string{"backup"}
	r := w.jobs()
	w.reconcile(r, job)
	change(w, job, func(job *v1beta1.UpgradeJob) { job.Finalizers = nil })
	w.remove(job)
	w.reconcile(r, job)
	if job := w.batchJobs()[0]; len(job.Finalizers) > 0 {
		t.Error("its batch Job can never go")
	}
}

// Hooks run or not, time goes on.
func TestDeadlinesRunWhileHooksDo(t *testing.T) {
	job := newJob("weekly", func(job *v1beta1.UpgradeJob) {
		job.Spec.Config.UpgradeTimeout = &v1beta1.Duration{Duration: 10 * time.Minute}
	})
	w := newWorld(t, newClusterVersion(), job, hookAt("backup", v1beta1.HookFailureIgnore, v1beta1.HookEventStepCompleted("UpgradeCommenced"))).register(plain())
	w.hookHangs = []string{"backup"}
	r := w.jobs()
	for range 30 {
		if get(w, job).Status.Phase.Finished() {
			break
		}
		if after := w.reconcile(r, job).RequeueAfter; after > 0 {
			w.elapse(after)
		}
		w.updateCluster()
	}
	expectCondition(t, get(w, job).Status.Conditions, v1beta1.ConditionFailed, metav1.ConditionTrue, v1beta1.ReasonTimedOut, "UpgradeJobHook backup")
	if at := get(w, job).Status.CompletionTime; at.Sub(startAfter) > 10*time.Minute+time.Second {
		t.Errorf("it failed at %s", at)
	}
}

// An API server that cannot tell of hooks does not stop the clock.
func TestDeadlinesRunWhileHooksCannotBeRead(t *testing.T) {
	job := newJob("weekly")
	w := newWorld(t, newClusterVersion(), job).register(plain())
	w.api.fault = failing("list UpgradeJobHookList", 1000, errBroken)
	r := w.jobs()
	var result ctrl.Result
	for range 5 {
		result = w.reconcile(r, job)
	}
	expectCondition(t, get(w, job).Status.Conditions, v1beta1.ConditionCreateHooksCompleted, metav1.ConditionFalse, v1beta1.ReasonError, "etcd has no leader")
	if cv := get(w, newClusterVersion()); cv.Spec.DesiredUpdate != nil || result.RequeueAfter == 0 || result.RequeueAfter > maxBackoff {
		t.Errorf("got the update %v, next pass after %s", cv.Spec.DesiredUpdate, result.RequeueAfter)
	}
	w.clock.SetTime(startAfter.Add(time.Hour + time.Second))
	w.reconcile(r, job)
	expectCondition(t, get(w, job).Status.Conditions, v1beta1.ConditionSkipped, metav1.ConditionTrue, v1beta1.ReasonExpired)
}

func TestWhichTurnsOfAHookJobCount(t *testing.T) {
	running := &batchv1.Job{}
	finished := &batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete}}}}
	deleted := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: new(metav1.NewTime(startAfter))}}
	active := &batchv1.Job{Status: batchv1.JobStatus{Active: 1}}
	for _, tc := range []struct {
		reason        string
		before, after *batchv1.Job
		want          bool
	}{
		{"it finished", running, finished, true},
		{"it is to be deleted", running, deleted, true},
		{"a pod of it was started", running, active, false},
	} {
		if got := hookJobTurned.Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}); got != tc.want {
			t.Errorf("%s: got %v", tc.reason, got)
		}
	}
}

func TestNoticesOfAJob(t *testing.T) {
	job := newJob("weekly", func(job *v1beta1.UpgradeJob) {
		job.Spec.Config.Notifications = []v1beta1.NotificationReceiver{{URL: "https://example.com"}}
	})
	w := newWorld(t, newClusterVersion(), job, hookAt("audit", v1beta1.HookFailureIgnore, v1beta1.HookEventStepStarted("Healthy"))).register(plain())
	w.live(w.jobs(), job)
	var got []string
	status := get(w, job).Status.Notifications
	for i, n := range status.Outbox {
		if n.Sequence != int64(i+1) {
			t.Errorf("notice %d has the number %d", i+1, n.Sequence)
		}
		got = append(got, fmt.Sprintf("%s %s %s", n.Type, n.Condition, n.Reason))
	}
	if diff := cmp.Diff([]string{
		"job.created  Created",
		"job.started  Started",
		"step.waiting Healthy HooksRunning",
		"hook.succeeded StepStarted/Healthy HookSucceeded",
		"step.completed Healthy Completed",
		"step.completed UpgradeCommenced Completed",
		"step.started Upgraded Updating",
		"step.completed Upgraded Completed",
		"job.succeeded Succeeded Upgraded",
	}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The batch Job may be known to the cache only after its result was read past it, and the job was let go.
func TestAHookJobThatTurnsUpLateIsLetGo(t *testing.T) {
	job := newJob("weekly")
	w := newWorld(t, newClusterVersion(), job, hookAt("backup", v1beta1.HookFailureAbort, v1beta1.HookEventStepStarted("Healthy"))).register(plain())
	r := w.jobs()
	w.live(r, job)
	done := get(w, job)
	if len(done.Finalizers) > 0 {
		t.Fatalf("the job is not let go: %v", done.Finalizers)
	}
	late := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: done.Status.HookTracker[0].Job, Finalizers: []string{v1beta1.HookJobFinalizer},
		Labels: map[string]string{v1beta1.HookUpgradeJobLabel: job.Name}, Annotations: map[string]string{v1beta1.HookUpgradeJobLabel: job.Name},
	}}
	if err := controllerutil.SetControllerReference(done, late, w.client.Scheme()); err != nil {
		t.Fatal(err)
	}
	if err := w.api.past(func() error { return w.client.Create(t.Context(), late) }); err != nil {
		t.Fatal(err)
	}
	w.reconcile(r, job)
	if left := get(w, late); len(left.Finalizers) > 0 {
		t.Error("its batch Job can never go")
	}
}

// What a pass has recorded in its middle is told, whatever becomes of its end: the next pass does not know of it.
func TestWhatIsRecordedIsTold(t *testing.T) {
	job := newJob("weekly")
	w := newWorld(t, newClusterVersion(), job, hookAt("backup", v1beta1.HookFailureAbort, v1beta1.HookEventStepStarted("Healthy"))).register(plain())
	writes := 0
	w.api.fault = func(_ int, call string) (error, error) {
		if call != "patch UpgradeJob/status" {
			return nil, nil
		}
		if writes++; writes == 2 {
			return errConflict, nil
		}
		return nil, nil
	}
	r := w.jobs()
	w.reconcile(r, job)
	if writes != 2 {
		t.Fatalf("got %d writes of the status, want the fence and the end", writes)
	}
	w.live(r, job)
	if got := reasons(w.events()); !slices.Contains(got, "Started") {
		t.Errorf("got the Events %v, want that of the start", got)
	}
}

// The API counts Events of one reason, action and pair of objects as one, and shows the first.
func TestEachHookHasAnEventOfItsOwn(t *testing.T) {
	p := &pass{UpgradeJobReconciler: &UpgradeJobReconciler{}, job: newJob("weekly")}
	for _, hook := range []string{"a", "b"} {
		p.hookFinished(v1beta1.HookRun{HookEvent: v1beta1.HookEventSkipped, UpgradeJobHook: hook, Status: v1beta1.HookRunFailed, Message: "no"})
	}
	want := []announcement{
		{"Warning", "HookFailed", "Skipped", "UpgradeJobHook a failed at Skipped: no", "a"},
		{"Warning", "HookFailed", "Skipped", "UpgradeJobHook b failed at Skipped: no", "b"},
	}
	if !slices.Equal(p.news, want) {
		t.Errorf("got %+v", p.news)
	}
}
