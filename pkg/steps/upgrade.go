// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/dependency"
	"github.com/appuio/managed-upgrade-operator/pkg/hooks"
	"github.com/appuio/managed-upgrade-operator/pkg/monitoring"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// Upgrade is what a step may see and do. It lives for one pass.
type Upgrade struct {
	// Job that is worked on. Steps do not change it.
	Job *v1beta1.UpgradeJob
	// Now is the time of the whole pass.
	Now time.Time
	// Cluster reads and writes OpenShift's objects.
	Cluster *openshift.Cluster
	// Monitoring asks Prometheus and Alertmanager.
	Monitoring *monitoring.Client
	// Version is ClusterVersion/version as this pass knows it: as read at its beginning, or as written since.
	Version *configv1.ClusterVersion
	// LockedBy says who else holds the cluster's lock; empty if it is free, or the job's.
	LockedBy string
	// Over tells whether a job, as namespace/name, has ended or is gone, so that what it left is this one's to give back. Nil: none is.
	Over func(ctx context.Context, job string) (bool, error)
	// Hooks runs the hooks of the job. Nil where none are run: before the start, and in cleanup.
	Hooks *hooks.Pass
	// Dependencies asks what is outside of the cluster. Nil in cleanup.
	Dependencies *dependency.Prober
	// ForceDrains has pods deleted that hold up the drain of a node. Nil where that is not to be changed.
	ForceDrains ForceDrains
	// CommenceBy is when the job fails if its upgrade has not commenced; the zero time for upgraders that have no such limit. It is the controller that
	// ends the job.
	CommenceBy time.Time
	// Announce tells of something in the job's life, and returns its sequence in status.notifications, 0 if no receiver wants it. May be nil.
	Announce func(v1beta1.Notice) int64
	// Unfinished is what a cleanup still waits for, or what it met, in words for people.
	Unfinished []string
	// Turned is told of each condition that turned, at the moment in which it is recorded. May be nil.
	Turned func(Transition)
	// Persist writes the job's status and fails with a conflict if the job is not the one that the pass began with
	// any more.
	Persist func(ctx context.Context) error

	machines machines
}

// Lock takes the cluster's lock for the job, unless the job has it. A step calls it before it changes anything outside
// of the job. UpgradeCommenced need not: the write that commences the upgrade takes the lock too.
func (u *Upgrade) Lock(ctx context.Context) error {
	if u.Version.Annotations[v1beta1.UpgradeJobAnnotation] == u.Job.LockKey() {
		return nil
	}
	if u.LockedBy != "" {
		return fmt.Errorf("lock the cluster: it is locked by %s", u.LockedBy)
	}
	locked, err := u.Cluster.SetLock(ctx, u.Version, u.Job.LockKey())
	if err != nil {
		return fmt.Errorf("lock the cluster: %w", err)
	}
	u.Version = locked
	return nil
}

// Target returns the release that the job upgrades to, and false for a job without a version.
func (u *Upgrade) Target() (openshift.Release, bool) {
	d := u.Job.Spec.DesiredVersion
	if d == nil {
		return openshift.Release{}, false
	}
	return openshift.Release{Version: d.Version, Image: d.Image}, true
}

// hasTarget tells whether the job has a version to upgrade to.
func (u *Upgrade) hasTarget() bool {
	_, ok := u.Target()
	return ok
}

// Needed tells whether there is anything to upgrade: the job has a version and the cluster does not run it.
func (u *Upgrade) Needed() bool {
	target, ok := u.Target()
	return ok && !openshift.Runs(u.Version, target)
}

// Commenced tells whether the upgrade has commenced: from then on nothing is skipped any more. It is read from the
// cluster, because the process may have ended between the write that commenced the upgrade and the record of it; and
// from the record, because somebody may have changed the cluster since, or the cache may lag behind.
//
// A desired update that the cluster runs already says nothing: it stays in the spec when an update is over. Only the
// record that this job was about to set it tells that it is this job's.
func (u *Upgrade) Commenced() bool {
	if meta.IsStatusConditionTrue(u.Job.Status.Conditions, ConditionUpgradeCommenced) {
		return true
	}
	target, ok := u.Target()
	switch {
	case !ok:
		return false
	case u.Job.Status.CommenceTime == nil: // a desired update that somebody else has set does not make up for the preflights
		return false
	default: // where nothing is desired, somebody cleared it after the cluster-version operator had taken it up
		return openshift.Desires(u.Version, target) || openshift.Accepted(u.Version, target)
	}
}

// Attempted tells whether the step of that condition has been run before.
func (u *Upgrade) Attempted(condition string) bool {
	return stepStatus(u.Job, condition) != nil
}

// completed tells whether the step of that condition is recorded as done.
func (u *Upgrade) completed(condition string) bool {
	s := stepStatus(u.Job, condition)
	return s != nil && s.CompletionTime != nil
}

// doneForGood tells whether the step of that condition is recorded as done since the job was resumed last, and no step
// before it was done later.
func (u *Upgrade) doneForGood(condition string) bool {
	s := stepStatus(u.Job, condition)
	if s == nil || s.CompletionTime == nil || s.CompletionTime.Time.Before(resumed(u.Job)) {
		return false
	}
	for i := range u.Job.Status.Steps {
		earlier := &u.Job.Status.Steps[i]
		if earlier.Condition == condition {
			break
		}
		if earlier.CompletionTime == nil || earlier.CompletionTime.After(s.CompletionTime.Time) {
			return false
		}
	}
	return true
}

// resumed is when the job was resumed last; the zero time if it never was.
func resumed(job *v1beta1.UpgradeJob) time.Time {
	if last := job.LastResume(); last != nil {
		return last.Time.Time
	}
	return time.Time{}
}

// RunningSince is when the job started, or was resumed last.
func (u *Upgrade) RunningSince() time.Time {
	return RunningSince(u.Job, u.Now)
}

// RunningSince is when the job started, or was resumed last; now if it is about to start.
func RunningSince(job *v1beta1.UpgradeJob, now time.Time) time.Time {
	if r := job.LastResume(); r != nil {
		return r.Time.Time
	}
	if job.Status.StartTime != nil {
		return job.Status.StartTime.Time
	}
	return now
}

// CommenceBefore is the time after which the upgrade does not commence any more: startBefore, or the end of the health
// check's timeout if the job started so late that it reaches further. Without it a job whose operator was away for
// hours would go on where it was, outside of its window.
func (u *Upgrade) CommenceBefore() time.Time {
	if !u.CommenceBy.IsZero() {
		return u.CommenceBy
	}
	health := u.RunningSince().Add(u.Job.Spec.Config.PreUpgradeHealthChecks.Timeout.Or(v1beta1.DefaultHealthCheckTimeout))
	if before := u.Job.Spec.StartBefore.Time; before.After(health) {
		return before
	}
	return health
}

// StepStarted is from when the timeouts of the step of that condition count: when it was started, or when the job was
// resumed, whichever is later. A step that was done before begins anew.
func (u *Upgrade) StepStarted(condition string) time.Time {
	s := stepStatus(u.Job, condition)
	if s == nil || s.CompletionTime != nil {
		return u.Now
	}
	if since := u.RunningSince(); since.After(s.StartTime.Time) {
		return since
	}
	return s.StartTime.Time
}

func stepStatus(job *v1beta1.UpgradeJob, condition string) *v1beta1.StepStatus {
	for i := range job.Status.Steps {
		if job.Status.Steps[i].Condition == condition {
			return &job.Status.Steps[i]
		}
	}
	return nil
}
