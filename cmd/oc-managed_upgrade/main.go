// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// The plugin `oc managed-upgrade`, which is `kubectl managed-upgrade` too: see --help.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/appuio/managed-upgrade-operator/pkg/cli"
)

// version is set by the build.
var version = "devel"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once, whatever it waits for
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	status := cli.Run(ctx, os.Args[1:], streams, cli.Options{Program: os.Args[0], Version: version, Clock: clock.RealClock{}})
	stop()
	os.Exit(status)
}
