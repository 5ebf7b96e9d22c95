// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"errors"
	"net"
	"syscall"
	"testing"
)

func TestLeasePort(t *testing.T) {
	lease, err := LeasePort()
	must(t, err)

	if _, err := net.Dial("tcp4", lease.Address()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("connect while nothing listens: got %v, want a refused connection", err)
	}
	if stranger, err := net.Listen("tcp4", lease.Address()); err == nil {
		must(t, stranger.Close())
		t.Error("somebody else can listen on the leased port")
	}
	for range 3 { // a program may come and go
		listener, err := lease.Listen(t.Context())
		must(t, err)
		connection, err := net.Dial("tcp4", lease.Address())
		must(t, err)
		must(t, connection.Close())
		must(t, listener.Close())
	}

	for range 2 {
		must(t, lease.Release())
	}
	free, err := net.Listen("tcp4", lease.Address())
	must(t, err)
	must(t, free.Close())
}

func TestPortLeasesDiffer(t *testing.T) {
	seen := map[int]bool{}
	for range 200 {
		lease, err := LeasePort()
		must(t, err)
		t.Cleanup(func() { must(t, lease.Release()) })
		if seen[lease.Number()] {
			t.Fatalf("port %d leased twice", lease.Number())
		}
		seen[lease.Number()] = true
	}
}
