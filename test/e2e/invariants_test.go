// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/test/controlplane"
)

// conditionOrder is the order in which the conditions of a job stand, whatever its upgrader is.
var conditionOrder = []string{
	v1beta1.ConditionCreateHooksCompleted, v1beta1.ConditionStarted, v1beta1.ConditionPreflightHealthy,
	changeApproved, startedSent, notDelayed, upgradable,
	steps.ConditionStartHooksCompleted, steps.ConditionMachineConfigPoolsPaused,
	steps.ConditionClusterHealthyBeforeUpgrade, dependenciesThere, capacityReserved, steps.ConditionUpdateAvailable, controlPlaneQuiet,
	steps.ConditionUpgradeCommenced, steps.ConditionControlPlaneUpgraded, controlPlaneLoud, workersQuiet, steps.ConditionMachineConfigPoolsUpgraded, workersUpgraded,
	capacityRemoved, workersLoud, steps.ConditionClusterHealthyAfterUpgrade,
	steps.ConditionCompletionHooksCompleted, steps.ConditionDelayedPoolsUpgraded, postUpgradeTasks, completedSent,
	v1beta1.ConditionSucceeded, v1beta1.ConditionFailed, v1beta1.ConditionSkipped,
}

var outcomes = []string{v1beta1.ConditionSucceeded, v1beta1.ConditionFailed, v1beta1.ConditionSkipped}

// checkInvariants judges every revision of the test: what must never be, whatever the test does. All jobs are gone by
// now.
func (c *cluster) checkInvariants() {
	c.t.Helper()
	if err := unlocked(c.version()); err != nil {
		c.t.Errorf("when all jobs are gone, %v", err)
	}
	for _, r := range c.desiredUpdateWrites() {
		if u := r.object.Spec.DesiredUpdate; u != nil && u.Force {
			c.t.Errorf("the update to %s is forced", u.Version)
		}
	}
	c.checkHookJobs()
	c.checkPools()
	c.checkPodDeletions()
	active := map[types.UID]string{}
	last := map[types.UID]*v1beta1.UpgradeJob{}
	for _, r := range past.jobsSince(c.began) {
		job := r.object
		if err := sound(job); err != nil {
			c.t.Errorf("UpgradeJob %s at %s: %v", job.Name, r.seen.Format(time.StampMilli), err)
		}
		if before := last[job.UID]; before != nil {
			if err := final(before, job); err != nil {
				c.t.Errorf("UpgradeJob %s at %s: %v", job.Name, r.seen.Format(time.StampMilli), err)
			}
		}
		last[job.UID] = job
		if delete(active, job.UID); job.Status.Phase == v1beta1.PhaseActive {
			active[job.UID] = job.Name
		}
		if len(active) > 1 && job.DeletionTimestamp.IsZero() {
			c.t.Errorf("several jobs are active at once: %v", active)
		}
		if !job.DeletionTimestamp.IsZero() {
			delete(active, job.UID)
		}
	}
	for _, request := range c.operatorRequests() {
		denied := request.Annotations.Decision == "forbid" || request.ResponseStatus.Code == http.StatusUnauthorized
		if denied && request.RequestReceivedTimestamp.After(c.judged) {
			c.t.Errorf("the operator may not %s %s", request.Verb, request.RequestURI)
		}
	}
}

// sound judges one revision of a job.
func sound(job *v1beta1.UpgradeJob) error {
	position, ended := -1, 0
	for _, condition := range job.Status.Conditions {
		at := slices.Index(conditionOrder, condition.Type)
		if at <= position {
			return fmt.Errorf("condition %s is out of order: %s", condition.Type, summary(job.Status.Conditions))
		}
		position = at
		if slices.Contains(outcomes, condition.Type) && condition.Status == metav1.ConditionTrue {
			ended++
		}
	}
	switch {
	case ended > 1:
		return fmt.Errorf("it has %d outcomes: %s", ended, summary(job.Status.Conditions))
	case job.Labels[ofPredecessorLabel] != "":
		return nil // it has an outcome and no phase at first, and nobody knows when it ended
	case (ended == 1) != job.Status.Phase.Finished():
		return fmt.Errorf("phase %q does not fit the conditions: %s", job.Status.Phase, summary(job.Status.Conditions))
	case job.Status.Phase.Finished() != (job.Status.CompletionTime != nil):
		return fmt.Errorf("phase %q does not fit the completion time %v", job.Status.Phase, job.Status.CompletionTime)
	}
	if err := boundedPools(job.Status.Pools); err != nil {
		return err
	}
	if at := job.Status.StartTime; at != nil && len(job.Status.ResumedRequests) == 0 {
		// A job may be changed after its revision was judged, but its window may not once it has started.
		if at.Before(&job.Spec.StartAfter) || job.Spec.StartBefore.Before(at) {
			return fmt.Errorf("it started at %s, outside of %s to %s", at, job.Spec.StartAfter, job.Spec.StartBefore)
		}
	}
	return nil
}

// final judges a revision of a job by the one before: what has an outcome changes no more, unless it is resumed. Only
// what became of its last hooks, of its notifications, of the pools that it had paused, of its silences and of its extra machines is recorded still.
func final(before, after *v1beta1.UpgradeJob) error {
	if !before.Status.Phase.Finished() || len(before.Status.ResumedRequests) != len(after.Status.ResumedRequests) {
		return nil
	}
	was, is := before.DeepCopy().Status, after.DeepCopy().Status
	for _, status := range []*v1beta1.UpgradeJobStatus{&was, &is} {
		status.HookTracker, status.Notifications, status.MaintenanceWindows, status.ExtraMachines = nil, nil, nil, nil
		meta.RemoveStatusCondition(&status.Conditions, v1beta1.ConditionMachineConfigPoolsPaused)
		for i := range status.Pools {
			status.Pools[i].Paused, status.Pools[i].PausedBy = false, ""
		}
		meta.RemoveStatusCondition(&status.Conditions, v1beta1.ConditionCreateHooksCompleted)
	}
	if !apiequality.Semantic.DeepEqual(was, is) {
		return fmt.Errorf("the status changed after the outcome (-before +after):\n%s", cmp.Diff(was, is))
	}
	return nil
}

// operatorRequests returns the requests of the operator since the test began.
func (c *cluster) operatorRequests() []controlplane.AuditEvent {
	c.t.Helper()
	requests, err := env.OperatorRequests(c.audit)
	if err != nil {
		c.t.Fatal(err)
	}
	return requests
}

// versionPatches returns the operator's successful writes of OpenShift's ClusterVersion since the test began.
func (c *cluster) versionPatches() []controlplane.AuditEvent {
	c.t.Helper()
	return slices.DeleteFunc(c.operatorRequests(), func(r controlplane.AuditEvent) bool {
		return r.ObjectRef.APIGroup != configv1.GroupName || r.ObjectRef.Resource != "clusterversions" ||
			r.Verb != "patch" || r.ResponseStatus.Code != http.StatusOK
	})
}

// desiredUpdateWrites returns when spec.desiredUpdate was changed since the test began, and to what.
func (c *cluster) desiredUpdateWrites() []revision[*configv1.ClusterVersion] {
	c.t.Helper()
	live := c.version()
	c.eventually("the journal of ClusterVersion", func() error {
		if !knows(past.versionsSince(time.Time{}), live) {
			return fmt.Errorf("revision %s has not arrived", live.ResourceVersion)
		}
		return nil
	})
	var writes []revision[*configv1.ClusterVersion]
	var before *configv1.ClusterVersion
	for _, r := range past.versionsSince(time.Time{}) {
		if r.object.UID != live.UID {
			continue
		}
		if before != nil && r.seen.After(c.began) && !apiequality.Semantic.DeepEqual(before.Spec.DesiredUpdate, r.object.Spec.DesiredUpdate) {
			writes = append(writes, r)
		}
		before = r.object
	}
	return writes
}

// upgradedOnce expects that the cluster was asked for the release exactly once, and for nothing else, and that the job
// left nothing on it.
func (c *cluster) upgradedOnce(job *v1beta1.UpgradeJob) {
	c.t.Helper()
	c.waitVersion("the lock is released", unlocked)
	writes := c.desiredUpdateWrites()
	if len(writes) != 1 {
		c.t.Errorf("desiredUpdate was written %d times, want once", len(writes))
	}
	want := configv1.Update{Version: job.Spec.DesiredVersion.Version, Image: job.Spec.DesiredVersion.Image}
	for _, w := range writes {
		if w.object.Spec.DesiredUpdate == nil || *w.object.Spec.DesiredUpdate != want {
			c.t.Errorf("desiredUpdate was set to %+v, want %+v", w.object.Spec.DesiredUpdate, want)
		}
	}
	if n := len(c.allJobs()); n != 1 {
		c.t.Errorf("there are %d jobs, want one", n)
	}
}

func (c *cluster) allJobs() []v1beta1.UpgradeJob {
	c.t.Helper()
	list := &v1beta1.UpgradeJobList{}
	if err := env.Client.List(c.ctx, list); err != nil {
		c.t.Fatal(err)
	}
	return list.Items
}

// untouched expects that nobody has changed the spec of ClusterVersion since it was read, and that no lock is left.
func (c *cluster) untouched(before *configv1.ClusterVersion) {
	c.t.Helper()
	after := c.waitVersion("the lock is released", unlocked)
	if after.Generation != before.Generation {
		c.t.Errorf("ClusterVersion is of generation %d, was %d: %+v", after.Generation, before.Generation, after.Spec)
	}
}
