// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

func TestDelayUpgradeHasTwoSpellings(t *testing.T) {
	for _, tc := range []struct {
		reason   string
		entry    string
		min, max time.Duration
	}{
		{"no delay", `{"matchLabels": {}}`, 0, 0},
		{"delayMin alone: no bound", `{"matchLabels": {}, "delayUpgrade": {"delayMin": "90m"}}`, 90 * time.Minute, 0},
		{"delayMin and delayMax", `{"matchLabels": {}, "delayUpgrade": {"delayMin": "90m", "delayMax": "3h"}}`, 90 * time.Minute, 3 * time.Hour},
		{"startAfter and startBefore", `{"matchLabels": {}, "delayUpgrade": {"startAfter": "90m", "startBefore": "3h"}}`, 90 * time.Minute, 3 * time.Hour},
		{"one of each", `{"matchLabels": {}, "delayUpgrade": {"startAfter": "90m", "delayMax": "3h"}}`, 90 * time.Minute, 3 * time.Hour},
		{"the other one of each", `{"matchLabels": {}, "delayUpgrade": {"delayMin": "90m", "startBefore": "3h"}}`, 90 * time.Minute, 3 * time.Hour},
		{"nothing of it is set", `{"matchLabels": {}, "delayUpgrade": {}}`, 0, 0},
		{"delayMax alone: no delay", `{"matchLabels": {}, "delayUpgrade": {"delayMax": "3h"}}`, 0, 3 * time.Hour},
		{"delayMax zero: no bound", `{"matchLabels": {}, "delayUpgrade": {"delayMin": "90m", "delayMax": "0s"}}`, 90 * time.Minute, 0},
		{"zero is no delay", `{"matchLabels": {}, "delayUpgrade": {"delayMin": "0s"}}`, 0, 0},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			entry := &v1beta1.MachineConfigPoolConfig{}
			if err := json.Unmarshal([]byte(tc.entry), entry); err != nil {
				t.Fatal(err)
			}
			if got := entry.DelayUpgrade.Min(); got != tc.min {
				t.Errorf("at least: got %s, want %s", got, tc.min)
			}
			if got := entry.DelayUpgrade.Max(); got != tc.max {
				t.Errorf("at most: got %s, want %s", got, tc.max)
			}
		})
	}
}
