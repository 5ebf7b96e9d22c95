// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/appuio/managed-upgrade-operator/test/programs"
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

// moduleName is how a control plane is called in progress, folders and errors.
const moduleName = "controlplane"

// module builds one program that plays the part of the name it is called by.
var module = programs.Module{
	Name:        moduleName,
	Source:      "test/controlplane/binaries",
	Package:     ".",
	Pinned:      "k8s.io/kubernetes",
	LinkerFlags: versionFlags,
	Binary:      "kubernetes",
	Programs:    allPrograms,
	Takes:       "4 to 5 minutes on 2 cores",
}

// Assets returns the absolute path of the folder with etcd, kube-apiserver,
// kube-controller-manager and kubectl.
//
// KUBEBUILDER_ASSETS wins when it is set: the folder is taken as it is, and an
// error names what it lacks. Only kube-controller-manager may be missing there,
// because the envtest archives come without it.
//
// Otherwise the programs are built from the module in the folder binaries, on
// first use, and kept in the user's cache folder. A build takes minutes, and w is
// told of its progress; nothing is written to w when the programs exist. The
// working directory has to lie within the repository.
func Assets(ctx context.Context, w io.Writer) (string, error) {
	if dir := os.Getenv(assetsVariable); dir != "" {
		return readyMadeAssets(dir)
	}
	dir, err := module.Ensure(ctx, w)
	if errors.Is(err, programs.ErrOutsideRepository) {
		return "", fmt.Errorf("%w, or set %s", err, assetsVariable)
	}
	return dir, err
}

// readyMadeAssets checks the folder that the user chose.
func readyMadeAssets(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("resolve %s: %w", assetsVariable, err)
	}
	if missing := programs.Missing(dir, etcdProgram, apiServerProgram, kubectlProgram); len(missing) > 0 {
		return "", fmt.Errorf("%s=%s has no executable %s: point it at a complete folder, or unset it to have the programs built",
			assetsVariable, dir, strings.Join(missing, ", "))
	}
	return dir, nil
}

// versionFlags set the version that /version and `kubectl version` tell: Kubernetes'
// own builds set it in the same way.
func versionFlags(version string) []string {
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	var flags []string
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags,
			"-X", pkg+".gitVersion="+version,
			"-X", pkg+".gitMajor="+major,
			"-X", pkg+".gitMinor="+minor)
	}
	return flags
}
