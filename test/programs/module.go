// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrOutsideRepository is why the source of programs is not found.
var ErrOutsideRepository = errors.New("run this from within the repository")

// Module is a Go module of this repository that pins the version of programs, apart
// from the go.mod of the operator, and is built to get them.
type Module struct {
	// Name of what is built: a folder of the cache, and the beginning of each line
	// of progress.
	Name string
	// Source is the folder of the module, from the root of the repository, with
	// slashes.
	Source string
	// Package is what is built, as the go command takes it.
	Package string
	// Flags are further flags of go build, such as tags.
	Flags []string
	// Pinned is the path of the required module whose version the programs are of.
	Pinned string
	// LinkerFlags are added to those that drop debug information. They usually tell
	// the programs their version, with the leading v. Nil adds none.
	LinkerFlags func(version string) []string
	// Binary is the name of the file that is built, and Programs are the names by
	// which it is called: those that differ are symbolic links to it.
	Binary   string
	Programs []string
	// Takes tells a person how long a first build lasts.
	Takes string
}

// Ensure returns the absolute path of the folder with the programs.
//
// They are built on first use, and kept in the user's cache folder. A build takes
// minutes, and w is told of its progress; nothing is written to w when the programs
// exist. Any number of processes may call Ensure at the same time: one builds, the
// others wait for it. The source is found from the working directory, which has to
// lie within the repository: otherwise the error is ErrOutsideRepository.
func (m Module) Ensure(ctx context.Context, w io.Writer) (string, error) {
	source, err := m.findSource()
	if err != nil {
		return "", err
	}
	cacheDir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a cache folder for %s: %w", m.Name, err)
	}
	toolchain, err := newGoToolchain(ctx, m, source)
	if err != nil {
		return "", err
	}
	c := &cache{
		module:   m,
		root:     filepath.Join(cacheDir, "managed-upgrade-operator", m.Name),
		source:   source,
		recipe:   toolchain.recipe(),
		build:    toolchain.build,
		progress: w,
	}
	return c.get(ctx)
}

// findSource looks upwards from the working directory instead of asking
// runtime.Caller, whose answer is no path when the caller was built with -trimpath.
func (m Module) findSource() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the source of %s: %w", m.Name, err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		source := filepath.Join(dir, filepath.FromSlash(m.Source))
		_, err := os.Stat(filepath.Join(source, "go.mod"))
		if err == nil {
			return source, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("find the source of %s: %w", m.Name, err)
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find %s above %s: %w", m.Source, start, ErrOutsideRepository)
		}
	}
}

// Missing returns those of the names that are no executable files in dir.
func Missing(dir string, names ...string) []string {
	var missing []string
	for _, name := range names {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
			missing = append(missing, name)
		}
	}
	return missing
}

// Report writes one line of progress of what has the name; a nil writer keeps
// silent. Progress is a courtesy, so a writer that fails does not stop the work.
func Report(w io.Writer, name, format string, args ...any) {
	if w != nil {
		_, _ = fmt.Fprintf(w, "%s: "+format+"\n", append([]any{name}, args...)...)
	}
}
