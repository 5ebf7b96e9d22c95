// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"sync"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// progressInterval is how often mere progress is written: counts, percentages, the node in work. Transitions are
// written at once.
const progressInterval = 10 * time.Second

// progress remembers when the progress of a job was last written, and what is held back since. Both may be lost with
// the process: that costs one write, or ten seconds of news.
type progress struct {
	mutex   sync.Mutex
	written map[types.UID]time.Time
	held    map[types.UID]heldStatus
}

// heldStatus is a status that is held back, and the version of the job that it was made from.
type heldStatus struct {
	resourceVersion string
	status          *v1beta1.UpgradeJobStatus
}

func newProgress() *progress {
	return &progress{written: map[types.UID]time.Time{}, held: map[types.UID]heldStatus{}}
}

// restore puts what was held back into the job, so that a pass begins with all that is known of it: what ends a job
// may have to name what it waited for last.
func (p *progress) restore(job *v1beta1.UpgradeJob) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if held, ok := p.held[job.UID]; ok && held.resourceVersion == job.ResourceVersion {
		job.Status = *held.status.DeepCopy()
	}
}

// hold returns how long to hold the write of job's status back, zero to write it now. base is the job as it was read;
// changed tells whether its status differs at all.
func (p *progress) hold(changed bool, base, job *v1beta1.UpgradeJob, now time.Time) time.Duration {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.held, job.UID)
	if !changed {
		return 0
	}
	if last, ok := p.written[job.UID]; ok && !turned(&base.Status, &job.Status) {
		if wait := last.Add(progressInterval).Sub(now); wait > 0 && wait <= progressInterval {
			p.held[job.UID] = heldStatus{base.ResourceVersion, job.Status.DeepCopy()}
			return wait
		}
	}
	p.written[job.UID] = now
	return 0
}

// forget drops what is known of a job that has ended.
func (p *progress) forget(job *v1beta1.UpgradeJob) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.written, job.UID)
	delete(p.held, job.UID)
}

// turned tells whether the difference is more than progress. Blockers come and go by the dozen while the control plane
// updates: what they mean for the job is in the condition of the step. But where the cluster's health is waited for,
// somebody may be mending it, and looks whether it helps; and a drain that hangs wants somebody's attention.
func turned(before, after *v1beta1.UpgradeJobStatus) bool {
	return (unhealthy(after) && !sameBlockers(before.Blockers, after.Blockers)) ||
		newAttention(before.Blockers, after.Blockers) ||
		before.Phase != after.Phase ||
		before.ObservedGeneration != after.ObservedGeneration ||
		len(before.ResumedRequests) != len(after.ResumedRequests) ||
		!apiequality.Semantic.DeepEqual(before.Steps, after.Steps) ||
		!apiequality.Semantic.DeepEqual(before.HookTracker, after.HookTracker) ||
		!apiequality.Semantic.DeepEqual(before.Notifications, after.Notifications) ||
		!apiequality.Semantic.DeepEqual(before.Stages, after.Stages) ||
		!apiequality.Semantic.DeepEqual(before.MaintenanceWindows, after.MaintenanceWindows) ||
		!slices.EqualFunc(before.Conditions, after.Conditions, func(a, b metav1.Condition) bool {
			return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason
		})
}

// newAttention tells whether there is a new blocker that does not go by itself. That one has gone is progress.
func newAttention(before, after []v1beta1.Blocker) bool {
	return slices.ContainsFunc(after, func(b v1beta1.Blocker) bool {
		return steps.NeedsAttention(b) && !slices.ContainsFunc(before, func(a v1beta1.Blocker) bool { return sameBlocker(a, b) })
	})
}

// unhealthy tells whether the job waits for a healthy cluster, or would.
func unhealthy(status *v1beta1.UpgradeJobStatus) bool {
	return slices.ContainsFunc(status.Conditions, func(c metav1.Condition) bool {
		return c.Status == metav1.ConditionFalse && c.Reason == v1beta1.ReasonUnhealthy
	})
}

func sameBlockers(before, after []v1beta1.Blocker) bool {
	return slices.EqualFunc(before, after, sameBlocker)
}

func sameBlocker(a, b v1beta1.Blocker) bool { return a.Code == b.Code && a.Object == b.Object }
