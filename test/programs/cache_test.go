// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// testModule is not built: fakeBuilder stands in for the go command.
var testModule = Module{Name: "tested", Programs: []string{"etcd", "kube-apiserver", "kubectl"}, Takes: "4 to 5 minutes"}

// fakeBuilder makes empty programs and counts how often it was asked.
type fakeBuilder struct {
	calls atomic.Int32
	err   error
	omit  string // a program to leave out
}

func (b *fakeBuilder) build(_ context.Context, _, out string) error {
	b.calls.Add(1)
	for _, name := range testModule.Programs {
		if name == b.omit {
			continue
		}
		if err := os.WriteFile(filepath.Join(out, name), nil, 0o755); err != nil {
			return err
		}
	}
	return b.err
}

func newTestCache(t *testing.T, builder *fakeBuilder) *cache {
	t.Helper()
	source := t.TempDir()
	writeFile(t, filepath.Join(source, "go.mod"), "module x", 0o644)
	writeFile(t, filepath.Join(source, "main.go"), "package main", 0o644)
	return &cache{
		module: testModule,
		root:   filepath.Join(t.TempDir(), "cache"),
		source: source,
		recipe: "go1.26 linux/amd64",
		build:  builder.build,
	}
}

func TestCacheKey(t *testing.T) {
	tests := []struct {
		name   string
		change func(t *testing.T, c *cache)
		same   bool
	}{
		{name: "nothing", change: func(*testing.T, *cache) {}, same: true},
		{name: "the cache folder", change: func(_ *testing.T, c *cache) { c.root = "elsewhere" }, same: true},
		{name: "the Go version", change: func(_ *testing.T, c *cache) { c.recipe = "go1.27 linux/amd64" }},
		{name: "the architecture", change: func(_ *testing.T, c *cache) { c.recipe = "go1.26 linux/arm64" }},
		{name: "the content of a file", change: func(t *testing.T, c *cache) {
			writeFile(t, filepath.Join(c.source, "go.mod"), "module y", 0o644)
		}},
		{name: "one file more", change: func(t *testing.T, c *cache) {
			writeFile(t, filepath.Join(c.source, "go.sum"), "", 0o644)
		}},
		{name: "the name of a file", change: func(t *testing.T, c *cache) {
			must(t, os.Rename(filepath.Join(c.source, "main.go"), filepath.Join(c.source, "other.go")))
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			cache := newTestCache(t, &fakeBuilder{})
			before, err := cache.key()
			must(t, err)
			test.change(t, cache)
			after, err := cache.key()
			must(t, err)
			if same := before == after; same != test.same {
				t.Errorf("key before %s, after %s; want the same: %t", before, after, test.same)
			}
		})
	}
}

func TestCacheBuildsWhatIsMissing(t *testing.T) {
	tests := []struct {
		name    string
		prepare func(t *testing.T, entry string)
		builds  int32
	}{
		{name: "no entry", prepare: func(*testing.T, string) {}, builds: 1},
		{name: "a complete entry", prepare: func(t *testing.T, entry string) {
			for _, name := range testModule.Programs {
				writeFile(t, filepath.Join(entry, name), "", 0o755)
			}
		}, builds: 0},
		{name: "an entry that lost a program", prepare: func(t *testing.T, entry string) {
			writeFile(t, filepath.Join(entry, "etcd"), "", 0o755)
		}, builds: 1},
		{name: "the rest of a build that was killed", prepare: func(t *testing.T, entry string) {
			writeFile(t, filepath.Join(entry+".tmp", "etcd"), "half", 0o755)
			writeFile(t, entry+".lock", "", 0o644)
		}, builds: 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			builder := &fakeBuilder{}
			cache := newTestCache(t, builder)
			key, err := cache.key()
			must(t, err)
			test.prepare(t, filepath.Join(cache.root, key))

			for range 2 {
				dir, err := cache.get(t.Context())
				must(t, err)
				if !cache.complete(dir) {
					t.Errorf("%s lacks programs", dir)
				}
			}
			if got := builder.calls.Load(); got != test.builds {
				t.Errorf("builds: got %d, want %d", got, test.builds)
			}
			if leftovers, _ := filepath.Glob(filepath.Join(cache.root, "*.tmp")); len(leftovers) > 0 {
				t.Errorf("left over: %v", leftovers)
			}
		})
	}
}

func TestCacheKeepsNoFailedBuild(t *testing.T) {
	broken := errors.New("compiler says no")
	tests := []struct {
		name    string
		builder *fakeBuilder
		says    string
	}{
		{name: "the build fails", builder: &fakeBuilder{err: broken}, says: "compiler says no"},
		{name: "the build forgets a program", builder: &fakeBuilder{omit: "kubectl"}, says: "lacks [kubectl]"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			cache := newTestCache(t, test.builder)
			dir, err := cache.get(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Fatalf("got %q and error %v, want one that says %q", dir, err, test.says)
			}
			cache.build = (&fakeBuilder{}).build
			if _, err := cache.get(t.Context()); err != nil {
				t.Errorf("the next attempt: %v", err)
			}
		})
	}
}

// TestCacheBuildsOnce stands for parallel test binaries: each get opens the lock
// file anew, and such locks exclude each other also within one process.
func TestCacheBuildsOnce(t *testing.T) {
	builder := &fakeBuilder{}
	cache := newTestCache(t, builder)
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			if _, err := cache.get(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	if got := builder.calls.Load(); got != 1 {
		t.Errorf("builds: got %d, want 1", got)
	}
}

func TestCacheWaitsForTheLockNoLongerThanItsContext(t *testing.T) {
	cache := newTestCache(t, &fakeBuilder{})
	var progress strings.Builder
	cache.progress = &progress
	key, err := cache.key()
	must(t, err)
	must(t, os.MkdirAll(cache.root, 0o755))
	unlock, err := cache.lock(t.Context(), filepath.Join(cache.root, key+".lock"))
	must(t, err)
	defer unlock()

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := cache.get(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if want := "tested: waiting for another process that builds the programs\n"; progress.String() != want {
		t.Errorf("progress: got %q, want %q", progress.String(), want)
	}
}

func TestCacheTellsProgress(t *testing.T) {
	cache := newTestCache(t, &fakeBuilder{})
	var progress strings.Builder
	cache.progress = &progress
	for range 2 { // the second one has nothing to tell
		_, err := cache.get(t.Context())
		must(t, err)
	}
	lines := strings.Split(strings.TrimSpace(progress.String()), "\n")
	if len(lines) != 2 || lines[0] != "tested: building etcd, kube-apiserver and kubectl from source; needed once, usually 4 to 5 minutes" || lines[1] != "tested: done in 0s" {
		t.Errorf("progress: got %q", lines)
	}
}
