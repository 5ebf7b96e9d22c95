// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// ConditionControlPlaneMaintenanceWindowRemoved is the condition of ControlPlaneMaintenanceWindowRemoved.
const ConditionControlPlaneMaintenanceWindowRemoved = "ControlPlaneMaintenanceWindowRemoved"

// ControlPlaneMaintenanceWindowRemoved ends the silences of the control plane's window. An Alertmanager that is away does not hold the upgrade up: it is
// asked again on later passes, until the silences have lapsed.
func ControlPlaneMaintenanceWindowRemoved() Step {
	return maintenanceWindowRemoved{
		condition: ConditionControlPlaneMaintenanceWindowRemoved, window: v1beta1.ControlPlaneWindow, begins: []string{controlPlaneComment, criticalsComment},
	}
}

// maintenanceWindowRemoved ends the silences of a window.
type maintenanceWindowRemoved struct {
	condition string
	window    v1beta1.MaintenanceWindowName
	begins    []string // of the comments of its silences
}

func (s maintenanceWindowRemoved) Condition() string { return s.condition }

func (s maintenanceWindowRemoved) Run(ctx context.Context, u *Upgrade) (Verdict, error) {
	window := u.recordedWindow(s.window)
	recorded := window != nil && len(window.Silences) > 0
	switch {
	case !u.Monitoring.HasAlertmanager():
		return Done(noAlertmanager), nil
	case !recorded && u.completed(s.condition):
		return Done("No silence is left."), nil // a later pass has nothing to do, unless the window was opened again
	}
	return s.remove(ctx, u, window)
}
