// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// ConditionWorkersMaintenanceWindowCreated is the condition of WorkersMaintenanceWindowCreated.
const ConditionWorkersMaintenanceWindowCreated = "WorkersMaintenanceWindowCreated"

// WorkersMaintenanceWindowCreated has alerts of severity warning and info silenced in the namespaces of the platform while the machines are upgraded that
// are not of the control plane. It renews the silence on the passes in which the machines are waited for, until the time that they should take is over,
// which is counted anew whenever a machine is done. It never waits for Alertmanager. Where no machine is left it is done without a window.
func WorkersMaintenanceWindowCreated() Step { return workersMaintenanceWindowCreated{} }

type workersMaintenanceWindowCreated struct{}

func (workersMaintenanceWindowCreated) Condition() string {
	return ConditionWorkersMaintenanceWindowCreated
}

func (s workersMaintenanceWindowCreated) Run(ctx context.Context, u *Upgrade) (Verdict, error) {
	switch {
	case !u.hasTarget():
		return Done(nothingToUpgrade(u)), nil
	case u.windowClosed(v1beta1.WorkersWindow, ConditionWorkersMaintenanceWindowRemoved):
		return Done("The window was closed before."), nil
	case !u.Monitoring.HasAlertmanager():
		return Done(noAlertmanager), nil
	}
	judged, err := workerPools(ctx, u)
	if err != nil {
		return Verdict{}, err
	}
	remaining, takes := workLeft(judged, timeOfNode(&u.Job.Spec.Config))
	m := &maintenance{upgrade: u, what: "machines are upgraded"}
	switch window := u.window(v1beta1.WorkersWindow); {
	case window != nil:
		m.window, m.opened = *window.DeepCopy(), true
		m.rebase(remaining, takes)
	case remaining == 0:
		return doneSaying(u, s.Condition(), "No machine is left to upgrade: no alert is silenced."), nil
	default:
		m.window = v1beta1.MaintenanceWindowStatus{
			Name: v1beta1.WorkersWindow, StartTime: metav1.NewTime(u.Now), Until: metav1.NewTime(u.Now.Add(takes)), Remaining: remaining,
		}
	}
	m.wanted = workersSilences(u, m.window.Remaining)
	return m.keep(ctx, s.Condition())
}

// rebase moves the end of the window when a machine is done. Machines that were added do not bring it nearer. Where none is left it stays: extra machines may
// still be on their way out.
func (m *maintenance) rebase(remaining int32, takes time.Duration) {
	if remaining == 0 || remaining == m.window.Remaining {
		return
	}
	until := m.upgrade.Now.Add(takes)
	if remaining < m.window.Remaining || until.After(m.window.Until.Time) {
		m.window.Until = metav1.NewTime(until)
	}
	m.window.Remaining, m.changed = remaining, true
}

// timeOfNode is how long the upgrade of a node should take at most.
func timeOfNode(config *v1beta1.UpgradeJobConfig) time.Duration {
	drain := config.NodeDrain
	if drain == nil {
		drain = &v1beta1.NodeDrain{}
	}
	return max(config.PDBForceDrainTimeout.Or(0), drain.TimeOut.Or(v1beta1.DefaultNodeDrainTimeout)) +
		drain.ExpectedNodeDrainTime.Or(v1beta1.DefaultExpectedNodeDrainTime)
}

// maxWorkersWindow bounds what is computed from times that may be anything.
const maxWorkersWindow = 365 * 24 * time.Hour

// workLeft returns how many machines of the pools are not upgraded yet, and how long that should take: the pools are upgraded at the same time, each so
// many nodes at a time as it allows to be unavailable. Machines of pools that are paused stay as they are.
func workLeft(judged []judgedPool, node time.Duration) (remaining int32, takes time.Duration) {
	for _, p := range judged {
		if p.State == openshift.PoolUpdated || p.pool.Spec.Paused {
			continue
		}
		status := &p.pool.Status
		left := status.MachineCount - p.OnRelease
		if left <= 0 {
			continue
		}
		remaining += left
		atOnce := maxUnavailable(p.pool)
		rounds := time.Duration((int(left) + atOnce - 1) / atOnce)
		takes = max(takes, min(node, maxWorkersWindow/rounds)*rounds)
	}
	return remaining, takes
}

// maxUnavailable is how many nodes of the pool the machine-config operator works on at a time.
func maxUnavailable(pool *mcfgv1.MachineConfigPool) int {
	set := pool.Spec.MaxUnavailable
	if set == nil {
		return 1
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(set, int(pool.Status.MachineCount), false)
	if err != nil {
		return 1 // the pool does not move at all then
	}
	return min(max(n, 1), max(int(pool.Status.MachineCount), 1))
}
