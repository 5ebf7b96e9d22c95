// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// fakeThanos answers as Thanos and Alertmanager behind OpenShift's routes do.
type fakeThanos struct {
	*httptest.Server
	caFile string

	mutex sync.Mutex
	// alerts of severity critical that are firing.
	alerts []string
	// status of all answers; 200 if zero.
	status int
	// silencesStatus is the status of the answers of Alertmanager alone; 200 if zero.
	silencesStatus int
	// authorizations of the requests, without doubles.
	authorizations map[string]bool
}

func newFakeThanos(t *testing.T) *fakeThanos {
	t.Helper()
	f := &fakeThanos{authorizations: map[string]bool{}}
	f.Server = httptest.NewTLSServer(f)
	t.Cleanup(f.Close)
	f.caFile = filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(f.caFile, f.certificate(), 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fakeThanos) certificate() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw})
}

func (f *fakeThanos) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.authorizations[r.Header.Get("Authorization")] = true
	if f.status != 0 {
		w.WriteHeader(f.status)
		return
	}
	if strings.HasPrefix(r.URL.Path, "/api/v2/alerts") {
		if f.silencesStatus != 0 {
			w.WriteHeader(f.silencesStatus)
			return
		}
		fmt.Fprint(w, "[]")
		return
	}
	samples := []map[string]any{{"metric": map[string]string{}, "value": []any{1, "1"}}}
	for _, name := range f.alerts {
		samples = append(samples, map[string]any{
			"metric": map[string]string{"__name__": "ALERTS", "alertname": name, "alertstate": "firing", "severity": "critical", "namespace": "openshift-etcd"}, "value": []any{1, "1"},
		})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": map[string]any{"resultType": "vector", "result": samples}})
}

// seen tells whether a request came with the header, and clears what was seen.
func (f *fakeThanos) seen(authorization string) bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	seen := f.authorizations[authorization]
	f.authorizations = map[string]bool{}
	return seen
}

// route of OpenShift's monitoring to the server.
func (f *fakeThanos) route(name string) client.Object {
	route := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"host": strings.TrimPrefix(f.URL, "https://")}}}
	route.SetGroupVersionKind(routeKind)
	route.SetNamespace("openshift-monitoring")
	route.SetName(name)
	return route
}

// newCheckWorld is a healthy cluster with those objects, and the routes to the server.
func newCheckWorld(t *testing.T, thanos *fakeThanos, objects ...client.Object) *actWorld {
	t.Helper()
	w := newActWorld(t)
	scheme := w.c.Scheme()
	scheme.AddKnownTypeWithName(routeKind, &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(routeKind.GroupVersion().WithKind("RouteList"), &unstructured.UnstructuredList{})
	if thanos != nil {
		objects = append(objects, thanos.route("thanos-querier"), thanos.route("alertmanager-main"))
	}
	objects = append(objects, ofPool("master"), ofPool("worker"), openshifttest.Node("worker-0", "worker"))
	w.c = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1beta1.UpgradeJob{}).WithObjects(objects...).Build()
	return w
}

// expectSecretly is expect, and wants the token nowhere.
func (w *actWorld) expectSecretly(file string, want int, args ...string) {
	w.t.Helper()
	if text, _ := w.run(args...); strings.Contains(text, "of-the-user") || strings.Contains(text, "of-the-file") {
		w.t.Errorf("the output has the token in it:\n%s", text)
	}
	w.expect(file, want, args...)
}

func TestCheckHealthy(t *testing.T) {
	thanos := newFakeThanos(t)
	certificates := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-config-managed", Name: "default-ingress-cert"}, Data: map[string]string{"ca-bundle.crt": string(thanos.certificate())}}
	w := newCheckWorld(t, thanos, openshifttest.ClusterVersion(), openshifttest.ClusterOperator("etcd"), actConfig(), certificates)
	w.expectSecretly("check-healthy", ExitOK, "check")
	if !thanos.seen("Bearer of-the-user") {
		t.Error("Prometheus was not asked with the token of the kubeconfig")
	}
	w.expectSecretly("check-healthy-yaml", ExitOK, "check", "weekly", "-o", "yaml")
	w.expectSecretly("check-post", ExitOK, "check", "--post")
	w.expectSecretly("check-unknown", ExitFailed, "check", "daily")
	w.expectSecretly("check-unknown-job", ExitFailed, "check", "--job", "daily-1")
	w.expectSecretly("check-usage", ExitUsage, "check", "weekly", "--job", "daily-1")
	w.expectSecretly("check-no-file", ExitUsage, "check", "--prometheus-token-file", "nowhere")
}

func TestCheckFindings(t *testing.T) {
	thanos := newFakeThanos(t)
	thanos.alerts = []string{"etcdMembersDown", "KubeAPIDown"}
	sick := openshifttest.ClusterOperator("etcd",
		openshifttest.OperatorCondition(configv1.OperatorDegraded, configv1.ConditionTrue, "Members", "member 2 is gone"),
		openshifttest.OperatorCondition(configv1.OperatorUpgradeable, configv1.ConditionFalse, "Members", "wait for 3 members"))
	config := actConfig(func(c *v1beta1.UpgradeConfig) {
		c.Spec.JobTemplate.Spec.Config.PreUpgradeHealthChecks.ExcludeAlerts = []v1beta1.ExcludedAlert{{AlertName: "KubeAPIDown"}}
	})
	job := actJob(config, actNow, v1beta1.PhasePending, func(j *v1beta1.UpgradeJob) { j.Spec.DesiredVersion = &v1beta1.DesiredVersion{Version: "4.19.0"} })
	w := newCheckWorld(t, thanos, openshifttest.ClusterVersion(), sick, config, job)
	trust := []string{"--prometheus-ca-file", thanos.caFile}
	for name, args := range map[string][]string{
		"check-findings": {"check", "weekly"}, "check-findings-json": {"check", "weekly", "-o", "json"},
		"check-minor": {"check", "weekly", "--to", "4.19.0"}, "check-job": {"check", "--job", job.Name}, "check-findings-post": {"check", "--post"},
	} {
		t.Run(name, func(t *testing.T) {
			w.t = t
			text, status := w.run(append(args, trust...)...)
			if status != ExitFailed {
				t.Errorf("status %d, want 1", status)
			}
			golden(t, "act/"+name+".txt", strings.ReplaceAll(text, thanos.caFile, "CA"))
		})
	}
}

// TestCheckFailsClosed: what the user may not see, or nobody answers, is a finding.
func TestCheckFailsClosed(t *testing.T) {
	thanos := newFakeThanos(t)
	healthy := []client.Object{openshifttest.ClusterVersion(), openshifttest.ClusterOperator("etcd"), actConfig()}
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("of-the-file"), 0o600); err != nil {
		t.Fatal(err)
	}
	forbidNodes := func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		if _, ok := list.(*corev1.NodeList); ok {
			return denied("list", "nodes")
		}
		return c.List(ctx, list, options...)
	}
	answerRoutes := func(answer error) func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if _, ok := object.(*unstructured.Unstructured); ok {
				return answer
			}
			return c.Get(ctx, key, object, options...)
		}
	}
	for _, tc := range []struct {
		name  string
		setUp func(*actWorld)
		args  []string
		want  string
		// asked is the authorization that Prometheus saw; empty for none.
		asked string
	}{
		{"nodes forbidden", func(w *actWorld) { w.funcs.List = forbidNodes }, nil, `Forbidden  Nodes cannot be answered: you may not: nodes is forbidden: User "me" cannot list resource "nodes" at the cluster scope`, "Bearer of-the-user"},
		{"client certificate", func(w *actWorld) { w.writeKubeconfig("https://api.example.com", "username: me, password: secret") }, nil, "the kubeconfig has no token to ask Prometheus with (a client certificate does not do): give one by --prometheus-token-file", ""},
		{"refused", func(*actWorld) { thanos.status = http.StatusForbidden }, nil, "Prometheus answers 403 Forbidden: your token does not allow it (ClusterRole cluster-monitoring-view does)", "Bearer of-the-user"},
		{"hostile", func(*actWorld) { thanos.alerts = []string{"x\x1b]0;gotcha\a\nhealthy: all"} }, nil, "critical alert x]0;gotcha healthy: all is firing", "Bearer of-the-user"},
		{"silences refused", func(*actWorld) { thanos.alerts, thanos.silencesStatus = []string{"EtcdSlow"}, http.StatusForbidden }, nil,
			"Alertmanager answers 403 Forbidden: your token does not allow it (Role monitoring-alertmanager-view in openshift-monitoring does)", "Bearer of-the-user"},
		{"routes forbidden", func(w *actWorld) { w.funcs.Get = answerRoutes(denied("get", "routes")) }, nil, "by route thanos-querier in namespace openshift-monitoring, but you may not get it", ""},
		{"no routes", func(w *actWorld) {
			w.funcs.Get = answerRoutes(&meta.NoKindMatchError{GroupKind: routeKind.GroupKind()})
		}, nil, "but the cluster has no routes: give --prometheus-url", ""},
		{"certificate not trusted", func(*actWorld) {}, []string{"--prometheus-ca-file", ""}, "Prometheus cannot be asked: tls: failed to verify certificate", ""},
		{"token file refused", func(*actWorld) { thanos.status = http.StatusUnauthorized }, []string{"--prometheus-token-file", token}, "Prometheus answers 401 Unauthorized: your token does not allow it", "Bearer of-the-file"},
		{"another Alertmanager alone", func(*actWorld) {}, []string{"--alertmanager-url", thanos.URL}, "--alertmanager-url can be given only together with --prometheus-url", ""},
		{"another Alertmanager alone, with a token", func(*actWorld) {}, []string{"--alertmanager-url", thanos.URL, "--prometheus-token-file", token}, "--alertmanager-url can be given only", ""},
		{"certificates forbidden", func(w *actWorld) { w.funcs.Get = forbidCertificates }, []string{"--prometheus-ca-file", ""},
			"failed to verify certificate: x509: certificate signed by unknown authority: you may not get ConfigMap openshift-config-managed/default-ingress-cert, which has the CA certificates of OpenShift's ingress: give them by --prometheus-ca-file", ""},
		{"certificates of another Prometheus", func(*actWorld) {}, []string{"--prometheus-ca-file", "", "--prometheus-url", thanos.URL},
			"failed to verify certificate: x509: certificate signed by unknown authority: give the CA certificates by --prometheus-ca-file", ""},
		{"another Prometheus gets no token", func(*actWorld) { thanos.status = http.StatusUnauthorized }, []string{"--prometheus-url", thanos.URL}, "Prometheus answers 401 Unauthorized", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			thanos.status, thanos.silencesStatus, thanos.alerts = 0, 0, nil
			thanos.seen("")
			w := newCheckWorld(t, thanos, healthy...)
			tc.setUp(w)
			text, status := w.run(append([]string{"check", "weekly", "--prometheus-ca-file", thanos.caFile}, tc.args...)...)
			if status == ExitOK || !strings.Contains(text, tc.want) {
				t.Errorf("status %d, want an error or findings, and %q:\n%s", status, tc.want, text)
			}
			if strings.Contains(text, "of-the-user") || strings.Contains(text, "of-the-file") {
				t.Errorf("the output has the token in it:\n%s", text)
			}
			if tc.asked != "" && !thanos.seen(tc.asked) {
				t.Error("Prometheus was asked without that token")
			} else if tc.asked == "" && (thanos.seen("Bearer of-the-user") || thanos.seen("Bearer of-the-file")) {
				t.Error("a token was sent")
			}
		})
	}
}

// forbidCertificates is an API server that does not let the user read the certificates of the ingress.
func forbidCertificates(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if _, ok := object.(*corev1.ConfigMap); ok {
		return denied("get", "configmaps")
	}
	return c.Get(ctx, key, object, options...)
}

// TestCheckTrustsTheKubeconfig: where one CA has signed the certificates of the API server and of the ingress, the user need not read that of the ingress.
func TestCheckTrustsTheKubeconfig(t *testing.T) {
	thanos := newFakeThanos(t)
	w := newCheckWorld(t, thanos, openshifttest.ClusterVersion(), openshifttest.ClusterOperator("etcd"), actConfig())
	w.funcs.Get = forbidCertificates
	content, err := os.ReadFile(w.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	trusting := strings.Replace(string(content), "cluster: {", fmt.Sprintf("cluster: {certificate-authority: %q, ", thanos.caFile), 1)
	if err := os.WriteFile(w.kubeconfig, []byte(trusting), 0o600); err != nil {
		t.Fatal(err)
	}
	text, status := w.run("check", "weekly")
	if status != ExitOK || !strings.Contains(text, "healthy: ") || strings.Contains(text, "Prometheus") || !thanos.seen("Bearer of-the-user") {
		t.Errorf("status %d:\n%s", status, text)
	}
}

func TestCheckOfWhat(t *testing.T) {
	thanos := newFakeThanos(t)
	other := actConfig(func(c *v1beta1.UpgradeConfig) { c.Name, c.UID = "other", "uid-other" })
	w := newCheckWorld(t, thanos, openshifttest.ClusterVersion(), openshifttest.ClusterOperator("etcd"), actConfig(), other)
	w.expect("check-several", ExitUsage, "check")
	w = newCheckWorld(t, thanos, openshifttest.ClusterVersion(openshifttest.Available()), openshifttest.ClusterOperator("etcd"))
	text, status := w.run("check", "--prometheus-ca-file", thanos.caFile)
	if status != ExitOK || !strings.Contains(text, "healthy: ") || !strings.Contains(text, "of the defaults") || !strings.Contains(text, "note: the cluster offers no update") {
		t.Errorf("status %d:\n%s", status, text)
	}
	w = newCheckWorld(t, thanos, openshifttest.ClusterVersion(), actConfig(func(c *v1beta1.UpgradeConfig) { c.Spec.JobTemplate.Spec.Config.Upgrader = "Mine" }))
	w.expect("check-no-upgrader", ExitFailed, "check", "weekly")
	w = newCheckWorld(t, nil, openshifttest.ClusterVersion(), openshifttest.ClusterOperator("etcd"), actConfig(func(c *v1beta1.UpgradeConfig) {
		c.Spec.JobTemplate.Spec.Config.PreUpgradeHealthChecks.WhenUnavailable = v1beta1.UnavailableIgnore
	}))
	w.expect("check-ignored", ExitOK, "check", "weekly")
	// An upgrader without a check after the upgrade: nothing is known.
	w = newCheckWorld(t, thanos, openshifttest.ClusterVersion(), actConfig(func(c *v1beta1.UpgradeConfig) { c.Spec.JobTemplate.Spec.Config.Upgrader = "bold" }),
		&v1beta1.Upgrader{ObjectMeta: metav1.ObjectMeta{Name: "bold"}, Spec: v1beta1.UpgraderSpec{Steps: []v1beta1.UpgraderStep{
			{Step: steps.ConditionStartHooksCompleted}, {Step: steps.ConditionClusterHealthyBeforeUpgrade}, {Step: steps.ConditionUpdateAvailable},
			{Step: steps.ConditionUpgradeCommenced}, {Step: steps.ConditionControlPlaneUpgraded}, {Step: steps.ConditionMachineConfigPoolsUpgraded},
		}}})
	w.expect("check-nothing", ExitFailed, "check", "weekly", "--post")
	w = newCheckWorld(t, nil)
	w.expect("check-not-openshift", ExitFailed, "check", "weekly")
}
