// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// goToolchain builds a module with the go command of the PATH.
type goToolchain struct {
	module    Module
	goVersion string // of the toolchain that the module selects
	pinned    string // version of Module.Pinned, with the leading v
}

func newGoToolchain(ctx context.Context, module Module, source string) (*goToolchain, error) {
	goVersion, err := goOutput(ctx, source, "env", "GOVERSION")
	if err != nil {
		return nil, err
	}
	pinned, err := goOutput(ctx, source, "list", "-m", "-f", "{{.Version}}", module.Pinned)
	if err != nil {
		return nil, err
	}
	return &goToolchain{module: module, goVersion: goVersion, pinned: pinned}, nil
}

// recipe is whatever decides about the result besides the files of the module.
func (t *goToolchain) recipe() string {
	parts := []string{t.goVersion, runtime.GOOS, runtime.GOARCH, t.linkerFlags()}
	return strings.Join(append(parts, t.module.Flags...), " ")
}

// build is a buildFunc.
func (t *goToolchain) build(ctx context.Context, source, out string) error {
	binary := filepath.Join(out, t.module.Binary)
	args := slices.Concat([]string{"build", "-trimpath", "-buildvcs=false", "-ldflags", t.linkerFlags()},
		t.module.Flags, []string{"-o", binary, t.module.Package})
	if _, err := goOutput(ctx, source, args...); err != nil {
		return err
	}
	for _, name := range t.module.Programs {
		if name == t.module.Binary {
			continue
		}
		if err := os.Symlink(t.module.Binary, filepath.Join(out, name)); err != nil {
			return fmt.Errorf("name the program %s: %w", name, err)
		}
	}
	return nil
}

// linkerFlags drops debug information.
func (t *goToolchain) linkerFlags() string {
	flags := []string{"-s", "-w"}
	if t.module.LinkerFlags != nil {
		flags = append(flags, t.module.LinkerFlags(t.pinned)...)
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
