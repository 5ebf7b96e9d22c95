// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"fmt"

	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// ConditionPostUpgradeTasksCompleted is the condition of PostUpgradeTasksCompleted.
const ConditionPostUpgradeTasksCompleted = "PostUpgradeTasksCompleted"

// PostUpgradeTasksCompleted does what postUpgradeTasks ask for. To do it twice does no harm, and costs the nodes some work: wrap it in Once.
func PostUpgradeTasksCompleted() Step { return postUpgradeTasksCompleted{} }

type postUpgradeTasksCompleted struct{}

func (postUpgradeTasksCompleted) Condition() string { return ConditionPostUpgradeTasksCompleted }

func (postUpgradeTasksCompleted) Run(ctx context.Context, u *Upgrade) (Verdict, error) {
	tasks := u.Job.Spec.Config.PostUpgradeTasks
	if tasks == nil || !tasks.ReinitializeFileIntegrity || !u.hasTarget() {
		return Done("There is nothing else to be done."), nil
	}
	if err := u.Lock(ctx); err != nil {
		return Verdict{}, err
	}
	found, err := u.Cluster.ReinitializeFileIntegrity(ctx)
	if err != nil {
		return Verdict{}, err
	}
	const object = "FileIntegrity " + openshift.FileIntegrityNamespace + "/" + openshift.FileIntegrityName
	if !found {
		return Done(fmt.Sprintf("%s is not reinitialized: the cluster does not have it.", object)), nil
	}
	return Done(fmt.Sprintf("%s is being reinitialized.", object)), nil
}
