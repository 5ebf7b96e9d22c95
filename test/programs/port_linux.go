// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package programs

import "golang.org/x/sys/unix"

// LeasePlainPort reserves a port for a program that just listens, and cannot be told
// to set SO_REUSEPORT. It is weaker than LeasePort: while the program is away, others
// may listen on the port if they ask for this very one. Nobody is given it by chance.
//
// Go sets SO_REUSEADDR on every socket that listens, and Linux lets such sockets
// share a port as long as only one of them listens.
func LeasePlainPort() (*Port, error) {
	return leasePort(unix.SO_REUSEADDR)
}
