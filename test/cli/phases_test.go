// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"golang.org/x/net/html"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/test/environment"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// looks compares what commands print at a phase with testdata/<phase>: commands that succeed, without arguments but those here.
func (u user) looks(phase string, commands ...string) {
	u.t.Helper()
	for _, command := range commands {
		args := strings.Fields(command)
		u.prints(path.Join(phase, strings.ReplaceAll(command, " ", "_")), 0, args...)
	}
}

// checks compares the health checks at a phase.
func (u user) checks(phase string, status int, args ...string) {
	u.t.Helper()
	m := env.Monitoring
	u.prints(path.Join(phase, "check"), status, append([]string{"check", "--prometheus-url", m.Prometheus.URL(), "--alertmanager-url", m.Alertmanager.URL()}, args...)...)
}

// TestPhases looks at an upgrade from before there is one to after its end, held at each phase by what holds real ones. Everything is read with the role viewer.
func TestPhases(t *testing.T) {
	c := newCluster(t)
	u := aUser(t, "viewer", viewerRole)

	u.looks("idle", "status", "history", "history -o wide", "versions", "nodes", "preview")
	u.checks("idle", 0)
	c.change(func(s *sim.Scenario) { s.Operators = []sim.OperatorFault{{Name: "dns", Degraded: true}} })
	u.checks("degraded", 1)
	u.looks("degraded", "status")
	c.change(func(s *sim.Scenario) { s.Operators = nil })
	u.checks("idle", 0)

	hook := aHook(sim.OutcomeHang, v1beta1.HookFailureAbort)
	c.create(hook)
	c.create(weekly(pinnedNow))
	job := c.onlyJob()
	u.looks("pending", "status", "status -o wide", "preview", "preview weekly -o wide", "history", "versions")
	u.prints("pending/describe", 0, "describe", job.Name)
	u.checks("pending", 0, "--job", job.Name)

	// The control plane stops half-way, and later a worker.
	c.change(func(s *sim.Scenario) { s.Operators = []sim.OperatorFault{{Name: "dns", NeverReports: true}} })
	budget := c.holdDrain("worker-1")
	now := time.Now().Truncate(time.Second)
	edit(c, job, func(job *v1beta1.UpgradeJob) {
		job.Spec.StartAfter, job.Spec.StartBefore = metav1.NewTime(now), metav1.NewTime(now.Add(time.Hour))
	})
	u.looks("hooks", "status", "nodes")
	u.prints("hooks/describe", 0, "describe", job.Name)

	c.letHook(job, sim.OutcomeSucceed)
	c.heldBy(job, "ClusterOperatorUpdating")
	u.looks("control-plane", "status", "versions", "nodes", "history -o wide")
	u.prints("control-plane/describe", 0, "describe", job.Name)

	c.change(func(s *sim.Scenario) { s.Operators = nil })
	c.heldBy(job, "DrainBlocked")
	u.looks("stuck-drain", "status", "status -o wide", "nodes", "versions")
	u.prints("stuck-drain/describe", 0, "describe", job.Name)
	status := u.must("status")
	for _, want := range []string{"shop/cart-0", "PodDisruptionBudget shop/cart", "worker-1"} {
		if !strings.Contains(status, want) {
			t.Errorf("status does not name %s of a drain that is stuck:\n%s", want, status)
		}
	}
	u.reportDraws(job.Name, "MachineConfigPoolsUpgraded", "worker-1", "PodDisruptionBudget shop/cart")

	if err := env.Client.Delete(c.ctx, budget); err != nil {
		t.Fatal(err)
	}
	c.reaches(job, v1beta1.PhaseSucceeded)
	u.looks("succeeded", "status", "history", "history -o wide", "versions", "nodes", "preview")
	u.prints("succeeded/describe", 0, "describe", job.Name)
	u.checks("succeeded", 0)
	u.reportDraws(job.Name, "DelayedPoolsUpgraded", "Succeeded", "backup")
}

// TestDelayedPools looks at a job that waits for the time of a pool, at the same job when it has failed and left the pool paused, and releases the pool.
func TestDelayedPools(t *testing.T) {
	c := newCluster(t)
	u := aUser(t, "viewer", viewerRole)
	job := aJob("delayed", offered, delayingInfra)
	c.create(job)
	c.reaches(job, v1beta1.PhasePaused)
	u.looks("paused", "status", "nodes", "versions", "describe delayed", "history")

	releaser := aUser(t, "releaser", viewerRole, releaserRole)
	releaser.says("paused/release-pools", 1, "release-pools", "infra", "--yes")
	c.pausedPool("infra", true)

	// A job that is deleted leaves the pool as it is, and is not there any more to release it.
	if err := env.Client.Delete(c.ctx, job); err != nil {
		t.Fatal(err)
	}
	c.eventually("the job is gone", func() error {
		if err := env.Client.Get(c.ctx, client.ObjectKeyFromObject(job), job); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
	u.looks("gone", "status")
	releaser.says("gone/release-pools", 0, "release-pools", "infra", "--yes")
	c.follows("infra")

	// The next one fails half-way, because somebody changes the cluster's desired update.
	c.change(func(s *sim.Scenario) { s.Operators = []sim.OperatorFault{{Name: "dns", NeverReports: true}} })
	job = aJob("failing", later, delayingInfra)
	c.create(job)
	c.eventually("the cluster is being updated", func() error {
		if history := c.version().Status.History; history[0].Version != later {
			return fmt.Errorf("the history begins with %+v", history[0])
		}
		return nil
	})
	edit(c, c.version(), func(cv *configv1.ClusterVersion) { cv.Spec.DesiredUpdate = &configv1.Update{Version: "4.18.77"} })
	c.reaches(job, v1beta1.PhaseFailed)
	edit(c, c.version(), func(cv *configv1.ClusterVersion) {
		cv.Spec.DesiredUpdate = &configv1.Update{Version: later, Image: sim.Image(later)}
	})
	c.change(func(s *sim.Scenario) { s.Operators = nil })
	u.looks("failed", "status", "nodes", "history", "describe failing")
	u.reportDraws("failing", "left paused by the job", "UpgradeSuperseded", "infra")

	// Nobody but who may change pools releases it, and not without being asked.
	u.says("failed/release-pools-viewer", 1, "release-pools", "--yes")
	releaser.says("failed/release-pools-unconfirmed", 1, "release-pools")
	c.pausedPool("infra", true)
	releaser.says("failed/release-pools", 0, "release-pools", "--yes")
	c.follows("infra")
	u.looks("released", "status")
}

// follows waits until a pool is not paused, and its machines have the configuration of the release.
func (c *cluster) follows(name string) {
	c.t.Helper()
	c.eventually("the pool follows", func() error {
		pool := c.pool(name)
		if pool.Spec.Paused || pool.Status.UpdatedMachineCount != pool.Status.MachineCount || pool.Status.Configuration.Name != pool.Spec.Configuration.Name {
			return fmt.Errorf("paused is %t, %d machines are updated", pool.Spec.Paused, pool.Status.UpdatedMachineCount)
		}
		return nil
	})
}

// TestSkipped looks at a job that a suspension window kept from starting.
func TestSkipped(t *testing.T) {
	c := newCluster(t)
	u := aUser(t, "viewer", viewerRole)
	c.create(&v1beta1.UpgradeSuspensionWindow{
		ObjectMeta: metav1.ObjectMeta{Namespace: environment.Namespace, Name: "freeze"},
		Spec: v1beta1.UpgradeSuspensionWindowSpec{
			Start: metav1.NewTime(time.Now().Add(-time.Hour)), End: metav1.NewTime(time.Now().Add(time.Hour)), Reason: "year-end change freeze", JobSelector: &metav1.LabelSelector{},
		},
	})
	job := aJob("held", offered)
	c.create(job)
	c.reaches(job, v1beta1.PhaseSkipped)
	u.looks("skipped", "status", "history", "describe held", "versions")
	u.reportDraws("held", "Skipped", "Suspended")
}

// heldBy waits until a job tells of a blocker: progress is recorded every ten seconds.
func (c *cluster) heldBy(job *v1beta1.UpgradeJob, code string) {
	c.t.Helper()
	c.eventually("the job tells of "+code, func() error {
		c.get(job)
		if !slices.ContainsFunc(job.Status.Blockers, func(b v1beta1.Blocker) bool { return b.Code == code }) {
			return fmt.Errorf("it tells of %+v", job.Status.Blockers)
		}
		return nil
	})
}

// onlyJob waits for the job of the config, and returns it.
func (c *cluster) onlyJob() *v1beta1.UpgradeJob {
	c.t.Helper()
	jobs := &v1beta1.UpgradeJobList{}
	c.eventually("the config makes a job", func() error {
		if err := env.Client.List(c.ctx, jobs); err != nil {
			return err
		}
		if len(jobs.Items) != 1 {
			return fmt.Errorf("there are %d", len(jobs.Items))
		}
		return nil
	})
	return &jobs.Items[0]
}

func (c *cluster) pool(name string) *mcfgv1.MachineConfigPool {
	c.t.Helper()
	pool := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.get(pool)
	return pool
}

// pausedPool wants a pool to be paused, or not to be.
func (c *cluster) pausedPool(name string, want bool) {
	c.t.Helper()
	if pool := c.pool(name); pool.Spec.Paused != want {
		c.t.Errorf("pool %s: paused is %t", name, pool.Spec.Paused)
	}
}

// reportDraws wants the HTML report of a job to be a page with a picture and these words.
func (u user) reportDraws(job string, wanted ...string) {
	u.t.Helper()
	page := u.must("status", job, "-o", "html")
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		u.t.Fatal(err)
	}
	bars := 0
	for node := range root.Descendants() {
		for _, a := range node.Attr {
			if node.Data == "rect" && a.Key == "class" && strings.HasPrefix(a.Val, "bar ") {
				bars++
			}
		}
	}
	if bars == 0 && !strings.Contains(page, "Skipped") {
		u.t.Error("the report draws nothing")
	}
	for _, want := range wanted {
		if !strings.Contains(page, want) {
			u.t.Errorf("the report does not say %q", want)
		}
	}
}
