// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import "testing"

func TestBadDelaysAndForceDrainsAreRefusedWithTheWordsThatMendThem(t *testing.T) {
	const (
		job = `{apiVersion: managedupgrade.appuio.io/v1beta1, kind: UpgradeJob, metadata: {name: bad}, spec: {
			startAfter: "2026-01-06T21:00:00Z", startBefore: "2026-01-06T22:00:00Z",
			config: {upgradeTimeout: 4h, machineConfigPools: [{matchLabels: {name: night}, delayUpgrade: {delayMin: 1h, delayMax: 2h}}]}}}`
		config = `{apiVersion: managedupgrade.appuio.io/v1beta1, kind: UpgradeConfig, metadata: {name: bad}, spec: {schedule: {cron: "0 22 * * 2"},
			jobTemplate: {spec: {config: {machineConfigPools: [{matchLabels: {matchExpressions: [{key: app, operator: In, values: [night]}]},
			delayUpgrade: {startAfter: 1h, startBefore: 2h}}]}}}}}`
		drain = `{apiVersion: managedupgrade.appuio.io/v1beta1, kind: NodeForceDrain, metadata: {name: bad}, spec: {nodeDrainGracePeriod: 15m, podForceDeleteGracePeriod: 2m,
			nodeSelector: {matchLabels: {node-role.kubernetes.io/app: ""}}, podJQSelector: ".metadata.labels.tier == \"batch\""}}`
		pools       = "spec.config.machineConfigPools"
		configPools = "spec.jobTemplate.spec.config.machineConfigPools"
		tooLong     = "delayMin of every delayUpgrade must be shorter than upgradeTimeout"
		maxAfterMin = "delayMax must be longer than delayMin"
	)
	type fields = map[string]any
	entry := func(delay fields) []any {
		return []any{fields{"matchLabels": fields{"name": "night"}, "delayUpgrade": delay}}
	}
	tests := []struct {
		name     string
		manifest string
		path     string // of the field that is set
		value    any
		words    []string
	}{
		{"delayMax before delayMin", job, pools, entry(fields{"delayMin": "2h", "delayMax": "1h"}), []string{"machineConfigPools[0].delayUpgrade", maxAfterMin}},
		{"delayMax at delayMin", job, pools, entry(fields{"delayMin": "60m", "delayMax": "1h"}), []string{maxAfterMin}},
		{"startBefore before startAfter", config, configPools, entry(fields{"startAfter": "2h", "startBefore": "1h"}), []string{"machineConfigPools[0].delayUpgrade", maxAfterMin}},
		{"spellings mixed, the wrong way round", job, pools, entry(fields{"delayMin": "2h", "startBefore": "1h"}), []string{maxAfterMin}},
		{"two spellings of delayMin", job, pools, entry(fields{"delayMin": "1h", "startAfter": "1h"}), []string{"delayMin and startAfter are two spellings of one setting"}},
		{"two spellings of delayMax", job, pools, entry(fields{"delayMin": "1h", "delayMax": "2h", "startBefore": "2h"}), []string{"delayMax and startBefore are two spellings of one setting"}},
		{"delay as long as the job", job, pools, entry(fields{"delayMin": "4h"}), []string{tooLong}},
		{"delay beyond the job by its other spelling", job, pools, entry(fields{"startAfter": "5h"}), []string{tooLong}},
		{"delay beyond the default of the job", config, configPools, entry(fields{"delayMin": "12h"}), []string{tooLong}},
		{"negative delay", job, pools, entry(fields{"delayMin": "-1h"}), []string{"delayMin", wantDuration}},
		{"delay in words", job, pools, entry(fields{"startAfter": "tonight"}), []string{"startAfter", wantDuration}},
		{"delay that is a number", job, pools, entry(fields{"delayMin": 1}), []string{"delayMin", "string"}},
		{"delay that is misspelt", job, pools, entry(fields{"delayMin": "1h", "delayMaximum": "2h"}), []string{"delayMaximum"}},
		{"selector that is a text", job, pools, []any{fields{"matchLabels": "name=night"}}, []string{"machineConfigPools[0].matchLabels", "object"}},
		{"pools that are no list", config, configPools, "night", []string{"machineConfigPools", "array"}},
		{"switch of pauses on failure that is a text", job, "spec.config.pauseMachineConfigPoolsOnFailure.enabled", "yes", []string{"pauseMachineConfigPoolsOnFailure.enabled", "boolean"}},

		{"negative grace period of a node", drain, "spec.nodeDrainGracePeriod", "-1m", []string{"spec.nodeDrainGracePeriod", wantDuration}},
		{"grace period of pods in words", drain, "spec.podForceDeleteGracePeriod", "soon", []string{"spec.podForceDeleteGracePeriod", wantDuration}},
		{"unknown field", drain, "spec.nodeDrainGrace", "1m", []string{"spec.nodeDrainGrace"}},
		{"selector that is no object", drain, "spec.nodeSelector", "app", []string{"spec.nodeSelector", "object"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := submit(t, tt.manifest, "", nil); err != nil {
				t.Fatalf("the manifest is bad before it is changed: %v", err)
			}
			expectRefusal(t, submit(t, tt.manifest, tt.path, tt.value), tt.words...)
		})
	}
}

// What is in use and means no delay, no bound, or no pool, is no error.
func TestDelaysThatAreNoneAreAccepted(t *testing.T) {
	const job = `{apiVersion: managedupgrade.appuio.io/v1beta1, kind: UpgradeJob, metadata: {name: good}, spec: {
		startAfter: "2026-01-06T21:00:00Z", startBefore: "2026-01-06T22:00:00Z", config: {upgradeTimeout: 4h}}}`
	for _, entry := range []map[string]any{
		{"matchLabels": map[string]any{}},
		{"matchLabels": map[string]any{"name": "night"}, "delayUpgrade": map[string]any{}},
		{"matchLabels": map[string]any{"name": "night"}, "delayUpgrade": map[string]any{"delayMax": "1h"}},
		{"matchLabels": map[string]any{"name": "night"}, "delayUpgrade": map[string]any{"startBefore": "1h"}},
		{"matchLabels": map[string]any{"name": "night"}, "delayUpgrade": map[string]any{"delayMin": "1h", "delayMax": "0s"}},
		{"matchLabels": map[string]any{"name": "night"}, "delayUpgrade": map[string]any{"startAfter": "0s"}},
		{"delayUpgrade": map[string]any{"delayMin": "1h"}},
	} {
		if err := submit(t, job, "spec.config.machineConfigPools", []any{entry}); err != nil {
			t.Errorf("%v is refused: %v", entry, err)
		}
	}
}
