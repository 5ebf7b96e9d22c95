// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFolder(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	used, err := NewFolder("tested", "")
	must(t, err)
	abandoned, err := NewFolder("tested", "")
	must(t, err)
	must(t, abandoned.owner.Close()) // as the kernel does when its process is killed
	foreign := filepath.Join(temp, "other", ownerFile)
	writeFile(t, foreign, "", 0o644)

	next, err := NewFolder("tested", "")
	must(t, err)
	for path, want := range map[string]bool{used.Path(): true, next.Path(): true, foreign: true, abandoned.Path(): false} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s exists: %t, want %t", path, err == nil, want)
		}
	}

	must(t, used.Close())
	if _, err := os.Stat(used.Path()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a temporary folder after close: %v", err)
	}
	must(t, next.Close())
}

func TestFolderThatIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	dir, err := NewFolder("tested", path)
	must(t, err)
	writeFile(t, dir.Join("etcd.log"), "", 0o644)
	must(t, dir.Close())
	if _, err := os.Stat(filepath.Join(path, "etcd.log")); err != nil {
		t.Errorf("after close: %v", err)
	}
	if _, err := NewFolder("tested", path); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("used again: got error %v, want one that says it is not empty", err)
	}
}
