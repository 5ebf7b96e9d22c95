// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestScreen(t *testing.T) {
	for _, test := range []struct {
		reason   string
		coloured bool
		want     string
	}{
		{"in a log", false, " 1:05.2  step     done\n                  indeed\n"},
		{"on a terminal", true, " 1:05.2  step     \x1b[32mdone\n                  indeed\x1b[0m\n"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			var out strings.Builder
			s := newScreen(&out, test.coloured)
			s.now = func() time.Time { return s.began.Add(65*time.Second + 250*time.Millisecond) }
			s.say("step", good, "done\nindeed\n")
			if out.String() != test.want {
				t.Errorf("got %q, want %q", out.String(), test.want)
			}
		})
	}
}

func TestLineWriter(t *testing.T) {
	var got []string
	w := &lineWriter{say: func(line string) { got = append(got, line) }}
	for _, part := range []string{"one\ntw", "o\n", "", "\nlast"} {
		fmt.Fprint(w, part)
	}
	if want := "one|two|"; strings.Join(got, "|") != want {
		t.Errorf("got %q, want %q", strings.Join(got, "|"), want)
	}
}

func TestTail(t *testing.T) {
	for log, want := range map[string]string{"": "", "a\nb\n": "a\nb", "a\nb\nc\n": "b\nc"} {
		if got := tail(log, 2); got != want {
			t.Errorf("tail(%q): got %q, want %q", log, got, want)
		}
	}
}
