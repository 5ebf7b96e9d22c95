// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/appuio/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/cincinnati"
	"github.com/appuio/managed-upgrade-operator/pkg/muo"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

var muoScheme = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1beta1.AddToScheme, v1alpha1.AddToScheme, configv1.Install} {
		utilruntime.Must(add(scheme))
	}
	return scheme
})

// muoWorld is a world for the object of the Managed Upgrade Operator. Its jobs are played by the test.
type muoWorld struct {
	*world
	r    *MUOUpgradeConfigReconciler
	live client.Client
	// upstream answers for the update service.
	upstream http.RoundTripper
}

// newMUOWorld returns a world with the objects, an hour before the start of the upgrade.
func newMUOWorld(t *testing.T, objects ...client.Object) *muoWorld {
	t.Helper()
	found := &indexes{}
	if err := SetupCache(t.Context(), found); err != nil {
		t.Fatal(err)
	}
	w := &muoWorld{world: &world{
		t: t, clock: clocktesting.NewFakePassiveClock(startAfter.Add(-time.Hour)), api: &api{}, recorder: events.NewFakeRecorder(1000),
	}}
	builder := fake.NewClientBuilder().WithScheme(muoScheme()).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.UpgradeConfig{}, &v1beta1.UpgradeJob{}, &configv1.ClusterVersion{})
	for _, index := range found.found {
		builder = builder.WithIndex(index.object, index.field, index.extract)
	}
	store := builder.Build()
	w.client = interceptor.NewClient(store, w.api.intercept(true))
	w.live = interceptor.NewClient(store, w.api.intercept(false))
	w.cluster = openshift.NewCluster(w.client, w.live)
	var err error
	w.mgr, err = ctrl.NewManager(&rest.Config{Host: "http://127.0.0.1:1"}, manager.Options{
		Scheme: muoScheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller:     ctrlconfig.Controller{SkipNameValidation: ptr.To(true)}, // each test has its own
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return w.client.RESTMapper(), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	w.restart()
	return w
}

// restart replaces the reconciler by one that remembers nothing.
func (w *muoWorld) restart() {
	w.t.Helper()
	w.r = setUp(w.world, &MUOUpgradeConfigReconciler{
		Client: w.client, Live: w.live, Cluster: w.cluster, Clock: w.clock, Events: w.recorder,
		Graph: &cincinnati.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) { return w.upstream.RoundTrip(r) })},
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// pass does one pass over the object under test.
func (w *muoWorld) pass() ctrl.Result {
	w.t.Helper()
	return w.reconcile(w.r, newMUOConfig())
}

// config is the object under test as it is now.
func (w *muoWorld) config() *v1alpha1.UpgradeConfig {
	w.t.Helper()
	return get(w.world, newMUOConfig())
}

// edit changes the spec of the object as its owner would.
func (w *muoWorld) edit(apply func(*v1alpha1.UpgradeConfig)) {
	w.t.Helper()
	change(w.world, newMUOConfig(), func(c *v1alpha1.UpgradeConfig) {
		c.Generation++
		apply(c)
	})
}

// job is the only job that there is, and is not being deleted.
func (w *muoWorld) job() *v1beta1.UpgradeJob {
	w.t.Helper()
	var alive []v1beta1.UpgradeJob
	for _, job := range jobsOf(w.world) {
		if job.DeletionTimestamp.IsZero() {
			alive = append(alive, job)
		}
	}
	if len(alive) != 1 {
		w.t.Fatalf("there are %d jobs, want one", len(alive))
	}
	return &alive[0]
}

// expectNoJob fails if there is a job, or one that is being deleted.
func (w *muoWorld) expectNoJob() {
	w.t.Helper()
	if jobs := jobsOf(w.world); len(jobs) > 0 {
		w.t.Errorf("there are jobs: %s and %d more", jobs[0].Name, len(jobs)-1)
	}
}

// play has the job be in a phase, as its own reconciler would.
func (w *muoWorld) play(job *v1beta1.UpgradeJob, phase v1beta1.Phase) {
	w.t.Helper()
	change(w.world, job, func(j *v1beta1.UpgradeJob) {
		j.Status.Phase = phase
		if phase == v1beta1.PhasePending {
			return
		}
		j.Status.FromVersion = "4.18.1"
		j.Status.StartTime = &metav1.Time{Time: startAfter}
		if phase.Finished() {
			j.Status.CompletionTime = &metav1.Time{Time: w.clock.Now()}
		}
	})
}

// letGo removes the finalizer of a job, as its own reconciler does once it has given back everything, and its end if it was deleted.
func (w *muoWorld) letGo(job *v1beta1.UpgradeJob) {
	w.t.Helper()
	if w.gone(job) {
		return
	}
	fresh := get(w.world, job)
	fresh.Finalizers = nil
	if err := w.api.past(func() error { return w.client.Update(w.t.Context(), fresh) }); err != nil {
		w.t.Fatal(err)
	}
}

// letAllGo lets go of every job that is being deleted.
func (w *muoWorld) letAllGo() {
	w.t.Helper()
	for _, job := range jobsOf(w.world) {
		if !job.DeletionTimestamp.IsZero() {
			w.letGo(&job)
		}
	}
}

// expectHistory fails unless the history has these entries, as "version phase".
func (w *muoWorld) expectHistory(when string, want ...string) {
	w.t.Helper()
	var got []string
	for _, h := range w.config().Status.History {
		got = append(got, h.Version+" "+string(h.Phase))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("%s: history (-want +got):\n%s", when, diff)
	}
}

// expectFirst fails unless the condition that people see is this one, with the words in its message.
func (w *muoWorld) expectFirst(when, conditionType string, status metav1.ConditionStatus, reason string, words ...string) {
	w.t.Helper()
	conditions := w.config().Status.History[0].Conditions
	if len(conditions) == 0 {
		w.t.Fatalf("%s: there are no conditions", when)
	}
	c := conditions[0]
	if c.Type != conditionType || c.Status != status || c.Reason != reason {
		w.t.Errorf("%s: got %s=%s(%s): %s, want %s=%s(%s)", when, c.Type, c.Status, c.Reason, c.Message, conditionType, status, reason)
	}
	for _, word := range words {
		if !strings.Contains(c.Message, word) {
			w.t.Errorf("%s: %s says %q, want %q in it", when, c.Type, c.Message, word)
		}
	}
}

// newMUOConfig returns an object that wants 4.18.2 at startAfter, changed by the overrides.
func newMUOConfig(overrides ...func(*v1alpha1.UpgradeConfig)) *v1alpha1.UpgradeConfig {
	config := &v1alpha1.UpgradeConfig{
		ObjectMeta: metav1.ObjectMeta{
			Name: v1alpha1.UpgradeConfigName, Namespace: namespace, UID: "muo-uid", Generation: 1, CreationTimestamp: metav1.NewTime(startAfter.Add(-24 * time.Hour)),
		},
		Spec: v1alpha1.UpgradeConfigSpec{
			Type: v1alpha1.OSD, UpgradeAt: startAfter.Format(time.RFC3339), PDBForceDrainTimeout: 60,
			Desired: v1alpha1.Update{Channel: "stable-4.18", Version: "4.18.2"},
		},
	}
	for _, override := range overrides {
		override(config)
	}
	return config
}

// wanting has the object want another version of the cluster's channel.
func wanting(version string) func(*v1alpha1.UpgradeConfig) {
	return func(c *v1alpha1.UpgradeConfig) { c.Spec.Desired.Version = version }
}

func upgradeAt(text string) func(*v1alpha1.UpgradeConfig) {
	return func(c *v1alpha1.UpgradeConfig) { c.Spec.UpgradeAt = text }
}

// offering has the cluster offer these versions.
func offering(versions ...string) func(*configv1.ClusterVersion) {
	return func(cv *configv1.ClusterVersion) {
		cv.Status.AvailableUpdates = nil
		for _, v := range versions {
			cv.Status.AvailableUpdates = append(cv.Status.AvailableUpdates, configv1.Release{Version: v, Image: "image:" + v})
		}
	}
}

// muoSettings returns the ConfigMap with a text.
func muoSettings(text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: muo.ConfigMapName, Namespace: namespace}, Data: map[string]string{muo.ConfigMapKey: text}}
}

// set changes the ConfigMap.
func (w *muoWorld) set(apply func(*corev1.ConfigMap)) {
	w.t.Helper()
	settings := get(w.world, muoSettings(""))
	apply(settings)
	if err := w.api.past(func() error { return w.client.Update(w.t.Context(), settings) }); err != nil {
		w.t.Fatal(err)
	}
}
