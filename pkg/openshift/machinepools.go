// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"fmt"
	"path"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
)

// Labels of MachineSets that are given a meaning here.
const (
	// MachinePoolLabel names the machine pool that a MachineSet belongs to.
	MachinePoolLabel = "hive.openshift.io/machine-pool"
	// UpgradeMachineLabel is "true" on MachineSets, and their Machines, that are there for the time of an upgrade. It is that of the Managed Upgrade Operator.
	UpgradeMachineLabel = "upgrade.managed.openshift.io"

	workerMachinePool = "worker"
)

// MachinePools selects MachineSets by their machine pool: those of the pool worker, and those of further ones. The zero value selects the first only.
type MachinePools struct{ patterns []string }

// ParseMachinePools takes glob patterns of further machine pools, as of path.Match. It returns an error that names the pattern that is none.
func ParseMachinePools(patterns []string) (MachinePools, error) {
	for _, pattern := range patterns {
		if _, err := path.Match(pattern, ""); err != nil {
			return MachinePools{}, fmt.Errorf("%q is no glob pattern of machine pools: %w", pattern, err)
		}
	}
	return MachinePools{patterns}, nil
}

// Select tells whether the MachineSet is of a pool that is selected. One that is there for the time of an upgrade never is, and how many machines it has
// does not matter.
func (p MachinePools) Select(set *machinev1beta1.MachineSet) bool {
	pool, ok := set.Labels[MachinePoolLabel]
	if !ok || set.Labels[UpgradeMachineLabel] == "true" || !set.DeletionTimestamp.IsZero() {
		return false
	}
	if pool == workerMachinePool {
		return true
	}
	for _, pattern := range p.patterns {
		if matches, err := path.Match(pattern, pool); err == nil && matches {
			return true
		}
	}
	return false
}
