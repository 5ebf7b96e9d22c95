// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/appuio/managed-upgrade-operator/test/programs"
)

// server is a program that serves HTTP on a port of its own, and that may be stopped
// and started again. Its methods may be called from any goroutine.
type server struct {
	program string   // the path
	args    []string // all but the address to listen on
	folder  *programs.Folder
	port    *programs.Port
	client  *http.Client

	mu      sync.Mutex // guards what follows
	closed  bool
	process *programs.Process

	closeOnce sync.Once
	closeErr  error
}

// newServer reserves the folder and the port of a program, and builds it if need be.
// Nothing runs yet.
func newServer(ctx context.Context, module programs.Module, dir string, progress io.Writer) (*server, error) {
	program, err := ensureProgram(ctx, module, progress)
	if err != nil {
		return nil, err
	}
	folder, err := programs.NewFolder(module.Name, dir)
	if err != nil {
		return nil, err
	}
	port, err := programs.LeasePlainPort()
	if err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	// A connection that was kept would be one to a program that is gone.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return &server{program: program, folder: folder, port: port, client: client}, nil
}

// open starts the program for the first time. It is closed when that fails, and when
// ctx ends.
func (s *server) open(ctx context.Context, progress io.Writer) error {
	started := time.Now()
	if err := s.Start(ctx); err != nil {
		return errors.Join(err, s.Close())
	}
	context.AfterFunc(ctx, func() { _ = s.Close() })
	programs.Report(progress, s.name(), "serving at %s after %s, data and log in %s",
		s.URL(), time.Since(started).Round(10*time.Millisecond), s.folder.Path())
	return nil
}

// Start starts the program after Stop or Kill, at the same address and with the same
// data, and returns once it is ready. It is an error when it runs.
func (s *server) Start(ctx context.Context) error {
	process, err := s.spawn()
	if err != nil {
		return err
	}
	return process.WaitReady(ctx, func(ctx context.Context) error {
		return programs.GetOK(ctx, s.client, s.URL()+"/-/ready")
	})
}

// spawn holds the lock, so that nothing starts after Close has begun.
func (s *server) spawn() (*programs.Process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("start %s: it has been closed", s.name())
	}
	if s.process.Running() {
		return nil, fmt.Errorf("start %s: it runs already", s.name())
	}
	args := append([]string{"--web.listen-address=" + s.port.Address()}, s.args...)
	process, err := programs.Start(s.program, s.folder.Path(), args)
	if err != nil {
		return nil, err
	}
	s.process = process
	return process, nil
}

// Stop ends the program in order and returns once it is gone. Until Start,
// connections are refused. It does nothing when the program does not run.
func (s *server) Stop() error {
	return s.current().Stop(programs.StopGrace)
}

// Kill ends the program at once, as a crash does, and returns once it is gone. It does
// nothing when the program does not run.
func (s *server) Kill() error {
	return s.current().Stop(0)
}

// Close ends the program for good and removes its temporary folder. Further calls do
// nothing and return the same result.
func (s *server) Close() error {
	s.closeOnce.Do(func() {
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
		s.closeErr = errors.Join(s.Kill(), s.port.Release(), s.folder.Close())
	})
	return s.closeErr
}

// URL is the address, which stays the same for good.
func (s *server) URL() string {
	return "http://" + s.port.Address()
}

// PID is the id of the process that runs, or ran last.
func (s *server) PID() int {
	return s.current().PID()
}

// Dir is the folder with data, configuration and log.
func (s *server) Dir() string {
	return s.folder.Path()
}

// do sends a request, with JSON if it has a body, and returns the answer. One that is not
// 200 is an error, which has the beginning of what it says.
func (s *server) do(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, s.URL()+path, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	defer func() { _ = response.Body.Close() }()
	cause, _ := io.ReadAll(io.LimitReader(response.Body, 4096))
	return nil, fmt.Errorf("%s %s: %s: %s", method, path, response.Status, strings.TrimSpace(string(cause)))
}

func (s *server) name() string {
	return filepath.Base(s.program)
}

func (s *server) current() *programs.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}
