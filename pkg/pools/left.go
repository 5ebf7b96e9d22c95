// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// LeftBy tells whether the job is over, and whatever is paused in its name stays so.
func LeftBy(job *v1beta1.UpgradeJob) bool {
	if !job.Status.Phase.Finished() {
		return false
	}
	c := meta.FindStatusCondition(job.Status.Conditions, v1beta1.ConditionMachineConfigPoolsPaused)
	kept := c != nil && (c.Reason == v1beta1.ReasonLeftPaused || c.Reason == v1beta1.ReasonPausedOnFailure)
	return kept || len(job.Finalizers) == 0
}
