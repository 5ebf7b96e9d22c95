// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package programs

import "golang.org/x/sys/unix"

// LeasePlainPort chooses a free port for a program that just listens, and cannot be
// told to set SO_REUSEPORT. These systems cannot reserve it for such a program.
func LeasePlainPort() (*Port, error) {
	port, err := leasePort(unix.SO_REUSEADDR)
	if err != nil {
		return nil, err
	}
	return port, port.Release()
}
