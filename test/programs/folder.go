// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// ownerFile, in a temporary folder, is locked by the process that uses it.
const ownerFile = "owner.lock"

// Folder is where programs that belong together keep their data and logs.
type Folder struct {
	name  string
	path  string
	owner *os.File // the locked ownerFile of a temporary folder, nil of a kept one
}

// NewFolder makes the folder at path if need be, which is kept and has to be empty,
// or a temporary one when no path is given. The name is that of what uses it.
func NewFolder(name, path string) (*Folder, error) {
	if path == "" {
		return newTemporaryFolder(name)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("resolve the folder of %s: %w", name, err)
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("make the folder of %s: %w", name, err)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("read the folder of %s: %w", name, err)
	}
	if len(entries) > 0 {
		return nil, fmt.Errorf("use the folder %s for %s: it is not empty", path, name)
	}
	return &Folder{name: name, path: path}, nil
}

// newTemporaryFolder also removes the folders of processes that were killed: one
// of a control plane holds more than 64 MiB of etcd's data.
func newTemporaryFolder(name string) (*Folder, error) {
	pattern := "managed-upgrade-operator-" + name + "-*"
	if err := removeAbandoned(filepath.Join(os.TempDir(), pattern)); err != nil {
		return nil, err
	}
	path, err := os.MkdirTemp("", pattern)
	if err != nil {
		return nil, fmt.Errorf("make the folder of %s: %w", name, err)
	}
	owner, err := lockOwner(name, path)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	return &Folder{name: name, path: path, owner: owner}, nil
}

// lockOwner makes the ownerFile of a new folder. The file gets its name after it
// has been locked, so nobody ever finds it unlocked while its owner lives.
func lockOwner(name, dir string) (*os.File, error) {
	owner, err := os.CreateTemp(dir, ownerFile+".*")
	if err != nil {
		return nil, fmt.Errorf("mark the folder of %s as used: %w", name, err)
	}
	if err = syscall.Flock(int(owner.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
		err = os.Rename(owner.Name(), filepath.Join(dir, ownerFile))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("mark the folder of %s as used: %w", name, err), owner.Close())
	}
	return owner, nil
}

// removeAbandoned removes those folders that match the pattern and whose owner is
// dead. What another user owns, or another process removes meanwhile, is passed over.
func removeAbandoned(pattern string) error {
	owners, err := filepath.Glob(filepath.Join(pattern, ownerFile))
	if err != nil {
		return fmt.Errorf("look for abandoned folders: %w", err)
	}
	for _, path := range owners {
		owner, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if syscall.Flock(int(owner.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(filepath.Dir(path))
		}
		_ = owner.Close()
	}
	return nil
}

// Path of the folder.
func (f *Folder) Path() string {
	return f.path
}

// Join is the path of what has the name in the folder.
func (f *Folder) Join(name string) string {
	return filepath.Join(f.path, name)
}

// Close removes a temporary folder, and leaves a kept one alone.
func (f *Folder) Close() error {
	if f.owner == nil {
		return nil
	}
	if err := errors.Join(os.RemoveAll(f.path), f.owner.Close()); err != nil {
		return fmt.Errorf("remove the folder of %s: %w", f.name, err)
	}
	return nil
}
