// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"fmt"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// ConditionUpgradeNotDelayed is the condition of UpgradeNotDelayed.
const ConditionUpgradeNotDelayed = "UpgradeNotDelayed"

// UpgradeNotDelayed tells once that the upgrade is delayed, if it has not commenced within upgradeWindow.delayTrigger. It holds nothing up: its condition is
// False from then on, and the steps behind it run.
func UpgradeNotDelayed() Step { return upgradeNotDelayed{} }

type upgradeNotDelayed struct{}

func (upgradeNotDelayed) Condition() string { return ConditionUpgradeNotDelayed }

func (upgradeNotDelayed) Run(_ context.Context, u *Upgrade) (Verdict, error) {
	trigger := v1beta1.DefaultDelayTrigger
	if window := u.Job.Spec.Config.UpgradeWindow; window != nil {
		trigger = window.DelayTrigger.Or(trigger)
	}
	told := u.told(v1beta1.StageDelayed)
	left := u.RunningSince().Add(trigger).Sub(u.Now)
	switch {
	case told != nil && u.Commenced():
		return Holding(false, 0, v1beta1.ReasonDelayed, fmt.Sprintf("The upgrade had not commenced within %s.", trigger)), nil
	case u.Commenced(), !u.Needed():
		return Done(nothingDelayed(u)), nil
	case trigger == 0:
		return Done("No delay is told of: upgradeWindow.delayTrigger is 0."), nil
	case left > 0:
		return Done(fmt.Sprintf("The upgrade is not delayed: it has %s to commence.", trigger)).AgainAfter(left), nil
	}
	message := fmt.Sprintf("The upgrade has not commenced within %s.", trigger)
	if told == nil && len(u.Job.Status.Blockers) > 0 {
		u.Tell(v1beta1.StageDelayed, message+" It waits for: "+u.Job.Status.Blockers[0].Message)
	} else {
		u.Tell(v1beta1.StageDelayed, message)
	}
	return Holding(false, 0, v1beta1.ReasonDelayed, message), nil
}

func nothingDelayed(u *Upgrade) string {
	if u.Commenced() {
		return "" // what was said stays
	}
	return nothingToUpgrade(u)
}
