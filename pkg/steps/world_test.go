// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/hooks"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

const target = "4.18.2"

// start is when the jobs of these tests start.
var start = time.Date(2026, time.November, 24, 22, 0, 0, 0, time.UTC)

type (
	jobOption     = func(*v1beta1.UpgradeJob)
	versionOption = func(*configv1.ClusterVersion)
)

// newJob returns a job that has just started to upgrade the cluster to 4.18.2, and may commence for an hour.
func newJob(options ...jobOption) *v1beta1.UpgradeJob {
	job := &v1beta1.UpgradeJob{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns", Generation: 1}}
	job.Spec.StartAfter, job.Spec.StartBefore = metav1.NewTime(start), metav1.NewTime(start.Add(time.Hour))
	job.Spec.DesiredVersion = &v1beta1.DesiredVersion{Version: target, Image: openshifttest.Image(target)}
	job.Status.Phase = v1beta1.PhaseActive
	job.Status.StartTime = ptr.To(metav1.NewTime(start))
	meta.SetStatusCondition(&job.Status.Conditions, v1beta1.Started("The job has started."))
	for _, option := range options {
		option(job)
	}
	return job
}

func withoutVersion(job *v1beta1.UpgradeJob) { job.Spec.DesiredVersion = nil }
func byVersion(job *v1beta1.UpgradeJob)      { job.Spec.DesiredVersion.Image = "" }
func byImage(job *v1beta1.UpgradeJob)        { job.Spec.DesiredVersion.Version = "" }

// begun records that a step began at that time after the start.
func begun(condition string, after time.Duration) jobOption {
	return func(job *v1beta1.UpgradeJob) {
		job.Status.Steps = append(job.Status.Steps, v1beta1.StepStatus{
			Condition: condition, StartTime: metav1.NewTime(start.Add(after)), Attempts: 1,
		})
		if condition == steps.ConditionUpgradeCommenced { // it did not wait
			job.Status.CommenceTime = ptr.To(metav1.NewTime(start.Add(after)))
		}
	}
}

// done records that a step was done at that time after the start.
func done(condition string, after time.Duration) jobOption {
	return func(job *v1beta1.UpgradeJob) {
		begun(condition, after)(job)
		job.Status.Steps[len(job.Status.Steps)-1].CompletionTime = ptr.To(metav1.NewTime(start.Add(after)))
		meta.SetStatusCondition(&job.Status.Conditions, v1beta1.StepDone(condition, "Done before."))
	}
}

// resumed records that the job was reopened at that time after the start.
func resumed(after time.Duration) jobOption {
	return func(job *v1beta1.UpgradeJob) {
		job.Status.ResumedRequests = append(job.Status.ResumedRequests, v1beta1.ResumedRequest{
			Request: "again", Time: metav1.NewTime(start.Add(after)), Reopened: "Failed(TimedOut)",
		})
	}
}

func commenced(job *v1beta1.UpgradeJob) { done(steps.ConditionUpgradeCommenced, 0)(job) }

// world is what is durable: the objects in the API. A pass leaves nothing behind but what it wrote there.
type world struct {
	t   *testing.T
	api client.WithWatch
	// cached is what a cache that lags behind has for ClusterVersion/version; nil if it does not lag.
	cached *configv1.ClusterVersion
	// cachedPools is what it has for the pools; nil if it does not lag.
	cachedPools []mcfgv1.MachineConfigPool
	// same is what a process has of the cluster that lives for several passes; nil if each pass is one of a process of its own.
	same *openshift.Cluster
	// lockedBy says who else holds the cluster.
	lockedBy string
	// over are jobs that have ended, as namespace/name.
	over []string
	now  time.Time
	// turned is what the last pass told of.
	turned []steps.Transition
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	inWork := func(o client.Object) []string {
		node := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: o.GetAnnotations()}}
		if _, ok := openshift.NodeInWork(node); ok {
			return []string{"true"}
		}
		return nil
	}
	return &world{t: t, api: openshifttest.NewClientBuilder(openshift.NodeField, inWork).WithObjects(objects...).Build(), now: start}
}

func (w *world) job() *v1beta1.UpgradeJob {
	w.t.Helper()
	job := &v1beta1.UpgradeJob{}
	if err := w.api.Get(w.t.Context(), client.ObjectKey{Namespace: "ns", Name: "job"}, job); err != nil {
		w.t.Fatal(err)
	}
	return job
}

func (w *world) version() *configv1.ClusterVersion {
	w.t.Helper()
	cv := &configv1.ClusterVersion{}
	if err := w.api.Get(w.t.Context(), client.ObjectKey{Name: "version"}, cv); err != nil {
		w.t.Fatal(err)
	}
	return cv
}

func (w *world) cluster() *openshift.Cluster {
	if w.same != nil {
		return w.same
	}
	cache := w.api
	if w.cachedPools != nil || w.cached != nil {
		cache = interceptor.NewClient(w.api, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
				if cv, ok := o.(*configv1.ClusterVersion); ok && w.cached != nil {
					w.cached.DeepCopyInto(cv)
					return nil
				}
				return c.Get(ctx, key, o, options...)
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				if all, ok := list.(*mcfgv1.MachineConfigPoolList); ok && w.cachedPools != nil {
					all.Items = slices.Clone(w.cachedPools)
					return nil
				}
				return c.List(ctx, list, options...)
			},
		})
	}
	return openshift.NewCluster(cache, w.api)
}

// upgrade is what a pass begins with.
func (w *world) upgrade() *steps.Upgrade {
	w.t.Helper()
	job, cv := w.job(), w.version()
	if w.cached != nil {
		cv = w.cached.DeepCopy()
	}
	base := job.DeepCopy()
	persist := func(ctx context.Context) error {
		if err := w.api.Status().Patch(ctx, job, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); err != nil {
			return err
		}
		base = job.DeepCopy()
		return nil
	}
	return &steps.Upgrade{
		Job: job, Now: w.now, Cluster: w.cluster(), Version: cv, Persist: persist, LockedBy: w.lockedBy,
		Over:   func(_ context.Context, job string) (bool, error) { return slices.Contains(w.over, job), nil },
		Turned: func(t steps.Transition) { w.turned = append(w.turned, t) },
		Hooks: &hooks.Pass{
			Engine: &hooks.Engine{Client: w.api, Live: w.api}, Job: job, Now: w.now, Deadline: start.Add(12 * time.Hour),
			Fence: persist, Tell: func(v1beta1.HookRun) {},
		},
	}
}

// pass does one pass over the steps and writes the job's status, as a controller does.
func (w *world) pass(list ...steps.Step) steps.Result {
	w.t.Helper()
	w.turned = nil
	u := w.upgrade()
	result := steps.Run(w.t.Context(), list, u)
	if err := u.Persist(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return result
}

// update changes ClusterVersion/version behind the operator's back.
func (w *world) update(options ...versionOption) {
	w.t.Helper()
	cv := w.version()
	for _, option := range options {
		option(cv)
	}
	status := cv.Status
	if err := w.api.Update(w.t.Context(), cv); err != nil {
		w.t.Fatal(err)
	}
	cv.Status = status
	if err := w.api.Status().Update(w.t.Context(), cv); err != nil {
		w.t.Fatal(err)
	}
}

// put replaces the objects of the cluster, specs and statuses.
func (w *world) put(objects ...client.Object) {
	w.t.Helper()
	for _, o := range objects {
		if err := client.IgnoreNotFound(w.api.Delete(w.t.Context(), o)); err != nil {
			w.t.Fatal(err)
		}
		o.SetResourceVersion("")
		if err := w.api.Create(w.t.Context(), o); err != nil {
			w.t.Fatal(err)
		}
	}
}

// stepCase is a step in a situation, and what comes of it.
type stepCase struct {
	reason string

	job     []jobOption
	version []versionOption
	objects []client.Object
	cached  *configv1.ClusterVersion // where the cache lags behind
	after   time.Duration            // since the start

	want verdict
}

// verdict is what a single step came to: Completed stands for Done.
type verdict struct {
	outcome  steps.Outcome
	reason   string        // of the step's condition
	after    time.Duration // until the next pass at the latest
	blockers []string      // code and object of each
	says     string        // a part of the condition's message, or of a blocker's
}

// run runs the step alone, checks its verdict, and returns the world as it is then.
func (c *stepCase) run(t *testing.T, step steps.Step) *world {
	t.Helper()
	w := newWorld(t, append([]client.Object{newJob(c.job...), openshifttest.ClusterVersion(c.version...)}, c.objects...)...)
	w.cached, w.now = c.cached, start.Add(c.after)
	result := w.pass(step)
	if result.Err != nil {
		t.Fatalf("got the error %v", result.Err)
	}
	c.want.check(t, step, result, w.job())
	return w
}

func (v verdict) check(t *testing.T, step steps.Step, result steps.Result, job *v1beta1.UpgradeJob) {
	t.Helper()
	condition := meta.FindStatusCondition(job.Status.Conditions, step.Condition())
	if condition == nil {
		t.Fatalf("there is no condition %s", step.Condition())
	}
	got := verdict{outcome: result.Outcome, reason: condition.Reason, after: result.After, says: v.says}
	text := condition.Message
	for _, b := range job.Status.Blockers {
		got.blockers = append(got.blockers, b.Code+" "+b.Object)
		text += "\n" + b.Message
		if b.Message == "" || b.ClearsWhen == "" {
			t.Errorf("blocker %s does not say what it is, or what clears it: %+v", b.Code, b)
		}
	}
	if diff := cmp.Diff(v, got, cmp.AllowUnexported(verdict{})); diff != "" {
		t.Errorf("(-want +got):\n%s%s", diff, text)
	}
	if !strings.Contains(text, v.says) {
		t.Errorf("got %q, want it to say %q", text, v.says)
	}
	if (condition.Status == metav1.ConditionTrue) != (v.outcome == steps.Completed) {
		t.Errorf("the condition is %s", condition.Status)
	}
}

// failingGet fails every read of an object of that kind.
func failingGet(err error, kind string) interceptor.Funcs {
	return interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
		if gvk, kindErr := c.GroupVersionKindFor(o); kindErr != nil || gvk.Kind == kind {
			return errors.Join(err, kindErr)
		}
		return c.Get(ctx, key, o, options...)
	}}
}

// failingList fails every list of that kind.
func failingList(err error, kind string) interceptor.Funcs {
	return interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		if gvk, kindErr := c.GroupVersionKindFor(list); kindErr != nil || gvk.Kind == kind {
			return errors.Join(err, kindErr)
		}
		return c.List(ctx, list, options...)
	}}
}
