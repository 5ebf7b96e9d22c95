// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"fmt"
	"strings"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// Conditions of the steps that tell of the upgrade.
const (
	ConditionStartedNotificationSent   = "StartedNotificationSent"
	ConditionCompletedNotificationSent = "CompletedNotificationSent"
)

// StartedNotificationSent tells that the upgrade has started, if there is anything to upgrade, and waits until the receivers of notifications have got that, but no longer than
// notificationTimeout: nobody's receiver is worth a missed window.
func StartedNotificationSent() Step {
	return notificationSent{ConditionStartedNotificationSent, v1beta1.StageStarted, "The upgrade to %s has started."}
}

// CompletedNotificationSent tells that the upgrade is completed, and waits as StartedNotificationSent does.
func CompletedNotificationSent() Step {
	return notificationSent{ConditionCompletedNotificationSent, v1beta1.StageCompleted, "The upgrade to %s is completed."}
}

type notificationSent struct {
	condition string
	stage     v1beta1.UpgradeStage
	message   string
}

func (s notificationSent) Condition() string { return s.condition }

func (s notificationSent) Run(_ context.Context, u *Upgrade) (Verdict, error) {
	target, ok := u.Target()
	if !ok || (!u.Needed() && u.Job.Status.CommenceTime == nil) {
		return Done(nothingToUpgrade(u)), nil
	}
	u.Tell(s.stage, fmt.Sprintf(s.message, target))
	pending := u.undelivered(s.stage)
	if len(pending) == 0 {
		return Done(s.delivered(u)), nil
	}
	timeout := u.Job.Spec.Config.NotificationTimeout.Or(v1beta1.DefaultNotificationTimeout)
	left := u.StepStarted(s.condition).Add(timeout).Sub(u.Now)
	if left <= 0 {
		return Done(fmt.Sprintf("Not delivered within %s to %s, which is tried further.", timeout, strings.Join(pending, ", "))), nil
	}
	var blockers []v1beta1.Blocker
	for _, name := range pending {
		blockers = append(blockers, v1beta1.Blocker{
			Code:       v1beta1.ReasonNotificationPending,
			Object:     "NotificationReceiver/" + name,
			Message:    fmt.Sprintf("Receiver %s has not got the notification %s.", name, s.stage.Notification()),
			ClearsWhen: fmt.Sprintf("it does, or %s have passed", timeout),
		})
	}
	return Wait(left, v1beta1.ReasonNotificationPending, "Not delivered yet to "+strings.Join(pending, ", ")+".", blockers...), nil
}

func (s notificationSent) delivered(u *Upgrade) string {
	if told := u.told(s.stage); told == nil || told.Sequence == 0 {
		return "No receiver wants to be told; the Events of the job have it."
	}
	return "The receivers have been told."
}
