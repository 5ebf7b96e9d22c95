// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"context"
	"fmt"

	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// MachineConfigPools finds every MachineConfigPool that is degraded or still updating: an upgrade would hang at the
// former, and roll the machines of the latter twice. A pool that somebody paused is let alone, as long as it is not
// degraded, and noted if it is behind.
func MachineConfigPools() Check { return machineConfigPools{} }

type machineConfigPools struct{}

func (machineConfigPools) Name() string { return "MachineConfigPools" }

func (machineConfigPools) Run(ctx context.Context, request Request) (Report, error) {
	if !enabled(request.Config.CheckMachineConfigPools) {
		return Report{Skipped: skippedOff}, nil
	}
	pools, err := request.Cluster.Pools(ctx)
	if err != nil {
		return Report{}, err
	}
	var report Report
	add := func(name, reason, what, clears string) {
		report.Findings = append(report.Findings, Finding{
			Object:     "MachineConfigPool/" + name,
			Reason:     reason,
			Message:    fmt.Sprintf("MachineConfigPool %s %s", name, what),
			ClearsWhen: clears,
		})
	}
	for i := range pools {
		name, progress := pools[i].Name, openshift.PoolAtRest(&pools[i])
		switch progress.State {
		case openshift.PoolDegraded:
			add(name, "MachineConfigPoolDegraded", "is degraded: "+progress.Message,
				fmt.Sprintf("MachineConfigPool %s is not degraded any more", name))
		case openshift.PoolUpdating, openshift.PoolNotRendered:
			add(name, "MachineConfigPoolUpdating", "is updating: "+progress.Message,
				fmt.Sprintf("every machine of MachineConfigPool %s runs its configuration", name))
		case openshift.PoolPaused:
			report.Notes = append(report.Notes, fmt.Sprintf("MachineConfigPool %s is paused: %s", name, progress.Message))
		case openshift.PoolUpdated:
		}
	}
	return report, nil
}
