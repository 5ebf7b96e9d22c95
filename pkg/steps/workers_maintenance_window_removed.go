// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// ConditionWorkersMaintenanceWindowRemoved is the condition of WorkersMaintenanceWindowRemoved.
const ConditionWorkersMaintenanceWindowRemoved = "WorkersMaintenanceWindowRemoved"

// WorkersMaintenanceWindowRemoved ends the silence of the window of the workers, as ControlPlaneMaintenanceWindowRemoved does.
func WorkersMaintenanceWindowRemoved() Step {
	return maintenanceWindowRemoved{
		condition: ConditionWorkersMaintenanceWindowRemoved, window: v1beta1.WorkersWindow, begins: []string{workersComment},
	}
}
