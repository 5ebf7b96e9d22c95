// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Package interrupt tells a program of this tree when it has to end, so that it can
// stop the processes that it started.
package interrupt

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// parentCheckInterval is how late the death of the parent may be noticed.
const parentCheckInterval = time.Second

// ErrParentGone is the cause of a context that ended with the parent process.
var ErrParentGone = errors.New("the process that started this one is gone")

// Context returns a context that ends on ^C, SIGTERM and SIGHUP, and when the process that
// started this one is gone: `go run` does not hand a SIGTERM on, and would leave its program
// running with nobody to end it. After the first signal a second one ends the program at once.
// Call stop to release what it holds.
func Context() (ctx context.Context, stop context.CancelFunc) {
	signalled, stopSignals := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(signalled, stopSignals)
	ctx, cancel := context.WithCancelCause(signalled)
	go func() {
		parent := os.Getppid()
		tick := time.NewTicker(parentCheckInterval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if os.Getppid() != parent {
					cancel(ErrParentGone)
					return
				}
			}
		}
	}()
	return ctx, func() {
		cancel(context.Canceled)
		stopSignals()
	}
}
