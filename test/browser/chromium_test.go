// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

//go:build browser

package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// patience is how long the browser may take for one page.
const patience = 60 * time.Second

// view is a window in which a page is opened.
type view struct {
	width, height int
	dark          bool
}

// chromium is a browser without a screen.
type chromium struct {
	t    *testing.T
	path string
}

// findChromium finds the browser. The tests make no sense without one.
func findChromium(t *testing.T) chromium {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return chromium{t, path}
		}
	}
	t.Fatal("there is no Chromium on the PATH: `make test-browser` installs one")
	return chromium{}
}

// run opens a file and returns what the browser writes to its output, and what it logs.
func (c chromium) run(file string, v view, more ...string) (stdout, stderr string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	profile, err := os.MkdirTemp("", "browser-profile-")
	if err != nil {
		c.t.Fatal(err)
	}
	defer os.RemoveAll(profile)
	args := []string{
		"--headless", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--force-device-scale-factor=1", "--no-first-run", "--disable-background-networking",
		"--user-data-dir=" + profile, "--enable-logging=stderr", fmt.Sprintf("--window-size=%d,%d", v.width, v.height),
	}
	if os.Getuid() == 0 {
		args = append(args, "--no-sandbox") // Chromium refuses to run as root with one
	}
	if v.dark {
		args = append(args, "--force-dark-mode")
	}
	cmd := exec.CommandContext(ctx, c.path, append(append(args, more...), "file://"+file)...)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &log, 5*time.Second
	cmd.Env = append(os.Environ(), "TZ=UTC", "LC_ALL=C.UTF-8")
	if err := cmd.Run(); err != nil {
		c.t.Fatalf("%s: %v\n%s", c.path, err, log.String())
	}
	return out.String(), log.String()
}

// shot takes a picture of a page. What the page complains of, such as a style sheet that its policy forbids, is an error.
func (c chromium) shot(file string, v view) image.Image {
	c.t.Helper()
	key := keyOf(file, v)
	if picture, ok := shots[key]; ok {
		return picture
	}
	path := filepath.Join(c.t.TempDir(), "shot.png")
	_, log := c.run(file, v, "--screenshot="+path)
	for line := range strings.Lines(log) {
		if strings.Contains(line, ":CONSOLE") {
			c.t.Errorf("the page has something to say: %s", line)
		}
	}
	content, err := os.ReadFile(path)
	if err != nil {
		c.t.Fatal(err)
	}
	picture, err := png.Decode(bytes.NewReader(content))
	if err != nil {
		c.t.Fatal(err)
	}
	shots[key] = picture
	return picture
}

// What was seen before, by page and view: a browser takes seconds to start.
var (
	shots    = map[string]image.Image{}
	measured = map[string]layout{}
)

func keyOf(file string, v view) string { return fmt.Sprint(file, v) }

// box is a place in the page, in pixels: left, top, width, height.
type box [4]float64

// layout is where the elements of a page are.
type layout struct {
	// Errors of scripts.
	Errors []string `json:"errors"`
	// Window is the width of the window, Page that of the page: more, if it has to be scrolled sideways.
	Window  float64 `json:"window"`
	Page    float64 `json:"page"`
	Picture box     `json:"picture"`
	Lanes   []struct {
		Name string    `json:"name"`
		Bars []element `json:"bars"`
	} `json:"lanes"`
	Marks    []element `json:"marks"`
	Headings []string  `json:"headings"`
}

type element struct {
	Class string `json:"class"`
	Title string `json:"title"`
	Box   box    `json:"box"`
}

// measure is the script that finds the elements. The page has none of its own; it is added to a copy, together with what takes errors.
const measure = `<script>
const box = e => { const r = e.getBoundingClientRect(); return [r.left + scrollX, r.top + scrollY, r.width, r.height] };
const element = e => ({class: e.getAttribute("class"), title: (e.querySelector("title") || e.parentNode.querySelector("title")).textContent, box: box(e)});
document.documentElement.setAttribute("data-layout", JSON.stringify({
	errors: window.failures, window: innerWidth, page: document.documentElement.scrollWidth, picture: box(document.querySelector("#picture")),
	lanes: [...document.querySelectorAll("#picture g.lane")].map(g => ({
		name: g.querySelector(".name").lastChild.textContent, bars: [...g.querySelectorAll(".bar")].map(element)})),
	marks: [...document.querySelectorAll("#picture g.mark line")].map(l => ({...element(l), class: l.parentNode.getAttribute("class")})),
	headings: [...document.querySelectorAll("h2")].map(h => h.textContent),
}));
</script></body>`

const takeErrors = `<head><script>window.failures = []; addEventListener("error", e => failures.push(String(e.message)), true);</script>`

var policy = regexp.MustCompile(`<meta http-equiv="Content-Security-Policy"[^>]*>`)

// measure returns where the elements of a page are in a window.
func (c chromium) measure(file string, v view) layout {
	c.t.Helper()
	v.dark = false // which moves nothing
	key := keyOf(file, v)
	if l, ok := measured[key]; ok {
		return l
	}
	content, err := os.ReadFile(file)
	if err != nil {
		c.t.Fatal(err)
	}
	page := strings.Replace(policy.ReplaceAllString(string(content), ""), "<head>", takeErrors, 1)
	page = strings.Replace(page, "</body>", measure, 1)
	copied := filepath.Join(c.t.TempDir(), "measured.html")
	if err := os.WriteFile(copied, []byte(page), 0o600); err != nil {
		c.t.Fatal(err)
	}
	dom, _ := c.run(copied, v, "--dump-dom")
	found := regexp.MustCompile(`data-layout="([^"]*)"`).FindStringSubmatch(dom)
	if found == nil {
		c.t.Fatalf("the page was not measured:\n%.2000s", dom)
	}
	var l layout
	if err := json.Unmarshal([]byte(html.UnescapeString(found[1])), &l); err != nil {
		c.t.Fatal(err)
	}
	measured[key] = l
	return l
}
