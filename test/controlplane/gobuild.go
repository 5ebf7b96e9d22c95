// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// multicallProgram is the one file behind the names of all programs.
const multicallProgram = "kubernetes"

// goToolchain builds the binaries module with the go command of the PATH.
type goToolchain struct {
	goVersion         string // of the toolchain that the module selects
	kubernetesVersion string // as required by the module, with the leading v
}

func newGoToolchain(ctx context.Context, source string) (*goToolchain, error) {
	goVersion, err := goOutput(ctx, source, "env", "GOVERSION")
	if err != nil {
		return nil, err
	}
	kubernetesVersion, err := goOutput(ctx, source, "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	if err != nil {
		return nil, err
	}
	return &goToolchain{goVersion: goVersion, kubernetesVersion: kubernetesVersion}, nil
}

// build is a buildFunc.
func (t *goToolchain) build(ctx context.Context, source, out string) error {
	_, err := goOutput(ctx, source, "build", "-trimpath", "-buildvcs=false",
		"-ldflags", t.linkerFlags(), "-o", filepath.Join(out, multicallProgram), ".")
	if err != nil {
		return err
	}
	for _, name := range allPrograms {
		if err := os.Symlink(multicallProgram, filepath.Join(out, name)); err != nil {
			return fmt.Errorf("name the program %s: %w", name, err)
		}
	}
	return nil
}

// linkerFlags drops debug information, and sets the version that /version and
// `kubectl version` tell: Kubernetes' own builds set it in the same way.
func (t *goToolchain) linkerFlags() string {
	flags := []string{"-s", "-w"}
	major, rest, _ := strings.Cut(strings.TrimPrefix(t.kubernetesVersion, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags,
			"-X", pkg+".gitVersion="+t.kubernetesVersion,
			"-X", pkg+".gitMajor="+major,
			"-X", pkg+".gitMinor="+minor)
	}
	return strings.Join(flags, " ")
}

// goOutput runs the go command in dir and returns what it printed. The caller's
// settings for building the operator (GOFLAGS, a workspace, cross compilation) do
// not apply: the programs have to run here.
func goOutput(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "CGO_ENABLED=0",
		"GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := runBound(cmd); err != nil {
		return "", fmt.Errorf("run go %s in %s: %w\n%s", args[0], dir, err, lastLines(stderr.String(), 20))
	}
	return strings.TrimSpace(stdout.String()), nil
}
