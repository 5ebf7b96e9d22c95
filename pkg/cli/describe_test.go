// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/lifecycle"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// eventful is a job that failed, was resumed, and goes on.
func eventful() *v1beta1.UpgradeJob {
	return upgradeJob(withHooks, withReceivers, started(time.Minute, preflightSteps...),
		waiting(steps.ConditionControlPlaneUpgraded, 11*time.Minute, v1beta1.ReasonControlPlaneUpdating, "Working towards 4.18.2"),
		finished(v1beta1.Failed(v1beta1.ReasonTimedOut, "The job did not end by 2026-11-25T09:00:00Z."), 12*time.Hour),
		func(job *v1beta1.UpgradeJob) {
			job.Spec.ResumeRequest = "ticket-4711"
			lifecycle.Resume(job, window.Add(13*time.Hour))
			lifecycle.SetStarted(job, "4.18.1", window.Add(13*time.Hour))
			last := &job.Status.Steps[len(job.Status.Steps)-1]
			last.StartTime, last.Attempts = at(13*time.Hour), 2
			job.Status.Stages = []v1beta1.StageStatus{{Stage: v1beta1.StageControlPlaneStarted, Time: at(9 * time.Minute)}}
			job.Status.MaintenanceWindows = []v1beta1.MaintenanceWindowStatus{{
				Name: v1beta1.ControlPlaneWindow, StartTime: at(8 * time.Minute), Until: at(98 * time.Minute), Warning: "Alertmanager is away",
			}}
			job.Status.Pools = []v1beta1.MachineConfigPoolStatus{
				{Name: "night", State: v1beta1.PoolStatePaused, Paused: true, PausedBy: job.LockKey(), UnpauseAfter: new(at(16 * time.Hour)), Machines: 3},
				{Name: "worker", State: v1beta1.PoolStateUpdating, Machines: 12, Updated: 5, Unavailable: 1},
			}
			job.Status.ExtraMachines = &v1beta1.ExtraMachinesStatus{Wanted: 3, Ready: 2}
		})
}

func TestDescribe(t *testing.T) {
	job := eventful()
	c := world(append(cluster(), weekly(), job)...).Build()
	for line, file := range map[string]string{"describe " + job.Name: "text", "describe upgrades/" + job.Name + " -o yaml": "yaml", "status": "status"} {
		out, errOut, status := runTool(t, c, window.Add(14*time.Hour), strings.Fields(line)...)
		if status != ExitOK || errOut != "" {
			t.Errorf("%s: exit status %d, %s", line, status, errOut)
		}
		golden(t, "look/describe/"+file+".txt", out)
	}
}

func TestDescribeWantsAJobThatIsThere(t *testing.T) {
	other := upgradeJob()
	other.Namespace = "elsewhere"
	c := world(append(cluster(), upgradeJob(), other)...).Build()
	for _, tc := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"describe"}, ExitUsage, "want one argument, the name of an UpgradeJob"},
		{[]string{"describe", "a", "b"}, ExitUsage, "want one argument, the name of an UpgradeJob"},
		{[]string{"describe", "nobody"}, ExitFailed, `there is no UpgradeJob "nobody": there are elsewhere/weekly-1795554000-abc1234, upgrades/weekly-1795554000-abc1234`},
		{[]string{"describe", other.Name}, ExitFailed, `several namespaces have an UpgradeJob`},
		{[]string{"describe", other.Name, "-n", "nowhere"}, ExitFailed, "nor any other"},
		{[]string{"describe", other.Name, "-n", "elsewhere"}, ExitOK, ""},
		{[]string{"describe", other.Name, "-o", "wide"}, ExitUsage, `--output is "wide": want one of json, yaml`},
		{[]string{"status", "-w", "-o", "html"}, ExitUsage, "--watch does not go with"},
		{[]string{"status", "-w", "--interval", "10ms"}, ExitUsage, "at least 1s"},
		{[]string{"status", "--nonsense"}, ExitUsage, "unknown flag: --nonsense"},
		{[]string{"descrbe"}, ExitUsage, `there is no command "descrbe": is it describe?`},
		{[]string{"frobnicate"}, ExitUsage, `there is no command "frobnicate"`},
		{[]string{"history", "x"}, ExitUsage, "want no argument; got 1"},
	} {
		t.Run(strings.Join(tc.args, " "), func(t *testing.T) {
			_, errOut, status := runTool(t, c, window, tc.args...)
			if status != tc.status || !strings.Contains(errOut, tc.want) || (tc.want == "") != (errOut == "") {
				t.Errorf("exit status %d, %q; want %d, %q", status, errOut, tc.status, tc.want)
			}
		})
	}
}

func TestCompletion(t *testing.T) {
	c := world(append(cluster(), weekly(), upgradeJob(), upgradeJob(jobNamed("other", 0)))...).Build()
	for line, want := range map[string]string{
		"__complete status w":         "weekly-1795554000-abc1234\tPending 4.18.2\n:4\n",
		"__complete describe other x": ":4\n",
		"__complete nodes --pool m":   "master\t3 machines\n:4\n",
		"__complete history -o j":     "json\nyaml\nwide\n:4\n",
	} {
		out, _, status := runTool(t, c, window, strings.Fields(line)...)
		if status != ExitOK || out != want {
			t.Errorf("%s: exit status %d, %q, want %q", line, status, out, want)
		}
	}
}

func TestHelp(t *testing.T) {
	c := world().Build()
	out, _, status := runTool(t, c, window, "status", "--help")
	if status != ExitOK || !strings.Contains(out, "oc managed-upgrade status -w") || strings.Contains(out, "--as-group") || !strings.Contains(out, `Use "oc managed-upgrade options"`) {
		t.Errorf("exit status %d, it says\n%s", status, out)
	}
	out, _, status = runTool(t, c, window, "options")
	if status != ExitOK || !strings.Contains(out, "--as-group") || !strings.Contains(out, "--request-timeout") {
		t.Errorf("exit status %d, it says\n%s", status, out)
	}
	if got := programName("/usr/local/bin/kubectl-managed_upgrade"); got != "kubectl managed-upgrade" {
		t.Errorf("called by kubectl it is %q", got)
	}
}

// The completion is for the name by which the program is called.
func TestCompletionPrograms(t *testing.T) {
	for path, want := range map[string]struct{ plugin, bash string }{
		"oc-managed_upgrade":               {"#!/bin/sh\nexec oc managed-upgrade __complete \"$@\"\n", "-F __start_oc-managed_upgrade oc-managed_upgrade\n"},
		"/opt/bin/kubectl-managed_upgrade": {"#!/bin/sh\nexec kubectl managed-upgrade __complete \"$@\"\n", "-F __start_kubectl-managed_upgrade kubectl-managed_upgrade\n"},
	} {
		for shell, want := range map[string]string{"plugin": want.plugin, "bash": want.bash} {
			var out, errOut bytes.Buffer
			status := Run(t.Context(), []string{"completion", shell}, genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &errOut}, Options{Program: path})
			if status != ExitOK || errOut.Len() > 0 || !strings.Contains(out.String(), want) {
				t.Errorf("%s completion %s: exit status %d, %q, want %q", path, shell, status, out.String(), want)
			}
		}
	}
}
