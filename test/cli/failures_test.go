// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/appuio/managed-upgrade-operator/test/controlplane"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// allCommands are all commands, each in a form that would do something.
var allCommands = []string{
	"status", "status -o json", "status -o html", "history", "describe night", "versions", "nodes", "preview", "check",
	"start weekly --yes", "resume night --yes", "suspend weekly", "unsuspend weekly", "freeze --to 2099-01-01 --reason never --all", "release-pools --yes",
}

// fails wants commands to end with a status, to print nothing but an error of one line, and that to be as in testdata/failures.
func (u user) fails(file string, status int, commands ...string) {
	u.t.Helper()
	u.complains(file, status, false, commands...)
}

// refused is fails for commands that act, and say what they would do before the cluster refuses it.
func (u user) refused(file string, commands ...string) {
	u.t.Helper()
	u.complains(file, 1, true, commands...)
}

func (u user) complains(file string, status int, mayPrint bool, commands ...string) {
	u.t.Helper()
	var b strings.Builder
	for _, command := range commands {
		a := u.runs(strings.Fields(command)...)
		fmt.Fprintf(&b, "$ kubectl managed-upgrade %s\n%s", command, normalise(a.stderr))
		if a.status != status {
			u.t.Errorf("%s: %s ends with %d, want %d", file, command, a.status, status)
		}
		if a.stdout != "" && !mayPrint {
			u.t.Errorf("%s: %s prints something besides its error:\n%s", file, command, a.stdout)
		}
		if !strings.HasPrefix(a.stderr, "error: ") || strings.Count(a.stderr, "\n") != 1 {
			u.t.Errorf("%s: the error of %s is not one line:\n%s", file, command, a.stderr)
		}
	}
	file = "failures/" + file
	if *update {
		u.write(file, 0, b.String)
		return
	}
	if diff := cmp.Diff(u.testdata(file), b.String()); diff != "" {
		u.t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// TestWithoutAccess has every command say what is in its way.
func TestWithoutAccess(t *testing.T) {
	u := user{t, filepath.Join(t.TempDir(), "not-there")}
	u.fails("no-kubeconfig", 1, allCommands...)

	u.kubeconfig = filepath.Join(t.TempDir(), "unreachable")
	if err := env.WriteKubeconfig(u.kubeconfig, "token", controlplane.ThroughServer("https://"+closedPort(t), nil)); err != nil {
		t.Fatal(err)
	}
	u.fails("unreachable", 1, allCommands...)

	u.kubeconfig = filepath.Join(t.TempDir(), "stranger")
	if err := env.WriteKubeconfig(u.kubeconfig, "expired"); err != nil {
		t.Fatal(err)
	}
	u.fails("expired-token", 1, allCommands...)

	nobody := aUser(t, "nobody")
	nobody.fails("forbidden", 1, allCommands...)
}

// TestWrongNames has the commands that take a name say that it is wrong, and those that are wrong altogether be refused.
func TestWrongNames(t *testing.T) {
	newCluster(t).create(weekly())
	editor := aUser(t, "editor", viewerRole, editorRole, releaserRole)
	editor.fails("wrong-name", 1,
		"status nightly", "describe nightly", "preview nightly", "check nightly", "check --job nightly", "start nightly --yes", "resume nightly --yes",
		"suspend nightly", "unsuspend nightly", "release-pools nightly --yes")
	editor.fails("usage", 2,
		"frobnicate", "status --frobnicate", "status a b", "status -o frob", "describe", "preview --count 0", "start", "resume", "suspend", "unsuspend", "freeze --reason x",
		"check a b", "status -w -o html")
}

// TestWithoutKinds runs all commands on a cluster that is no OpenShift, and on an OpenShift cluster without the operator.
func TestWithoutKinds(t *testing.T) {
	bare, err := controlplane.Start(t.Context(), controlplane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bare.Stop(); err != nil {
			t.Error(err)
		}
	})
	u := user{t, bare.Kubeconfig()}
	u.fails("no-openshift", 1, allCommands...)

	openshiftCRDs, err := sim.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := envtest.InstallCRDs(bare.Config(), envtest.CRDInstallOptions{CRDs: openshiftCRDs}); err != nil {
		t.Fatal(err)
	}
	if err := sim.Install(t.Context(), bare.Config(), sim.Default()); err != nil {
		t.Fatal(err)
	}
	// Neither the health of the cluster nor its pools need a kind of ours.
	ours := slices.DeleteFunc(slices.Clone(allCommands), func(command string) bool { return command == "check" || command == "release-pools --yes" })
	u.fails("no-operator", 1, ours...)
}

// closedPort is an address on which nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
