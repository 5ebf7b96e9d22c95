// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// Width of the output in columns where the terminal does not tell, or there is none, and what it is at least taken to be.
const (
	defaultWidth = 120
	minWidth     = 60
)

// style is a colour, as a number of an SGR sequence.
type style int

const (
	noStyle style = 0
	bold    style = 1
	red     style = 31
	green   style = 32
	yellow  style = 33
	grey    style = 90
)

// view is how a text for people is made: what time it is, in which zone, and what the terminal can do.
type view struct {
	bytes.Buffer

	// program is how the user calls the plugin, for the commands that the text suggests.
	program string
	now     time.Time
	width   int
	colours bool
}

// newView returns a view for the terminal of the tool, as of a time in the zone of the user.
func (t *tool) newView(now time.Time) *view {
	return &view{program: t.program, now: now, width: terminalWidth(t.Out), colours: t.colours()}
}

// show prints what the view has.
func (t *tool) show(v *view) error {
	_, err := t.Out.Write(v.Bytes())
	return err
}

// terminalWidth is that of the terminal of a stream; else what the environment variable COLUMNS says, else a default.
func terminalWidth(stream any) int {
	if file, ok := stream.(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			return max(width, minWidth)
		}
	}
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 {
		return max(columns, minWidth)
	}
	return defaultWidth
}

// printf adds text. What comes of the cluster is cleaned: it must not steer the terminal.
func (v *view) printf(format string, values ...any) {
	for i, value := range values {
		if text, ok := value.(string); ok {
			values[i] = clean(text)
		}
	}
	fmt.Fprintf(&v.Buffer, format, values...)
}

// heading begins a part of the text.
func (v *view) heading(text string) { v.WriteString("\n" + v.paint(bold, text) + "\n") }

// paint colours a text, if there are colours.
func (v *view) paint(s style, text string) string {
	if !v.colours || s == noStyle || text == "" {
		return text
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", s, text)
}

// moment says a time in the zone of the user.
func (v *view) moment(at time.Time) string {
	return at.In(v.now.Location()).Format("2006-01-02 15:04 MST")
}

// stamp is a time as messages have it: they are for programs and people of all zones.
var stamp = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// local says the times in a message in the zone of the user.
func (v *view) local(text string) string {
	return stamp.ReplaceAllStringFunc(text, func(found string) string {
		at, err := time.Parse(time.RFC3339, found)
		if err != nil {
			return found
		}
		return v.moment(at)
	})
}

// optionalMoment says a time, and a dash where there is none.
func (v *view) optionalMoment(at *metav1.Time) string {
	if at == nil {
		return "-"
	}
	return v.moment(at.Time)
}

// distance says how far a time is away: "in 34m", "2h ago".
func (v *view) distance(at time.Time) string {
	if at.After(v.now) {
		return "in " + span(at.Sub(v.now))
	}
	return span(v.now.Sub(at)) + " ago"
}

// age says for how long something has been; a dash where that is not known.
func (v *view) age(since *metav1.Time) string {
	if since == nil || since.IsZero() {
		return "-"
	}
	return span(v.now.Sub(since.Time))
}

// span says a duration as people do. A negative one, of clocks that disagree, is none.
func span(d time.Duration) string { return duration.HumanDuration(max(0, d)) }

// steers tells whether a character could steer a terminal, or turns what is read around.
func steers(r rune) bool {
	return unicode.IsControl(r) || r == utf8.RuneError || unicode.Is(unicode.Cf, r)
}

// clean takes what could steer the terminal out of a text and makes one line of it.
func clean(text string) string {
	return strings.TrimSpace(strings.NewReplacer("\n", " ", "\t", " ").Replace(printable(text)))
}

// say prints a line that may have words of the cluster, or of a file, in it.
func (t *tool) say(format string, args ...any) { sayTo(t.Out, format, args...) }

// warn is say on stderr.
func (t *tool) warn(format string, args ...any) { sayTo(t.ErrOut, format, args...) }

func sayTo(w io.Writer, format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	indent := len(line) - len(strings.TrimLeft(line, " "))
	fmt.Fprintln(w, line[:indent]+clean(line)) // a reader that is gone has no use for an error
}

// printable takes what could steer the terminal out of a text, which may have several lines.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if steers(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, text)
}

// wrap adds a text in lines of the view's width, each indented.
func (v *view) wrap(indent int, text string) {
	room, margin := max(v.width-indent, minWidth/2), strings.Repeat(" ", indent)
	line := ""
	for word := range strings.FieldsSeq(v.local(clean(text))) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > room {
			v.WriteString(margin + line + "\n")
			line = ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	if line != "" {
		v.WriteString(margin + line + "\n")
	}
}

// cell is a field of a table.
type cell struct {
	text  string
	style style
}

// table is rows of cells in columns as wide as they need to be. The last column is cut at the width of the view, unless wide is set.
type table struct {
	header []string
	rows   [][]cell
	// indent of each line.
	indent int
	// wide leaves long lines long.
	wide bool
}

// add adds a row of plain cells. An empty one is a dash.
func (t *table) add(texts ...string) {
	cells := make([]cell, 0, len(texts))
	for _, text := range texts {
		cells = append(cells, cell{text: text})
	}
	t.addCells(cells...)
}

// addCells adds a row.
func (t *table) addCells(cells ...cell) {
	for i := range cells {
		cells[i].text = cmp.Or(clean(cells[i].text), "-")
	}
	t.rows = append(t.rows, cells)
}

// printTable adds a table.
func (v *view) printTable(t *table) {
	rows := t.rows
	if len(t.header) > 0 {
		head := make([]cell, 0, len(t.header))
		for _, text := range t.header {
			head = append(head, cell{text, bold})
		}
		rows = append([][]cell{head}, rows...)
	}
	widths := map[int]int{}
	for _, row := range rows {
		for i := range row {
			row[i].text = v.local(row[i].text)
		}
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	for _, row := range rows {
		v.printRow(t, row, widths)
	}
}

func (v *view) printRow(t *table, row []cell, widths map[int]int) {
	const gap = 2
	line, at := strings.Repeat(" ", t.indent), t.indent
	for i, c := range row {
		last := i == len(row)-1
		if last && !t.wide {
			c.text = cut(c.text, max(v.width-at, minWidth/2))
		}
		line += v.paint(c.style, c.text)
		if !last {
			line += strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.text)+gap)
		}
		at += widths[i] + gap
	}
	v.WriteString(strings.TrimRight(line, " ") + "\n")
}

// cut cuts a text to so many columns, and marks the cut.
func cut(text string, columns int) string {
	const mark = "..."
	runes := []rune(text)
	if len(runes) <= columns {
		return text
	}
	return string(runes[:max(0, columns-len(mark))]) + mark
}
