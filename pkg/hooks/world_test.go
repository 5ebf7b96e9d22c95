// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package hooks_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/hooks"
)

// begin is when the jobs of these tests start.
var begin = time.Date(2026, time.November, 24, 22, 0, 0, 0, time.UTC)

// world is what is durable: the objects in the API, and what happened to them.
type world struct {
	t     *testing.T
	store client.Client
	now   time.Time
	// created are the names of all Jobs that were ever created.
	created []string
	// told are the results that were told of.
	told []string
	// fail is asked before each write, which does not happen if it returns an error; after is asked after it.
	fail, after func(verb string, o client.Object) error
	// staleHooks are what a cache that lags behind has; nil if it does not lag.
	staleHooks []v1beta1.UpgradeJobHook
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, batchv1.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{t: t, now: begin}
	w.store = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&v1beta1.UpgradeJob{}, &v1beta1.UpgradeJobHook{}, &batchv1.Job{}).Build()
	return w
}

// client is what the engine writes through.
func (w *world) client() client.Client {
	ask := func(question func(string, client.Object) error, verb string, o client.Object) error {
		if question == nil {
			return nil
		}
		return question(verb, o)
	}
	return interceptor.NewClient(w.store.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if err := ask(w.fail, "create", o); err != nil {
				return err
			}
			o.SetUID(types.UID("uid-of-" + o.GetName()))
			if err := c.Create(ctx, o, options...); err != nil {
				return err
			}
			w.created = append(w.created, o.GetName())
			return ask(w.after, "create", o)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			if err := ask(w.fail, "patch", o); err != nil {
				return err
			}
			return errors.Join(c.Patch(ctx, o, p, options...), ask(w.after, "patch", o))
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, options ...client.SubResourcePatchOption) error {
			if err := ask(w.fail, "patch "+sub, o); err != nil {
				return err
			}
			if err := c.SubResource(sub).Patch(ctx, o, p, options...); err != nil {
				return err
			}
			return ask(w.after, "patch "+sub, o)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if stale, ok := list.(*v1beta1.UpgradeJobHookList); ok && w.staleHooks != nil {
				for _, hook := range w.staleHooks {
					stale.Items = append(stale.Items, *hook.DeepCopy())
				}
				return nil
			}
			return c.List(ctx, list, options...)
		},
	})
}

// pass does with the engine what do does, on the job as it is stored, and writes the status, as a controller does.
func (w *world) pass(name string, do func(*hooks.Pass) error) error {
	w.t.Helper()
	return w.passOn(w.job(name), do)
}

func (w *world) passOn(job *v1beta1.UpgradeJob, do func(*hooks.Pass) error) error {
	base := job.DeepCopy()
	c := w.client()
	write := func(ctx context.Context) error {
		if err := c.Status().Patch(ctx, job, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); err != nil {
			return err
		}
		base = job.DeepCopy()
		return nil
	}
	p := &hooks.Pass{
		Engine: &hooks.Engine{Client: c, Live: w.store}, Job: job, Now: w.now, Deadline: begin.Add(12 * time.Hour), Fence: write,
		Tell: func(run v1beta1.HookRun) {
			w.told = append(w.told, fmt.Sprintf("%s %s %s: %s", run.UpgradeJobHook, run.HookEvent, run.Status, run.Message))
		},
	}
	err := p.Refresh(w.t.Context())
	if err == nil {
		err = do(p)
	}
	if err := errors.Join(err, write(w.t.Context())); err != nil {
		return err
	}
	return p.Release(w.t.Context())
}

// emit does a pass that emits an event, and returns how far its hooks are.
func (w *world) emit(name string, event v1beta1.HookEvent) (progress hooks.Progress, err error) {
	w.t.Helper()
	err = w.pass(name, func(p *hooks.Pass) error {
		var err error
		progress, err = p.Emit(w.t.Context(), hooks.Event{Name: event, Time: w.now, Reason: "Test", Message: "It is a test."})
		return err
	})
	return progress, err
}

func (w *world) mustEmit(name string, event v1beta1.HookEvent) hooks.Progress {
	w.t.Helper()
	progress, err := w.emit(name, event)
	w.must(err)
	return progress
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) job(name string) *v1beta1.UpgradeJob {
	w.t.Helper()
	job := &v1beta1.UpgradeJob{}
	w.must(w.store.Get(w.t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, job))
	return job
}

func (w *world) hook(name string) *v1beta1.UpgradeJobHook {
	w.t.Helper()
	hook := &v1beta1.UpgradeJobHook{}
	w.must(w.store.Get(w.t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, hook))
	return hook
}

// resume resumes a job that a hook has failed.
func (w *world) resume(name, request string) {
	w.t.Helper()
	w.update(name, func(job *v1beta1.UpgradeJob) {
		job.Status.ResumedRequests = append(job.Status.ResumedRequests, v1beta1.ResumedRequest{
			Request: request, Reopened: "Failed(HookFailed)", Time: metav1.NewTime(begin),
		})
	})
}

// change changes the spec of a hook.
func (w *world) change(name string, change func(*v1beta1.UpgradeJobHook)) {
	w.t.Helper()
	hook := w.hook(name)
	change(hook)
	w.must(w.store.Update(w.t.Context(), hook))
}

// jobs returns the batch Jobs that exist.
func (w *world) jobs() []batchv1.Job {
	w.t.Helper()
	list := &batchv1.JobList{}
	w.must(w.store.List(w.t.Context(), list))
	return list.Items
}

// only returns the one batch Job that exists.
func (w *world) only() *batchv1.Job {
	w.t.Helper()
	jobs := w.jobs()
	if len(jobs) != 1 {
		w.t.Fatalf("got %d batch Jobs, want one", len(jobs))
	}
	return &jobs[0]
}

// end gives every batch Job that has none a result.
func (w *world) end(conditionType batchv1.JobConditionType, message string) {
	w.t.Helper()
	for _, job := range w.jobs() {
		if len(job.Status.Conditions) > 0 {
			continue
		}
		job.Status.Conditions = []batchv1.JobCondition{{
			Type: conditionType, Status: corev1.ConditionTrue, Message: message, LastTransitionTime: metav1.NewTime(w.now.Add(-time.Minute)),
		}}
		w.must(w.store.Status().Update(w.t.Context(), &job))
	}
}

// delete deletes every batch Job, as a ttlSecondsAfterFinished does.
func (w *world) delete() {
	w.t.Helper()
	for _, job := range w.jobs() {
		w.must(client.IgnoreNotFound(w.store.Delete(w.t.Context(), &job)))
	}
}

// runs are the runs that are recorded of a job.
func (w *world) runs(name string) []string {
	w.t.Helper()
	var runs []string
	for _, run := range w.job(name).Status.HookTracker {
		text := fmt.Sprintf("%s %s %s", run.UpgradeJobHook, run.HookEvent, run.Status)
		if run.TrackingKey != "" {
			text = fmt.Sprintf("%s %s[%s] %s", run.UpgradeJobHook, run.HookEvent, run.TrackingKey, run.Status)
		}
		runs = append(runs, text)
	}
	return runs
}

// unfinished tells whether the result of a run is not known.
func (w *world) unfinished() bool {
	w.t.Helper()
	return slices.ContainsFunc(w.job("job").Status.HookTracker, func(run v1beta1.HookRun) bool { return !run.Status.Finished() })
}

// update changes a job behind the engine's back.
func (w *world) update(name string, change func(*v1beta1.UpgradeJob)) {
	w.t.Helper()
	job := w.job(name)
	change(job)
	status := job.Status
	w.must(w.store.Update(w.t.Context(), job))
	job.Status = status
	w.must(w.store.Status().Update(w.t.Context(), job))
}

func newJob(name string) *v1beta1.UpgradeJob {
	job := &v1beta1.UpgradeJob{}
	job.Name, job.Namespace, job.UID = name, "ns", types.UID("uid-of-"+name)
	job.Labels = map[string]string{"upgrade-config": "nightly"}
	job.Spec.StartAfter = metav1.NewTime(begin)
	return job
}

func newHook(name string, change ...func(*v1beta1.UpgradeJobHook)) *v1beta1.UpgradeJobHook {
	hook := &v1beta1.UpgradeJobHook{}
	hook.Name, hook.Namespace, hook.UID = name, "ns", types.UID("uid-of-"+name)
	hook.CreationTimestamp = metav1.NewTime(begin.Add(-time.Hour))
	hook.Spec.Events = []v1beta1.HookEvent{v1beta1.HookEventStart}
	hook.Spec.Run, hook.Spec.FailurePolicy = v1beta1.HookRunAll, v1beta1.HookFailureIgnore
	hook.Spec.Template.Spec.Template.Spec.Containers = []corev1.Container{{Name: "hook", Image: "example.com/hook"}}
	for _, c := range change {
		c(hook)
	}
	return hook
}

func on(events ...v1beta1.HookEvent) func(*v1beta1.UpgradeJobHook) {
	return func(h *v1beta1.UpgradeJobHook) { h.Spec.Events = events }
}

func abort(h *v1beta1.UpgradeJobHook) { h.Spec.FailurePolicy = v1beta1.HookFailureAbort }
func next(h *v1beta1.UpgradeJobHook)  { h.Spec.Run = v1beta1.HookRunNext }

// unique fails the test if a Job was created twice.
func (w *world) unique() {
	w.t.Helper()
	names := slices.Sorted(slices.Values(w.created))
	if len(slices.Compact(slices.Clone(names))) != len(names) {
		w.t.Errorf("a Job was created twice: %v", names)
	}
}
