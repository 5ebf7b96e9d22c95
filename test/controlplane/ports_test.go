// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"net"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestPortLease(t *testing.T) {
	lease, err := leasePort()
	must(t, err)

	if _, err := net.Dial("tcp4", lease.address()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("connect while nothing listens: got %v, want a refused connection", err)
	}
	if stranger, err := net.Listen("tcp4", lease.address()); err == nil {
		must(t, stranger.Close())
		t.Error("somebody else can listen on the leased port")
	}
	for range 3 { // a program may come and go
		listener, err := sharingListenConfig().Listen(t.Context(), "tcp4", lease.address())
		must(t, err)
		connection, err := net.Dial("tcp4", lease.address())
		must(t, err)
		must(t, connection.Close())
		must(t, listener.Close())
	}

	must(t, lease.release())
	free, err := net.Listen("tcp4", lease.address())
	must(t, err)
	must(t, free.Close())
}

func TestPortLeasesDiffer(t *testing.T) {
	seen := map[int]bool{}
	for range 200 {
		lease, err := leasePort()
		must(t, err)
		t.Cleanup(func() { must(t, lease.release()) })
		if seen[lease.port] {
			t.Fatalf("port %d leased twice", lease.port)
		}
		seen[lease.port] = true
	}
}

// sharingListenConfig listens as the programs do.
func sharingListenConfig() *net.ListenConfig {
	return &net.ListenConfig{Control: func(_, _ string, connection syscall.RawConn) error {
		var result error
		err := connection.Control(func(fd uintptr) {
			result = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		})
		return errors.Join(err, result)
	}}
}
