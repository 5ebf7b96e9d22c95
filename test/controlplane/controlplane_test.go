// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/test/programs"
)

// namespace and robot are the namespace and the service account of the test.
const (
	namespace = "test"
	robot     = "robot"
)

// widgets is a kind that only Options.CRDs can have brought.
var widgets = &apiextensionsv1.CustomResourceDefinition{
	ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"},
	Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "example.com",
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
		Scope: apiextensionsv1.NamespaceScoped,
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: "v1", Served: true, Storage: true,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
		}},
	},
}

// TestControlPlane goes once through the life of a control plane. The parts share
// one, because each start costs seconds, and run in this order.
func TestControlPlane(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "controlplane")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c, err := Start(ctx, Options{
		Dir:                      dir,
		Progress:                 t.Output(),
		Audit:                    true,
		CRDs:                     []*apiextensionsv1.CustomResourceDefinition{widgets},
		RequireControllerManager: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	admin := newClient(t, c.Config())

	t.Run("a service account has the rights that RBAC gives it", func(t *testing.T) {
		testServiceAccount(t, c, admin)
	})
	t.Run("the audit log tells every request", func(t *testing.T) {
		testAudit(t, c)
	})
	t.Run("garbage is collected", func(t *testing.T) {
		testGarbageCollection(t, admin)
	})
	t.Run("setting blockOwnerDeletion needs leave to update finalizers", func(t *testing.T) {
		testOwnerReferencesPermission(t, c, admin)
	})
	t.Run("kubectl has the version of the server", func(t *testing.T) {
		testKubectl(t, c)
	})
	t.Run("the API server goes away and comes back", func(t *testing.T) {
		testRestartAPIServer(t, c, admin)
	})
	t.Run("garbage is collected after that", func(t *testing.T) {
		testGarbageCollection(t, admin)
	})
	t.Run("garbage is collected after a restart of the controller manager", func(t *testing.T) {
		must(t, c.RestartControllerManager(t.Context()))
		testGarbageCollection(t, admin)
	})
	t.Run("nothing runs after the end of the context", func(t *testing.T) {
		testEnd(t, c, cancel)
	})
}

func testServiceAccount(t *testing.T, c *ControlPlane, admin client.Client) {
	must(t, admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	must(t, admin.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: meta(robot)}))
	must(t, admin.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta(robot),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: robot}},
	}))

	user := newClient(t, robotConfig(t, c))
	eventually(t, "the aggregated role edit", func(ctx context.Context) error {
		return user.List(ctx, &corev1.ConfigMapList{}, client.InNamespace(namespace))
	})
	if err := user.List(t.Context(), &corev1.NodeList{}); !apierrors.IsForbidden(err) {
		t.Errorf("list nodes without leave: got %v, want Forbidden", err)
	}
}

func testAudit(t *testing.T, c *ControlPlane) {
	eventually(t, "the refused request in the audit log", func(context.Context) error {
		events, err := c.AuditEvents()
		if err != nil {
			return err
		}
		for _, event := range events {
			if event.User.Username == "system:serviceaccount:test:robot" && event.Verb == "list" &&
				event.ObjectRef.Resource == "nodes" && event.ResponseStatus.Code == 403 &&
				event.Stage == AuditResponseComplete && !event.StageTimestamp.IsZero() {
				return nil
			}
		}
		return fmt.Errorf("not among %d events", len(events))
	})
}

// testGarbageCollection has an owner of a kind that came by Options.CRDs.
func testGarbageCollection(t *testing.T, admin client.Client) {
	owner := &unstructured.Unstructured{}
	owner.SetAPIVersion("example.com/v1")
	owner.SetKind("Widget")
	owner.SetNamespace(namespace)
	owner.SetName("owner")
	must(t, admin.Create(t.Context(), owner))
	owned := &corev1.ConfigMap{ObjectMeta: meta("owned")}
	owned.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(),
	}}
	must(t, admin.Create(t.Context(), owned))
	must(t, admin.Delete(t.Context(), owner))
	deleted := time.Now()
	eventually(t, "the owned ConfigMap to be gone", func(ctx context.Context) error {
		err := admin.Get(ctx, client.ObjectKeyFromObject(owned), &corev1.ConfigMap{})
		if err == nil {
			return errors.New("it is still there")
		}
		return client.IgnoreNotFound(err)
	})
	t.Logf("collected after %s", time.Since(deleted).Round(time.Millisecond))
}

// testOwnerReferencesPermission proves an admission plugin that is not among the
// defaults: the role edit gives no rights on nodes.
func testOwnerReferencesPermission(t *testing.T, c *ControlPlane, admin client.Client) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	must(t, admin.Create(t.Context(), node))
	owned := &corev1.ConfigMap{ObjectMeta: meta("blocking")}
	owned.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID, BlockOwnerDeletion: ptr.To(true),
	}}
	if err := newClient(t, robotConfig(t, c)).Create(t.Context(), owned); !apierrors.IsForbidden(err) {
		t.Errorf("block the deletion of a node without leave: got %v, want Forbidden", err)
	}
}

func testKubectl(t *testing.T, c *ControlPlane) {
	output, err := exec.CommandContext(t.Context(), c.Kubectl(), "--kubeconfig", c.Kubeconfig(), "version").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	versions := map[string]string{}
	for line := range strings.Lines(string(output)) {
		name, version, _ := strings.Cut(strings.TrimSpace(line), " Version: ")
		versions[name] = version
	}
	if versions["Client"] != versions["Server"] || !strings.HasPrefix(versions["Server"], "v1.") {
		t.Errorf("client and server differ:\n%s", output)
	}
}

func testRestartAPIServer(t *testing.T, c *ControlPlane, admin client.Client) {
	get := func() error {
		return admin.Get(t.Context(), types.NamespacedName{Name: namespace}, &corev1.Namespace{})
	}
	begin := time.Now()
	must(t, c.StopAPIServer())
	t.Logf("stopped in %s", time.Since(begin).Round(time.Millisecond))
	if err := get(); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("request while the API server is away: got %v, want a refused connection", err)
	}
	if err := c.StopAPIServer(); err != nil {
		t.Errorf("second StopAPIServer: %v", err)
	}
	begin = time.Now()
	must(t, c.StartAPIServer(t.Context()))
	t.Logf("started again in %s", time.Since(begin).Round(time.Millisecond))
	must(t, get())
	if err := c.StartAPIServer(t.Context()); err == nil {
		t.Error("StartAPIServer while it runs: no error")
	}
}

// testEnd ends the context, and calls Stop only to wait for what that does.
func testEnd(t *testing.T, c *ControlPlane, cancel context.CancelFunc) {
	programs := []*programs.Process{c.etcd, c.apiServer, c.controllerManager}
	for _, p := range programs {
		if err := syscall.Kill(p.PID(), 0); err != nil {
			t.Errorf("%s before the end: %v", p.Name(), err)
		}
	}
	cancel()
	for _, p := range programs {
		select {
		case <-p.Ended():
		case <-time.After(30 * time.Second):
			t.Fatalf("%s runs on after the end of the context", p.Name())
		}
		if err := syscall.Kill(p.PID(), 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%s after the end: got %v, want no such process", p.Name(), err)
		}
	}
	for range 2 {
		must(t, c.Stop())
	}
	if err := c.StartAPIServer(t.Context()); err == nil {
		t.Error("StartAPIServer after Stop: no error")
	}
	if widgets.ResourceVersion != "" {
		t.Error("Start changed a definition that it was given")
	}
	if _, err := os.Stat(c.AuditLog()); err != nil {
		t.Errorf("the chosen folder has to stay: %v", err)
	}
}

// robotConfig goes the way of an operator under test: token, kubeconfig file, client.
func robotConfig(t *testing.T, c *ControlPlane) *rest.Config {
	t.Helper()
	token, err := c.ServiceAccountToken(t.Context(), namespace, robot)
	must(t, err)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, c.WriteKubeconfig(path, token, InNamespace(namespace)))
	config, err := clientcmd.BuildConfigFromFlags("", path)
	must(t, err)
	return config
}

func newClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	result, err := client.New(config, client.Options{})
	must(t, err)
	return result
}

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually polls until the condition returns no error.
func eventually(t *testing.T, what string, condition func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 30*time.Second, true,
		func(ctx context.Context) (bool, error) {
			last = condition(ctx)
			return last == nil, nil
		})
	if err != nil {
		t.Fatalf("wait for %s: %v (last: %v)", what, err, last)
	}
}
