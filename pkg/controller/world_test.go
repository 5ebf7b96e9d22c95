// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"github.com/openshift/client-go/config/applyconfigurations"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/hooks"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/upgrader"
)

// namespace that the operator of the tests watches and runs in.
const namespace = "upgrades"

// startAfter is the start of the job under test; its window is an hour long.
var startAfter = time.Date(2026, time.November, 24, 22, 0, 0, 0, time.UTC)

// world is a cluster with everything around the reconcilers: an API that records calls and fails where it is told to, a
// clock, and the Events.
type world struct {
	t         *testing.T
	clock     *clocktesting.FakePassiveClock
	api       *api
	client    client.Client
	cluster   *openshift.Cluster
	hooks     *hooks.Engine
	upgraders *upgrader.Registry
	catalogue *upgrader.Catalogue
	recorder  *events.FakeRecorder
	mgr       ctrl.Manager
	// stuck keeps the cluster from taking an update up.
	stuck bool
	// hookFails are the hooks whose Jobs fail, hookHangs those whose Jobs never end; the others succeed.
	hookFails, hookHangs []string
	// hookJobs are the names of all Jobs of hooks that ever were.
	hookJobs map[types.UID]string
}

// testScheme and openShiftConverter are built once: that takes longer than most tests.
var (
	testScheme = sync.OnceValue(func() *runtime.Scheme {
		scheme := runtime.NewScheme()
		for _, add := range []func(*runtime.Scheme) error{batchv1.AddToScheme, corev1.AddToScheme, policyv1.AddToScheme, v1beta1.AddToScheme, configv1.Install, mcfgv1.Install} {
			utilruntime.Must(add(scheme))
		}
		return scheme
	})
	openShiftConverter = sync.OnceValue(func() managedfields.TypeConverter { return applyconfigurations.NewTypeConverter(testScheme()) })
)

// newWorld returns a world with the objects, at the start of the job under test.
func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := testScheme()
	indexes := &indexes{}
	if err := SetupCache(t.Context(), indexes); err != nil {
		t.Fatal(err)
	}
	w := &world{
		t: t, clock: clocktesting.NewFakePassiveClock(startAfter), api: &api{},
		upgraders: &upgrader.Registry{}, recorder: events.NewFakeRecorder(1000),
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithTypeConverters(openShiftConverter(), managedfields.NewDeducedTypeConverter()).
		WithStatusSubresource(&v1beta1.ClusterVersion{}, &v1beta1.Upgrader{}, &v1beta1.UpgradeConfig{}, &v1beta1.UpgradeJob{}, &v1beta1.UpgradeJobHook{},
			&v1beta1.UpgradeSuspensionWindow{}, &configv1.ClusterVersion{}, &mcfgv1.MachineConfigPool{})
	builder = builder.WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} })
	for _, index := range indexes.found {
		builder = builder.WithIndex(index.object, index.field, index.extract)
	}
	store := builder.Build()
	w.client = interceptor.NewClient(store, w.api.intercept(true))
	live := interceptor.NewClient(store, w.api.intercept(false))
	w.cluster = openshift.NewCluster(w.client, live)
	w.hooks = &hooks.Engine{Client: w.client, Live: live}

	var err error
	w.mgr, err = ctrl.NewManager(&rest.Config{Host: "http://127.0.0.1:1"}, manager.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller:     config.Controller{SkipNameValidation: ptr.To(true)}, // each test has its own
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return w.client.RESTMapper(), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// setUp readies a reconciler as the operator does.
func setUp[R interface{ SetupWithManager(ctrl.Manager) error }](w *world, r R) R {
	w.t.Helper()
	if err := r.SetupWithManager(w.mgr); err != nil {
		w.t.Fatal(err)
	}
	return r
}

// finder finds the upgraders of the world.
func (w *world) finder() *upgrader.Finder {
	return &upgrader.Finder{Registry: w.upgraders, Catalogue: w.catalogue, Reader: w.client}
}

func (w *world) jobs() *UpgradeJobReconciler {
	return setUp(w, &UpgradeJobReconciler{
		Client: w.client, Cluster: w.cluster, Upgraders: w.finder(), Clock: w.clock, Events: w.recorder, Namespace: namespace,
		Hooks: w.hooks,
	})
}

func (w *world) configs() *UpgradeConfigReconciler {
	return setUp(w, &UpgradeConfigReconciler{
		Client: w.client, Cluster: w.cluster, Upgraders: w.finder(), Clock: w.clock, Events: w.recorder,
	})
}

// reconcile does one pass over an object. Reconcilers report errors in the log and by their result, but for that of
// reading the object itself, after which controller-runtime tries again.
func (w *world) reconcile(r reconcile.Reconciler, o client.Object) ctrl.Result {
	w.t.Helper()
	result, err := r.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o)})
	if err != nil {
		if result != (ctrl.Result{}) || !strings.HasPrefix(w.api.calls[len(w.api.calls)-1], "get ") {
			w.t.Fatalf("reconcile %T %s: got %v and error %v, want a result alone", o, o.GetName(), result, err)
		}
		return ctrl.Result{RequeueAfter: 5 * time.Millisecond}
	}
	return result
}

// get reads an object of the name and namespace of o anew, past the recorder of calls.
func get[T client.Object](w *world, o T) T {
	w.t.Helper()
	fresh := reflect.New(reflect.TypeOf(o).Elem()).Interface().(T)
	if err := w.api.past(func() error { return w.client.Get(w.t.Context(), client.ObjectKeyFromObject(o), fresh) }); err != nil {
		w.t.Fatal(err)
	}
	return fresh
}

// gone tells whether there is no such object any more.
func (w *world) gone(o client.Object) bool {
	w.t.Helper()
	fresh := reflect.New(reflect.TypeOf(o).Elem()).Interface().(client.Object)
	err := w.api.past(func() error { return w.client.Get(w.t.Context(), client.ObjectKeyFromObject(o), fresh) })
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	return err != nil
}

// change changes an object as somebody else would, its spec and metadata or its status.
func change[T client.Object](w *world, o T, apply func(T)) T {
	w.t.Helper()
	fresh := get(w, o)
	base := fresh.DeepCopyObject().(T)
	apply(fresh)
	err := w.api.past(func() error {
		edited := fresh.DeepCopyObject().(T)
		if err := w.client.Patch(w.t.Context(), edited, client.MergeFrom(base)); err != nil {
			return err
		}
		return w.client.Status().Patch(w.t.Context(), fresh, client.MergeFrom(base))
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return get(w, o)
}

func (w *world) remove(o client.Object) {
	w.t.Helper()
	if err := w.api.past(func() error { return w.client.Delete(w.t.Context(), o) }); err != nil {
		w.t.Fatal(err)
	}
}

// events returns what was published since it was called last, as "Type Reason note".
func (w *world) events() []string {
	var list []string
	for {
		select {
		case e := <-w.recorder.Events:
			list = append(list, e)
		default:
			return list
		}
	}
}

// elapse moves the clock on.
func (w *world) elapse(d time.Duration) { w.clock.SetTime(w.clock.Now().Add(d)) }

// api records calls, by verb, kind and subresource, and fails those that fault chooses.
type api struct {
	calls []string
	// fault is asked for each call, with its number and name, for an error before its effect and one after it.
	fault func(n int, call string) (before, after error)
	// stale answers a Get instead of the API, if it returns true.
	stale func(o client.Object) bool
	// blind makes lists empty, as those of a cache that has seen nothing yet.
	blind bool
	// updates are the desired updates that were written.
	updates []string
	created int
	off     bool
}

// past does something that is not recorded and does not fail.
func (a *api) past(do func() error) error {
	a.off = true
	defer func() { a.off = false }()
	return do()
}

// writes returns the calls since it was called last, writes only.
func (a *api) writes() []string {
	var writes []string
	for _, call := range a.calls {
		if !strings.HasPrefix(call, "get ") && !strings.HasPrefix(call, "list ") {
			writes = append(writes, call)
		}
	}
	a.calls = nil
	return writes
}

func (a *api) call(name string, do func() error) error {
	if a.off {
		return do()
	}
	n := len(a.calls)
	a.calls = append(a.calls, name)
	if a.fault == nil {
		return do()
	}
	before, after := a.fault(n, name)
	if before != nil {
		return before
	}
	if err := do(); err != nil {
		return err
	}
	return after
}

func kindOf(o any) string {
	if applied, ok := o.(interface{ GetKind() *string }); ok {
		return *applied.GetKind()
	}
	t := reflect.TypeOf(o)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if strings.HasPrefix(t.PkgPath(), "github.com/openshift/") {
		return "openshift." + t.Name()
	}
	return t.Name()
}

// intercept returns the way to the API, with a cache between that may be stale, or without one.
func (a *api) intercept(cached bool) interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return a.call("get "+kindOf(o), func() error {
				if cached && !a.off && a.stale != nil && a.stale(o) {
					return nil
				}
				return c.Get(ctx, key, o, opts...)
			})
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return a.call("list "+kindOf(list), func() error {
				if cached && !a.off && a.blind {
					return nil
				}
				if err := c.List(ctx, list, opts...); err != nil {
					return err
				}
				return reverse(list) // a cache has no order
			})
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return a.call("create "+kindOf(o), func() error {
				a.created++
				o.SetUID(types.UID(fmt.Sprintf("%s-uid-%d", o.GetName(), a.created)))
				return c.Create(ctx, o, opts...)
			})
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return a.call("delete "+kindOf(o), func() error { return c.Delete(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return a.call("update "+kindOf(o), func() error { return c.Update(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return a.call("patch "+kindOf(o), func() error {
				data, err := patch.Data(o)
				if err != nil {
					return err
				}
				if err := c.Patch(ctx, o, patch, opts...); err != nil {
					return err
				}
				if cv, ok := o.(*configv1.ClusterVersion); ok && !a.off && strings.Contains(string(data), "desiredUpdate") {
					a.updates = append(a.updates, version(cv.Spec.DesiredUpdate))
				}
				return nil
			})
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return a.call("apply "+kindOf(o), func() error { return c.Apply(ctx, o, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return a.call("patch "+kindOf(o)+"/"+sub, func() error { return c.SubResource(sub).Patch(ctx, o, patch, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			return a.call("update "+kindOf(o)+"/"+sub, func() error { return c.SubResource(sub).Update(ctx, o, opts...) })
		},
	}
}

func reverse(list client.ObjectList) error {
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	slices.Reverse(items)
	return meta.SetList(list, items)
}

func version(u *configv1.Update) string {
	if u == nil {
		return ""
	}
	return u.Version
}

// failing makes the calls of that name fail, as often as given.
func failing(name string, times int, err error) func(int, string) (error, error) {
	return func(_ int, call string) (error, error) {
		if call != name || times == 0 {
			return nil, nil
		}
		times--
		return err, nil
	}
}

var (
	errBroken   = apierrors.NewInternalError(errors.New("etcd has no leader"))
	errConflict = apierrors.NewConflict(v1beta1.GroupVersion.WithResource("upgradejobs").GroupResource(), "x", errors.New("the object has been modified"))
)

// indexes is a cache of which only the indexes count.
type indexes struct {
	cache.Cache
	found []index
	// err is returned by GetInformer and IndexField in turn.
	err []error
}

type index struct {
	object  client.Object
	field   string
	extract client.IndexerFunc
}

func (i *indexes) next() error {
	if len(i.err) == 0 {
		return nil
	}
	err := i.err[0]
	i.err = i.err[1:]
	return err
}

func (i *indexes) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return nil, i.next()
}

func (i *indexes) IndexField(_ context.Context, o client.Object, field string, extract client.IndexerFunc) error {
	i.found = append(i.found, index{o, field, extract})
	return i.next()
}

// newClusterVersion returns OpenShift's ClusterVersion of a cluster that runs 4.18.1 and could update to 4.18.2.
func newClusterVersion(overrides ...func(*configv1.ClusterVersion)) *configv1.ClusterVersion {
	cv := &configv1.ClusterVersion{
		ObjectMeta: metav1.ObjectMeta{Name: "version", UID: "cv-uid", Generation: 1},
		Spec:       configv1.ClusterVersionSpec{ClusterID: "cluster", Channel: "stable-4.18"},
		Status: configv1.ClusterVersionStatus{
			Desired:          configv1.Release{Version: "4.18.1", Image: "image:4.18.1"},
			History:          []configv1.UpdateHistory{{State: configv1.CompletedUpdate, Version: "4.18.1", Image: "image:4.18.1"}},
			AvailableUpdates: []configv1.Release{{Version: "4.18.2", Image: "image:4.18.2"}},
			Conditions: []configv1.ClusterOperatorStatusCondition{
				{Type: configv1.RetrievedUpdates, Status: configv1.ConditionTrue},
			},
		},
	}
	for _, override := range overrides {
		override(cv)
	}
	return cv
}

// lockedBy puts a holder into the lock.
func lockedBy(holder string) func(*configv1.ClusterVersion) {
	return func(cv *configv1.ClusterVersion) {
		cv.Annotations = map[string]string{v1beta1.UpgradeJobAnnotation: holder}
	}
}

// newJob returns a job as an UpgradeConfig makes it, changed by the overrides.
func newJob(name string, overrides ...func(*v1beta1.UpgradeJob)) *v1beta1.UpgradeJob {
	job := &v1beta1.UpgradeJob{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: namespace, UID: types.UID(name + "-uid"), Generation: 1,
			Finalizers: []string{v1beta1.UpgradeJobFinalizer},
		},
		Spec: v1beta1.UpgradeJobSpec{
			StartAfter:                      metav1.NewTime(startAfter),
			StartBefore:                     metav1.NewTime(startAfter.Add(time.Hour)),
			DesiredVersion:                  &v1beta1.DesiredVersion{Version: "4.18.2", Image: "image:4.18.2"},
			DesiredVersionCheckAvailability: ptr.To(true),
		},
	}
	for _, override := range overrides {
		override(job)
	}
	return job
}

func byHand(job *v1beta1.UpgradeJob) { job.Finalizers = nil }

func withPhase(phase v1beta1.Phase) func(*v1beta1.UpgradeJob) {
	return func(job *v1beta1.UpgradeJob) { job.Status.Phase = phase }
}

func withUpgrader(name string) func(*v1beta1.UpgradeJob) {
	return func(job *v1beta1.UpgradeJob) { job.Spec.Config.Upgrader = name }
}

// expectCondition fails unless there is a condition of that status and reason, with the words in its message.
func expectCondition(t *testing.T, conditions []metav1.Condition, conditionType string, status metav1.ConditionStatus, reason string, words ...string) {
	t.Helper()
	c := meta.FindStatusCondition(conditions, conditionType)
	if c == nil {
		t.Errorf("there is no condition %s, want %s(%s); conditions: %s", conditionType, status, reason, describe(conditions))
		return
	}
	if c.Status != status || c.Reason != reason {
		t.Errorf("%s is %s(%s): %q, want %s(%s)", conditionType, c.Status, c.Reason, c.Message, status, reason)
	}
	for _, w := range words {
		if !strings.Contains(c.Message, w) {
			t.Errorf("%s says %q, want %q in it", conditionType, c.Message, w)
		}
	}
}

// describe lists conditions as type=status(reason): message.
func describe(conditions []metav1.Condition) string {
	var lines []string
	for _, c := range conditions {
		lines = append(lines, fmt.Sprintf("%s=%s(%s): %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return strings.Join(lines, "\n")
}
