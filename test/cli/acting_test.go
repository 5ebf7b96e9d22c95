// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// jobs are all UpgradeJobs, the newest last.
func (c *cluster) jobs() []v1beta1.UpgradeJob {
	c.t.Helper()
	list := &v1beta1.UpgradeJobList{}
	if err := env.Client.List(c.ctx, list); err != nil {
		c.t.Fatal(err)
	}
	return list.Items
}

// TestStartAndResume starts a job that fails, resumes it, and starts the next one.
func TestStartAndResume(t *testing.T) {
	c := newCluster(t)
	config, hook := weekly(), aHook(sim.OutcomeFail, v1beta1.HookFailureAbort)
	c.create(config)
	c.create(hook)
	editor := aUser(t, "editor", viewerRole, editorRole)

	editor.says("acting/start-unconfirmed", 1, "start", "weekly")
	editor.says("acting/start-dry-run", 0, "start", "weekly", "--version", offered, "--dry-run")
	if jobs := c.jobs(); len(jobs) != 0 {
		t.Fatalf("nothing was to be done yet, and there are %d jobs", len(jobs))
	}
	out := normalise(editor.must("start", "weekly", "--version", offered, "--yes"))
	job := c.onlyJob()
	if !strings.Contains(out, "weekly-START-HASH") {
		t.Errorf("start does not tell the name of the job %s:\n%s", job.Name, out)
	}
	if !metav1.IsControlledBy(job, config) || job.Spec.DesiredVersion == nil || job.Spec.DesiredVersion.Version != offered {
		t.Errorf("the job is not of the config, or to another version: %+v", job)
	}
	c.reaches(job, v1beta1.PhaseFailed)
	aUser(t, "viewer", viewerRole).prints("acting/hook-failed", 0, "status")

	edit(c, hook, func(hook *v1beta1.UpgradeJobHook) {
		metav1.SetMetaDataAnnotation(&hook.Spec.Template.Spec.Template.ObjectMeta, sim.AnnotationOutcome, sim.OutcomeSucceed)
	})
	editor.says("acting/resume-unconfirmed", 1, "resume", job.Name)
	editor.must("resume", job.Name, "--request", "TICKET-4711", "--yes")
	c.reaches(job, v1beta1.PhaseSucceeded)
	if history := c.version().Status.History; history[0].Version != offered || job.Spec.ResumeRequest != "TICKET-4711" {
		t.Errorf("the cluster runs %s, the request is %q", history[0].Version, job.Spec.ResumeRequest)
	}
	editor.says("acting/resume-succeeded", 1, "resume", job.Name, "--yes")

	// While a job runs no other is started.
	edit(c, hook, func(hook *v1beta1.UpgradeJobHook) {
		metav1.SetMetaDataAnnotation(&hook.Spec.Template.Spec.Template.ObjectMeta, sim.AnnotationOutcome, sim.OutcomeHang)
	})
	editor.must("start", "weekly", "--yes")
	c.eventually("the second job runs", func() error {
		for _, job := range c.jobs() {
			if job.Status.Phase == v1beta1.PhaseActive {
				return nil
			}
		}
		return fmt.Errorf("there are %d jobs", len(c.jobs()))
	})
	editor.says("acting/start-twice", 1, "start", "weekly", "--yes")
	if n := len(c.jobs()); n != 2 {
		t.Errorf("there are %d jobs", n)
	}
}

// TestSuspendAndFreeze keeps a config from creating jobs in both ways.
func TestSuspendAndFreeze(t *testing.T) {
	c := newCluster(t)
	config := weekly()
	c.create(config)
	editor := aUser(t, "editor", viewerRole, editorRole)
	scheduling := func(reason string) {
		t.Helper()
		c.eventually("the config is "+reason, func() error {
			c.get(config)
			if condition := meta.FindStatusCondition(config.Status.Conditions, v1beta1.ConditionScheduling); condition == nil || condition.Reason != reason {
				return fmt.Errorf("it says %+v", config.Status.Conditions)
			}
			return nil
		})
	}
	scheduling(v1beta1.ReasonScheduled)
	editor.says("acting/suspend", 0, "suspend", "weekly")
	scheduling(v1beta1.ReasonSuspended)
	editor.prints("acting/suspended-status", 0, "status")
	editor.says("acting/unsuspend", 0, "unsuspend", "weekly")
	scheduling(v1beta1.ReasonScheduled)
	if config.Spec.Schedule.Suspend {
		t.Error("the config is suspended still")
	}

	start, end := time.Now().Add(-time.Minute).UTC(), time.Now().Add(time.Hour).UTC()
	freeze := []string{"freeze", "--from", start.Format(time.RFC3339), "--to", end.Format(time.RFC3339), "--reason", "year-end change freeze", "--all", "--name", "freeze"}
	editor.says("acting/freeze-dry-run", 0, append(freeze, "--dry-run")...)
	windows := &v1beta1.UpgradeSuspensionWindowList{}
	if err := env.Client.List(c.ctx, windows); err != nil || len(windows.Items) != 0 {
		t.Fatalf("nothing was to be done yet, and there are windows: %v, %v", windows.Items, err)
	}
	editor.must(freeze...)
	if err := env.Client.List(c.ctx, windows, client.InNamespace(config.Namespace)); err != nil || len(windows.Items) != 1 {
		t.Fatalf("the windows are %v, %v", windows.Items, err)
	}
	window := &windows.Items[0]
	if window.Name != "freeze" || window.Spec.Reason != "year-end change freeze" || window.Spec.ConfigSelector == nil || window.Spec.JobSelector == nil ||
		!window.Spec.Start.Time.Equal(start.Truncate(time.Second)) || !window.Spec.End.Time.Equal(end.Truncate(time.Second)) {
		t.Errorf("the window is %+v", window.Spec)
	}
	scheduling(v1beta1.ReasonSuspensionWindow)
	editor.says("acting/start-frozen", 1, "start", "weekly", "--yes")
	if n := len(c.jobs()); n != 0 {
		t.Errorf("there are %d jobs in a freeze", n)
	}
}

// TestViewerChangesNothing has a user who may look, and no more, try every command that acts.
func TestViewerChangesNothing(t *testing.T) {
	c := newCluster(t)
	config, job := weekly(), aJob("night", "4.18.77")
	c.create(config)
	c.create(job)
	c.reaches(job, v1beta1.PhaseSkipped) // UpgradeWithdrawn: nobody offers the version
	before := []string{}
	for _, o := range []client.Object{config, job} {
		c.get(o)
		before = append(before, fmt.Sprint(o.GetGeneration()))
	}
	viewer := aUser(t, "viewer", viewerRole)
	viewer.refused("viewer-acts", "start weekly --yes", "resume night --yes", "suspend weekly", "freeze --to 2099-01-01 --reason never --all")
	for i, o := range []client.Object{config, job} {
		c.get(o)
		if now := fmt.Sprint(o.GetGeneration()); now != before[i] {
			t.Errorf("%T has changed", o)
		}
	}
	if n := len(c.jobs()); n != 1 {
		t.Errorf("there are %d jobs", n)
	}
}
