// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Command assets makes sure that the programs of a control plane for tests exist,
// building them if need be, and prints the folder that holds them. Progress goes
// to standard error, so the output can be used as it is:
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
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := controlplane.Assets(ctx, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(dir)
}
