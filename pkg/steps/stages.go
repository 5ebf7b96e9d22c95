// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// Tell tells of a stage of the upgrade: once, and once more if the job is resumed and gets there again. It goes out to the receivers of
// notifications, and as an Event, when the pass is recorded.
func (u *Upgrade) Tell(stage v1beta1.UpgradeStage, message string) {
	if u.told(stage) != nil || !u.Job.Spec.Config.StageNotifications.Tells(stage) {
		return
	}
	status := &u.Job.Status
	told := v1beta1.StageStatus{Stage: stage, Time: metav1.NewTime(u.Now)}
	if u.Announce != nil {
		told.Sequence = u.Announce(v1beta1.Notice{Type: stage.Notification(), Condition: string(stage), Reason: "Upgrade" + string(stage), Message: message})
	}
	status.Stages = append(slices.DeleteFunc(status.Stages, func(s v1beta1.StageStatus) bool { return s.Stage == stage }), told)
}

// told returns when the stage was told of, nil if it was not since the job was resumed last.
func (u *Upgrade) told(stage v1beta1.UpgradeStage) *v1beta1.StageStatus {
	for i := range u.Job.Status.Stages {
		if s := &u.Job.Status.Stages[i]; s.Stage == stage && !s.Time.Time.Before(resumed(u.Job)) {
			return s
		}
	}
	return nil
}

// undelivered returns the receivers that have yet to get what was told of a stage.
func (u *Upgrade) undelivered(stage v1beta1.UpgradeStage) []string {
	told := u.told(stage)
	notifications := u.Job.Status.Notifications
	if told == nil || told.Sequence == 0 || notifications == nil {
		return nil
	}
	config := &u.Job.Spec.Config
	var names []string
	for i := range config.Notifications {
		name := config.ReceiverName(i)
		got := slices.ContainsFunc(notifications.Receivers, func(r v1beta1.NotificationReceiverStatus) bool {
			return r.Name == name && r.Cursor >= told.Sequence
		})
		if !got && config.Notifications[i].Wants(stage.Notification()) {
			names = append(names, name)
		}
	}
	return names
}

// Beginning tells of a stage before the step runs for the first time, unless the upgrade has commenced, or does not any more.
func Beginning(stage v1beta1.UpgradeStage, message string, step Step) Step {
	return beginning{step, stage, message}
}

type beginning struct {
	Step
	stage   v1beta1.UpgradeStage
	message string
}

func (s beginning) Run(ctx context.Context, u *Upgrade) (Verdict, error) {
	if u.Needed() && !u.Commenced() && !u.Now.After(u.CommenceBefore()) {
		u.Tell(s.stage, s.message)
	}
	return s.Step.Run(ctx, u)
}

// Unwrap returns the step itself.
func (s beginning) Unwrap() Step { return s.Step }

// Finishing tells of a stage once the step is done for the first time, in an upgrade that has commenced.
func Finishing(stage v1beta1.UpgradeStage, message string, step Step) Step {
	return finishing{step, stage, message}
}

type finishing struct {
	Step
	stage   v1beta1.UpgradeStage
	message string
}

func (s finishing) Run(ctx context.Context, u *Upgrade) (Verdict, error) {
	verdict, err := s.Step.Run(ctx, u)
	if err == nil && verdict.kind == kindDone && u.hasTarget() && u.Job.Status.CommenceTime != nil { // else there was nothing to upgrade
		u.Tell(s.stage, s.message)
	}
	return verdict, err
}

// Unwrap returns the step itself.
func (s finishing) Unwrap() Step { return s.Step }
