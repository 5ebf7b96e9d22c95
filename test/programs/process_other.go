// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package programs

import "syscall"

// dieWithParent does nothing: these systems cannot tie a child to its parent. A
// program ends by Stop, but outlives a test binary that is killed.
func dieWithParent(*syscall.SysProcAttr) {}
