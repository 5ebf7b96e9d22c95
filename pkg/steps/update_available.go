// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// ConditionUpdateAvailable is the condition of UpdateAvailable.
const ConditionUpdateAvailable = "UpdateAvailable"

// UpdateAvailable sets the channel of the job, if it has one, and skips the job if the cluster does not offer the desired version any more.
func UpdateAvailable() Step { return updateAvailable{} }

type updateAvailable struct{}

func (updateAvailable) Condition() string { return ConditionUpdateAvailable }

func (s updateAvailable) Run(ctx context.Context, u *Upgrade) (Verdict, error) {
	return offer(ctx, u, s.Condition())
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
