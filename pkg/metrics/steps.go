// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// States of a step, as the label state has them.
const (
	stepIsPending   = "pending"
	stepIsWaiting   = "waiting"
	stepIsCompleted = "completed"
	stepIsFailed    = "failed"
)

// step is where a step of a job stands.
type step struct {
	name, state, reason string
	start, completion   *metav1.Time
}

// judgeSteps tells where the steps of a job stand.
func judgeSteps(s *series, w *world, job *v1beta1.UpgradeJob) {
	for _, step := range stepsOf(job, w) {
		s.add(stepState, 1, job.Namespace, job.Name, step.name, step.state, step.reason)
		s.addTime(stepStarted, step.start, job.Namespace, job.Name, step.name)
		s.addTime(stepCompleted, step.completion, job.Namespace, job.Name, step.name)
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
		if known := newest[from]; known == nil || newerFirst(job, known) < 0 {
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

// stepsOf returns the steps of the job in their order. Of a job whose upgrader is not known these are the steps that have begun.
func stepsOf(job *v1beta1.UpgradeJob, w *world) []step {
	names := slices.Clone(w.steps(upgraderOf(job)))
	for i := range job.Status.Steps {
		if name := job.Status.Steps[i].Condition; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	all := make([]step, 0, len(names))
	for _, name := range names {
		all = append(all, stepOf(job, name))
	}
	return all
}

func stepOf(job *v1beta1.UpgradeJob, name string) step {
	s := step{name: name, state: stepIsPending}
	condition := meta.FindStatusCondition(job.Status.Conditions, name)
	if condition != nil {
		s.reason = condition.Reason
	}
	if i := slices.IndexFunc(job.Status.Steps, func(r v1beta1.StepStatus) bool { return r.Condition == name }); i >= 0 {
		s.start, s.completion = &job.Status.Steps[i].StartTime, job.Status.Steps[i].CompletionTime
	}
	switch {
	case s.completion != nil:
		s.state = stepIsCompleted
	case condition == nil, condition.Reason == v1beta1.ReasonResumed:
	case job.Status.Phase.Finished():
		s.state = stepIsFailed
	default:
		s.state = stepIsWaiting
	}
	return s
}
