// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// buildReportInterval is short enough to show that the build is alive.
	buildReportInterval = 15 * time.Second
	// lockPollInterval bounds how long a finished build goes unnoticed by those
	// who wait for it.
	lockPollInterval = 200 * time.Millisecond
)

// buildFunc builds the programs of the module in the folder source into the
// existing, empty folder out.
type buildFunc func(ctx context.Context, source, out string) error

// cache keeps built programs in folders named after what they were built
// from: root/<key>. A folder of that name is complete, because it is filled under
// another name and then renamed.
type cache struct {
	module   Module
	root     string    // the folder of all entries
	source   string    // the module that is built
	recipe   string    // whatever else decides about the result: Go version, OS, architecture, flags
	build    buildFunc // makes one entry
	progress io.Writer
}

// get returns the folder of the entry, building it if need be.
func (c *cache) get(ctx context.Context) (string, error) {
	key, err := c.key()
	if err != nil {
		return "", err
	}
	entry := filepath.Join(c.root, key)
	if c.complete(entry) {
		return entry, nil
	}
	if err := os.MkdirAll(c.root, 0o755); err != nil {
		return "", fmt.Errorf("make the cache of %s: %w", c.module.Name, err)
	}
	unlock, err := c.lock(ctx, entry+".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if c.complete(entry) { // by the process whose lock we waited for
		return entry, nil
	}
	if err := c.fill(ctx, entry); err != nil {
		return "", err
	}
	return entry, nil
}

func (c *cache) complete(entry string) bool {
	return len(Missing(entry, c.module.Programs...)) == 0
}

// key hashes all that decides about the programs: the files of the module, by
// name and content, and the recipe.
func (c *cache) key() (string, error) {
	hash := sha256.New()
	fmt.Fprintf(hash, "%s\n", c.recipe)
	err := filepath.WalkDir(c.source, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(c.source, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(hash, "%s %x\n", filepath.ToSlash(name), sha256.Sum256(content))
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("hash the source of %s: %w", c.module.Name, err)
	}
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}

// lock takes the lock at path, which the kernel releases when the process dies.
func (c *cache) lock(ctx context.Context, path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the lock of the cache of %s: %w", c.module.Name, err)
	}
	for told := false; ; {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			_ = file.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if !told {
			told = true
			c.report("waiting for another process that builds the programs")
		}
		select {
		case <-ctx.Done():
			_ = file.Close()
			return nil, fmt.Errorf("wait for the lock %s: %w", path, ctx.Err())
		case <-time.After(lockPollInterval):
		}
	}
}

// fill builds the entry. The caller holds its lock, so what stands under the
// temporary name was left there by a process that died.
func (c *cache) fill(ctx context.Context, entry string) error {
	temporary := entry + ".tmp"
	for _, stale := range []string{temporary, entry} {
		if err := os.RemoveAll(stale); err != nil {
			return fmt.Errorf("clear the cache of %s: %w", c.module.Name, err)
		}
	}
	if err := os.Mkdir(temporary, 0o755); err != nil {
		return fmt.Errorf("make the cache of %s: %w", c.module.Name, err)
	}
	if err := c.buildWithProgress(ctx, temporary); err != nil {
		return errors.Join(err, os.RemoveAll(temporary))
	}
	if missing := Missing(temporary, c.module.Programs...); len(missing) > 0 {
		return fmt.Errorf("build %s: %s lacks %v", c.module.Name, temporary, missing)
	}
	if err := os.Rename(temporary, entry); err != nil {
		return fmt.Errorf("put the built %s in place: %w", c.module.Name, err)
	}
	return nil
}

func (c *cache) buildWithProgress(ctx context.Context, out string) error {
	c.report("building %s from source; needed once, usually %s", enumerate(c.module.Programs), c.module.Takes)
	start := time.Now()
	result := make(chan error, 1)
	go func() { result <- c.build(ctx, c.source, out) }()

	ticker := time.NewTicker(buildReportInterval)
	defer ticker.Stop()
	for {
		select {
		case err := <-result:
			elapsed := time.Since(start).Round(time.Second)
			if err != nil {
				c.report("build failed after %s", elapsed)
				return fmt.Errorf("build %s: %w", c.module.Name, err)
			}
			c.report("done in %s", elapsed)
			return nil
		case <-ticker.C:
			c.report("still building, %s so far", time.Since(start).Round(time.Second))
		}
	}
}

func (c *cache) report(format string, args ...any) {
	Report(c.progress, c.module.Name, format, args...)
}

// enumerate names things in a sentence.
func enumerate(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
