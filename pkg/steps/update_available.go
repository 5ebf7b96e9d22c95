// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// ConditionUpdateAvailable is the condition of UpdateAvailable.
const ConditionUpdateAvailable = "UpdateAvailable"

// UpdateAvailable skips the job if the cluster does not offer the desired version any more.
func UpdateAvailable() Step { return updateAvailable{} }

type updateAvailable struct{}

func (updateAvailable) Condition() string { return ConditionUpdateAvailable }

func (updateAvailable) Run(_ context.Context, u *Upgrade) (Verdict, error) {
	target, ok := u.Target()
	switch check := u.Job.Spec.DesiredVersionCheckAvailability; {
	case !ok || !u.Needed():
		return Done(nothingToUpgrade(u)), nil
	case check != nil && !*check:
		return Done(fmt.Sprintf("%s is taken as given: desiredVersionCheckAvailability is false.", target)), nil
	}
	if _, offered := openshift.Offered(u.Version, target); offered {
		return Done(fmt.Sprintf("%s is an available update.", target)), nil
	}

	retrieved := openshift.Condition(u.Version.Status.Conditions, configv1.RetrievedUpdates)
	if retrieved != nil && retrieved.Status == configv1.ConditionTrue {
		return Skip(v1beta1.ReasonUpgradeWithdrawn, fmt.Sprintf("%s is not an available update any more%s.", target, onlyConditionally(u.Version, target))), nil
	}
	why := "it has not asked for them yet"
	if retrieved != nil {
		why = fmt.Sprintf("%s: %s", retrieved.Reason, retrieved.Message)
	}
	message := fmt.Sprintf("Whether %s is still available cannot be told: the cluster does not know its updates (%s).", target, why)
	left := u.CommenceBefore().Sub(u.Now)
	if left <= 0 {
		return Skip(v1beta1.ReasonUpgradeWithdrawn, message), nil
	}
	return Wait(left, v1beta1.ReasonUpdatesUnknown, message, v1beta1.Blocker{
		Code:       "UpdatesNotRetrieved",
		Object:     "ClusterVersion/" + u.Version.Name,
		Message:    message,
		ClearsWhen: "ClusterVersion reports RetrievedUpdates=True",
	}), nil
}

// nothingToUpgrade is what the steps between commencing and the pools say of a job that has nothing to do for them.
func nothingToUpgrade(u *Upgrade) string {
	target, ok := u.Target()
	if !ok {
		return "The job has no version: nothing is upgraded."
	}
	return fmt.Sprintf("The cluster runs %s already.", target)
}

// onlyConditionally says which risk keeps the cluster from recommending the release, if that is why it is not offered.
func onlyConditionally(cv *configv1.ClusterVersion, target openshift.Release) string {
	for i := range cv.Status.ConditionalUpdates {
		cu := &cv.Status.ConditionalUpdates[i]
		if !target.Matches(cu.Release.Version, cu.Release.Image) {
			continue
		}
		for _, c := range cu.Conditions {
			if c.Type == "Recommended" && c.Status != "True" {
				return fmt.Sprintf(", only a conditional one (%s: %s)", c.Reason, c.Message)
			}
		}
	}
	return ""
}
