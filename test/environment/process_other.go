// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package environment

import (
	"os/exec"
	"syscall"
)

func dieWithParent() *syscall.SysProcAttr { return nil }

func startLocked(cmd *exec.Cmd, done chan struct{}, result *error) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() {
		*result = cmd.Wait()
		close(done)
	}()
	return nil
}
