// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

const ofWorkers = v1beta1.WorkersWindow

// newWorkers is a cluster whose control plane is upgraded, and whose other pools are these.
func newWorkers(t *testing.T, job *v1beta1.UpgradeJob, pools ...*mcfgv1.MachineConfigPool) *maintained {
	t.Helper()
	m := newMaintained(t, append(renderedConfigs("master", "worker", "infra"), job)...)
	m.put(pool("master", openshifttest.PoolTowards(target, 0))) // does not count, whatever it does
	for _, p := range pools {
		m.put(p)
	}
	m.update(openshifttest.Desired(target), completed)
	return m
}

// towards is a pool of so many machines, of which so many run the new release.
func towards(name string, machines, updated int32, maxUnavailable string) *mcfgv1.MachineConfigPool {
	p := pool(name, openshifttest.PoolTowards(target, updated))
	p.Status.MachineCount = machines
	if maxUnavailable != "" {
		p.Spec.MaxUnavailable = ptr.To(intstr.Parse(maxUnavailable))
	}
	return p
}

func TestWorkersWindowLasts(t *testing.T) {
	drains := func(budgets, drain, expected time.Duration) jobOption {
		return func(job *v1beta1.UpgradeJob) {
			job.Spec.Config.PDBForceDrainTimeout = &v1beta1.Duration{Duration: budgets}
			job.Spec.Config.NodeDrain = &v1beta1.NodeDrain{TimeOut: &v1beta1.Duration{Duration: drain}, ExpectedNodeDrainTime: &v1beta1.Duration{Duration: expected}}
		}
	}
	paused := towards("infra", 4, 0, "")
	openshifttest.PoolPaused()(paused)
	for _, tc := range []struct {
		reason    string
		job       []jobOption
		pools     []*mcfgv1.MachineConfigPool
		remaining int
		lasts     time.Duration
	}{
		{reason: "one at a time", pools: []*mcfgv1.MachineConfigPool{towards("worker", 3, 1, "")}, remaining: 2, lasts: 106 * time.Minute},
		{reason: "two at a time", pools: []*mcfgv1.MachineConfigPool{towards("worker", 10, 1, "2")}, remaining: 9, lasts: 5 * 53 * time.Minute},
		{reason: "a share of them, rounded down", pools: []*mcfgv1.MachineConfigPool{towards("worker", 10, 1, "25%")}, remaining: 9, lasts: 5 * 53 * time.Minute},
		{reason: "a small share", pools: []*mcfgv1.MachineConfigPool{towards("worker", 3, 0, "10%")}, remaining: 3, lasts: 3 * 53 * time.Minute},
		{reason: "a number that is none", pools: []*mcfgv1.MachineConfigPool{towards("worker", 3, 0, "some")}, remaining: 3, lasts: 3 * 53 * time.Minute},
		{reason: "two pools at the same time", pools: []*mcfgv1.MachineConfigPool{towards("worker", 2, 0, ""), towards("infra", 3, 0, "")}, remaining: 5, lasts: 3 * 53 * time.Minute},
		{reason: "a paused pool does not move", pools: []*mcfgv1.MachineConfigPool{towards("worker", 3, 0, ""), paused}, remaining: 3, lasts: 3 * 53 * time.Minute},
		{
			reason: "a degraded pool that is not rendered yet", remaining: 3, lasts: 3 * 53 * time.Minute,
			pools: []*mcfgv1.MachineConfigPool{pool("worker", openshifttest.PoolCondition(mcfgv1.MachineConfigPoolRenderDegraded, "no such kernel type"))},
		},
		{reason: "a pool that is not rendered yet", pools: []*mcfgv1.MachineConfigPool{pool("worker")}, remaining: 3, lasts: 3 * 53 * time.Minute},
		{
			reason: "drains of the job's own", job: []jobOption{drains(time.Hour, time.Minute, 2*time.Minute)},
			pools: []*mcfgv1.MachineConfigPool{towards("worker", 3, 0, "")}, remaining: 3, lasts: 3 * 62 * time.Minute,
		},
		{
			reason: "times that are absurd", job: []jobOption{drains(0, 200*365*24*time.Hour, time.Minute)},
			pools: []*mcfgv1.MachineConfigPool{towards("worker", 2000, 0, "")}, remaining: 2000, lasts: 365 * 24 * time.Hour,
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			m := newWorkers(t, newJob(append(tc.job, known)...), tc.pools...)
			m.want(m.pass(steps.WorkersMaintenanceWindowCreated()), 10*time.Minute, "silence-1 until 22:25:00: "+workers(tc.remaining))
			windows := m.job().Status.MaintenanceWindows
			if len(windows) != 1 {
				t.Fatalf("recorded are %+v, want one window", windows)
			}
			w := windows[0]
			if got := w.Until.Sub(start); got != tc.lasts || int(w.Remaining) != tc.remaining {
				t.Errorf("it lasts %s for %d machines, want %s for %d", got, w.Remaining, tc.lasts, tc.remaining)
			}
			if len(m.silences[0].Matchers) != 3 || m.silences[0].Matchers[0].Value != "(warning|info)" {
				t.Errorf("silenced is %+v", m.silences[0].Matchers)
			}
		})
	}
}

func TestWorkersWindowMoves(t *testing.T) {
	m := newWorkers(t, newJob(known), towards("worker", 3, 0, ""))
	step := steps.WorkersMaintenanceWindowCreated()
	m.want(m.pass(step), 10*time.Minute, "silence-1 until 22:25:00: "+workers(3))
	m.records(ofWorkers, "22:00:00 to 00:39:00, silence-1 until 22:25:00")

	m.put(towards("worker", 3, 1, "")) // a machine is done
	m.want(m.at(5*time.Minute).pass(step), 10*time.Minute, "silence-1 until 22:30:00: "+workers(2))
	m.records(ofWorkers, "22:00:00 to 23:51:00, silence-1 until 22:30:00")
	m.says(steps.ConditionWorkersMaintenanceWindowCreated, true, "Alerts are silenced while machines are upgraded, until 2026-11-24T23:51:00Z at most.")

	m.put(towards("worker", 5, 2, "50%")) // two more were added
	m.want(m.at(6*time.Minute).pass(step), 10*time.Minute, "silence-1 until 22:31:00: "+workers(3))
	m.records(ofWorkers, "22:00:00 to 23:52:00, silence-1 until 22:31:00")
	m.put(towards("worker", 6, 2, "100%")) // added machines do not bring the end nearer
	m.want(m.at(7*time.Minute).pass(step), 10*time.Minute, "silence-1 until 22:32:00: "+workers(4))
	m.records(ofWorkers, "22:00:00 to 23:52:00, silence-1 until 22:32:00")

	m.put(towards("worker", 6, 5, "")) // the end is near
	for after := 10 * time.Minute; after <= 50*time.Minute; after += 10 * time.Minute {
		m.at(after).pass(step)
	}
	m.want(m.at(62*time.Minute).pass(step), time.Minute, "silence-1 until 23:03:00: "+workers(1))
	m.want(m.at(63*time.Minute).pass(step), 0) // stuck
	m.says(steps.ConditionWorkersMaintenanceWindowCreated, true, "The window was over at 2026-11-24T23:03:00Z: silences are not renewed any more.")
	m.put(towards("worker", 7, 5, "")) // and on
	m.want(m.at(100*time.Minute).pass(step), 10*time.Minute, "silence-2 until 00:05:00: "+workers(2))

	m.put(pool("worker", openshifttest.PoolAt(target))) // extra machines are still to go
	m.want(m.at(110*time.Minute).pass(step), 10*time.Minute, "silence-2 until 00:15:00: "+workers(2))
	m.want(m.at(111*time.Minute).pass(step, steps.WorkersMaintenanceWindowRemoved()), 9*time.Minute)
	m.put(towards("worker", 3, 0, "")) // by another change, later
	m.want(m.at(120*time.Minute).pass(step, steps.WorkersMaintenanceWindowRemoved()), 0)
	m.records(ofWorkers, "22:00:00 to 23:51:00")
}

func TestWorkersWindowIsNotWaitedFor(t *testing.T) {
	left := towards("worker", 3, 1, "")
	const away = "Alerts are not silenced: Alertmanager answers 503 Service Unavailable."
	for _, tc := range []struct {
		reason  string
		job     []jobOption
		pool    *mcfgv1.MachineConfigPool
		without bool // an Alertmanager
		after   time.Duration
		says    string
	}{
		{reason: "Alertmanager is away", job: []jobOption{commenced}, pool: left, after: time.Minute, says: away},
		{reason: "none is configured", job: []jobOption{commenced}, pool: left, without: true, says: "No alert is silenced: no Alertmanager is configured."},
		{reason: "no machine is left", job: []jobOption{commenced}, pool: pool("worker", openshifttest.PoolAt(target)), says: "No machine is left to upgrade: no alert is silenced."},
		{reason: "no version", job: []jobOption{withoutVersion}, pool: left, says: "The job has no version: nothing is upgraded."},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			m := newWorkers(t, newJob(append(tc.job, known)...), tc.pool)
			m.say("", http.StatusServiceUnavailable)
			if tc.without {
				m.client = nil
			}
			m.want(m.pass(steps.WorkersMaintenanceWindowCreated()), tc.after)
			m.says(steps.ConditionWorkersMaintenanceWindowCreated, true, tc.says)
		})
	}
	// It comes when Alertmanager does, and when machines do.
	m := newWorkers(t, newJob(known, commenced), pool("worker", openshifttest.PoolAt(target)))
	m.pass(steps.WorkersMaintenanceWindowCreated())
	m.put(left)
	m.say("", http.StatusServiceUnavailable)
	m.pass(steps.WorkersMaintenanceWindowCreated())
	m.says(steps.ConditionWorkersMaintenanceWindowCreated, true, away)
	m.say("", 0)
	m.want(m.at(time.Minute).pass(steps.WorkersMaintenanceWindowCreated()), 10*time.Minute, "silence-1 until 22:26:00: "+workers(2))
}

func TestWorkersWindowWithoutPools(t *testing.T) {
	broken := errors.New("no pools today")
	m := newWorkers(t, newJob(known))
	m.api = interceptor.NewClient(m.api, failingList(broken, "MachineConfigPoolList"))
	if result := m.pass(steps.WorkersMaintenanceWindowCreated()); !errors.Is(result.Err, broken) {
		t.Errorf("got %+v, want the error", result)
	}
}
