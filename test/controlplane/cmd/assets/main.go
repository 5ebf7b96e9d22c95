// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Command assets makes sure that all programs that tests need exist, building what is
// missing: those of a control plane, Prometheus and Alertmanager. It prints the folder
// that holds those of the control plane. Progress goes to standard error, so the output
// can be used as it is:
//
//	export KUBEBUILDER_ASSETS="$(go run ./test/controlplane/cmd/assets)"
//
// Run it before the tests: a first build inside of them would count against their
// timeout.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/appuio/managed-upgrade-operator/test/controlplane"
	"github.com/appuio/managed-upgrade-operator/test/monitoring"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := ensure(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(dir)
}

// ensure builds one after the other: each build keeps all processors busy.
func ensure(ctx context.Context) (dir string, err error) {
	if dir, err = controlplane.Assets(ctx, os.Stderr); err != nil {
		return "", err
	}
	return dir, monitoring.EnsurePrograms(ctx, os.Stderr)
}
