// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/notify"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// stageWorld is a world in which somebody is told of stages, and NodeForceDrains are kept.
type stageWorld struct {
	*world
	drains keptDrains
	// commenceBy is when the job fails that has not commenced; the zero time if there is no such limit.
	commenceBy time.Time
}

// keptDrains are the NodeForceDrains of jobs.
type keptDrains struct {
	specs map[string]v1beta1.NodeForceDrainSpec
	err   error
}

func (k *keptDrains) Ensure(_ context.Context, job *v1beta1.UpgradeJob, spec v1beta1.NodeForceDrainSpec) error {
	if k.err == nil {
		k.specs[job.Name] = spec
	}
	return k.err
}

func (k *keptDrains) Remove(_ context.Context, job *v1beta1.UpgradeJob) error {
	if k.err == nil {
		delete(k.specs, job.Name)
	}
	return k.err
}

func newStageWorld(t *testing.T, objects ...client.Object) *stageWorld {
	t.Helper()
	return &stageWorld{world: newWorld(t, objects...), drains: keptDrains{specs: map[string]v1beta1.NodeForceDrainSpec{}}}
}

func (w *stageWorld) upgrade() *steps.Upgrade {
	w.t.Helper()
	u := w.world.upgrade()
	u.Announce = func(n v1beta1.Notice) int64 { return notify.Append(u.Job, n, w.now) }
	u.ForceDrains, u.CommenceBy = &w.drains, w.commenceBy
	return u
}

// pass does one pass over the steps, that time after the start, and writes the job's status.
func (w *stageWorld) pass(after time.Duration, list ...steps.Step) steps.Result {
	w.t.Helper()
	w.now = start.Add(after)
	u := w.upgrade()
	result := steps.Run(w.t.Context(), list, u)
	if err := u.Persist(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return result
}

// expect does one pass over the step and checks its verdict.
func (w *stageWorld) expect(after time.Duration, step steps.Step, want verdict) {
	w.t.Helper()
	result := w.pass(after, step)
	if result.Err != nil {
		w.t.Fatalf("after %s: got the error %v", after, result.Err)
	}
	want.check(w.t, step, result, w.job())
}

// edit changes the status of the job as somebody else does.
func (w *stageWorld) edit(options ...jobOption) {
	w.t.Helper()
	job := w.job()
	for _, option := range options {
		option(job)
	}
	if err := w.api.Status().Update(w.t.Context(), job); err != nil {
		w.t.Fatal(err)
	}
}

// expectTold fails unless the outbox has these notices of stages, as type and message.
func (w *stageWorld) expectTold(want ...string) {
	w.t.Helper()
	var got []string
	if n := w.job().Status.Notifications; n != nil {
		for _, notice := range n.Outbox {
			got = append(got, string(notice.Type)+": "+notice.Message)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("told (-want +got):\n%s", diff)
	}
}

// receiver has a receiver be told of these events; of all if none is named.
func receiver(name string, events ...v1beta1.NotificationFilter) jobOption {
	return func(job *v1beta1.UpgradeJob) {
		job.Spec.Config.Notifications = append(job.Spec.Config.Notifications, v1beta1.NotificationReceiver{Name: name, Events: events})
	}
}

// received has a receiver have got everything up to a notice.
func received(name string, cursor int64) jobOption {
	return func(job *v1beta1.UpgradeJob) {
		n := job.Status.Notifications
		n.Receivers = append(n.Receivers, v1beta1.NotificationReceiverStatus{Name: name, Cursor: cursor})
	}
}

// toldAt records that a stage was told of at that time after the start.
func toldAt(stage v1beta1.UpgradeStage, after time.Duration) jobOption {
	return func(job *v1beta1.UpgradeJob) {
		job.Status.Stages = append(job.Status.Stages, v1beta1.StageStatus{Stage: stage, Time: metav1.NewTime(start.Add(after))})
	}
}

func lasting(d time.Duration) *v1beta1.Duration { return &v1beta1.Duration{Duration: d} }

// upgraded is a cluster that runs the version of the job.
func upgraded() versionOption {
	return openshifttest.History(openshifttest.Completed(target), openshifttest.Completed("4.18.1"))
}

// expectConditionBegins fails unless the job has the condition, written as status(reason): message, which begins so.
func (w *stageWorld) expectConditionBegins(conditionType, want string) {
	w.t.Helper()
	c := meta.FindStatusCondition(w.job().Status.Conditions, conditionType)
	if c == nil {
		w.t.Fatalf("there is no condition %s", conditionType)
	}
	if got := fmt.Sprintf("%s(%s): %s", c.Status, c.Reason, c.Message); !strings.HasPrefix(got, want) {
		w.t.Errorf("%s is %s, want %s", conditionType, got, want)
	}
}
