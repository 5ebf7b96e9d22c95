// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// remote is how the documentation names a folder of this repository, and remoteFile how it names a file.
var (
	remote     = regexp.MustCompile(`'?https://github\.com/appuio/managed-upgrade-operator//(deploy[a-z/-]*)\?ref=v[0-9.]+'?`)
	remoteFile = regexp.MustCompile(`https://raw\.githubusercontent\.com/appuio/managed-upgrade-operator/v[0-9.]+/(deploy[a-z./-]*)`)
)

// blocks are the blocks of a page in that language, in their order.
func blocks(t *testing.T, page, language string) []string {
	t.Helper()
	text, err := os.ReadFile(root("docs", page))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, part := range strings.Split(string(text), "```"+language+"\n")[1:] {
		block, _, closed := strings.Cut(part, "\n```")
		if !closed {
			t.Fatalf("%s: a block has no end", page)
		}
		found = append(found, block)
	}
	return found
}

// here has a command, or a kustomization, take what it takes from the source tree.
func here(text, to string) string {
	return remoteFile.ReplaceAllString(remote.ReplaceAllString(text, to+"$1"), to+"$1")
}

// Each kustomization of the page is one, changes the Deployment, and is accepted by the API server.
func TestDocumentedKustomizations(t *testing.T) {
	text, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	before := deploymentIn(t, string(text))
	found := blocks(t, "install.md", "yaml")
	if len(found) < 4 {
		t.Fatalf("found %d, the test is blind", len(found))
	}
	for _, block := range found {
		if !strings.HasPrefix(block, "# kustomization.yaml\n") || !remote.MatchString(block) {
			t.Fatalf("this is no kustomization:\n%s", block)
		}
		deployment := deploymentIn(t, kustomize(t, here(block, "TREE/")))
		if deployment == before {
			t.Errorf("this changes nothing:\n%s", block)
		}
		file := filepath.Join(t.TempDir(), "deployment.yaml")
		if err := os.WriteFile(file, []byte(deployment), 0o600); err != nil {
			t.Fatal(err)
		}
		if out := run(t, "oc apply --dry-run=server --validate=strict -f "+file); out != "deployment.apps/managed-upgrade-operator configured (server dry run)\n" {
			t.Errorf("this leaves the Deployment as it is:\n%s\n%s", block, out)
		}
	}
}

// deploymentIn finds the Deployment among objects.
func deploymentIn(t *testing.T, objects string) string {
	t.Helper()
	for _, object := range strings.Split(objects, "\n---\n") {
		if strings.Contains(object, "\nkind: Deployment\n") {
			return object
		}
	}
	t.Fatal("there is no Deployment")
	return ""
}

// The commands of the page can be run, and the refusal that it promises comes.
func TestDocumentedInstallation(t *testing.T) {
	put(t, &configv1.ClusterVersion{
		ObjectMeta: metav1.ObjectMeta{Name: "version"}, Spec: configv1.ClusterVersionSpec{ClusterID: "7d0c51de-0a82-4b09-b2b9-414dfee7210a"},
	})
	install, promised := false, ""
	text, err := os.ReadFile(root("docs", "install.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines(string(text)) {
		if strings.HasPrefix(line, "Error from server") {
			promised = line
		}
	}
	refusals, done := 0, map[string]bool{}
	for _, block := range blocks(t, "install.md", "sh") {
		for _, command := range lines(here(block, root()+"/")) {
			switch {
			case done[command]:
			case strings.HasPrefix(command, "oc apply -k "):
				install = true
				for _, line := range lines(run(t, command)) {
					if !strings.HasSuffix(line, " unchanged") && !strings.HasPrefix(line, "poddisruptionbudget") {
						t.Errorf("%s: %s", command, line)
					}
				}
			case strings.Contains(command, " --as="):
				out, err := shell(t.Context(), command)
				if err == nil || strings.TrimSpace(out) != promised {
					t.Errorf("%s: got %q, want %q", command, out, promised)
				}
				refusals++
			case strings.HasPrefix(command, "oc get "):
				run(t, command)
			}
			done[command] = true
		}
	}
	if !install || refusals != 1 {
		t.Errorf("the page installs: %t, and has %d commands that are refused", install, refusals)
	}
}
