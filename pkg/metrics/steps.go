// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/lifecycle"
)

// judgeSteps tells where the steps of a job stand.
func judgeSteps(s *series, w *world, job *v1beta1.UpgradeJob) {
	for _, step := range stepsOf(job, w) {
		s.add(stepState, 1, job.Namespace, job.Name, step.Condition, string(step.State), step.Reason)
		if begun := step.Begun; begun != nil {
			s.addTime(stepStarted, &begun.StartTime, job.Namespace, job.Name, step.Condition)
			s.addTime(stepCompleted, begun.CompletionTime, job.Namespace, job.Name, step.Condition)
		}
	}
}

// withSteps returns the jobs whose steps are told of: those that have not ended, and of each config the newest that has. The jobs of nobody's config
// count as those of one.
func withSteps(jobs []v1beta1.UpgradeJob) []*v1beta1.UpgradeJob {
	type origin struct {
		namespace string
		config    types.UID
	}
	var told []*v1beta1.UpgradeJob
	newest := map[origin]*v1beta1.UpgradeJob{}
	for i := range jobs {
		job := &jobs[i]
		if !job.Status.Phase.Finished() {
			told = append(told, job)
			continue
		}
		from := origin{job.Namespace, configUID(job)}
		if known := newest[from]; known == nil || lifecycle.NewerFirst(job, known) < 0 {
			newest[from] = job
		}
	}
	for _, job := range newest {
		told = append(told, job)
	}
	return told
}

func configUID(job *v1beta1.UpgradeJob) types.UID {
	if owner := metav1.GetControllerOfNoCopy(job); owner != nil {
		return owner.UID
	}
	return ""
}

// stepsOf tells where the steps of the job stand. Of a job whose upgrader is not known these are the steps that have begun.
func stepsOf(job *v1beta1.UpgradeJob, w *world) []lifecycle.Step {
	return lifecycle.Steps(job, w.steps(lifecycle.UpgraderOf(&job.Spec.Config)))
}
