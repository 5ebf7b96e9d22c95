// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"io"
	"net"
	"time"
)

// lingerTimeout is for clients that do not read; others take milliseconds.
const lingerTimeout = time.Second

// lingeringListener makes closing a connection last until the client has closed its end,
// too. A client that has not noticed would send its next request to where nobody reads,
// and get an error that has nothing to do with what its test is about.
type lingeringListener struct {
	net.Listener
}

// Accept is that of a net.Listener.
func (l lingeringListener) Accept() (net.Conn, error) {
	connection, err := l.Listener.Accept()
	if tcp, ok := connection.(*net.TCPConn); ok {
		return lingeringConnection{tcp}, err
	}
	return connection, err
}

type lingeringConnection struct {
	*net.TCPConn
}

// Close is that of a net.Conn.
func (c lingeringConnection) Close() error {
	timer := time.AfterFunc(lingerTimeout, func() { _ = c.TCPConn.Close() })
	defer timer.Stop()
	if c.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, c.TCPConn)
	}
	return c.TCPConn.Close()
}
