// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package interrupt_test

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/appuio/managed-upgrade-operator/test/interrupt"
)

func TestContextEndsBySignal(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		ctx, stop := interrupt.Context()
		if err := ctx.Err(); err != nil {
			t.Fatalf("ended at once: %v", err)
		}
		if err := syscall.Kill(os.Getpid(), signal); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Second):
			t.Errorf("%s does not end it", signal)
		}
		stop()
	}
}

func TestContextEndsByStop(t *testing.T) {
	ctx, stop := interrupt.Context()
	stop()
	if ctx.Err() == nil {
		t.Error("goes on")
	}
}
