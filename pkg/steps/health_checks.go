// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"github.com/appuio/managed-upgrade-operator/pkg/healthcheck"
)

// HealthChecks returns the checks that the steps of those conditions make, in the order of the list and each once, so that others can make them too. Steps
// that make none count for nothing.
func HealthChecks(list []Step, conditions ...string) []healthcheck.Check {
	wanted, seen := map[string]bool{}, map[string]bool{}
	for _, condition := range conditions {
		wanted[condition] = true
	}
	var all []healthcheck.Check
	for _, step := range list {
		checking, ok := unwrapped(step).(interface{ healthChecks() []healthcheck.Check })
		if !ok || !wanted[step.Condition()] {
			continue
		}
		for _, check := range checking.healthChecks() {
			if !seen[check.Name()] {
				seen[check.Name()] = true
				all = append(all, check)
			}
		}
	}
	return all
}

func (s clusterHealthy) healthChecks() []healthcheck.Check { return s.checks }

func (s isClusterUpgradable) healthChecks() []healthcheck.Check { return s.checks }
