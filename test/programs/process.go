// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

const (
	// ReadyTimeout is generous: a start takes a few seconds, but test binaries
	// share the machine.
	ReadyTimeout = 90 * time.Second
	// ReadyPollInterval is how often a starting program is asked for its health.
	ReadyPollInterval = 50 * time.Millisecond
	// StopGrace is how long a program may take to end by itself.
	StopGrace = 10 * time.Second
)

// logTailLines is how much of a program's log an error shows.
const logTailLines = 20

// startBound starts cmd so that it does not outlive this process, in a process
// group of its own so that a ^C reaches only us, who then stop it in order. The
// result of cmd.Wait is sent on the channel.
//
// The kernel ties the child to the operating system thread that started it, so
// that thread is kept until the child has ended.
func startBound(cmd *exec.Cmd) (<-chan error, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	started, ended := make(chan error), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			ended <- cmd.Wait()
		}
	}()
	return ended, <-started
}

// runBound runs cmd, bound to this process as by startBound. When the context of
// the command ends, its children are killed with it.
func runBound(cmd *exec.Cmd) error {
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	ended, err := startBound(cmd)
	if err != nil {
		return err
	}
	return <-ended
}

// Process is one running program. It does not outlive this process, on Linux however
// this process ends.
type Process struct {
	name    string
	pid     int
	logPath string
	ended   chan struct{} // closed once the program has ended and err is set
	err     error
}

// Start starts the program at path, which works in the folder dir. Its output is
// appended to <name of the program>.log there.
func Start(path, dir string, args []string) (*Process, error) {
	name := filepath.Base(path)
	logPath := filepath.Join(dir, name+".log")
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", name, err)
	}
	defer func() { _ = log.Close() }() // the program has its own descriptor
	cmd := exec.Command(path, args...)
	cmd.Dir = dir
	cmd.Stdout, cmd.Stderr = log, log
	result, err := startBound(cmd)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &Process{name: name, pid: cmd.Process.Pid, logPath: logPath, ended: make(chan struct{})}
	go func() {
		p.err = <-result
		close(p.ended)
	}()
	return p, nil
}

// Name is that of the program.
func (p *Process) Name() string {
	return p.name
}

// PID is the id of the process, until it has ended.
func (p *Process) PID() int {
	return p.pid
}

// Ended is closed once the program has ended.
func (p *Process) Ended() <-chan struct{} {
	return p.ended
}

// Running tells whether the program has been started and has not ended. A nil one
// has not been started.
func (p *Process) Running() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// WaitReady returns once ready does so without an error. It fails, with the end of
// the program's log, when the program ends first or takes longer than ReadyTimeout.
func (p *Process) WaitReady(ctx context.Context, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, ReadyTimeout)
	defer cancel()
	ticker := time.NewTicker(ReadyPollInterval)
	defer ticker.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.ended:
			return p.failure(fmt.Sprintf("ended before it was ready (%v)", p.err))
		case <-ctx.Done():
			return p.failure(fmt.Sprintf("is not ready (%v; last answer: %v)", ctx.Err(), err))
		case <-ticker.C:
		}
	}
}

// Stop asks the program to end, and kills it when it has not done so within the
// grace period; with none, it is killed at once. It returns once the program is
// gone. A program that does not run, or a nil one, is gone already.
func (p *Process) Stop(grace time.Duration) error {
	if !p.Running() {
		return nil
	}
	if grace > 0 {
		if err := p.signal(syscall.SIGTERM); err != nil {
			return err
		}
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-p.ended:
			return nil
		case <-timer.C:
		}
	}
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.ended
	return nil
}

func (p *Process) signal(signal syscall.Signal) error {
	if !p.Running() {
		return nil // the pid may be another's by now
	}
	if err := syscall.Kill(p.pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("send %s to %s: %w", signal, p.name, err)
	}
	return nil
}

// failure explains, with the end of the program's log, why it is not up.
func (p *Process) failure(cause string) error {
	content, err := os.ReadFile(p.logPath)
	if err != nil {
		return errors.Join(fmt.Errorf("%s %s", p.name, cause), err)
	}
	return fmt.Errorf("%s %s; the end of %s:\n%s", p.name, cause, p.logPath, lastLines(string(content), logTailLines))
}

// lastLines returns the last n lines of text, without the final newline.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
