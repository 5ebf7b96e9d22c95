// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// Left tells whether what is paused in the name of the holder, as Holder says it, stays so until another job comes: the job is over, or gone. Jobs are all that
// are known, of that namespace, or of all where it is empty. A holder that is no job, or one of another namespace, is not known to be over.
func Left(holder string, jobs []v1beta1.UpgradeJob, namespace string) bool {
	in, _, isJob := strings.Cut(holder, "/")
	if !isJob || (namespace != "" && namespace != in) {
		return false
	}
	i := slices.IndexFunc(jobs, func(j v1beta1.UpgradeJob) bool { return j.LockKey() == holder })
	return i < 0 || LeftBy(&jobs[i])
}

// LeftBy tells whether the job is over, and whatever is paused in its name stays so.
func LeftBy(job *v1beta1.UpgradeJob) bool {
	if !job.Status.Phase.Finished() {
		return false
	}
	c := meta.FindStatusCondition(job.Status.Conditions, v1beta1.ConditionMachineConfigPoolsPaused)
	kept := c != nil && (c.Reason == v1beta1.ReasonLeftPaused || c.Reason == v1beta1.ReasonPausedOnFailure)
	return kept || len(job.Finalizers) == 0
}
