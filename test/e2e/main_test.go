// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/appuio/managed-upgrade-operator/test/environment"
)

// What all tests share.
var (
	env     *environment.Environment
	manager string // the path of the operator's binary
	past    *journal
)

func TestMain(m *testing.M) {
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	log.SetLogger(logr.Discard()) // the tests tell what they have to say
	if err := prepare(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "prepare the end-to-end tests:", err)
		return 1
	}
	defer env.Stop() //nolint:errcheck // the tests are over
	return m.Run()
}

func prepare(ctx context.Context) error {
	var err error
	if env, err = environment.Start(ctx, environment.Options{Audit: true, Progress: os.Stderr}); err != nil {
		return err
	}
	if manager, err = environment.BuildOperator(ctx, env.Dir()); err != nil {
		return err
	}
	past, err = startJournal(ctx)
	return err
}
