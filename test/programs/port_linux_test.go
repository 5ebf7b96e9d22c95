// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"errors"
	"net"
	"syscall"
	"testing"
)

func TestLeasePlainPort(t *testing.T) {
	lease, err := LeasePlainPort()
	must(t, err)
	defer func() { must(t, lease.Release()) }()
	for range 3 { // a program may come and go
		if _, err := net.Dial("tcp4", lease.Address()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("connect while nothing listens: got %v, want a refused connection", err)
		}
		listener, err := net.Listen("tcp4", lease.Address())
		must(t, err)
		connection, err := net.Dial("tcp4", lease.Address())
		must(t, err)
		must(t, connection.Close())
		if second, err := net.Listen("tcp4", lease.Address()); err == nil {
			must(t, second.Close())
			t.Error("two can listen on the port at once")
		}
		must(t, listener.Close())
	}
}

// TestPlainPortsAreNotHandedOut asks for so many free ports that one which is leased
// would be among them: of 28,000 there are, as Linux comes.
func TestPlainPortsAreNotHandedOut(t *testing.T) {
	const many = 400
	leased := map[string]bool{}
	for range many {
		lease, err := LeasePlainPort()
		must(t, err)
		t.Cleanup(func() { must(t, lease.Release()) })
		if leased[lease.Address()] {
			t.Fatalf("%s leased twice", lease.Address())
		}
		leased[lease.Address()] = true
	}
	for range many {
		listener, err := net.Listen("tcp4", "127.0.0.1:0")
		must(t, err)
		t.Cleanup(func() { must(t, listener.Close()) })
		if address := listener.Addr().String(); leased[address] {
			t.Fatalf("%s was given to another while it was leased", address)
		}
	}
}
