// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"fmt"
	"time"
	_ "time/tzdata" // the time zone of the sample is known on every machine

	"sigs.k8s.io/yaml"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// sample is the UpgradeConfig of the demo, as an administrator would write it.
//
//go:embed testdata/upgradeconfig.yaml
var sample []byte

// samplePath is where the sample stands in the source tree.
const samplePath = "test/demo/testdata/upgradeconfig.yaml"

const (
	// pinWindow is how long before its start the demo's job is created: time to read its line.
	pinWindow = 20 * time.Second
	// scheduled is how long the config stands there, at least, before the job is created.
	scheduled = 5 * time.Second
)

// appointment is the sample, scheduled for the next full minute that leaves enough time.
type appointment struct {
	config *v1beta1.UpgradeConfig
	start  time.Time
	// changes says what differs from the sample.
	changes []string
}

// delayAt is how long the pools wait in the demo that follow later: until the rest of the cluster is through, and some
// fifteen seconds more. Hooks, alerts and the health of the cluster take their time at any speed.
func delayAt(speed float64) time.Duration {
	const cluster, rest = 45 * time.Second, 30 * time.Second
	return (rest + time.Duration(float64(cluster)/speed)).Round(time.Second)
}

// appoint schedules the sample for the first full minute that leaves time to see the config
// before its job is created, and the job before it starts. The schedule stays as narrow as that
// of the sample: one weekday, one minute, and weeks such as this one. Pools that follow later do so after delay.
func appoint(now time.Time, delay time.Duration) (appointment, error) {
	config := &v1beta1.UpgradeConfig{}
	if err := yaml.UnmarshalStrict(sample, config); err != nil {
		return appointment{}, fmt.Errorf("read %s: %w", samplePath, err)
	}
	schedule := &config.Spec.Schedule
	location, err := time.LoadLocation(schedule.Location)
	if err != nil {
		return appointment{}, fmt.Errorf("read %s: %w", samplePath, err)
	}
	start := now.Add(scheduled + pinWindow).Truncate(time.Minute).Add(time.Minute).In(location)

	a := appointment{config: config, start: start}
	a.change("schedule.cron", &schedule.Cron, fmt.Sprintf("%d %d * * %d", start.Minute(), start.Hour(), start.Weekday()))
	week := "@even"
	if _, n := start.ISOWeek(); n%2 == 1 {
		week = "@odd"
	}
	a.change("schedule.isoWeek", &schedule.ISOWeek, week)
	job := &config.Spec.JobTemplate.Spec.Config
	job.PreUpgradeHealthChecks.Interval = &v1beta1.Duration{Duration: v1beta1.DefaultHealthCheckInterval}
	a.changes = append(a.changes,
		hasten("pinVersionWindow", config.Spec.PinVersionWindow, pinWindow),
		hasten("preUpgradeHealthChecks.interval", job.PreUpgradeHealthChecks.Interval, healthInterval))
	for i := range job.MachineConfigPools {
		name := fmt.Sprintf("machineConfigPools[%d].delayUpgrade.delayMin", i)
		a.changes = append(a.changes, hasten(name, job.MachineConfigPools[i].DelayUpgrade.DelayMin, delay))
	}
	return a, nil
}

// hasten sets a duration, and returns what differs from the sample by that.
func hasten(name string, field *v1beta1.Duration, to time.Duration) string {
	text := fmt.Sprintf("%s: %s instead of %s", name, to, field)
	field.Duration = to
	return text
}

// change sets a field and takes note of it.
func (a *appointment) change(name string, field *string, value string) {
	if *field == value {
		return
	}
	a.changes = append(a.changes, fmt.Sprintf("%s: %q instead of %q", name, value, *field))
	*field = value
}
