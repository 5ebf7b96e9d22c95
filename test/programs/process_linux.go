// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package programs

import "syscall"

// dieWithParent has the kernel kill the child when its parent dies, however that
// comes about. It needs nothing of the child, so it holds for any program.
func dieWithParent(attributes *syscall.SysProcAttr) {
	attributes.Pdeathsig = syscall.SIGKILL
}
