// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/test/environment"
)

// The documented commands list what a job has left paused, and release it, when no operator is there any more.
func TestDocumentedCommandsReleaseWhatIsLeftPaused(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(environment.Root(), "docs", "machine-config-pools.md"))
	if err != nil {
		t.Fatal(err)
	}
	var list, release string
	for _, block := range strings.Split(string(page), "```sh\n")[1:] {
		command, _, _ := strings.Cut(block, "```")
		switch {
		case strings.HasPrefix(command, "kubectl get machineconfigpools"):
			list = command
		case strings.HasPrefix(command, "kubectl patch machineconfigpool worker"):
			release = command
		}
	}
	if list == "" || release == "" {
		t.Fatalf("the page has the commands %q and %q", list, release)
	}

	c := newCluster(t, withFewNodes, withPool("foreign", 1))
	c.handPause("foreign", true)
	running := c.startOperator()
	job := c.wait(create(c, aJob(delaying("worker", time.Hour, 0))), waitingIn(steps.ConditionMachineConfigPoolsUpgraded, v1beta1.ReasonMachineConfigPoolsUpdating))
	c.remove(job)
	c.gone(job)
	running.Kill()
	if got, want := c.shell(list), "worker\ttrue\t"+keyOf(job)+"\n"; got != want {
		t.Errorf("the command that lists pools says %q, want %q", got, want)
	}
	c.shell(release)
	c.pool("worker", free, updated)
	c.pool("foreign", pausedByHand)
	if got := c.shell(list); got != "" {
		t.Errorf("the command that lists pools says %q when there is none", got)
	}
}

// shell runs a documented command line as an administrator does.
func (c *cluster) shell(command string) string {
	c.t.Helper()
	cmd := exec.CommandContext(c.ctx, "sh", "-c", command)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+env.Kubeconfig(), "PATH="+filepath.Dir(env.Kubectl())+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}
