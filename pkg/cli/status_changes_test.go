// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	o "github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

// sickTwice is a report with two things to be told of each of several objects.
func sickTwice() statusReport {
	unanswered := blocker("Unanswered", "", 0, "CriticalAlerts cannot be answered: timeout", "the check gets an answer")
	other := unanswered
	unanswered.Check, other.Check, other.Message = "CriticalAlerts", "CustomQueries", "CustomQueries cannot be answered: timeout"
	pods := blocker("HookRunning", "UpgradeJobHook/backup", 0, "UpgradeJobHook backup runs as Job backup-1. It holds pool infra.", "")
	more := pods
	more.Message = "UpgradeJobHook backup runs as Job backup-2. It holds pool worker."
	job := upgradeJob(started(time.Minute, preflightSteps...), withHooks, withReceivers, pausedUntilNight, func(job *v1beta1.UpgradeJob) {
		again := job.Status.HookTracker[0]
		again.TrackingKey = "resumed:ticket-4711"
		job.Status.HookTracker = append(job.Status.HookTracker, again)
		job.Status.Blockers = []v1beta1.Blocker{
			blocker("ClusterOperatorDegraded", "ClusterOperator/dns", 0, "ClusterOperator dns is degraded", ""),
			blocker("ClusterOperatorNotAvailable", "ClusterOperator/dns", 0, "ClusterOperator dns is not available", ""), unanswered, other, pods, more,
		}
	})
	s := seen(time.Hour, job)
	s.Operators = []configv1.ClusterOperator{*o.ClusterOperator("dns",
		o.OperatorCondition(configv1.OperatorAvailable, configv1.ConditionFalse, "NoPods", "no pod is ready"),
		o.OperatorCondition(configv1.OperatorDegraded, configv1.ConditionTrue, "NoPods", "pods crash"))}
	return statusOf(s, &s.Jobs[0])
}

// Facts are told apart by what they are about: two about the same would be told of at every look, and hide what becomes of each other.
func TestNoTwoFactsAreAboutTheSame(t *testing.T) {
	r := sickTwice()
	about := map[string]string{}
	for _, f := range factsOf(&r) {
		if before, twice := about[f.about]; twice {
			t.Errorf("both %q and %q are about %q", before, f.text, f.about)
		}
		about[f.about] = f.text
	}
}

func TestChangesOfOneObject(t *testing.T) {
	before := sickTwice()
	for _, tc := range []struct {
		reason string
		change func(*statusReport)
		want   []string
	}{
		{"nothing", func(*statusReport) {}, nil},
		{"an operator is available again, and degraded still", func(r *statusReport) { r.Operators.Sick = r.Operators.Sick[1:] },
			[]string{"operator dns Available=False: not any more"}},
		{"what an operator says of one condition changes", func(r *statusReport) { r.Operators.Sick[1].Message = "pods are pending" },
			[]string{"operator dns Degraded=True: pods are pending"}},
		{"one of two blockers on an object goes", func(r *statusReport) { r.Job.Blockers = r.Job.Blockers[1:] },
			[]string{"waits for ClusterOperator/dns (ClusterOperatorDegraded): not any more"}},
		{"the other one changes", func(r *statusReport) { r.Job.Blockers[1].Message = "ClusterOperator dns is away" },
			[]string{"waits for ClusterOperator/dns (ClusterOperatorNotAvailable): ClusterOperator dns is away"}},
		{"a check gets its answer", func(r *statusReport) { r.Job.Blockers = append(r.Job.Blockers[:2:2], r.Job.Blockers[3:]...) },
			[]string{"waits for Unanswered of check CriticalAlerts: not any more"}},
		{"a hook has finished with one of two pools", func(r *statusReport) { r.Job.Blockers = r.Job.Blockers[:5] },
			[]string{"waits for UpgradeJobHook/backup (HookRunning) (2): not any more"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			after := sickTwice()
			tc.change(&after)
			if diff := cmp.Diff(tc.want, changes(factsOf(&before), factsOf(&after))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
