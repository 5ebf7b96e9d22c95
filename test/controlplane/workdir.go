// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

const (
	// workDirPattern names temporary folders.
	workDirPattern = "managed-upgrade-operator-controlplane-*"
	// ownerFile, in a temporary folder, is locked by the process that uses it.
	ownerFile = "owner.lock"
)

// workDir is the folder of one control plane.
type workDir struct {
	path  string
	owner *os.File // the locked ownerFile of a temporary folder, nil of a kept one
}

// newWorkDir makes the folder at path, or a temporary one when path is empty.
func newWorkDir(path string) (*workDir, error) {
	if path == "" {
		return newTemporaryWorkDir()
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("resolve the folder of the control plane: %w", err)
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("make the folder of the control plane: %w", err)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("read the folder of the control plane: %w", err)
	}
	if len(entries) > 0 {
		return nil, fmt.Errorf("start a control plane in %s: the folder is not empty", path)
	}
	return &workDir{path: path}, nil
}

// newTemporaryWorkDir also removes the folders of processes that were killed: one
// holds more than 64 MiB of etcd's data.
func newTemporaryWorkDir() (*workDir, error) {
	if err := removeAbandoned(os.TempDir()); err != nil {
		return nil, err
	}
	path, err := os.MkdirTemp("", workDirPattern)
	if err != nil {
		return nil, fmt.Errorf("make the folder of the control plane: %w", err)
	}
	owner, err := lockOwner(path)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	return &workDir{path: path, owner: owner}, nil
}

// lockOwner makes the ownerFile of a new folder. The file gets its name after it
// has been locked, so nobody ever finds it unlocked while its owner lives.
func lockOwner(dir string) (*os.File, error) {
	owner, err := os.CreateTemp(dir, ownerFile+".*")
	if err != nil {
		return nil, fmt.Errorf("mark the folder of the control plane as used: %w", err)
	}
	if err = syscall.Flock(int(owner.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
		err = os.Rename(owner.Name(), filepath.Join(dir, ownerFile))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("mark the folder of the control plane as used: %w", err), owner.Close())
	}
	return owner, nil
}

// removeAbandoned removes those temporary folders in root whose owner is dead.
// What another user owns, or another process removes meanwhile, is passed over.
func removeAbandoned(root string) error {
	owners, err := filepath.Glob(filepath.Join(root, workDirPattern, ownerFile))
	if err != nil {
		return fmt.Errorf("look for abandoned control planes: %w", err)
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

// close removes a temporary folder, and leaves a kept one alone.
func (d *workDir) close() error {
	if d.owner == nil {
		return nil
	}
	if err := errors.Join(os.RemoveAll(d.path), d.owner.Close()); err != nil {
		return fmt.Errorf("remove the folder of the control plane: %w", err)
	}
	return nil
}
