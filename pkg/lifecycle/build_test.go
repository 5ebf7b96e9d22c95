// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/lifecycle"
)

// The window of the job under test, unless a test says otherwise.
var (
	startAfter  = time.Date(2026, time.November, 24, 22, 0, 0, 0, time.UTC)
	startBefore = startAfter.Add(time.Hour)
	deadline    = startAfter.Add(12 * time.Hour)
)

// newJob returns a job that waits for its start, changed by the overrides.
func newJob(overrides ...func(*v1beta1.UpgradeJob)) *v1beta1.UpgradeJob {
	job := &v1beta1.UpgradeJob{
		ObjectMeta: metav1.ObjectMeta{Name: "upgrade", Namespace: "upgrades", Generation: 3},
		Spec: v1beta1.UpgradeJobSpec{
			StartAfter:     metav1.NewTime(startAfter),
			StartBefore:    metav1.NewTime(startBefore),
			DesiredVersion: &v1beta1.DesiredVersion{Version: "4.18.2"},
		},
		Status: v1beta1.UpgradeJobStatus{Phase: v1beta1.PhasePending},
	}
	for _, override := range overrides {
		override(job)
	}
	return job
}

func withTimeout(d time.Duration) func(*v1beta1.UpgradeJob) {
	return func(job *v1beta1.UpgradeJob) { job.Spec.Config.UpgradeTimeout = &v1beta1.Duration{Duration: d} }
}

func withRequest(request string) func(*v1beta1.UpgradeJob) {
	return func(job *v1beta1.UpgradeJob) { job.Spec.ResumeRequest = request }
}

func withBlocker(message string) func(*v1beta1.UpgradeJob) {
	return func(job *v1beta1.UpgradeJob) {
		job.Status.Blockers = []v1beta1.Blocker{{Code: "Test", Message: message}, {Code: "Other", Message: "Not the first."}}
	}
}

func withCondition(c metav1.Condition) func(*v1beta1.UpgradeJob) {
	return func(job *v1beta1.UpgradeJob) { meta.SetStatusCondition(&job.Status.Conditions, c) }
}

// started makes the job one that started at the given time.
func started(at time.Time) func(*v1beta1.UpgradeJob) {
	return func(job *v1beta1.UpgradeJob) { lifecycle.SetStarted(job, "4.18.1", at) }
}

// finished makes the job one that ended at the given time.
func finished(outcome metav1.Condition, at time.Time) func(*v1beta1.UpgradeJob) {
	return func(job *v1beta1.UpgradeJob) { lifecycle.Finish(job, outcome, at) }
}

// resumed makes the job one that was reopened by a request at the given time.
func resumed(request string, at time.Time) func(*v1beta1.UpgradeJob) {
	return func(job *v1beta1.UpgradeJob) {
		job.Spec.ResumeRequest = request
		lifecycle.Resume(job, at)
	}
}

func window(name, reason string) *v1beta1.UpgradeSuspensionWindow {
	return &v1beta1.UpgradeSuspensionWindow{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1beta1.UpgradeSuspensionWindowSpec{
			Start:  metav1.NewTime(startAfter.Add(-time.Hour)),
			End:    metav1.NewTime(startAfter.Add(48 * time.Hour)),
			Reason: reason,
		},
	}
}

// expectCondition fails unless the job has the condition with that status and reason.
func expectCondition(t *testing.T, job *v1beta1.UpgradeJob, conditionType string, status metav1.ConditionStatus, reason string) *metav1.Condition {
	t.Helper()
	c := meta.FindStatusCondition(job.Status.Conditions, conditionType)
	if c == nil {
		t.Fatalf("there is no condition %s, want %s(%s); conditions: %v", conditionType, status, reason, job.Status.Conditions)
	}
	if c.Status != status || c.Reason != reason {
		t.Errorf("condition %s is %s(%s), want %s(%s)", conditionType, c.Status, c.Reason, status, reason)
	}
	return c
}
