// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"os/exec"
	"runtime"
	"syscall"
)

// dieWithParent makes the kernel kill the process when this program ends, however it ends.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// startLocked starts cmd from a thread that lives as long as the process does: to the kernel the parent is the
// thread. done is closed when the process has ended, with *result set.
func startLocked(cmd *exec.Cmd, done chan struct{}, result *error) error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			*result = cmd.Wait()
			close(done)
		}
	}()
	return <-started
}
