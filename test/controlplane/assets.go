// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// The programs of a control plane, by their file names in the assets folder.
const (
	etcdProgram              = "etcd"
	apiServerProgram         = "kube-apiserver"
	controllerManagerProgram = "kube-controller-manager"
	kubectlProgram           = "kubectl"
)

var allPrograms = []string{etcdProgram, apiServerProgram, controllerManagerProgram, kubectlProgram}

// assetsVariable names a folder of ready-made programs. It is the variable of
// controller-runtime's envtest and setup-envtest, so that one setting serves both.
const assetsVariable = "KUBEBUILDER_ASSETS"

// Assets returns the absolute path of the folder with etcd, kube-apiserver,
// kube-controller-manager and kubectl.
//
// KUBEBUILDER_ASSETS wins when it is set: the folder is taken as it is, and an
// error names what it lacks. Only kube-controller-manager may be missing there,
// because the envtest archives come without it.
//
// Otherwise the programs are built from the module in the folder binaries, on
// first use, and kept in the user's cache folder. A build takes minutes, and w is
// told of its progress; nothing is written to w when the programs exist. Any
// number of processes may call Assets at the same time: one builds, the others
// wait for it. The source is found from the working directory, which has to lie
// within the repository.
func Assets(ctx context.Context, w io.Writer) (string, error) {
	if dir := os.Getenv(assetsVariable); dir != "" {
		return readyMadeAssets(dir)
	}
	source, err := findSource()
	if err != nil {
		return "", err
	}
	cacheDir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a cache folder for the control plane: %w", err)
	}
	toolchain, err := newGoToolchain(ctx, source)
	if err != nil {
		return "", err
	}
	cache := &assetsCache{
		root:     filepath.Join(cacheDir, "managed-upgrade-operator", "controlplane"),
		source:   source,
		recipe:   strings.Join([]string{toolchain.goVersion, runtime.GOOS, runtime.GOARCH, toolchain.linkerFlags()}, " "),
		build:    toolchain.build,
		progress: w,
	}
	return cache.get(ctx)
}

// readyMadeAssets checks the folder that the user chose.
func readyMadeAssets(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("resolve %s: %w", assetsVariable, err)
	}
	if missing := missingPrograms(dir, etcdProgram, apiServerProgram, kubectlProgram); len(missing) > 0 {
		return "", fmt.Errorf("%s=%s has no executable %s: point it at a complete folder, or unset it to have the programs built",
			assetsVariable, dir, strings.Join(missing, ", "))
	}
	return dir, nil
}

// missingPrograms returns those of the names that are no executable files in dir.
func missingPrograms(dir string, names ...string) []string {
	var missing []string
	for _, name := range names {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
			missing = append(missing, name)
		}
	}
	return missing
}

// findSource returns the folder of the binaries module. It looks upwards from the
// working directory instead of asking runtime.Caller, whose answer is no path when
// the caller was built with -trimpath.
func findSource() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the source of the control plane: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		source := filepath.Join(dir, "test", "controlplane", "binaries")
		_, err := os.Stat(filepath.Join(source, "go.mod"))
		if err == nil {
			return source, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("find the source of the control plane: %w", err)
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find test/controlplane/binaries above %s: run this from within the repository, or set %s",
				start, assetsVariable)
		}
	}
}
