// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/appuio/managed-upgrade-operator/test/controlplane"
	"github.com/appuio/managed-upgrade-operator/test/environment"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// patience is how long a test waits for what takes the controllers of Kubernetes, or the operator, a moment.
const patience = 30 * time.Second

// What all tests share: an API server to which deploy/ has been applied.
var (
	plane *controlplane.ControlPlane
	admin client.WithWatch
	// commands is a folder with kubectl, and with oc, which is the same here.
	commands string
	// whole is a file with everything of deploy/, as it was when the tests began.
	whole string
	// applied is what the first `oc apply` has said, on both streams.
	applied string
)

func TestMain(m *testing.M) {
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	log.SetLogger(logr.Discard()) // the tests tell what they have to say
	if err := prepare(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "prepare the tests:", err)
		return 1
	}
	code := m.Run()
	if err := plane.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop the control plane:", err)
		return 1
	}
	return code
}

func prepare(ctx context.Context) error {
	crds, err := sim.CRDs()
	if err != nil {
		return fmt.Errorf("read OpenShift's CRDs: %w", err)
	}
	simulated := root("test", "openshift", "sim", "crds")
	if plane, err = controlplane.Start(ctx, controlplane.Options{
		Progress: os.Stderr, RequireControllerManager: true, CRDs: crds,
		CRDPaths: []string{filepath.Join("testdata", "crds"), filepath.Join(simulated, "machines"), filepath.Join(simulated, "machineconfignodes")},
	}); err != nil {
		return fmt.Errorf("start the control plane: %w", err)
	}
	if admin, err = environment.NewClient(plane.Config()); err == nil {
		err = installCommands()
	}
	if err == nil {
		_, err = shell(ctx, "oc apply -f "+filepath.Join(root("test", "install", "testdata"), "openshift.yaml"))
	}
	if err == nil {
		whole = filepath.Join(plane.Dir(), "whole.yaml")
		_, err = shell(ctx, "oc kustomize "+root("deploy")+" >"+whole)
	}
	if err == nil {
		applied, err = shell(ctx, "oc apply -f "+whole)
	}
	if err != nil {
		return errors.Join(err, plane.Stop())
	}
	return nil
}

// installCommands makes the folder of the commands. kubectl of the control plane is one of several programs in a file and goes by the name it is called by.
func installCommands() error {
	commands = filepath.Join(plane.Dir(), "commands")
	if err := os.Mkdir(commands, 0o750); err != nil {
		return fmt.Errorf("make the folder of the commands: %w", err)
	}
	if err := os.Symlink(plane.Kubectl(), filepath.Join(commands, "kubectl")); err != nil {
		return fmt.Errorf("install kubectl: %w", err)
	}
	script := "#!/bin/sh\nexec " + filepath.Join(commands, "kubectl") + " \"$@\"\n"
	if err := os.WriteFile(filepath.Join(commands, "oc"), []byte(script), 0o700); err != nil {
		return fmt.Errorf("install oc: %w", err)
	}
	return nil
}

// root is a path in the source tree.
func root(parts ...string) string {
	return filepath.Join(append([]string{environment.Root()}, parts...)...)
}

// shell runs a command line as an administrator of the cluster does, and returns what it has printed, on both streams.
func shell(ctx context.Context, command string, env ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "sh", "-euc", command)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+plane.Kubeconfig(), "PATH="+commands+string(os.PathListSeparator)+os.Getenv("PATH"))
	cmd.Env = append(cmd.Env, env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %w\n%s", command, err, out.String())
	}
	return out.String(), nil
}

// run is shell for a test that fails when the command does.
func run(t *testing.T, command string, env ...string) string {
	t.Helper()
	out, err := shell(t.Context(), command, env...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// as returns a client of that user.
func as(t *testing.T, user string) client.WithWatch {
	t.Helper()
	config := plane.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	c, err := environment.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// eventually waits until check has no error any more.
func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, last)
		case <-tick.C:
		}
	}
}

// lines are the lines of a text that are not empty.
func lines(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
}
