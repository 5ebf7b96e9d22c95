// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/lifecycle"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// statusOf judges a snapshot: how far the cluster and the job are. The job is that of jobToShow, or the one asked for; nil if there is none.
func statusOf(s *snapshot, job *v1beta1.UpgradeJob) statusReport {
	r := statusReport{
		Time: metav1.NewTime(s.Now), Cluster: clusterOf(s), Operators: operatorsOf(s), Pools: poolsOf(s, job), Nodes: nodesOf(s),
		Configs: configsOf(s), Managed: managedOf(s), Windows: windowsOf(s), NotShown: s.Unread,
	}
	if job != nil {
		shown := jobOf(s, job)
		r.Job = &shown
	}
	if next := nextJob(s); next != nil && next != job {
		r.Next = new(summaryOf(next))
	}
	if last := lastJob(s); last != nil && last != job {
		r.Last = new(summaryOf(last))
	}
	return r
}

// jobToShow is the job in work; else the one that waits for its start next, else the one that ended last; nil if there is none.
func jobToShow(s *snapshot) *v1beta1.UpgradeJob {
	if holder := s.job(s.Version.Annotations[v1beta1.UpgradeJobAnnotation]); holder != nil && !holder.Status.Phase.Finished() {
		return holder
	}
	for i := range s.Jobs {
		if lifecycle.InWork(&s.Jobs[i]) {
			return &s.Jobs[i]
		}
	}
	return cmp.Or(nextJob(s), lastJob(s))
}

// nextJob is the job that waits for its start and has the earliest, or nil.
func nextJob(s *snapshot) *v1beta1.UpgradeJob {
	for i := len(s.Jobs) - 1; i >= 0; i-- {
		if phase := s.Jobs[i].Status.Phase; phase == "" || phase == v1beta1.PhasePending {
			return &s.Jobs[i]
		}
	}
	return nil
}

// lastJob is the job that ended last, or nil.
func lastJob(s *snapshot) *v1beta1.UpgradeJob {
	var last *v1beta1.UpgradeJob
	for i := range s.Jobs {
		job := &s.Jobs[i]
		if job.Status.Phase.Finished() && (last == nil || ended(job).After(ended(last).Time)) {
			last = job
		}
	}
	return last
}

// ended is when the job ended; its startAfter where that is not known.
func ended(job *v1beta1.UpgradeJob) metav1.Time {
	if job.Status.CompletionTime != nil {
		return *job.Status.CompletionTime
	}
	return job.Spec.StartAfter
}

// summaryOf tells of a job in short.
func summaryOf(job *v1beta1.UpgradeJob) jobSummary {
	summary := jobSummary{
		Namespace: job.Namespace, Name: job.Name, Config: lifecycle.ConfigOf(job), Upgrader: lifecycle.UpgraderOf(&job.Spec.Config),
		Phase: string(cmp.Or(job.Status.Phase, v1beta1.PhasePending)), FromVersion: job.Status.FromVersion, DesiredVersion: target(job),
		StartAfter: job.Spec.StartAfter, StartBefore: job.Spec.StartBefore, StartTime: job.Status.StartTime,
		CommenceTime: job.Status.CommenceTime, CompletionTime: job.Status.CompletionTime,
	}
	for _, t := range []string{v1beta1.ConditionSucceeded, v1beta1.ConditionFailed, v1beta1.ConditionSkipped} {
		if c := meta.FindStatusCondition(job.Status.Conditions, t); c != nil && c.Status == metav1.ConditionTrue && job.Status.Phase.Finished() {
			summary.Reason, summary.Message = c.Reason, c.Message
			return summary
		}
	}
	if c := meta.FindStatusCondition(job.Status.Conditions, v1beta1.ConditionStarted); c != nil && c.Status == metav1.ConditionFalse {
		summary.Reason, summary.Message = c.Reason, c.Message
	}
	return summary
}

// target is the version that the job upgrades to, or the image where the version is not known; empty if it upgrades nothing.
func target(job *v1beta1.UpgradeJob) string {
	if d := job.Spec.DesiredVersion; d != nil {
		return openshift.Release{Version: d.Version, Image: d.Image}.String()
	}
	return ""
}

func clusterOf(s *snapshot) clusterReport {
	cv := s.Version
	r := clusterReport{
		ID: string(cv.Spec.ClusterID), Version: openshift.RunningVersion(cv), Channel: cv.Spec.Channel,
		LockedBy: cv.Annotations[v1beta1.UpgradeJobAnnotation],
	}
	if release, ok := openshift.HighestAvailable(cv); ok {
		r.Available = release.String()
	}
	if release, updating := openshift.Updating(cv); updating {
		r.Desired = release.String()
		if c := openshift.Condition(cv.Status.Conditions, configv1.OperatorProgressing); c != nil {
			r.Message = c.Message
		}
		if done, total, ok := openshift.Progress(cv); ok {
			r.Progress = &progressReport{Done: done, Total: total}
		}
	} else if u := cv.Spec.DesiredUpdate; u != nil && !openshift.Runs(cv, openshift.Release{Version: u.Version, Image: u.Image}) {
		r.Desired = openshift.Release{Version: u.Version, Image: u.Image}.String()
	}
	for _, t := range []configv1.ClusterStatusConditionType{openshift.Failing, openshift.Invalid} {
		if c := openshift.Condition(cv.Status.Conditions, t); c != nil && c.Status == configv1.ConditionTrue {
			r.Failing = c.Reason + ": " + c.Message
			return r
		}
	}
	if c := openshift.Condition(cv.Status.Conditions, openshift.ReleaseAccepted); c != nil && c.Status == configv1.ConditionFalse {
		r.Failing = c.Reason + ": " + c.Message
	}
	return r
}

func operatorsOf(s *snapshot) *operatorsReport {
	if len(s.Operators) == 0 {
		return nil
	}
	r := &operatorsReport{Version: s.release(), Total: len(s.Operators)}
	for i := range s.Operators {
		co := &s.Operators[i]
		if openshift.OperatorVersion(co) == r.Version {
			r.Updated++
		}
		if openshift.ConditionIs(co.Status.Conditions, configv1.OperatorProgressing, configv1.ConditionTrue) {
			r.Updating = append(r.Updating, co.Name)
		}
		for _, c := range openshift.OperatorSickness(co) {
			r.Sick = append(r.Sick, sickOperator{
				Name: co.Name, Type: string(c.Type), Status: string(c.Status), Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime,
			})
		}
	}
	slices.SortStableFunc(r.Sick, func(a, b sickOperator) int { return cmp.Compare(a.Name, b.Name) })
	return r
}
