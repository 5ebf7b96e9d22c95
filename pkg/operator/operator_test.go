// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	apiserverv1 "github.com/openshift/api/apiserver/v1"
	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/appuio/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/muo"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/upgrader"
)

func TestNewScheme(t *testing.T) {
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []schema.GroupVersionKind{
		v1beta1.GroupVersion.WithKind("ClusterVersion"),
		v1beta1.GroupVersion.WithKind("NodeForceDrainList"),
		v1beta1.GroupVersion.WithKind("NodeForceDrain"),
		v1beta1.GroupVersion.WithKind("UpgradeConfig"),
		v1beta1.GroupVersion.WithKind("UpgradeConfigList"),
		v1beta1.GroupVersion.WithKind("UpgradeJob"),
		v1beta1.GroupVersion.WithKind("UpgradeJobList"),
		v1beta1.GroupVersion.WithKind("UpgradeJobHookList"),
		v1beta1.GroupVersion.WithKind("UpgradeSuspensionWindow"),
		v1beta1.GroupVersion.WithKind("UpgradeSuspensionWindowList"),
		v1beta1.GroupVersion.WithKind("UpgraderList"),
		v1alpha1.GroupVersion.WithKind("UpgradeConfigList"),
		machinev1beta1.GroupVersion.WithKind("MachineSetList"),
		configv1.GroupVersion.WithKind("ClusterVersion"),
		configv1.GroupVersion.WithKind("ClusterOperatorList"),
		mcfgv1.GroupVersion.WithKind("MachineConfigPoolList"),
		mcfgv1.GroupVersion.WithKind("MachineConfigNode"),
		batchv1.SchemeGroupVersion.WithKind("JobList"),
		corev1.SchemeGroupVersion.WithKind("NodeList"),
		corev1.SchemeGroupVersion.WithKind("PodList"),
		policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudgetList"),
		apiserverv1.GroupVersion.WithKind("APIRequestCountList"),
		{Group: "meta.k8s.io", Version: "v1", Kind: "PartialObjectMetadata"},
	} {
		if !scheme.Recognizes(kind) {
			t.Errorf("the scheme does not know %s", kind)
		}
	}
}

// newOptions returns options that are complete, changed by the override.
func newOptions(override func(*Options)) Options {
	o := Options{
		Namespace: "upgrades", OperatorNamespace: "upgrades", HealthProbeAddress: "0",
		Upgraders: &upgrader.Registry{}, Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0)),
	}
	if override != nil {
		override(&o)
	}
	return o
}

func TestNewRefuses(t *testing.T) {
	bare := &apiServer{ServeMux: http.NewServeMux()}
	bare.answer(t, "/api", &metav1.APIVersions{Versions: []string{"v1"}})
	bare.answer(t, "/apis", &metav1.APIGroupList{})
	bare.answer(t, "/api/v1", &metav1.APIResourceList{GroupVersion: "v1"})
	for _, tc := range []struct {
		reason   string
		override func(*Options)
		config   *rest.Config
		want     string
	}{
		{"no operator namespace", func(o *Options) { o.OperatorNamespace = "" }, &rest.Config{}, "OperatorNamespace"},
		{"no upgraders", func(o *Options) { o.Upgraders = nil }, &rest.Config{}, "Upgraders"},
		{"no clock", func(o *Options) { o.Clock = nil }, &rest.Config{}, "Clock"},
		{"no configuration", nil, nil, "build the manager: "},
		{"no API server", nil, &rest.Config{Host: "http://127.0.0.1:1"}, "127.0.0.1:1"},
		{"a cluster that is not OpenShift", nil, &rest.Config{Host: serve(t, bare)}, "the operator needs an OpenShift cluster, and the CRDs of deploy/crds"},
		{"a server that is no API server", nil, &rest.Config{Host: serve(t, http.NotFoundHandler())}, "could not find the requested resource"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			mgr, err := New(t.Context(), tc.config, newOptions(tc.override))
			if err == nil || !strings.Contains(err.Error(), tc.want) || mgr != nil {
				t.Errorf("got manager %v, error %v, want an error with %q", mgr, err, tc.want)
			}
		})
	}
}

func TestNew(t *testing.T) {
	// One test, because the names of the reconcilers may be used only once in a process.
	api := newAPIServer(t)
	probes := freeAddress(t)
	mgr, err := New(t.Context(), &rest.Config{Host: serve(t, api)}, newOptions(func(o *Options) { o.HealthProbeAddress = probes }))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error)
	go func() { stopped <- mgr.Start(ctx) }()

	expectProbe(t, "http://"+probes+"/healthz", http.StatusOK)
	expectProbe(t, "http://"+probes+"/readyz", http.StatusInternalServerError)
	close(api.ready)
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		t.Fatal("the cache does not sync")
	}
	expectProbe(t, "http://"+probes+"/readyz", http.StatusOK)

	stop()
	if err := <-stopped; err != nil {
		t.Errorf("the manager stopped with %v", err)
	}
}

// freeAddress is one on which nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// expectProbe fails unless the probe answers so, once somebody listens there.
func expectProbe(t *testing.T, url string, want int) {
	t.Helper()
	for {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if errors.Is(err, syscall.ECONNREFUSED) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s answers %d, want %d", url, response.StatusCode, want)
		}
		return
	}
}

func TestCacheKeepsLittle(t *testing.T) {
	options := cacheOptions("upgrades", "upgrades")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}}}}
	if trimmed, err := options.DefaultTransform(pod); err != nil || len(trimmed.(*corev1.Pod).ManagedFields) != 0 {
		t.Errorf("managed fields are kept (%v)", err)
	}
	trimmed := 0
	for o, by := range options.ByObject {
		if _, hookJobs := o.(*batchv1.Job); by.Transform == nil || hookJobs {
			continue
		}
		trimmed++
		kind := o.GetObjectKind().GroupVersionKind().Kind
		bulky := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: "n", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}},
			Annotations: map[string]string{"bulky": strings.Repeat("x", 1000), openshift.ReleaseImageVersionAnnotation: "4.18.1"},
		}}
		got, err := by.Transform(bulky)
		if err != nil {
			t.Fatal(err)
		}
		if mc := got.(*metav1.PartialObjectMetadata); mc.Name != "n" || len(mc.ManagedFields) != 0 || len(mc.Annotations) != 1 {
			t.Errorf("%s: kept %v", kind, mc)
		}
		if tombstone, err := by.Transform("something else"); err != nil || tombstone != "something else" {
			t.Errorf("%s: what is no metadata became %v (%v)", kind, tombstone, err)
		}
	}
	if trimmed == 0 {
		t.Error("nothing is trimmed: rendered machine configs are big")
	}
}

// The pods of a hook have the whole UpgradeJob in their environment, and nobody reads it here.
func TestCacheKeepsNoPodTemplates(t *testing.T) {
	for _, namespace := range []string{"upgrades", ""} {
		found := false
		for o, by := range cacheOptions(namespace, "upgrades").ByObject {
			if _, ok := o.(*batchv1.Job); !ok {
				continue
			}
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
				Name: "backup", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}}, Finalizers: []string{v1beta1.HookJobFinalizer},
			}}
			job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "backup"}}
			got, err := by.Transform(job)
			if err != nil {
				t.Fatal(err)
			}
			if job := got.(*batchv1.Job); len(job.Spec.Template.Spec.Containers) > 0 || len(job.ManagedFields) > 0 || len(job.Finalizers) != 1 {
				t.Errorf("kept %+v", job)
			}
			if by.Label == nil || by.Label.Matches(labels.Set{"app": "theirs"}) || !by.Label.Matches(labels.Set{v1beta1.HookUpgradeJobLabel: "job"}) {
				t.Errorf("namespace %q: got the selector %v, want the Jobs of hooks only", namespace, by.Label)
			}
			found = true
		}
		if !found {
			t.Errorf("namespace %q: nothing said of Jobs", namespace)
		}
	}
}

func TestCacheHasOneNamespaceOrAll(t *testing.T) {
	kinds := []string{"ClusterVersion", "ConfigMap", "Job", "NodeForceDrain", "UpgradeConfig", "UpgradeConfig", "UpgradeJob", "UpgradeJobHook", "UpgradeSuspensionWindow"}
	for namespace, want := range map[string][]string{"upgrades": kinds, "": nil} {
		var got []string
		for o, by := range cacheOptions(namespace, namespace).ByObject {
			if _, ok := o.(*corev1.ConfigMap); ok && (by.Field == nil || by.Field.String() != "metadata.name="+muo.ConfigMapName) {
				t.Errorf("namespace %q: the ConfigMaps that are kept are %v", namespace, by.Field)
			}
			if len(by.Namespaces) == 0 {
				continue
			}
			got = append(got, reflect.TypeOf(o).Elem().Name())
			if _, ok := by.Namespaces[namespace]; !ok || len(by.Namespaces) != 1 {
				t.Errorf("%T is watched in %v, want %q", o, by.Namespaces, namespace)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("namespace %q restricts %v, want %v", namespace, got, want)
		}
	}
}

func TestOrDefault(t *testing.T) {
	if got := orDefault(0, LeaseDuration); got != LeaseDuration {
		t.Errorf("zero stands for %s, want the default", got)
	}
	if got := orDefault(time.Second, LeaseDuration); got != time.Second {
		t.Errorf("got %s, want what was given", got)
	}
}

// serve starts a server for the duration of the test and returns its address.
func serve(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// apiServer knows the kinds of the operator and has no objects. It lists them once ready is closed.
type apiServer struct {
	*http.ServeMux
	ready chan struct{}
}

func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	s := &apiServer{http.NewServeMux(), make(chan struct{})}
	groups := &metav1.APIGroupList{}
	for gv, kinds := range map[schema.GroupVersion][]string{
		batchv1.SchemeGroupVersion: {"Job"},
		v1beta1.GroupVersion:       {"ClusterVersion", "NodeForceDrain", "UpgradeConfig", "UpgradeJob", "UpgradeJobHook", "UpgradeSuspensionWindow", "Upgrader"},
		v1alpha1.GroupVersion:      {"UpgradeConfig"},
		configv1.GroupVersion:      {"ClusterVersion", "ClusterOperator"},
		mcfgv1.GroupVersion:        {"MachineConfigPool", "MachineConfig"},
		{Version: "v1"}:            {"Node", "ConfigMap"},
	} {
		base := "/apis/" + gv.String()
		if gv.Group == "" {
			base = "/api/" + gv.Version
		}
		list := &metav1.APIResourceList{GroupVersion: gv.String()}
		for _, kind := range kinds {
			namespaced := slices.Contains([]schema.GroupVersion{v1beta1.GroupVersion, v1alpha1.GroupVersion, batchv1.SchemeGroupVersion}, gv) && kind != "Upgrader" || kind == "ConfigMap"
			resource := metav1.APIResource{
				Name: strings.ToLower(kind) + "s", Kind: kind, Namespaced: namespaced, Verbs: metav1.Verbs{"get", "list", "watch"},
			}
			list.APIResources = append(list.APIResources, resource)
			s.HandleFunc("GET "+base+"/"+resource.Name, s.list(gv, kind))
			s.HandleFunc("GET "+base+"/namespaces/upgrades/"+resource.Name, s.list(gv, kind))
		}
		s.answer(t, base, list)
		if gv.Group != "" {
			version := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
			group := metav1.APIGroup{Name: gv.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}
			groups.Groups = append(groups.Groups, group)
			s.answer(t, "/apis/"+gv.Group, group)
		}
	}
	s.answer(t, "/api", &metav1.APIVersions{Versions: []string{"v1"}})
	s.answer(t, "/apis", groups)
	return s
}

func (s *apiServer) answer(t *testing.T, path string, body any) {
	t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	s.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(data)
	})
}

// list answers with an empty list, and to a watch with silence.
func (s *apiServer) list(gv schema.GroupVersion, kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		switch {
		case query.Get("sendInitialEvents") != "": // the client falls back to a list and a watch
			http.Error(w, "not supported", http.StatusUnprocessableEntity)
			return
		case query.Get("watch") != "":
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		select {
		case <-s.ready:
		case <-r.Context().Done():
			return
		}
		list := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: gv.String(), Kind: kind + "List"}}
		if strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadataList") {
			list.TypeMeta = metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}
		}
		list.ResourceVersion, list.Items = "1", []metav1.PartialObjectMetadata{}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list)
	}
}

// The ClusterVersion that is synced stands in the operator's own namespace, whatever namespace is watched.
func TestCacheHasTheClusterVersionOfTheOperator(t *testing.T) {
	for o, by := range cacheOptions("upgrades", "operator").ByObject {
		_, isClusterVersion := o.(*v1beta1.ClusterVersion)
		if _, own := by.Namespaces["operator"]; own != isClusterVersion {
			t.Errorf("%T: cached in %v", o, by.Namespaces)
		}
	}
}
