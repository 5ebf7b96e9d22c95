// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// portLease holds a free TCP port of 127.0.0.1 for one of the programs, for as
// long as the lease lives: also between choosing the port and listening on it, and
// while the API server is stopped.
//
// It is a socket that is bound to the port but never listens. The kernel gives
// the port to no one else, connections are refused while the program is away, and
// the program itself shares the port because both sides set SO_REUSEPORT.
type portLease struct {
	port int
	fd   int
}

func leasePort() (*portLease, error) {
	fd, err := newSocket()
	if err != nil {
		return nil, fmt.Errorf("open a socket to lease a port: %w", err)
	}
	lease := &portLease{fd: fd}
	if err := lease.bind(); err != nil {
		return nil, errors.Join(fmt.Errorf("lease a port: %w", err), lease.release())
	}
	return lease, nil
}

// newSocket opens a TCP socket that children do not inherit.
func newSocket() (int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return 0, err
	}
	unix.CloseOnExec(fd)
	return fd, nil
}

func (l *portLease) bind() error {
	if err := unix.SetsockoptInt(l.fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return err
	}
	if err := unix.Bind(l.fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	address, err := unix.Getsockname(l.fd)
	if err != nil {
		return err
	}
	bound, ok := address.(*unix.SockaddrInet4)
	if !ok {
		return fmt.Errorf("the socket has an address of type %T, not of IPv4", address)
	}
	l.port = bound.Port
	return nil
}

// address is the host and port to listen on.
func (l *portLease) address() string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(l.port))
}

func (l *portLease) release() error {
	return unix.Close(l.fd)
}

// ports are the leases of one control plane.
type ports struct {
	etcd, etcdPeer, apiServer, controllerManager *portLease
}

func (p *ports) all() []**portLease {
	return []**portLease{&p.etcd, &p.etcdPeer, &p.apiServer, &p.controllerManager}
}

func (p *ports) lease() error {
	for _, field := range p.all() {
		lease, err := leasePort()
		if err != nil {
			return err
		}
		*field = lease
	}
	return nil
}

// release gives back the ports that were leased.
func (p *ports) release() error {
	var errs []error
	for _, field := range p.all() {
		if *field != nil {
			errs = append(errs, (*field).release())
		}
	}
	return errors.Join(errs...)
}
