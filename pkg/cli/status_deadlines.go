// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/lifecycle"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/pkg/upgrader"
)

// deadlinesOf lists the moments that are yet to come at which something happens to the job by itself, by time.
func deadlinesOf(s *snapshot, job *v1beta1.UpgradeJob) []deadlineReport {
	if job.Status.Phase.Finished() {
		return nil
	}
	d := &deadlines{now: s.Now}
	if !lifecycle.Started(job) && job.LastResume() == nil {
		if suspendedBy(s, job) != "" {
			d.add(job.Spec.StartAfter.Time, "startAfter", "", "the job is skipped (Suspended)")
			return d.list
		}
		d.add(job.Spec.StartAfter.Time, "startAfter", "", "the job starts")
		d.add(job.Spec.StartBefore.Time, "startBefore", "", "the job is skipped (Expired) unless it has started")
	}
	d.add(lifecycle.Deadline(job), "upgradeTimeout", "", "the job fails (TimedOut) unless it has ended")
	commences := job.Status.StartTime != nil && job.Status.CommenceTime == nil && d.addCommencement(s, job)
	d.addSteps(s, job, commences)
	for i := range job.Status.Pools {
		d.addPool(&job.Status.Pools[i])
	}
	for _, w := range job.Status.MaintenanceWindows {
		if len(w.Silences) > 0 {
			d.add(w.Until.Time, "maintenanceWindow", string(w.Name), "alerts are not silenced any more")
		}
	}
	slices.SortStableFunc(d.list, func(a, b deadlineReport) int { return a.Time.Compare(b.Time.Time) })
	return d.list
}

type deadlines struct {
	now  time.Time
	list []deadlineReport
}

// add adds a moment that has not passed.
func (d *deadlines) add(at time.Time, name, object, effect string) {
	if at.After(d.now) {
		d.list = append(d.list, deadlineReport{metav1.NewTime(at), name, object, effect})
	}
}

// addCommencement adds by when the upgrade has to commence, and tells whether it has to.
func (d *deadlines) addCommencement(s *snapshot, job *v1beta1.UpgradeJob) bool {
	upgrade := steps.Upgrade{Job: job, Now: s.Now, Version: s.Version}
	if !commencesInWindow(s, lifecycle.UpgraderOf(&job.Spec.Config)) || !upgrade.Needed() {
		return false
	}
	window := v1beta1.DefaultUpgradeWindow
	if w := job.Spec.Config.UpgradeWindow; w != nil {
		window = w.TimeOut.Or(window)
	}
	if window > 0 {
		d.add(upgrade.RunningSince().Add(window), "upgradeWindow", "", "the job fails (UpgradeWindowBreached) unless the upgrade has commenced")
	}
	return window > 0
}

// commencesInWindow tells whether jobs of the upgrader fail that have not commenced in time: one that comes with the operator, or an object of kind Upgrader.
func commencesInWindow(s *snapshot, name string) bool {
	for _, u := range upgrader.BuiltIn() {
		if u.Name() == name {
			return upgrader.CommencesInWindow(u)
		}
	}
	return slices.ContainsFunc(s.Upgraders, func(u v1beta1.Upgrader) bool { return u.Name == name && u.Spec.FailUnlessCommenced })
}

// addSteps adds until when the present step may wait. Where the upgrade has to commence by a time the cluster has until then to be healthy.
func (d *deadlines) addSteps(s *snapshot, job *v1beta1.UpgradeJob, commences bool) {
	config := &job.Spec.Config
	for i := range job.Status.Steps {
		st := &job.Status.Steps[i]
		if st.CompletionTime != nil {
			continue
		}
		from := lifecycle.WaitingSince(job, st)
		switch st.Condition {
		case steps.ConditionClusterHealthyBeforeUpgrade:
			if commences {
				continue
			}
			d.add(from.Add(config.PreUpgradeHealthChecks.Timeout.Or(v1beta1.DefaultHealthCheckTimeout)),
				"preUpgradeHealthChecks.timeout", "", "the job is skipped (PreHealthCheckFailed) unless the cluster is healthy")
		case steps.ConditionClusterHealthyAfterUpgrade:
			d.add(from.Add(config.PostUpgradeHealthChecks.Timeout.Or(v1beta1.DefaultHealthCheckTimeout)),
				"postUpgradeHealthChecks.timeout", "", "the job fails (PostHealthCheckFailed) unless the cluster is healthy")
		case steps.ConditionControlPlaneUpgraded:
			target := job.Spec.DesiredVersion
			if target != nil && !openshift.Accepted(s.Version, openshift.Release{Version: target.Version, Image: target.Image}) {
				d.add(from.Add(config.ReleaseAcceptTimeout.Or(v1beta1.DefaultReleaseAcceptTimeout)),
					"releaseAcceptTimeout", "", "the job fails (ReleaseNotAccepted) unless the release is accepted")
			}
		}
	}
}

// addPool adds when a pool is released, and by when it has to be.
func (d *deadlines) addPool(pool *v1beta1.MachineConfigPoolStatus) {
	if !pool.Paused {
		return
	}
	if pool.UnpauseAfter != nil {
		d.add(pool.UnpauseAfter.Time, "delayMin", "MachineConfigPool/"+pool.Name, "the pool is released")
	}
	if pool.UnpauseBefore != nil {
		d.add(pool.UnpauseBefore.Time, "delayMax", "MachineConfigPool/"+pool.Name, "the job fails (UnpausingPoolsExpired) unless released")
	}
}
