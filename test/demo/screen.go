// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// screen prints what happens, a line for each event, with the time that has
// passed. It is safe for use by several goroutines.
type screen struct {
	out      io.Writer
	coloured bool
	began    time.Time
	now      func() time.Time

	mutex sync.Mutex
}

func newScreen(out io.Writer, coloured bool) *screen {
	return &screen{out: out, coloured: coloured, began: time.Now(), now: time.Now}
}

// coloured tells whether colours may be used on the file: it is a terminal that has
// them, and the user has not asked for none (see no-color.org).
func coloured(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// style is how a line stands out on a terminal.
type style string

// The styles, as ANSI escape sequences.
const (
	plain  style = ""
	good   style = "\x1b[32m"
	bad    style = "\x1b[31m"
	wait   style = "\x1b[33m"
	strong style = "\x1b[1m"
	dim    style = "\x1b[2m"

	endOfStyle = "\x1b[0m"
)

// margin is as wide as what stands before the text of a line.
const margin = "                  "

// say prints a text about a subject. Further lines of it are indented.
func (s *screen) say(subject string, st style, text string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	text = strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+margin)
	if s.coloured && st != plain {
		text = string(st) + text + endOfStyle
	}
	fmt.Fprintf(s.out, "%s  %-8s %s\n", clock(s.now().Sub(s.began)), subject, text)
}

// print prints a text as it is, after an empty line.
func (s *screen) print(text string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	fmt.Fprintf(s.out, "\n%s\n", strings.TrimRight(text, "\n"))
}

// lines returns a writer that says each line that is written to it.
func (s *screen) lines(subject string, st style) io.Writer {
	return &lineWriter{say: func(line string) { s.say(subject, st, line) }}
}

// lineWriter calls say with each complete line.
type lineWriter struct {
	say  func(string)
	rest []byte
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		line, rest, complete := bytes.Cut(w.rest, []byte("\n"))
		if !complete {
			return len(p), nil
		}
		w.say(string(line))
		w.rest = rest
	}
}

// clock shows a duration as minutes, seconds and tenths.
func clock(d time.Duration) string {
	tenths := d.Milliseconds() / 100
	return fmt.Sprintf("%2d:%02d.%d", tenths/600, tenths/10%60, tenths%10)
}
