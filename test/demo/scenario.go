// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"time"

	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// scenario returns the cluster of the demo: the simulator's default one with a pool whose machines follow at night, and
// slow enough to be watched. An update of it takes about 50 seconds, without that pool. A file may change it.
func scenario(path string, speed float64) (sim.Scenario, error) {
	s := sim.Default()
	s.Workers.Size = 4
	night := []sim.CustomPool{{Name: nightPool, Labels: map[string]string{"maintenance": "night"}, Pool: sim.Pool{Size: 2}}}
	t := &s.Timings
	for _, timing := range []struct {
		field *sim.Duration
		takes time.Duration
	}{
		{&t.Accept, 2 * time.Second},
		{&t.Operator, 2 * time.Second},
		{&t.Graph, time.Second},
		{&t.Render, 1500 * time.Millisecond},
		{&t.Drain, 1500 * time.Millisecond},
		{&t.Apply, 1 * time.Second},
		{&t.Reboot, 2 * time.Second},
		{&t.Upgradeable, time.Second},
		{&t.Reconcile, time.Second},
		{&t.DegradedFails, 20 * time.Second},
	} {
		*timing.field = sim.Duration(float64(timing.takes) / speed)
	}
	if path == "" {
		s.CustomPools = night
		return s, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return s, fmt.Errorf("read the scenario: %w", err)
	}
	if s, err = sim.Parse(data, s); err != nil {
		return s, fmt.Errorf("%s: %w", path, err)
	}
	if s.CustomPools == nil { // a file that lists pools has its own, which share nothing with this one
		s.CustomPools = night
	}
	return s, nil
}
