// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"testing"
	"time"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// Nobody is told that an upgrade starts, or is completed, where there is nothing to upgrade.
func TestNothingIsToldOfNoUpgrade(t *testing.T) {
	w := newStageWorld(t, newJob(receiver("pager")), openshifttest.ClusterVersion(upgraded()))
	step := steps.Finishing(v1beta1.StageControlPlaneFinished, "It is upgraded.", answering(t, "Step", isDone))
	if result := w.pass(0, steps.StartedNotificationSent(), step, steps.CompletedNotificationSent()); result.Outcome != steps.Completed {
		t.Errorf("got %+v", result)
	}
	w.expectTold()
}

func TestNotificationsSent(t *testing.T) {
	const pager, chat = "NotificationPending NotificationReceiver/pager", "NotificationPending NotificationReceiver/chat"
	for _, step := range []struct {
		step    steps.Step
		filter  v1beta1.NotificationFilter
		notice  string
		version versionOption
	}{
		{steps.StartedNotificationSent(), "upgrade.started", "upgrade.started: The upgrade to 4.18.2 has started.", openshifttest.Available(target)},
		{steps.CompletedNotificationSent(), "upgrade.completed", "upgrade.completed: The upgrade to 4.18.2 is completed.", upgraded()},
	} {
		pending := func(left time.Duration, blockers ...string) verdict {
			return verdict{outcome: steps.Running, reason: v1beta1.ReasonNotificationPending, after: left, blockers: blockers, says: "Not delivered yet to"}
		}
		delivered := verdict{outcome: steps.Completed, reason: "Completed", says: "The receivers have been told."}
		world := func(t *testing.T, job ...jobOption) *stageWorld {
			if step.filter == "upgrade.completed" {
				job = append(job, begun(steps.ConditionUpgradeCommenced, 0))
			}
			return newStageWorld(t, newJob(job...), openshifttest.ClusterVersion(step.version))
		}
		name := step.step.Condition()

		t.Run(name+" waits until all have got it", func(t *testing.T) {
			w := world(t, receiver("pager", step.filter), receiver("chat"), receiver("others", "job.*"))
			w.expect(time.Second, step.step, pending(5*time.Minute, pager, chat))
			w.expectTold(step.notice)
			w.edit(received("pager", 1))
			w.expect(time.Minute, step.step, pending(4*time.Minute+time.Second, chat))
			w.edit(received("chat", 1))
			w.expect(2*time.Minute, step.step, delivered)
			w.expect(time.Hour, step.step, delivered) // done already
			w.expectTold(step.notice)
		})
		t.Run(name+" does not wait for ever", func(t *testing.T) {
			w := world(t, receiver("pager"), func(job *v1beta1.UpgradeJob) { job.Spec.Config.NotificationTimeout = lasting(90 * time.Second) })
			w.expect(0, step.step, pending(90*time.Second, pager))
			w.expect(90*time.Second-1, step.step, pending(1, pager))
			w.expect(90*time.Second, step.step, verdict{outcome: steps.Completed, reason: "Completed", says: "Not delivered within 1m30s to pager, which is tried further."})
			w.expectTold(step.notice)
		})
		t.Run(name+" need not wait at all", func(t *testing.T) {
			w := world(t, receiver("pager"), func(job *v1beta1.UpgradeJob) { job.Spec.Config.NotificationTimeout = lasting(0) })
			w.expect(0, step.step, verdict{outcome: steps.Completed, reason: "Completed", says: "tried further"})
			w.expectTold(step.notice)
		})
		t.Run(name+" without a receiver that wants it", func(t *testing.T) {
			w := world(t, receiver("others", "job.*"))
			w.expect(0, step.step, verdict{outcome: steps.Completed, reason: "Completed", says: "No receiver wants to be told; the Events of the job have it."})
			w.expectTold()
			if stages := w.job().Status.Stages; len(stages) != 1 || !stages[0].Time.Time.Equal(start) {
				t.Errorf("the stages are %+v, want one", stages)
			}
		})
		t.Run(name+" of a job that is resumed is told again", func(t *testing.T) {
			w := world(t, receiver("pager"))
			w.pass(0, step.step)
			w.edit(received("pager", 1))
			w.expect(time.Minute, step.step, delivered)
			w.edit(resumed(time.Hour))
			w.expect(time.Hour, step.step, pending(5*time.Minute, pager))
			w.expectTold(step.notice) // what was delivered is forgotten
			if sequence := w.job().Status.Notifications.Outbox[0].Sequence; sequence != 2 {
				t.Errorf("it has sequence %d, want that of a new notice", sequence)
			}
		})
		t.Run(name+" of a job without a version", func(t *testing.T) {
			w := world(t, withoutVersion, receiver("pager"))
			w.expect(0, step.step, verdict{outcome: steps.Completed, reason: "Completed", says: "no version"})
			w.expectTold()
		})
	}
}

// The step that was run before it has written that it is told, or nobody is: a pass whose status is lost tells again.
func TestNotificationIsToldByTheWriteThatRecordsIt(t *testing.T) {
	w := newStageWorld(t, newJob(receiver("pager")), openshifttest.ClusterVersion())
	lost := w.upgrade()
	if result := steps.Run(t.Context(), []steps.Step{steps.StartedNotificationSent()}, lost); result.Err != nil {
		t.Fatal(result.Err)
	}
	w.expectTold()
	w.pass(time.Second, steps.StartedNotificationSent())
	w.expectTold("upgrade.started: The upgrade to 4.18.2 has started.")
}
