// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/test/environment"
	"github.com/appuio/managed-upgrade-operator/test/monitoring"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// silencedInItsWindows expects that a job that succeeded had each kind of silence once, as the Managed Upgrade Operator has it, exactly
// while it was due: the control plane's from before the cluster was asked for the release until that was through, the workers' from then
// on until they were.
func (c *cluster) silencedInItsWindows(job *v1beta1.UpgradeJob) {
	c.t.Helper()
	const platform = "alertname!~ManagedUpgrade.*, namespace=~(^openshift.*|^kube.*|^redhat.*|^default$), severity=~(warning|info)"
	criticals := job.Spec.Config.Maintenance.ControlPlaneCriticals
	want := map[string]string{ofControlPlane: platform, ofWorkers: platform}
	if len(criticals) > 0 {
		want[ofCriticals] = "alertname=~(" + strings.Join(criticals, "|") + ")"
	}
	asked := c.desiredUpdateWrites()[0].seen
	for _, s := range c.silencesOf(job) {
		kind := kindOf(s)
		if got := matches(s); want[kind] == "" || got != want[kind] {
			c.t.Errorf("the silence %q matches %s, want %s", s.Comment, got, want[kind])
		}
		delete(want, kind)
		if s.CreatedBy != silencer {
			c.t.Errorf("the silence %q is of %s", s.Comment, s.CreatedBy)
		}
		if kind == ofWorkers {
			c.silencedFrom(s, c.when(job, done(controlPlaneIsDone)), c.when(job, done(workersQuiet)), c.when(job, done(workersUpgraded)), c.when(job, done(workersLoud)))
		} else {
			c.silencedFrom(s, job.Status.StartTime.Time, asked, c.when(job, done(controlPlaneIsDone)), c.when(job, done(controlPlaneLoud)))
		}
	}
	if len(want) > 0 {
		c.t.Errorf("these were never silenced, or twice: %v", want)
	}
}

// silencedFrom expects that a silence began between two moments, and ended between two others. A step is recorded just after it was done.
func (c *cluster) silencedFrom(s monitoring.Silence, notBefore, from, until, notAfter time.Time) {
	c.t.Helper()
	if begin := s.StartsAt; begin.Before(notBefore.Add(-inFlight)) || begin.After(from) {
		c.t.Errorf("the silence %q began at %s, want from %s to %s", s.Comment, begin, notBefore, from)
	}
	if end := s.EndsAt; isActive(s) || end.Before(until.Add(-inFlight)) || end.After(notAfter) {
		c.t.Errorf("the silence %q is %s until %s, want its end from %s to %s", s.Comment, s.Status.State, end, until, notAfter)
	}
}

// Nothing is silenced any more when a job has failed, was skipped, or was deleted in the middle of the upgrade.
func TestSilencesEndWithTheJob(t *testing.T) {
	c := newCluster(t, func(s *sim.Scenario) { s.UpdatesUnknown = &sim.UpdatesUnknown{Reason: "RemoteFailed"} })
	c.startOperator()
	prepared := func(name string, changes ...func(*v1beta1.UpgradeJob)) *v1beta1.UpgradeJob {
		job := aJob(append(changes, named(name), upgradedBy("ARO"), silencing("KubeAPIDown"), attentive())...)
		c.wait(create(c, job), waitingIn(commenced, v1beta1.ReasonUpdatesUnknown))
		c.awaitSilences(job, ofControlPlane, ofCriticals)
		return job
	}
	failing := prepared("fails", timingOutAfter(5*time.Second))
	c.wait(failing, failedFor(v1beta1.ReasonTimedOut), withoutFinalizers())
	c.nothingLeft(failing)

	skipped := prepared("withdrawn")
	c.change(offering("4.18.3"))
	c.change(func(s *sim.Scenario) { s.UpdatesUnknown = nil })
	c.wait(skipped, skippedFor(v1beta1.ReasonUpgradeWithdrawn), withoutFinalizers())
	c.nothingLeft(skipped)

	c.change(offering(offered))
	c.change(stuck("network"))
	c.offers(offered)
	deleted := create(c, aJob(upgradedBy("OSD"), silencing("KubeAPIDown")))
	c.accepted(offered)
	c.awaitSilences(deleted, ofControlPlane, ofCriticals)
	c.remove(deleted)
	c.gone(deleted)
	c.nothingLeft(deleted)
	c.change(mended)
	c.completed(offered)
}

// The operator is killed and comes back: the silences that were there are renewed, and no others made. It is killed again and stays away:
// they are over when the lease is.
func TestSilencesAreALease(t *testing.T) {
	c := newCluster(t, stuck("network"))
	recorder := c.recordSilences()
	running := c.startOperator()
	job := create(c, aJob(upgradedBy("OSD"), silencing("KubeAPIDown")))
	c.accepted(offered)
	c.awaitSilences(job, ofControlPlane, ofCriticals)
	before := c.silencesOf(job)
	running.Kill()
	killed := time.Now()
	running = c.startOperator()
	c.eventually("the silences are renewed", func() error {
		for i, s := range c.silencesOf(job) {
			if s.ID != before[i].ID || !s.StartsAt.Equal(before[i].StartsAt) {
				t.Fatalf("silence %s was followed by %s", before[i].ID, s.ID)
			}
			if s.EndsAt.Before(killed.Add(lease)) {
				return fmt.Errorf("silence %s ends at %s", s.ID, s.EndsAt)
			}
		}
		return c.silenced(job, ofControlPlane, ofCriticals)
	})
	if err := recorder.Look(c.ctx); err != nil {
		t.Fatal(err)
	}
	for _, s := range before {
		if renewals := len(recorder.Of(s.ID)) - 1; renewals < 1 || renewals > 4 {
			t.Errorf("silence %s was changed %d times in %s", s.ID, renewals, time.Since(s.StartsAt))
		}
	}
	running.Kill()
	killed = time.Now()
	c.awaitSilences(job)
	c.notLaterThan("the end of the silences", time.Now(), killed, lease+promptness)

	c.change(mended)
	c.startOperator()
	c.wait(job, succeeded(), withoutFinalizers())
	c.neverTwo(job, recorder)
	c.nothingLeft(job)
}

// The operator is killed when Alertmanager has its silences, and before it has recorded their ids. It finds them by their comments.
func TestSilencesAreFoundAgain(t *testing.T) {
	c := newCluster(t, withLateWorkers)
	recorder := c.recordSilences()
	proxy := c.startProxy()
	running := c.startOperatorThrough(proxy)
	kills := make(chan struct{}, 1)
	killed := false
	victim := running
	proxy.Interpose(func(_ int, w environment.Write) *environment.Fault {
		if killed || w.Method == http.MethodPost || !strings.Contains(w.Body, `"silences":[`) {
			return nil
		}
		killed = true
		return &environment.Fault{Then: func() { victim.Kill(); kills <- struct{}{} }}
	})
	job := create(c, aJob(upgradedBy("OSD"), silencing("KubeAPIDown")))
	select {
	case <-kills:
	case <-c.ctx.Done():
		t.Fatal("no silence was ever recorded")
	}
	c.awaitSilences(job, ofControlPlane, ofCriticals)
	c.startOperatorThrough(proxy)
	c.wait(job, succeeded(), withoutFinalizers())
	if n := len(c.silencesOf(job)); n != 3 {
		t.Errorf("the job had %d silences, want three", n)
	}
	c.silencedInItsWindows(job)
	c.neverTwo(job, recorder)
	c.nothingLeft(job)
	c.upgradedOnce(job)
}

// Alertmanager is away, in one way after the other: the upgrade waits for a while, and then goes on and says so. When Alertmanager is back
// the alerts are silenced.
func TestUpgradeGoesOnWithoutAlertmanager(t *testing.T) {
	c := newCluster(t, stuck("network"))
	g := c.behindGateway()
	back := c.cut(g, monitoring.AwayUnavailable)
	job := create(c, aJob(upgradedBy("OSD"), silencing("KubeAPIDown")))
	c.wait(job, waitingIn(controlPlaneQuiet, v1beta1.ReasonAlertmanagerAway), blockers(1), blockedBy(v1beta1.ReasonAlertmanagerAway, "Alertmanager", "503"))
	c.wait(job, turned(controlPlaneQuiet, metav1.ConditionTrue, v1beta1.ReasonCompleted), saying(controlPlaneQuiet, "503"))
	step := stepOf(t, job, controlPlaneQuiet)
	if waited := step.CompletionTime.Sub(step.StartTime.Time); waited < time.Second || waited > 4*time.Second {
		t.Errorf("the step waited %s, want two seconds", waited)
	}
	c.accepted(offered)
	back()
	c.awaitSilences(job, ofControlPlane, ofCriticals)

	// Nor does it hold up what comes behind.
	back = c.cut(g, monitoring.AwayRefused)
	c.change(mended)
	c.wait(job, done(workersUpgraded))
	back()
	c.wait(job, succeeded(), withoutFinalizers())
	c.nothingLeft(job)
	c.upgradedOnce(job)
}
