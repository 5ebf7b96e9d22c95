// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/appuio/managed-upgrade-operator/test/controlplane"
)

// Operator is the operator's process.
type Operator struct {
	cmd    *exec.Cmd
	probes string
	// metrics is the address of the metrics; empty if they are not served.
	metrics string
	log     *logBuffer
	done    chan struct{}
	err     error
}

// BuildOperator builds the manager into dir, with the race detector if this program has it, and returns the path.
func BuildOperator(ctx context.Context, dir string) (string, error) {
	return build(ctx, dir, "manager", Root(), "./cmd/manager")
}

// BuildCustomOperator builds the manager of test/custom-upgrader, a module of its own, as BuildOperator does.
func BuildCustomOperator(ctx context.Context, dir string) (string, error) {
	return build(ctx, dir, "custom-manager", filepath.Join(Root(), "test", "custom-upgrader"), ".")
}

// build builds the main package pkg of the module that has the folder module.
func build(ctx context.Context, dir, name, module, pkg string) (string, error) {
	path := filepath.Join(dir, name)
	args := []string{"build", "-trimpath", "-o", path}
	if raceEnabled {
		args = append(args, "-race")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, pkg)...)
	cmd.Dir = module
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return path, nil
}

// OperatorOptions say how the operator is started.
type OperatorOptions struct {
	// Binary is the built manager. Required.
	Binary string
	// Server and ServerCA lead the operator through a proxy; empty for the API server itself.
	Server   string
	ServerCA []byte
	// Metrics serves metrics by HTTPS on a free port, with a self-signed certificate; see Operator.Metrics.
	Metrics bool
	// Args are added to the command line.
	Args []string
	// Env is added to the environment.
	Env []string
}

// StartOperator starts the operator with the token of its service account, and waits until it is ready.
func (e *Environment) StartOperator(ctx context.Context, o OperatorOptions) (*Operator, error) {
	token, err := e.ServiceAccountToken(ctx, Namespace, "managed-upgrade-operator")
	if err != nil {
		return nil, fmt.Errorf("get the operator's token: %w", err)
	}
	kubeconfig := filepath.Join(e.dir, "kubeconfig")
	var through []controlplane.KubeconfigOption
	if o.Server != "" {
		kubeconfig += "-proxy"
		through = append(through, controlplane.ThroughServer(o.Server, o.ServerCA))
	}
	if err := e.WriteKubeconfig(kubeconfig, token, through...); err != nil {
		return nil, fmt.Errorf("write the operator's kubeconfig: %w", err)
	}
	probes, err := freeAddress()
	if err != nil {
		return nil, err
	}
	op := &Operator{probes: probes, log: &logBuffer{}, done: make(chan struct{})}
	bind := "0"
	if o.Metrics {
		if op.metrics, err = freeAddress(); err != nil {
			return nil, err
		}
		bind = op.metrics
	}
	op.cmd = exec.Command(o.Binary, append([]string{
		"--kubeconfig", kubeconfig, "--operator-namespace", Namespace, "--health-probe-bind-address", probes, "--metrics-bind-address", bind,
		"--prometheus-url", e.Monitoring.Prometheus.URL(), "--alertmanager-url", e.Monitoring.Alertmanager.URL(),
	}, o.Args...)...)
	op.cmd.Env = append(os.Environ(), o.Env...)
	op.cmd.Stdout, op.cmd.Stderr = op.log, op.log
	op.cmd.SysProcAttr = dieWithParent()
	if err := startLocked(op.cmd, op.done, &op.err); err != nil {
		return nil, fmt.Errorf("start the operator: %w", err)
	}
	if err := op.awaitReady(ctx); err != nil {
		op.Kill()
		return nil, fmt.Errorf("%w\n%s", err, op.Log())
	}
	return op, nil
}

func (o *Operator) awaitReady(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if resp, err := http.Get("http://" + o.probes + "/readyz"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-o.done:
			return fmt.Errorf("the operator ended: %w", o.err)
		case <-ctx.Done():
			return fmt.Errorf("wait for the operator: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

// Probes is the address of the operator's probes.
func (o *Operator) Probes() string { return o.probes }

// Metrics is the URL of the operator's metrics, which are given to whoever may get /metrics. Empty unless OperatorOptions.Metrics was set.
func (o *Operator) Metrics() string {
	if o.metrics == "" {
		return ""
	}
	return "https://" + o.metrics + "/metrics"
}

// PID is the id of the operator's process.
func (o *Operator) PID() int { return o.cmd.Process.Pid }

// Done is closed when the process has ended.
func (o *Operator) Done() <-chan struct{} { return o.done }

// Log is what the operator has written so far.
func (o *Operator) Log() string { return o.log.String() }

// Kill ends the process at once, as kill -9 does, and waits until it is gone.
func (o *Operator) Kill() {
	_ = o.cmd.Process.Kill() // an error means that it has ended
	<-o.done
}

// Stop asks the process to end and waits until it has.
func (o *Operator) Stop() error {
	_ = o.cmd.Process.Signal(syscall.SIGTERM)
	<-o.done
	return o.err
}

// Usage is what a process has used so far.
type Usage struct {
	// CPU time of user and system.
	CPU time.Duration
	// PeakRSS is the largest resident memory, in bytes.
	PeakRSS int64
}

// Usage reads what the process has used so far. Linux only.
func (o *Operator) Usage() (Usage, error) {
	proc := filepath.Join("/proc", strconv.Itoa(o.PID()))
	stat, err := os.ReadFile(filepath.Join(proc, "stat"))
	if err != nil {
		return Usage{}, fmt.Errorf("read the usage of the operator: %w", err)
	}
	// After the name in parentheses: state is field 3, utime and stime are fields 14 and 15, in ticks of 10 ms.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	status, err3 := os.ReadFile(filepath.Join(proc, "status"))
	if err := errors.Join(err1, err2, err3); err != nil {
		return Usage{}, fmt.Errorf("read the usage of the operator: %w", err)
	}
	usage := Usage{CPU: time.Duration(user+system) * 10 * time.Millisecond}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			if err != nil {
				return Usage{}, fmt.Errorf("read the usage of the operator: %w", err)
			}
			usage.PeakRSS = kib * 1024
		}
	}
	return usage, nil
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// logBuffer is a buffer that is written and read at the same time.
type logBuffer struct {
	mutex  sync.Mutex
	buffer bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.buffer.Write(p)
}

func (b *logBuffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.buffer.String()
}
