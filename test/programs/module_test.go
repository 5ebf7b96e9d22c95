// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// hello is a module that needs neither the network nor much time to build.
var hello = Module{
	Name:    "hello",
	Source:  "tools/hello",
	Package: ".",
	Flags:   []string{"-tags", "polite"},
	Pinned:  "example.com/hello",
	Binary:  "multicall",
	Programs: []string{
		"hello", "hi",
	},
	LinkerFlags: func(version string) []string { return []string{"-X", "main.version=none" + version} },
	Takes:       "a second",
}

// TestEnsure has the go command build a module, with its tags and linker flags.
func TestEnsure(t *testing.T) {
	root := writeHello(t)
	useCacheIn(t, root)
	t.Setenv("GOFLAGS", "-tags=rude -mod=nonsense") // the caller's own, which must not matter
	t.Chdir(filepath.Join(root, "below"))

	var progress strings.Builder
	dir, err := hello.Ensure(t.Context(), &progress)
	must(t, err)
	for _, name := range hello.Programs {
		output, err := exec.CommandContext(t.Context(), filepath.Join(dir, name)).CombinedOutput()
		must(t, err)
		if got, want := string(output), name+" says please none\n"; got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if !strings.HasPrefix(progress.String(), "hello: building hello and hi from source") {
		t.Errorf("progress: got %q", progress.String())
	}

	progress.Reset()
	again, err := hello.Ensure(t.Context(), &progress)
	must(t, err)
	if again != dir || progress.String() != "" {
		t.Errorf("the second time: got %s and progress %q, want %s and none", again, progress.String(), dir)
	}
}

func TestEnsureShowsWhatTheCompilerSays(t *testing.T) {
	root := writeHello(t)
	useCacheIn(t, root)
	writeFile(t, filepath.Join(root, "tools", "hello", "main.go"), "package main\n\nfunc main() { cheese() }\n", 0o644)
	t.Chdir(root)
	if _, err := hello.Ensure(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "undefined: cheese") {
		t.Errorf("got error %v", err)
	}
}

func TestEnsureOutsideOfTheRepository(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, err := hello.Ensure(t.Context(), nil); !errors.Is(err, ErrOutsideRepository) {
		t.Errorf("got error %v, want ErrOutsideRepository", err)
	}
}

func TestRecipe(t *testing.T) {
	toolchain := &goToolchain{module: hello, goVersion: "go1.26", pinned: "v1"}
	want := strings.Join([]string{"go1.26", runtime.GOOS, runtime.GOARCH, "-s -w -X main.version=nonev1 -tags polite"}, " ")
	if got := toolchain.recipe(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	toolchain.module.Flags, toolchain.module.LinkerFlags = nil, nil
	want = strings.Join([]string{"go1.26", runtime.GOOS, runtime.GOARCH, "-s -w"}, " ")
	if got := toolchain.recipe(); got != want {
		t.Errorf("without flags: got %q, want %q", got, want)
	}
}

func TestMissing(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "there"), "", 0o755)
	writeFile(t, filepath.Join(dir, "data"), "", 0o644)
	must(t, os.Mkdir(filepath.Join(dir, "folder"), 0o755))
	must(t, os.Symlink("there", filepath.Join(dir, "link")))
	must(t, os.Symlink("nowhere", filepath.Join(dir, "dangling")))
	got := Missing(dir, "there", "data", "folder", "link", "dangling", "absent")
	if want := []string{"data", "folder", "dangling", "absent"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// writeHello makes a repository with the module hello.
func writeHello(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	source := filepath.Join(root, "tools", "hello")
	writeFile(t, filepath.Join(source, "go.mod"), "module example.com/hello\n\ngo 1.26.0\n", 0o644)
	writeFile(t, filepath.Join(source, "main.go"), `package main

import (
	"fmt"
	"os"
	"path/filepath"
)

var version string

func main() { fmt.Println(filepath.Base(os.Args[0]), "says", manners, version) }
`, 0o644)
	writeFile(t, filepath.Join(source, "polite.go"), "//go:build polite\n\npackage main\n\nconst manners = \"please\"\n", 0o644)
	writeFile(t, filepath.Join(source, "rude.go"), "//go:build !polite\n\npackage main\n\nconst manners = \"now\"\n", 0o644)
	must(t, os.Mkdir(filepath.Join(root, "below"), 0o755))
	return root
}

// useCacheIn puts the cache into the folder home. The build cache of the go command
// stays where it is, for that it is a warm one.
func useCacheIn(t *testing.T, home string) {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	must(t, err)
	t.Setenv("GOCACHE", strings.TrimSpace(string(output)))
	t.Setenv("XDG_CACHE_HOME", filepath.Join(home, "cache"))
	t.Setenv("HOME", home)
}
