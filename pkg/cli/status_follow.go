// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What a terminal needs to begin at the top, to empty the rest of a line, and the rest of the screen. A picture that is drawn like this does not flicker, and
// leaves the history of the terminal alone.
const (
	toTop     = "\x1b[H"
	eraseLine = "\x1b[K"
	eraseRest = "\x1b[J"
)

// follow prints what look says, over and over, until the context is done. A first answer there has to be; later ones may fail: the API server is away for
// minutes in every upgrade, and its authentication with it.
func (t *tool) follow(ctx context.Context, look func(context.Context) (*statusReport, error), o *output, interval time.Duration) error {
	f := &follower{tool: t, output: o, terminal: t.terminal(t.Out) && !o.machine()}
	ticker := t.clock.NewTicker(interval)
	defer ticker.Stop()
	for {
		r, err := look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && f.last == nil:
			return err
		case err != nil:
			err = f.away(err)
		default:
			err = f.show(r)
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// follower is what has been printed.
type follower struct {
	*tool

	output   *output
	terminal bool
	last     *statusReport
	facts    []fact
	// gone is why the cluster does not answer at present; empty while it does.
	gone string
}

// show prints a report: all of it first and on a terminal, then what has changed.
func (f *follower) show(r *statusReport) error {
	first, back := f.last == nil, f.gone != ""
	before := f.last
	f.last, f.gone = r, ""
	switch {
	case f.output.machine():
		return f.showMachine(before, r)
	case f.terminal:
		return f.redraw(r, "")
	}
	facts := factsOf(r)
	changed := changes(f.facts, facts)
	f.facts = facts
	if first {
		return f.printStatus(r, f.output)
	}
	if back {
		changed = append([]string{"the cluster answers again"}, changed...)
	}
	return f.tell(changed...)
}

// showMachine prints a report for programs if anything has changed but the time.
func (f *follower) showMachine(before, r *statusReport) error {
	if before != nil && f.sameButTime(before, r) {
		return nil
	}
	if f.output.format == formatYAML {
		if _, err := fmt.Fprintln(f.Out, "---"); err != nil {
			return err
		}
	}
	return f.printMachine(f.output, r)
}

// sameButTime tells whether two reports say the same: how long ago is no news.
func (f *follower) sameButTime(a, b *statusReport) bool {
	return bytes.Equal(timeless(*a), timeless(*b))
}

// timeless is a report without what passes by itself.
func timeless(r statusReport) []byte {
	r.Time = metav1.Time{}
	if r.Job != nil {
		job := *r.Job
		job.Steps = append([]stepReport(nil), job.Steps...)
		for i := range job.Steps {
			job.Steps[i].DurationSeconds = nil
		}
		r.Job = &job
	}
	content, err := json.Marshal(r)
	if err != nil { // plain data always can be
		return nil
	}
	return content
}

// away says that the cluster does not answer, and goes on.
func (f *follower) away(err error) error {
	news := f.gone == ""
	f.gone = clean(err.Error())
	if f.terminal {
		return f.redraw(f.last, f.gone)
	}
	if !news {
		return nil
	}
	if f.output.machine() {
		_, err := fmt.Fprintf(f.ErrOut, "%s: trying on\n", f.gone)
		return err
	}
	return f.tell("the cluster does not answer, trying on: " + f.gone)
}

// redraw draws a report on the terminal, as far as there is room, with a line that says how old it is if the cluster does not answer.
func (f *follower) redraw(r *statusReport, gone string) error {
	now := f.clock.Now()
	v := f.newView(now)
	if gone != "" {
		words := v.wrapped(0, fmt.Sprintf("No answer for %s, trying on: %s", span(now.Sub(r.Time.Time)), gone))
		v.WriteString(v.paint(red, strings.TrimSuffix(words, "\n")) + "\n\n")
	}
	v.printStatus(r, f.output.format == formatWide)
	text := fit(v.String(), terminalHeight(f.Out), v.width)
	_, err := fmt.Fprint(f.Out, toTop+strings.ReplaceAll(text, "\n", eraseLine+"\n")+eraseRest)
	return err
}

// tell prints lines with the time.
func (f *follower) tell(lines ...string) error {
	stamp := f.clock.Now().Format("15:04:05 MST")
	for _, line := range lines {
		if _, err := fmt.Fprintf(f.Out, "%s  %s\n", stamp, clean(line)); err != nil {
			return err
		}
	}
	return nil
}

// terminalHeight is that of the terminal of a stream in lines; 0 where it is not known.
func terminalHeight(stream any) int {
	if file, ok := stream.(*os.File); ok {
		if _, height, err := term.GetSize(int(file.Fd())); err == nil {
			return height
		}
	}
	return 0
}

// colour is what a terminal does not show.
var colour = regexp.MustCompile("\x1b\\[[0-9]*m")

// fit cuts a text to so many rows of so many columns, the last of which says how many lines are missing, and leaves one for the cursor. A height of 0 is no
// bound.
func fit(text string, height, width int) string {
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	used, kept := 0, 0 // rows, and lines that fit beside the one that says how many are missing
	for _, line := range lines {
		columns := utf8.RuneCountInString(strings.TrimSuffix(colour.ReplaceAllString(line, ""), "\n"))
		used += max(1, (columns+width-1)/width)
		if used <= height-2 {
			kept++
		}
	}
	if height <= 1 || used < height {
		return text
	}
	return strings.Join(lines[:kept], "") + fmt.Sprintf("... %d more lines\n", len(lines)-kept)
}
