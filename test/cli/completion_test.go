// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCompletion completes the name of an object, as kubectl asks for it, and has bash complete the program by the name of its file.
func TestCompletion(t *testing.T) {
	newCluster(t).create(weekly())
	viewer := aUser(t, "viewer", viewerRole)

	program := filepath.Join(plugins, "kubectl_complete-managed_upgrade")
	if err := os.WriteFile(program, []byte(viewer.must("completion", "plugin")), 0o700); err != nil {
		t.Fatal(err)
	}
	config := weekly()
	got := viewer.executes("", env.Kubectl(), "__complete", "managed-upgrade", "preview", "w")
	if want := config.Name + "\t" + config.Spec.Schedule.Cron + "\n:4\n"; got.status != 0 || got.stdout != want { // stderr has what kubectl says to who debugs it
		t.Errorf("kubectl gets %+v, want %q", got, want)
	}

	const registered = "source <(kubectl-managed_upgrade completion bash) && complete -p kubectl-managed_upgrade"
	if got = viewer.executes("", "bash", "-c", registered); got.status != 0 || !strings.HasSuffix(got.stdout, " kubectl-managed_upgrade\n") {
		t.Errorf("bash does not complete the program: %+v", got)
	}
}
