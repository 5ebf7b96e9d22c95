// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/appuio/managed-upgrade-operator/test/controlplane"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

func TestWrongFlags(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{}, "no API server"},
		{[]string{"--kubeconfig=x", "extra"}, `unexpected argument "extra"`},
		{[]string{"--kubeconfig=x", "--install-only", "--run-only"}, "exclude each other"},
		{[]string{"--kubeconfig=x", "--run-only", "--scenario=y"}, "leave --scenario out"},
		{[]string{"--kubeconfig=x", "--run-only", "--update-service"}, "leave --install-only and --run-only out"},
		{[]string{"--speed=9"}, "flag provided but not defined"},
	} {
		var stderr bytes.Buffer
		err := run(t.Context(), tc.args, &bytes.Buffer{}, &stderr)
		if !errors.Is(err, errUsage) || !strings.Contains(stderr.String(), tc.want) {
			t.Errorf("%v: %v and %q, want wrong flags and %q", tc.args, err, stderr.String(), tc.want)
		}
	}
}

func TestHelp(t *testing.T) {
	var stderr bytes.Buffer
	if err := run(t.Context(), []string{"--help"}, &bytes.Buffer{}, &stderr); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("--help: %v", err)
	}
	for _, want := range []string{"desiredUpdate", "kubectl edit configmap -n " + sim.Namespace, "-kubeconfig", "-scenario", "-print-scenario"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("help lacks %q:\n%s", want, stderr.String())
		}
	}
}

func TestPrintScenario(t *testing.T) {
	file := filepath.Join(t.TempDir(), "scenario.yaml")
	if err := os.WriteFile(file, []byte("workers: {size: 4}"), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout bytes.Buffer
	if err := run(t.Context(), []string{"--print-scenario", "--scenario", file}, &stdout, &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	s, err := sim.Parse(stdout.Bytes(), sim.Scenario{})
	if err != nil || s.Workers.Size != 4 || s.Version != sim.Default().Version {
		t.Errorf("printed scenario: %+v, %v", s, err)
	}
	if err := run(t.Context(), []string{"--print-scenario", "--scenario", file + "x"}, &stdout, &bytes.Buffer{}); err == nil {
		t.Error("a scenario file that does not exist is no error")
	}
}

func TestExamples(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("examples", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, file := range files {
		if _, err := readScenario(file); err != nil {
			t.Error(err)
		}
	}
}

// TestProgram installs, runs and ends as a person would see it.
func TestProgram(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	plane, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Errorf("stop control plane: %v", err)
		}
	})
	err = run(ctx, []string{"--kubeconfig", plane.Kubeconfig(), "--run-only"}, &bytes.Buffer{}, &bytes.Buffer{})
	if !errors.Is(err, sim.ErrNotInstalled) {
		t.Errorf("--run-only on an empty API server: %v, want ErrNotInstalled", err)
	}
	running, interrupt := context.WithCancel(ctx)
	stdout := &lines{}
	ended := make(chan error, 1)
	go func() {
		ended <- run(running, []string{"--kubeconfig", plane.Kubeconfig(), "--update-service"}, stdout, &bytes.Buffer{})
	}()
	look, tooLate := time.NewTicker(10*time.Millisecond), time.After(time.Minute)
	defer look.Stop()
	for !stdout.contains("running") {
		select {
		case <-look.C:
		case <-tooLate:
			t.Fatalf("not running within a minute: %s", stdout.text.String())
		}
	}
	if !stdout.contains("update graph at http://127.0.0.1:") {
		t.Errorf("output: %s", stdout.text.String())
	}
	interrupt()
	if err := <-ended; err != nil {
		t.Errorf("interrupted program: %v, want nil", err)
	}
	if !stdout.contains("installed OpenShift 4.18.1 with 3 masters and 6 workers") {
		t.Errorf("output: %s", stdout.text.String())
	}
}

// lines is an output that may be read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) contains(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}
