// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWorkDir(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	used, err := newWorkDir("")
	must(t, err)
	abandoned, err := newWorkDir("")
	must(t, err)
	must(t, abandoned.owner.Close()) // as the kernel does when its process is killed
	foreign := filepath.Join(temp, "other", ownerFile)
	writeFile(t, foreign, "", 0o644)

	next, err := newWorkDir("")
	must(t, err)
	for path, want := range map[string]bool{used.path: true, next.path: true, foreign: true, abandoned.path: false} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s exists: %t, want %t", path, err == nil, want)
		}
	}

	must(t, used.close())
	if _, err := os.Stat(used.path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a temporary folder after close: %v", err)
	}
	must(t, next.close())
}

func TestWorkDirThatIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	dir, err := newWorkDir(path)
	must(t, err)
	writeFile(t, filepath.Join(dir.path, "etcd.log"), "", 0o644)
	must(t, dir.close())
	if _, err := os.Stat(filepath.Join(path, "etcd.log")); err != nil {
		t.Errorf("after close: %v", err)
	}
	if _, err := newWorkDir(path); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("used again: got error %v, want one that says it is not empty", err)
	}
}
