// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/healthcheck"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// health is a check that answers what it is told, and counts how often it is asked.
type health struct {
	findings []healthcheck.Finding
	recheck  time.Duration
	asked    int
	config   v1beta1.HealthChecks // it was asked with
}

func (*health) Name() string { return "Health" }

func (h *health) Run(_ context.Context, r healthcheck.Request) (healthcheck.Report, error) {
	h.asked++
	h.config = r.Config
	return healthcheck.Report{Findings: append([]healthcheck.Finding{}, h.findings...), Recheck: h.recheck}, nil
}

// The control plane was healthy in the morning. At night, when a pool is due, it has to be as well.
func TestAPoolThatIsDueWaitsForAHealthyCluster(t *testing.T) {
	byMe := openshifttest.PoolPausedBy(me)
	checks := func(job *v1beta1.UpgradeJob) {
		job.Spec.Config.PostUpgradeHealthChecks.CustomQueries = []v1beta1.CustomQuery{{Query: "up == 0"}}
	}
	w := newRelease(t, newJob(checks, delays("infra", 2*time.Hour, 0), delays("gpu", 2*time.Hour, 0), delays("worker", 3*time.Hour, 0)),
		behind("infra", byMe), behind("gpu", byMe), behind("worker", byMe), hookOn("approve", ignored, unpause))
	h := &health{findings: []healthcheck.Finding{finding("ClusterOperator/dns")}, recheck: 7 * time.Second}
	list := []steps.Step{steps.DelayedPoolsUpgraded(h)}
	held := []string{"gpu paused by ns/job", "infra paused by ns/job", "worker paused by ns/job"}

	w.now = start.Add(2*time.Hour - time.Second)
	if got := w.pass(list...); h.asked > 0 || !got.Paused {
		t.Errorf("before a pool is due: got %+v, and the cluster was asked %d times", got, h.asked)
	}

	w.now = start.Add(2 * time.Hour)
	got := w.pass(list...)
	if got.Outcome != steps.Running || got.Paused || got.Reason != v1beta1.ReasonUnhealthy || got.After != 7*time.Second {
		t.Errorf("got %+v, want it to wait for health, and to look again when the check says", got)
	}
	if h.asked != 1 || len(h.config.CustomQueries) != 1 {
		t.Errorf("the cluster was asked %d times with %+v, want once for both pools, with the checks of after the upgrade", h.asked, h.config)
	}
	w.expectPools(held...)
	if runs := w.runs(); len(runs) > 0 {
		t.Errorf("got the runs %v before the pool may be released", runs)
	}
	w.expectCondition("DelayedPoolsUpgraded", "False Unhealthy: 0 of 3 delayed pools are upgraded; worker: paused until 2026-11-25T01:00:00Z; "+
		"gpu: its time has come, and a healthy cluster is waited for; infra: its time has come, and a healthy cluster is waited for. "+
		"The cluster is not healthy: ClusterOperator/dns is sick")
	if diff := cmp.Diff([]string{"Sick ClusterOperator/dns", "MachineConfigPoolDelayed MachineConfigPool/worker"}, blockersOf(w.job())); diff != "" {
		t.Errorf("blockers (-want +got):\n%s", diff)
	}

	h.findings = nil
	w.now = w.now.Add(time.Minute)
	w.pass(list...)
	w.endFor("infra", v1beta1.HookRunSucceeded)
	w.pass(list...)
	w.expectPools("gpu paused by ns/job", "infra free", "worker paused by ns/job")

	h.findings = []healthcheck.Finding{finding("Alert/etcd")} // the machines of the first pool may be why
	w.endFor("gpu", v1beta1.HookRunSucceeded)
	w.pass(list...)
	w.expectPools("gpu paused by ns/job", "infra free", "worker paused by ns/job")
	h.findings = nil
	w.pass(list...)
	w.expectPools("gpu free", "infra free", "worker paused by ns/job")
}

// Health is waited for no longer than the pool may be released.
func TestHealthDoesNotOutlastTheTimeOfAPool(t *testing.T) {
	w := newRelease(t, newJob(delays("infra", time.Hour, 2*time.Hour), commenced), behind("infra", openshifttest.PoolPausedBy(me)))
	h := &health{findings: []healthcheck.Finding{finding("ClusterOperator/dns")}}
	list := []steps.Step{steps.MachineConfigPoolsPaused(), steps.DelayedPoolsUpgraded(h)}
	w.now = start.Add(2*time.Hour - time.Second)
	if got := w.pass(list...); got.After != time.Second || got.Reason != v1beta1.ReasonUnhealthy {
		t.Errorf("got %+v, want it to come back when the time of the pool is over", got)
	}
	w.now = start.Add(2 * time.Hour)
	got := w.pass(list...)
	want := "Delayed pools could not be released in their time: infra by 2026-11-25T00:00:00Z. Last the job waited for: ClusterOperator/dns is sick"
	if got.Outcome != steps.Failed || got.Reason != v1beta1.ReasonUnpausingPoolsExpired || got.Message != want {
		t.Errorf("got %+v, want %q", got, want)
	}
	w.expectPools("infra paused by ns/job")
}

// Pools that move already do not wait for health, which they may be what is missing of.
func TestAPoolThatMovesDoesNotAskForHealth(t *testing.T) {
	w := newRelease(t, newJob(delays("infra", time.Hour, 0), delays("gpu", time.Hour, 0)), pool("infra", openshifttest.PoolTowards(target, 1)), behind("gpu", named(me)))
	w.now = start.Add(2 * time.Hour)
	h := &health{findings: []healthcheck.Finding{finding("Node/infra-0")}}
	if got := w.pass(steps.DelayedPoolsUpgraded(h)); got.Reason != v1beta1.ReasonMachineConfigPoolsUpdating || h.asked > 0 {
		t.Errorf("got %+v, and the cluster was asked %d times", got, h.asked)
	}
	w.expectPools("gpu free", "infra free")
}
