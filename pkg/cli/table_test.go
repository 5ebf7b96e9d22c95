// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTable(t *testing.T) {
	v := &view{now: window, width: 60}
	list := &table{header: []string{"NAME", "STATE", "REASON"}, indent: 1}
	list.add("größer", "", "it is "+strings.Repeat("long ", 20))
	list.add("a", "done", "")
	v.printTable(list)
	want := " NAME    STATE  REASON\n" +
		" größer  -      it is long long long long long long long ...\n" +
		" a       done   -\n"
	if got := v.String(); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}

func TestColoursDoNotMoveColumns(t *testing.T) {
	v := &view{now: window, width: 60, colours: true}
	list := &table{}
	list.addCells(cell{"a", red}, cell{"b", noStyle})
	list.addCells(cell{"longer", noStyle}, cell{"c", noStyle})
	v.printTable(list)
	if got, want := v.String(), "\x1b[31ma\x1b[0m       b\nlonger  c\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWhatTheClusterSaysDoesNotSteerTheTerminal(t *testing.T) {
	const evil = "red \x1b[31mtext\x07\u202e\nnew line\x9b2J"
	if got, want := clean(evil), "red [31mtext new line2J"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := printable(evil), "red [31mtext\nnew line2J"; got != want {
		t.Errorf("of an error it leaves %q, want %q", got, want)
	}
	v := &view{now: window, width: 60}
	v.printf("%s", evil)
	v.wrap(0, evil)
	list := &table{}
	list.add(evil)
	v.printTable(list)
	if strings.ContainsAny(v.String(), "\x1b\x07\u202e\u009b") {
		t.Errorf("got %q", v.String())
	}
}

func TestWrap(t *testing.T) {
	v := &view{now: window, width: 60}
	v.wrap(4, strings.Repeat("four ", 13)+"until 2026-11-25T03:00:00Z.")
	want := "    four four four four four four four four four four four\n    four four until 2026-11-25 04:00 CET.\n"
	if got := v.String(); got != want {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
}

func TestTimes(t *testing.T) {
	v := &view{now: window}
	for got, want := range map[string]string{
		v.distance(window.Add(34 * time.Minute)):         "in 34m",
		v.distance(window.Add(-2 * time.Hour)):           "120m ago",
		v.age(nil):                                       "-",
		v.age(&metav1.Time{Time: window.Add(time.Hour)}): "0s",
		v.moment(window.UTC()):                           "2026-11-24 22:00 CET",
		v.optionalMoment(nil):                            "-",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestBar(t *testing.T) {
	v := &view{width: 60}
	for _, tc := range []struct {
		done, total int
		want        string
	}{
		{0, 3, "[...............] 0 of 3"},
		{1, 3, "[#####..........] 1 of 3"},
		{841, 842, "[##############.] 841 of 842"},
		{842, 842, "[###############] 842 of 842"},
		{0, 0, "[...............] 0 of 0"},
		{5, 3, "[###############] 5 of 3"},
		{-1, 3, "[...............] -1 of 3"},
	} {
		if got := v.bar(tc.done, tc.total); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}

func TestNarrowTerminals(t *testing.T) {
	t.Setenv("COLUMNS", "20")
	if got := terminalWidth(&strings.Builder{}); got != minWidth {
		t.Errorf("the width is %d, want %d", got, minWidth)
	}
	t.Setenv("COLUMNS", "")
	if got := terminalWidth(&strings.Builder{}); got != defaultWidth {
		t.Errorf("the width is %d, want %d", got, defaultWidth)
	}
}
