// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import "time"

// Default returns a healthy cluster of 3 masters and 6 workers on 4.18.1 that
// offers 4.18.2, with timings that take a whole update to about
// four seconds.
func Default() Scenario {
	return Scenario{
		Version:  "4.18.1",
		Channel:  "stable-4.18",
		Channels: []string{"candidate-4.18", "eus-4.18", "fast-4.18", "stable-4.18"},
		Masters:  Pool{Size: 3},
		Workers:  Pool{Size: 6},
		Updates:  []OfferedUpdate{{Version: "4.18.2"}},
		Timings: Timings{
			Accept:        Duration(150 * time.Millisecond),
			Operator:      Duration(80 * time.Millisecond),
			Graph:         Duration(100 * time.Millisecond),
			Render:        Duration(150 * time.Millisecond),
			Drain:         Duration(70 * time.Millisecond),
			Apply:         Duration(50 * time.Millisecond),
			Reboot:        Duration(150 * time.Millisecond),
			DrainRetry:    defaultDrainRetry,
			DrainFails:    Duration(time.Hour),
			Upgradeable:   Duration(200 * time.Millisecond),
			Reconcile:     Duration(200 * time.Millisecond),
			DegradedFails: Duration(2 * time.Second),
			SlowUnknown:   Duration(30 * time.Minute),
		},
		Noise: Noise{OperatorsFlap: true, ProgressMessages: 1},
	}
}
