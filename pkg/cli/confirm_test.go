// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestConfirmation(t *testing.T) {
	for _, tc := range []struct {
		reason, input string
		noTerminal    bool
		want          string
	}{
		{"yes", "yes\n", false, ""},
		{"y", "y\n", false, ""},
		{"in capitals, with blanks", "  Y \n", false, ""},
		{"without an end of line", "y", false, ""},
		{"no", "no\n", false, "you did not say yes"},
		{"nothing is no", "\n", false, "you did not say yes"},
		{"what is not understood is no", "yeah sure\n", false, "you did not say yes"},
		{"nobody is there any more", "", false, "read the answer: EOF"},
		{"no terminal", "y\n", true, "give --yes"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			var out bytes.Buffer
			err := ask(t.Context(), strings.NewReader(tc.input), &out, !tc.noTerminal, "Sure?")
			if got := errorText(err); (tc.want == "") != (err == nil) || !strings.Contains(got, tc.want) {
				t.Errorf("error %q, want %q", got, tc.want)
			}
			if asked := strings.Contains(out.String(), "Sure? [y/N]"); asked == tc.noTerminal {
				t.Errorf("printed %q", out.String())
			}
		})
	}
	if err := ask(t.Context(), strings.NewReader(""), io.Discard, true, "Sure?"); !errors.Is(err, io.EOF) {
		t.Errorf("closed input: %v, want io.EOF", err)
	}
}

// TestInterruptedConfirmation: Ctrl-C at the question is an answer.
func TestInterruptedConfirmation(t *testing.T) {
	in, nobodyWrites := io.Pipe()
	t.Cleanup(func() { _ = nobodyWrites.Close() })
	ctx, interrupt := context.WithCancel(t.Context())
	asked := &onWrite{interrupt}
	if err := ask(ctx, in, asked, true, "Sure?"); !errors.Is(err, errInterrupted) {
		t.Errorf("error %v, want that it was interrupted", err)
	}
}

// onWrite does something when it is written to.
type onWrite struct{ do func() }

func (w *onWrite) Write(content []byte) (int, error) {
	w.do()
	return len(content), nil
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestColumnsAreClean(t *testing.T) {
	var out bytes.Buffer
	if err := columns(&out, [][]string{{"A", "B"}, {"long\x1b[31m word", ""}, {"x", "two\nlines"}}); err != nil {
		t.Fatal(err)
	}
	if want := "A              B\nlong[31m word\nx              two lines\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
