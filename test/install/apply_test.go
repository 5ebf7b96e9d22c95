// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
)

// A plain apply, with no flags, accepts every object without a warning, and the next one has nothing to change: GitOps finds no difference.
func TestApply(t *testing.T) {
	first := lines(applied)
	if len(first) < 35 {
		t.Errorf("the first apply says %d lines, the test is blind:\n%s", len(first), applied)
	}
	for _, line := range first {
		if !strings.HasSuffix(line, " created") {
			t.Errorf("the first apply says %q", line)
		}
	}
	generation := read[policyv1.PodDisruptionBudget](t, name).Generation
	second := lines(run(t, "oc apply -f "+whole))
	if len(second) != len(first) {
		t.Errorf("the second apply says %d lines, the first %d", len(second), len(first))
	}
	for _, line := range second {
		// kubectl sends the selector of a budget each time, because it is replaced as a whole.
		same := strings.HasPrefix(line, "poddisruptionbudget.policy/") && read[policyv1.PodDisruptionBudget](t, name).Generation == generation
		if !strings.HasSuffix(line, " unchanged") && !same {
			t.Errorf("the second apply says %q", line)
		}
	}
	// As Argo CD and Flux do it. Nothing is written; the API server answers as if.
	for _, line := range lines(run(t, "oc apply --server-side --field-manager=gitops --validate=strict --dry-run=server -f "+whole)) {
		if !strings.HasSuffix(line, " serverside-applied (server dry run)") {
			t.Errorf("the server-side apply says %q", line)
		}
	}
}

// What is opt-in applies too, and is not in the whole.
func TestForceDrainIsOptIn(t *testing.T) {
	if strings.Contains(applied, "force-drain") {
		t.Error("the permission to delete pods is part of deploy/")
	}
	out := run(t, "oc apply --dry-run=server -k "+root("deploy", "rbac", "force-drain"))
	if got := len(lines(out)); got != 2 {
		t.Errorf("the opt-in has %d objects, want a role and a binding:\n%s", got, out)
	}
}

// Each component changes something, and all of them together make something that an API server accepts without a warning.
func TestComponents(t *testing.T) {
	folders, err := filepath.Glob(root("deploy", "components", "*"))
	if err != nil || len(folders) < 4 {
		t.Fatalf("found %d components: %v", len(folders), err)
	}
	whole := build(t)
	for _, folder := range folders {
		if build(t, folder) == whole {
			t.Errorf("%s changes nothing", folder)
		}
	}
	all := build(t, folders...)
	file := filepath.Join(t.TempDir(), "all.yaml")
	if err := os.WriteFile(file, []byte(all), 0o600); err != nil {
		t.Fatal(err)
	}
	if said := run(t, "oc apply --dry-run=server -f "+file); strings.Contains(strings.ToLower(said), "warning") {
		t.Error(said)
	}
	// Where there is no monitoring and no Machine API nothing may be put into their namespaces, be of their kinds, or refer to what they bring along.
	for _, gone := range []string{"\n  namespace: openshift-", "\napiVersion: monitoring.coreos.com/", "\n  name: cluster-monitoring-view\n", "secretName: managed-upgrade-operator-metrics-tls"} {
		if !strings.Contains(whole, gone) {
			t.Errorf("%q is not in the whole either, the test is blind", gone)
		}
		for _, object := range strings.Split(all, "\n---\n") {
			metadata, _, _ := strings.Cut(object, "\nsubjects:\n") // those who are given a role may be anywhere
			if strings.Contains("\n"+metadata, gone) {
				t.Errorf("with all components there is %q in:\n%s", gone, object)
			}
		}
	}
}

// build returns what deploy/ with those components is.
func build(t *testing.T, components ...string) string {
	t.Helper()
	text := "resources:\n- TREE/deploy\n"
	if len(components) > 0 {
		text += "components:\n"
	}
	for _, c := range components {
		text += "- TREE/deploy/components/" + filepath.Base(c) + "\n"
	}
	return kustomize(t, text)
}

// kustomize returns what a kustomization makes, in whose text TREE stands for the source tree.
func kustomize(t *testing.T, text string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tree, err := filepath.Abs(root())
	if err != nil {
		t.Fatal(err)
	}
	tree, err = filepath.Rel(dir, tree) // kustomize takes no absolute paths
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(strings.ReplaceAll(text, "TREE", tree)), 0o600); err != nil {
		t.Fatal(err)
	}
	return run(t, "oc kustomize "+dir)
}
