// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// parentVariable turns the test binary into the parent of TestBoundChild.
const parentVariable = "PROGRAMS_TEST_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(parentVariable) != "" {
		beParent()
	}
	os.Exit(m.Run())
}

// beParent starts a child that shares the standard output, and waits for it.
func beParent() {
	child := exec.Command("sleep", "600")
	child.Stdout = os.Stdout
	ended, err := startBound(child)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("started")
	fmt.Fprintln(os.Stderr, "the child ended before its parent:", <-ended)
	os.Exit(1)
}

// TestBoundChild kills a process in ways that leave it no time to clean up. The
// pipe that it shares with its child ends when both are dead.
func TestBoundChild(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT} {
		t.Run(signal.String(), func(t *testing.T) {
			self, err := os.Executable()
			must(t, err)
			output, input, err := os.Pipe()
			must(t, err)
			defer func() { _ = output.Close() }()
			parent := exec.CommandContext(t.Context(), self)
			parent.Env = append(os.Environ(), parentVariable+"=1")
			parent.Stdout = input
			must(t, parent.Start())
			must(t, input.Close())
			must(t, output.SetReadDeadline(time.Now().Add(30*time.Second)))
			reader := bufio.NewReader(output)
			_, err = reader.ReadString('\n')
			must(t, err)

			must(t, parent.Process.Signal(signal))
			if _, err := io.Copy(io.Discard, reader); err != nil {
				t.Errorf("wait for the end of parent and child: %v", err)
			}
			_ = parent.Wait() // it tells of the signal
		})
	}
}
