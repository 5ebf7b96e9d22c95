// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadyMadeAssets(t *testing.T) {
	tests := []struct {
		name     string
		programs []string
		mode     os.FileMode
		says     string // part of the error; none when empty
	}{
		{name: "complete", programs: allPrograms, mode: 0o755},
		{name: "envtest's archives have no controller manager", mode: 0o755,
			programs: []string{etcdProgram, apiServerProgram, kubectlProgram}},
		{name: "one is missing", mode: 0o755, says: "has no executable kube-apiserver:",
			programs: []string{etcdProgram, kubectlProgram, controllerManagerProgram}},
		{name: "not executable", programs: allPrograms, mode: 0o644, says: "has no executable etcd, kube-apiserver, kubectl:"},
		{name: "empty", says: "has no executable etcd, kube-apiserver, kubectl:"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := fakeAssets(t, "", test.mode, test.programs...)
			got, err := Assets(t.Context(), nil)
			if test.says != "" {
				if err == nil || !strings.Contains(err.Error(), test.says) {
					t.Errorf("got error %v, want one that says %q", err, test.says)
				}
				return
			}
			must(t, err)
			if got != dir {
				t.Errorf("got %s, want %s", got, dir)
			}
		})
	}
}

func TestStartNeedsTheControllerManagerWhenAsked(t *testing.T) {
	fakeAssets(t, "", 0o755, etcdProgram, apiServerProgram, kubectlProgram)
	_, err := Start(t.Context(), Options{RequireControllerManager: true})
	if err == nil || !strings.Contains(err.Error(), "has no executable kube-controller-manager") {
		t.Errorf("got error %v", err)
	}
}

// TestStartShowsTheLogOfWhatFails also proves that a failed start leaves nothing.
func TestStartShowsTheLogOfWhatFails(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	fakeAssets(t, "#!/bin/sh\necho disk is made of cheese; exit 3\n", 0o755, allPrograms...)
	_, err := Start(t.Context(), Options{})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"etcd ended before it was ready (exit status 3)", "disk is made of cheese"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one that says %q", err, want)
		}
	}
	if left, _ := os.ReadDir(temp); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

func TestAssetsOutsideOfTheRepository(t *testing.T) {
	t.Setenv(assetsVariable, "")
	t.Chdir(t.TempDir())
	if _, err := Assets(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "or set "+assetsVariable) {
		t.Errorf("got error %v, want one that names %s", err, assetsVariable)
	}
}

func TestVersionFlags(t *testing.T) {
	got := strings.Join(versionFlags("v1.35.4"), " ")
	for _, want := range []string{
		"-X k8s.io/component-base/version.gitVersion=v1.35.4",
		"-X k8s.io/client-go/pkg/version.gitMajor=1",
		"-X k8s.io/client-go/pkg/version.gitMinor=35",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want it to have %s", got, want)
		}
	}
}

// fakeAssets makes the test use programs with the given content.
func fakeAssets(t *testing.T, content string, mode os.FileMode, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		writeFile(t, filepath.Join(dir, name), content, mode)
	}
	t.Setenv(assetsVariable, dir)
	return dir
}

func writeFile(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(content), mode))
}
