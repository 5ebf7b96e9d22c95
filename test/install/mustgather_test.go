// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"encoding/base64"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/test/environment"
)

const password = "correct-horse-battery-staple"

// The programs that take the place of oc. There is no kubelet that has logs, so that the first makes them up, and asks the API server for all else; the second
// knows one pod and nothing else.
const (
	ocWithLogs = `#!/bin/sh
case " $* " in
*" --previous "*) echo 'no earlier run' >&2; exit 1 ;;
*" logs "*) echo "log: $*" ;;
*) exec oc "$@" ;;
esac
`
	ocWithOnePod = `#!/bin/sh
case " $* " in
*" logs "*) echo "log: $*" ;;
*" get pods "*" jsonpath="*) echo a-pod its-container ;;
*) echo "you may not" >&2; exit 1 ;;
esac
`
)

// gather runs the script, and returns the files that it has written, by their paths.
func gather(t *testing.T, program string, env ...string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	oc := filepath.Join(dir, "oc")
	if err := os.WriteFile(oc, []byte(program), 0o700); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(dir, "must-gather")
	run(t, root("deploy", "must-gather", "gather"), append(env, "OC="+oc, "MUST_GATHER_DIR="+to)...)
	files := map[string]string{}
	err := filepath.WalkDir(to, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, to+"/")] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// names are those of the objects in a file that has a list of them.
func names(t *testing.T, file string) []string {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	if err := yaml.Unmarshal([]byte(file), &list.Object); err != nil {
		t.Fatal(err)
	}
	var found []string
	items, _, err := unstructured.NestedSlice(list.Object, "items")
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range items {
		name, _, err := unstructured.NestedString(item.(map[string]any), "metadata", "name")
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, name)
	}
	return found
}

func TestMustGather(t *testing.T) {
	put(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}})
	in := func(namespace, name string, labels map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}
	}
	put(t, &corev1.Secret{ObjectMeta: in(environment.Namespace, "receiver", nil), StringData: map[string]string{"url": password}})
	put(t, &corev1.ConfigMap{ObjectMeta: in(environment.Namespace, "managed-upgrade-operator-config", nil), Data: map[string]string{"config.yaml": "{}"}})
	put(t, &corev1.ConfigMap{ObjectMeta: in(environment.Namespace, "shop", nil)})
	put(t, &v1beta1.UpgradeJob{ObjectMeta: in(environment.Namespace, "night", nil), Spec: v1beta1.UpgradeJobSpec{
		StartAfter: metav1.NewTime(time.Now()), StartBefore: metav1.NewTime(time.Now().Add(time.Hour)),
	}})
	put(t, &v1beta1.UpgradeSuspensionWindow{ObjectMeta: in("elsewhere", "freeze", nil), Spec: v1beta1.UpgradeSuspensionWindowSpec{
		Start: metav1.NewTime(time.Now()), End: metav1.NewTime(time.Now().Add(time.Hour)),
	}})
	put(t, &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}, Spec: configv1.ClusterVersionSpec{ClusterID: "7d0c51de-0a82-4b09-b2b9-414dfee7210a"}})
	put(t, &policyv1.PodDisruptionBudget{ObjectMeta: in("default", "blocks", nil)})
	container := corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "notify", Image: "example.com/notify"}}}
	ofHook := map[string]string{v1beta1.HookUpgradeJobLabel: "night"}
	hookJob := &batchv1.Job{ObjectMeta: in("default", "hook", ofHook), Spec: batchv1.JobSpec{Suspend: new(true), Template: corev1.PodTemplateSpec{Spec: container}}}
	hookJob.Namespace = "elsewhere"
	put(t, hookJob)
	put(t, &corev1.Pod{ObjectMeta: in("elsewhere", "hook-x7k2q", map[string]string{"batch.kubernetes.io/job-name": "hook"}), Spec: container})
	put(t, &corev1.Pod{ObjectMeta: in("elsewhere", "shop", nil), Spec: container})
	pod := podOf(t)
	pod.Name, pod.GenerateName = name+"-0", ""
	put(t, pod)

	files := gather(t, ocWithLogs)
	for file, want := range map[string][]string{ // nil for whatever there is
		"cluster-scoped-resources/clusterversions.config.openshift.io.yaml":                      {"version"},
		"cluster-scoped-resources/poddisruptionbudgets.policy.yaml":                              {"blocks", name},
		"namespaces/managed-upgrade-operator/upgradejobs.managedupgrade.appuio.io.yaml":          {"night"},
		"namespaces/managed-upgrade-operator/deployments.apps.yaml":                              {name},
		"namespaces/managed-upgrade-operator/pods.yaml":                                          {name + "-0"},
		"namespaces/managed-upgrade-operator/configmaps.yaml":                                    {"managed-upgrade-operator-config"},
		"namespaces/elsewhere/upgradesuspensionwindows.managedupgrade.appuio.io.yaml":            {"freeze"},
		"namespaces/elsewhere/jobs.batch.yaml":                                                   {"hook"},
		"namespaces/elsewhere/pods-of-hooks/hook.yaml":                                           {"hook-x7k2q"},
		"cluster-scoped-resources/machineconfigpools.machineconfiguration.openshift.io.yaml":     nil,
		"cluster-scoped-resources/machineconfignodes.machineconfiguration.openshift.io.yaml":     nil,
		"cluster-scoped-resources/clusteroperators.config.openshift.io.yaml":                     nil,
		"cluster-scoped-resources/nodes.yaml":                                                    nil,
		"namespaces/managed-upgrade-operator/events.events.k8s.io.yaml":                          nil,
		"namespaces/managed-upgrade-operator/leases.coordination.k8s.io.yaml":                    nil,
		"namespaces/openshift-machine-api/machinesets.machine.openshift.io.yaml":                 nil,
		"cluster-scoped-resources/validatingadmissionpolicies.admissionregistration.k8s.io.yaml": {name + "-cluster-version", name + "-machine-config-pool", name + "-machines"},
	} {
		content, found := files[file]
		if !found {
			t.Errorf("there is no %s in %q", file, slices.Sorted(maps.Keys(files)))
			continue
		}
		if got := names(t, content); want != nil && !slices.Equal(got, want) {
			t.Errorf("%s has %q, want %q", file, got, want)
		}
	}
	for file, want := range map[string]string{
		"namespaces/managed-upgrade-operator/pods/managed-upgrade-operator-0/manager.log": "log: --request-timeout=60s logs -n managed-upgrade-operator managed-upgrade-operator-0 -c manager\n",
		"namespaces/elsewhere/pods/hook-x7k2q/notify.log":                                 "log: --request-timeout=60s logs -n elsewhere hook-x7k2q -c notify\n",
		"version": "managed-upgrade-operator/must-gather\nghcr.io/appuio/managed-upgrade-operator:v0.1.0\n",
	} {
		if files[file] != want {
			t.Errorf("%s is %q, want %q", file, files[file], want)
		}
	}
	checkDiscretion(t, files)

	// What is not there is noted, and leaves no empty file.
	if log := files["gather.log"]; !strings.Contains(log, "no earlier run") || !strings.Contains(log, "clusterserviceversions.operators.coreos.com") {
		t.Errorf("gather.log is %q", log)
	}
}

// Logs are as old as `oc adm must-gather --since` says, and a user who may see little gets that.
func TestMustGatherOfLittle(t *testing.T) {
	for variable, flag := range map[string]string{"MUST_GATHER_SINCE=2h": " --since=2h\n", "MUST_GATHER_SINCE_TIME=2026-11-22T00:00:00Z": " --since-time=2026-11-22T00:00:00Z\n"} {
		files := gather(t, ocWithOnePod, variable, "OPERATOR_NAMESPACE=mine")
		if got := files["namespaces/mine/pods/a-pod/its-container.log"]; !strings.HasSuffix(got, flag) {
			t.Errorf("with %s the log is %q", variable, got)
		}
		if got := files["version"]; got != "managed-upgrade-operator/must-gather\nunknown\n" {
			t.Errorf("the version is %q", got)
		}
		if got := slices.Sorted(maps.Keys(files)); len(got) != 5 {
			t.Errorf("it has written %q", got)
		}
	}
}

// checkDiscretion looks for what must not be collected.
func checkDiscretion(t *testing.T, files map[string]string) {
	t.Helper()
	for file, content := range files {
		for _, secret := range []string{"kind: Secret\n", password, base64.StdEncoding.EncodeToString([]byte(password))} {
			if strings.Contains(content, secret) {
				t.Errorf("%s has %q in it", file, secret)
			}
		}
		if content == "" && file != "gather.log" {
			t.Errorf("%s is empty", file)
		}
		if strings.Contains(file, "/shop/") {
			t.Errorf("%s is nobody's business", file)
		}
	}
}
