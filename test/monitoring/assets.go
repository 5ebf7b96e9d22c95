// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"io"
	"path/filepath"
	"strings"

	"github.com/appuio/managed-upgrade-operator/test/programs"
)

var prometheusModule = programs.Module{
	Name:    "prometheus",
	Source:  "test/monitoring/binaries/prometheus",
	Package: "github.com/prometheus/prometheus/cmd/prometheus",
	// Without the service discoveries, which are most of its dependencies.
	Flags:       []string{"-tags", "remove_all_sd"},
	Pinned:      "github.com/prometheus/prometheus",
	LinkerFlags: versionFlags,
	Binary:      "prometheus",
	Programs:    []string{"prometheus"},
	Takes:       "2 minutes on 2 cores",
}

// promtoolModule is what checks rules and runs their unit tests, of the same version as the Prometheus that tests start.
var promtoolModule = programs.Module{
	Name:        "promtool",
	Source:      prometheusModule.Source,
	Package:     "github.com/prometheus/prometheus/cmd/promtool",
	Flags:       prometheusModule.Flags,
	Pinned:      prometheusModule.Pinned,
	LinkerFlags: versionFlags,
	Binary:      "promtool",
	Programs:    []string{"promtool"},
	Takes:       "2 minutes on 2 cores, less after Prometheus",
}

var alertmanagerModule = programs.Module{
	Name:        "alertmanager",
	Source:      "test/monitoring/binaries/alertmanager",
	Package:     "github.com/prometheus/alertmanager/cmd/alertmanager",
	Pinned:      "github.com/prometheus/alertmanager",
	LinkerFlags: versionFlags,
	Binary:      "alertmanager",
	Programs:    []string{"alertmanager"},
	Takes:       "30 to 60 seconds on 2 cores",
}

// EnsurePrograms builds Prometheus, promtool and Alertmanager if need be, which takes minutes,
// and tells w of its progress. Starting them does so too; this is for doing it
// beforehand. The working directory has to lie within the repository.
func EnsurePrograms(ctx context.Context, w io.Writer) error {
	for _, module := range []programs.Module{prometheusModule, promtoolModule, alertmanagerModule} {
		if _, err := module.Ensure(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// Promtool returns the path of Prometheus's promtool, building it if need be, which
// takes minutes, and tells w of its progress. The working directory has to lie within
// the repository.
func Promtool(ctx context.Context, w io.Writer) (string, error) {
	return ensureProgram(ctx, promtoolModule, w)
}

// ensureProgram returns the path of the only program of a module.
func ensureProgram(ctx context.Context, module programs.Module, w io.Writer) (string, error) {
	dir, err := module.Ensure(ctx, w)
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, module.Binary), nil
}

// versionFlags set the version that the programs tell, as their own builds do.
func versionFlags(version string) []string {
	return []string{"-X", "github.com/prometheus/common/version.Version=" + strings.TrimPrefix(version, "v")}
}
