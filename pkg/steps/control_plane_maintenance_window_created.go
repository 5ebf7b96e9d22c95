// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// ConditionControlPlaneMaintenanceWindowCreated is the condition of ControlPlaneMaintenanceWindowCreated.
const ConditionControlPlaneMaintenanceWindowCreated = "ControlPlaneMaintenanceWindowCreated"

// ControlPlaneMaintenanceWindowCreated has alerts silenced while the control plane is upgraded: those of severity warning and info in the namespaces
// of the platform, and the critical ones of maintenance.controlPlaneCriticals. It stands before UpgradeCommenced, and renews the silences on the passes in
// which ControlPlaneUpgraded waits, for maintenance.controlPlaneTime at most. Where Alertmanager is away it waits for maintenance.patience, and then goes
// on without; the silences follow when Alertmanager is back.
func ControlPlaneMaintenanceWindowCreated() Step { return controlPlaneMaintenanceWindowCreated{} }

type controlPlaneMaintenanceWindowCreated struct{}

func (controlPlaneMaintenanceWindowCreated) Condition() string {
	return ConditionControlPlaneMaintenanceWindowCreated
}

func (s controlPlaneMaintenanceWindowCreated) Run(ctx context.Context, u *Upgrade) (Verdict, error) {
	switch {
	case !u.Needed():
		return Done(nothingToUpgrade(u)), nil
	case u.windowClosed(v1beta1.ControlPlaneWindow, ConditionControlPlaneMaintenanceWindowRemoved):
		return Done("The window was closed before."), nil
	case !u.Monitoring.HasAlertmanager():
		return Done(noAlertmanager), nil
	}
	m := &maintenance{upgrade: u, wanted: controlPlaneSilences(u), what: "the control plane is upgraded"}
	if window := u.window(v1beta1.ControlPlaneWindow); window != nil {
		m.window, m.opened = *window.DeepCopy(), true
	} else {
		m.window = v1beta1.MaintenanceWindowStatus{
			Name: v1beta1.ControlPlaneWindow, StartTime: metav1.NewTime(u.Now), Until: metav1.NewTime(u.Now.Add(u.controlPlaneTime())),
		}
	}
	return m.keep(ctx, s.Condition())
}

// controlPlaneTime is how long the silences of the control plane are kept at most.
func (u *Upgrade) controlPlaneTime() time.Duration {
	most := v1beta1.DefaultControlPlaneTime
	if m := u.Job.Spec.Config.Maintenance; m != nil {
		most = m.ControlPlaneTime.Or(most)
	}
	return most
}
