// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

//go:build browser

package browser

import (
	"flag"
	"fmt"
	"image"
	"image/color"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/report.png anew")

// desk is a window that is wide enough for the whole picture.
var desk = view{width: 1280, height: 1700}

// colours of bars and lines, by their class, in the light and in the dark.
var (
	inTheLight = map[string]color.RGBA{
		"page": rgb(0xffffff), "done": rgb(0x2da160), "running": rgb(0x2f6fde), "waiting": rgb(0xe0a100), "failed": rgb(0xd1242f), "stopped": rgb(0x8c959f),
		"unknown": rgb(0x8fcfab), "now": rgb(0x2f6fde),
	}
	inTheDark = map[string]color.RGBA{
		"page": rgb(0x0d1117), "done": rgb(0x3fb871), "running": rgb(0x4d8df6), "waiting": rgb(0xe3b341), "failed": rgb(0xf85149), "stopped": rgb(0x7d8590),
		"unknown": rgb(0x1f5a38), "now": rgb(0x79b0ff),
	}
)

func rgb(v uint32) color.RGBA {
	return color.RGBA{uint8(v >> 16), uint8(v >> 8 & 0xff), uint8(v & 0xff), 0xff}
}

// report is the path of a report that pkg/cli wrote.
func report(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "pkg", "cli", "testdata", "report", name+".html"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestTimelineIsSeen finds every bar of the timeline in the picture that a person sees, in its colour and at its place, in the light and in the dark.
func TestTimelineIsSeen(t *testing.T) {
	c := findChromium(t)
	for _, name := range []string{"failed", "running"} {
		for _, v := range []view{desk, {desk.width, desk.height, true}} {
			t.Run(fmt.Sprintf("%s, dark %t", name, v.dark), func(t *testing.T) {
				c := chromium{t, c.path}
				colours := inTheLight
				if v.dark {
					colours = inTheDark
				}
				l, picture := c.measure(report(t, name), v), c.shot(report(t, name), v)
				if len(l.Errors) > 0 {
					t.Errorf("scripts failed: %q", l.Errors)
				}
				if !near(picture.At(2, 2), colours["page"]) {
					t.Errorf("the page is %v, want %v", picture.At(2, 2), colours["page"])
				}
				bars := 0
				for _, lane := range l.Lanes {
					for _, bar := range lane.Bars {
						bars++
						checkBar(t, picture, lane.Name, bar, colours)
					}
				}
				if bars < 15 {
					t.Errorf("there are %d bars", bars)
				}
			})
		}
	}
}

// checkBar looks for the colour of a bar along its middle. Lines and ticks cross it.
func checkBar(t *testing.T, picture image.Image, lane string, bar element, colours map[string]color.RGBA) {
	t.Helper()
	want, known := colours[strings.Fields(bar.Class)[1]]
	if !known {
		t.Fatalf("%s has a bar %q", lane, bar.Class)
	}
	from, to, y := int(bar.Box[0]), int(bar.Box[0]+bar.Box[2]), int(bar.Box[1]+bar.Box[3]/2)
	same := 0
	for x := from; x <= to; x++ {
		if near(picture.At(x, y), want) {
			same++
		}
	}
	if same < max(1, (to-from)*6/10) {
		t.Errorf("%s: of %d pixels from %d,%d on, %d have the colour %v of %q: %s", lane, to-from, from, y, same, want, bar.Class, bar.Title)
	}
	for _, x := range []int{from - 6, to + 6} {
		if to-from > 12 && near(picture.At(x, y), want) && !touched(lane, bar) {
			t.Errorf("%s: the bar %q goes on at %d,%d", lane, bar.Title, x, y)
		}
	}
}

// touched are bars next to which another one of the same colour begins: the stages of a node.
func touched(lane string, _ element) bool { return lane == "storage-1" || lane == "worker-5" }

// near says whether two colours look the same.
func near(a color.Color, b color.RGBA) bool {
	r, g, bl, _ := a.RGBA()
	const tolerance = 14
	for _, d := range []int{int(r>>8) - int(b.R), int(g>>8) - int(b.G), int(bl>>8) - int(b.B)} {
		if d > tolerance || d < -tolerance {
			return false
		}
	}
	return true
}

// TestRowsStandInOrder reads the page as the browser has understood it.
func TestRowsStandInOrder(t *testing.T) {
	l := findChromium(t).measure(report(t, "failed"), desk)
	var names []string
	for _, lane := range l.Lanes {
		names = append(names, lane.Name)
	}
	want := []string{
		"StartedNotificationSent", "UpgradeNotDelayed", "IsClusterUpgradable", "ClusterHealthyBeforeUpgrade", "ExternalDependenciesAvailable", "ComputeCapacityReserved",
		"ControlPlaneMaintenanceWindowCreated", "UpgradeCommenced", "ControlPlaneUpgraded", "ControlPlaneMaintenanceWindowRemoved", "WorkersMaintenanceWindowCreated",
		"WorkerNodesUpgraded", "ComputeCapacityRemoved", "WorkersMaintenanceWindowRemoved", "ClusterHealthyAfterUpgrade", "PostUpgradeTasksCompleted", "CompletedNotificationSent",
		"backup-etcd", "tell-users", "smoke-test", "infra", "master", "storage", "worker",
	}
	if !slices.Equal(names, want) {
		t.Errorf("the rows are %q, want %q", names, want)
	}
	if headings := []string{"Timeline", "What it waited for last", "Steps", "Moments", "Hooks"}; !slices.Equal(l.Headings[:len(headings)], headings) {
		t.Errorf("the headings are %q, want first %q", l.Headings, headings)
	}
	// One step begins where the one before ends: from left to right.
	end := 0.0
	for _, lane := range l.Lanes[:12] {
		bar := lane.Bars[0].Box
		if bar[0] < end-3 {
			t.Errorf("%s begins at %g, before %g", lane.Name, bar[0], end)
		}
		end = bar[0] + bar[2]
	}
}

// TestNowIsMarked finds the line of the present in a running job, and none in one that has ended.
func TestNowIsMarked(t *testing.T) {
	c := findChromium(t)
	isNow := func(m element) bool { return m.Class == "mark now" }
	l := c.measure(report(t, "running"), desk)
	i := slices.IndexFunc(l.Marks, isNow)
	if i < 0 {
		t.Fatalf("there is no line for now: %+v", l.Marks)
	}
	line, picture := l.Marks[i].Box, c.shot(report(t, "running"), desk)
	seen := 0
	for y := int(line[1]) + 2; y < int(line[1]+line[3])-2; y++ {
		for x := int(line[0]) - 1; x <= int(line[0])+2; x++ {
			if near(picture.At(x, y), inTheLight["now"]) {
				seen++
				break
			}
		}
	}
	if seen < int(line[3])*9/10 {
		t.Errorf("the line for now is seen at %d of %g pixels", seen, line[3])
	}
	if l := c.measure(report(t, "failed"), desk); slices.ContainsFunc(l.Marks, isNow) {
		t.Error("a job that has ended has a line for now")
	}
}

// TestNarrowWindow scrolls the picture, not the page.
func TestNarrowWindow(t *testing.T) {
	c := findChromium(t)
	for _, name := range []string{"failed", "running"} {
		l := c.measure(report(t, name), view{width: 520, height: 900})
		if l.Window > 700 {
			t.Fatalf("the window is %g wide", l.Window)
		}
		if l.Page > l.Window {
			t.Errorf("the page is %g wide in a window of %g", l.Page, l.Window)
		}
		if l.Picture[2] < 1199 {
			t.Errorf("the picture has shrunk to %g: nobody can read it", l.Picture[2])
		}
	}
}

// TestPrints prints the report on a few pages.
func TestPrints(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.pdf")
	findChromium(t).run(report(t, "failed"), desk, "--print-to-pdf="+path, "--no-pdf-header-footer")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if pages := len(regexp.MustCompile(`/Type\s*/Page\b`).FindAll(content, -1)); pages < 2 || pages > 8 {
		t.Errorf("the report prints on %d pages", pages)
	}
}

// TestPictureOfTheDocs writes the picture of the docs with -update, and checks else that it is there and small.
func TestPictureOfTheDocs(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "report.png")
	if *update {
		c := findChromium(t)
		bottom := c.measure(report(t, "running"), desk).Picture
		writeSmall(t, path, c.shot(report(t, "running"), desk), int(bottom[1]+bottom[3])+32)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	const limit = 150 * 1000
	if info.Size() > limit || info.Size() < 10*1000 {
		t.Errorf("%s has %d bytes", path, info.Size())
	}
}
