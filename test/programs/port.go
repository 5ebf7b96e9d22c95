// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// released is the descriptor of a port that is no longer reserved.
const released = -1

// Port is a free TCP port of 127.0.0.1 that is reserved for one program, for as
// long as the lease lives: also between choosing the port and listening on it, and
// while the program is stopped.
//
// It is a socket that is bound to the port but never listens. The kernel gives the
// port to no one who asks for any free one, and connections are refused while the
// program is away.
type Port struct {
	number int
	fd     int
}

// LeasePort reserves a port for a program that sets SO_REUSEPORT, as Listen does:
// both sides have to, and nobody else can listen on it.
func LeasePort() (*Port, error) {
	return leasePort(unix.SO_REUSEPORT)
}

// leasePort reserves a port that may be shared by the given socket option.
func leasePort(sharing int) (*Port, error) {
	fd, err := newSocket()
	if err != nil {
		return nil, fmt.Errorf("open a socket to lease a port: %w", err)
	}
	port := &Port{fd: fd}
	if err := port.bind(sharing); err != nil {
		return nil, errors.Join(fmt.Errorf("lease a port: %w", err), port.Release())
	}
	return port, nil
}

// newSocket opens a TCP socket that children do not inherit.
func newSocket() (int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return released, err
	}
	unix.CloseOnExec(fd)
	return fd, nil
}

func (p *Port) bind(sharing int) error {
	if err := unix.SetsockoptInt(p.fd, unix.SOL_SOCKET, sharing, 1); err != nil {
		return err
	}
	if err := unix.Bind(p.fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	address, err := unix.Getsockname(p.fd)
	if err != nil {
		return err
	}
	bound, ok := address.(*unix.SockaddrInet4)
	if !ok {
		return fmt.Errorf("the socket has an address of type %T, not of IPv4", address)
	}
	p.number = bound.Port
	return nil
}

// Number of the port.
func (p *Port) Number() int {
	return p.number
}

// Address is the host and port to listen on.
func (p *Port) Address() string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.number))
}

// Listen listens on a port of LeasePort.
func (p *Port) Listen(ctx context.Context) (net.Listener, error) {
	config := &net.ListenConfig{Control: func(_, _ string, connection syscall.RawConn) error {
		var result error
		err := connection.Control(func(fd uintptr) {
			result = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		})
		return errors.Join(err, result)
	}}
	return config.Listen(ctx, "tcp4", p.Address())
}

// Release gives the port back. Further calls, and those on nil, do nothing.
func (p *Port) Release() error {
	if p == nil || p.fd == released {
		return nil
	}
	fd := p.fd
	p.fd = released
	return unix.Close(fd)
}
