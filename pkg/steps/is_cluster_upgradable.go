// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"time"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/healthcheck"
)

// ConditionIsClusterUpgradable is the condition of IsClusterUpgradable.
const ConditionIsClusterUpgradable = "IsClusterUpgradable"

// IsClusterUpgradable waits until the checks find nothing that OpenShift itself would refuse the upgrade for. The job's window bounds that.
func IsClusterUpgradable(checks ...healthcheck.Check) Step { return isClusterUpgradable{checks} }

type isClusterUpgradable struct{ checks []healthcheck.Check }

func (isClusterUpgradable) Condition() string { return ConditionIsClusterUpgradable }

func (s isClusterUpgradable) Run(ctx context.Context, u *Upgrade) (Verdict, error) {
	if !u.Needed() {
		return Done(nothingToUpgrade(u)), nil
	}
	target, _ := u.Target()
	report := healthcheck.RunAll(ctx, s.checks, healthcheck.Request{
		Config: u.Job.Spec.Config.PreUpgradeHealthChecks, Cluster: u.Cluster, Monitoring: u.Monitoring, Version: u.Version, Target: &target,
		Now: u.Now, MaxAge: decisiveAge,
	})
	if len(report.Findings) == 0 {
		return Done("OpenShift says nothing against the upgrade."), nil
	}
	again := report.Recheck
	if again == 0 {
		again = time.Minute // the watches tell earlier
	}
	return u.awaitBeforeCommencing(again, v1beta1.ReasonNotUpgradeable, "OpenShift cannot be upgraded: "+summary(report), blockersOf(report.Findings)), nil
}
