// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/appuio/managed-upgrade-operator/test/environment"
)

var update = flag.Bool("update", false, "write testdata anew")

// What all tests share.
var (
	env     *environment.Environment
	manager string // the path of the operator's binary
	plugins string // the folder with the plugin, which is on the PATH of kubectl
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	log.SetLogger(logr.Discard()) // the tests tell what they have to say
	if err := prepare(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "prepare the tests of the plugin:", err)
		return 1
	}
	defer env.Stop() //nolint:errcheck // the tests are over
	return m.Run()
}

func prepare(ctx context.Context) error {
	var err error
	if env, err = environment.Start(ctx, environment.Options{Progress: os.Stderr}); err != nil {
		return err
	}
	if manager, err = environment.BuildOperator(ctx, env.Dir()); err != nil {
		return errors.Join(err, env.Stop())
	}
	if err := buildPlugin(ctx); err != nil {
		return errors.Join(err, env.Stop())
	}
	for _, file := range []string{"viewer.yaml", "editor.yaml", "hook_author.yaml", "pool_releaser.yaml"} {
		if err := env.ApplyFile(ctx, filepath.Join(environment.Root(), "deploy", "rbac", "users", file)); err != nil {
			return errors.Join(err, env.Stop())
		}
	}
	return nil
}

// buildPlugin builds the plugin by the name by which kubectl finds it.
func buildPlugin(ctx context.Context) error {
	plugins = filepath.Join(env.Dir(), "plugins")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", filepath.Join(plugins, "kubectl-managed_upgrade"), "./cmd/oc-managed_upgrade")
	cmd.Dir = environment.Root()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the plugin: %w\n%s", err, out)
	}
	return nil
}
