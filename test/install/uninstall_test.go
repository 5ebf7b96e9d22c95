// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/test/environment"
	"github.com/appuio/managed-upgrade-operator/test/programs"
)

// removal are the commands of the page about removal.
type removal struct {
	configs, jobs, look, remove, byHand, release string
	// left are those for what the OLM does not delete.
	left []string
}

func readRemoval(t *testing.T) removal {
	t.Helper()
	found := blocks(t, "uninstall.md", "sh")
	that := func(begins string) string {
		t.Helper()
		i := slices.IndexFunc(found, func(block string) bool { return strings.HasPrefix(block, begins) })
		if i < 0 {
			t.Fatalf("the page has no command that begins with %q", begins)
		}
		return here(found[i], root()+"/")
	}
	olm := lines(that("oc -n managed-upgrade-operator delete subscriptions"))
	left := slices.DeleteFunc(olm, func(line string) bool { return !strings.Contains(line, root()) })
	if len(left) != 3 {
		t.Fatalf("want commands for force-drain, the supplement and the CRDs, got %q", left)
	}
	return removal{
		configs: that("oc delete upgradeconfigs."), jobs: that("oc delete upgradejobs."), look: that("oc get machineconfigpools "), remove: that("oc delete -k "),
		byHand: that("# Let UpgradeJobs and the Jobs of hooks go."), release: that("oc patch machineconfigpool worker "), left: left,
	}
}

// manifests are a config whose time has not come, and a job of a night that has.
const manifests = `
apiVersion: managedupgrade.appuio.io/v1beta1
kind: UpgradeConfig
metadata: {name: weekly, namespace: managed-upgrade-operator}
spec:
  schedule: {cron: "0 22 * * 2", location: UTC, suspend: true}
---
apiVersion: managedupgrade.appuio.io/v1beta1
kind: UpgradeJob
metadata: {name: night, namespace: managed-upgrade-operator}
spec:
  startAfter: %s
  startBefore: %s
  config:
    machineConfigPools:
    - matchLabels: {pool: worker}
      delayUpgrade: {delayMin: 1h}
`

// install makes a cluster of two pools, with a config and a job. Nobody is there yet to begin the job.
func install(t *testing.T) {
	t.Helper()
	put(t, &configv1.ClusterVersion{
		ObjectMeta: metav1.ObjectMeta{Name: "version"}, Spec: configv1.ClusterVersionSpec{ClusterID: "7d0c51de-0a82-4b09-b2b9-414dfee7210a"},
	})
	for _, name := range []string{"master", "worker"} {
		pool := openshifttest.Pool(name, func(p *mcfgv1.MachineConfigPool) {
			p.Labels, p.ResourceVersion, p.UID = map[string]string{"pool": name}, "", ""
		})
		status := pool.Status
		put(t, pool)
		pool.Status = status
		pool.Status.ObservedGeneration = pool.Generation
		if err := admin.Status().Update(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "manifests.yaml")
	text := fmt.Sprintf(manifests, time.Now().UTC().Format(time.RFC3339), time.Now().UTC().Add(time.Hour).Format(time.RFC3339))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "oc apply -f "+file)
}

// manager builds the operator, once.
var manager = sync.OnceValues(func() (string, error) { return environment.BuildOperator(context.Background(), plane.Dir()) })

// startOperator starts the operator with the token of its service account.
func startOperator(t *testing.T) *programs.Process {
	t.Helper()
	binary, err := manager()
	if err != nil {
		t.Fatal(err)
	}
	token, err := plane.ServiceAccountToken(t.Context(), environment.Namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := plane.WriteKubeconfig(kubeconfig, token); err != nil {
		t.Fatal(err)
	}
	operator, err := programs.Start(binary, t.TempDir(), []string{
		"--kubeconfig=" + kubeconfig, "--operator-namespace=" + environment.Namespace, "--leader-elect=false",
		"--metrics-bind-address=0", "--health-probe-bind-address=0", "--prometheus-url=", "--alertmanager-url=",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = operator.Stop(0) })
	return operator
}

// held tells whether the job holds the lock and the pool of the workers, and free whether nobody does.
func held(ctx context.Context) error {
	cv, pool := &configv1.ClusterVersion{}, &mcfgv1.MachineConfigPool{}
	if err := errors.Join(admin.Get(ctx, client.ObjectKey{Name: "version"}, cv), admin.Get(ctx, client.ObjectKey{Name: "worker"}, pool)); err != nil {
		return err
	}
	const holder = environment.Namespace + "/night"
	if lock, by := cv.Annotations[v1beta1.UpgradeJobAnnotation], pool.Annotations[v1beta1.UpgradeJobAnnotation]; lock != holder || by != holder || !pool.Spec.Paused {
		return fmt.Errorf("the lock is held by %q, and the pool by %q, paused %t", lock, by, pool.Spec.Paused)
	}
	return nil
}

func free(t *testing.T) {
	t.Helper()
	cv, pool := &configv1.ClusterVersion{}, &mcfgv1.MachineConfigPool{}
	if err := errors.Join(admin.Get(t.Context(), client.ObjectKey{Name: "version"}, cv), admin.Get(t.Context(), client.ObjectKey{Name: "worker"}, pool)); err != nil {
		t.Fatal(err)
	}
	if len(cv.Annotations) > 0 || len(pool.Annotations) > 0 || pool.Spec.Paused {
		t.Errorf("the lock is held by %q, and the pool by %q, paused %t", cv.Annotations, pool.Annotations, pool.Spec.Paused)
	}
}

// The order of the page leaves nothing behind: the job gives back what it holds, nothing hangs, and every object of deploy/ is gone.
func TestRemoval(t *testing.T) {
	page := readRemoval(t)
	install(t)
	run(t, "oc apply -k "+root("deploy", "rbac", "force-drain"))
	operator := startOperator(t)
	t.Cleanup(func() { // the other tests need it
		if _, err := shell(context.WithoutCancel(t.Context()), "oc apply -k "+root("deploy")); err != nil {
			t.Error(err)
		}
	})
	eventually(t, "the job holds what it needs", held)
	if out := run(t, page.look); strings.Count(out, environment.Namespace+"/night") != 2 {
		t.Errorf("while a job holds a pool and the lock the commands say %q", out)
	}

	run(t, page.configs)
	run(t, page.jobs)
	free(t)
	if out := run(t, page.look); out != "" {
		t.Errorf("something is left: %q", out)
	}
	if !operator.Running() {
		t.Error("the operator has ended before its time")
	}
	_ = operator.Stop(programs.StopGrace)
	for _, command := range page.left {
		run(t, command)
	}
	eventually(t, "the OLM's namespace and kinds are gone", func(ctx context.Context) error {
		out, err := shell(ctx, "oc get namespace/managed-upgrade-operator crd/upgradejobs.managedupgrade.appuio.io --ignore-not-found -o name")
		if err == nil && out != "" {
			err = fmt.Errorf("still there: %s", out)
		}
		return err
	})
	run(t, page.remove)

	if out := run(t, "oc get -f "+whole+" --ignore-not-found -o name"); out != "" {
		t.Errorf("this is left:\n%s", out)
	}
	crds := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := admin.List(t.Context(), crds); err != nil {
		t.Fatal(err)
	}
	for i := range crds.Items {
		if group := crds.Items[i].Spec.Group; group == v1beta1.GroupVersion.Group {
			t.Errorf("CRD %s is left", crds.Items[i].Name)
		}
	}
	namespace := &corev1.Namespace{}
	if err := admin.Get(t.Context(), client.ObjectKey{Name: environment.Namespace}, namespace); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace is left: %v", err)
	}
}

// Where the operator is gone already, the commands of the page do what it would have done.
func TestRemovalByHand(t *testing.T) {
	page := readRemoval(t)
	install(t)
	operator := startOperator(t)
	eventually(t, "the job holds what it needs", held)
	_ = operator.Stop(0)

	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: environment.Namespace, Name: "hook", Labels: map[string]string{v1beta1.HookUpgradeJobLabel: "night"}, Finalizers: []string{v1beta1.HookJobFinalizer},
	}}
	job.Spec.Suspend = new(true)
	job.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "hook", Image: "example.com/hook"}}}
	put(t, job)
	put(t, machineSet(map[string]string{v1beta1.UpgradeJobAnnotation: "0000-1111"}))
	kept := machineSet(nil)
	put(t, kept)
	run(t, page.configs)
	run(t, "oc delete --wait=false --all -n "+environment.Namespace+" upgradejobs.managedupgrade.appuio.io,jobs.batch")
	out := run(t, page.look)
	for _, left := range []string{"worker\ttrue\t" + environment.Namespace + "/night\n", "\n" + environment.Namespace + "/night", "machineset.machine.openshift.io/extra-", "job.batch/hook"} {
		if strings.Count(out, left) != 1 {
			t.Errorf("of what is left the commands say %q, without %q", out, left)
		}
	}

	run(t, page.byHand)
	run(t, page.release)
	free(t)
	eventually(t, "nothing is left", func(ctx context.Context) error {
		if out, err := shell(ctx, page.look+"\noc get upgradejobs.managedupgrade.appuio.io --all-namespaces -o name"); err != nil || out != "" {
			return fmt.Errorf("%q: %w", out, err)
		}
		return nil
	})
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(kept), kept); err != nil {
		t.Errorf("a MachineSet of the cluster: %v", err)
	}
}
