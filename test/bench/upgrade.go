// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/test/controlplane"
	"github.com/appuio/managed-upgrade-operator/test/environment"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

const (
	// lead is how long before its start a job by hand is created: what it needs before the start is then done.
	lead = 2 * time.Second
	// quiet is how long the operator must be silent for an upgrade to be over.
	quiet = 3 * time.Second
	// pinWindow is how long before its start the job of a config is created.
	pinWindow = 5 * time.Second
)

// measurement is what one upgrade cost.
type measurement struct {
	// start is the job's startAfter.
	start time.Time
	// commence is the time from startAfter until desiredUpdate was written.
	commence time.Duration
	// conclude is the time from the cluster's last write until the outcome was written.
	conclude time.Duration
	// requests of the operator, its lease and its Events aside.
	requests requests
	// cpu of the operator from the start to the outcome.
	cpu time.Duration
}

// added is the time that the operator added to the upgrade.
func (m measurement) added() time.Duration { return m.commence + m.conclude }

// upgradeByHand measures an upgrade by a job that is made by hand.
func (b *bench) upgradeByHand(ctx context.Context, version string) (measurement, error) {
	return b.upgrade(ctx, version, func() (time.Time, error) {
		job := newJob("to-"+version, version, time.Now().Add(lead+time.Second))
		if err := b.env.Client.Create(ctx, job); err != nil {
			return time.Time{}, fmt.Errorf("create UpgradeJob %s: %w", job.Name, err)
		}
		return job.Spec.StartAfter.Time, nil
	})
}

// newJob returns a job that starts at the full second before the given time.
func newJob(name, version string, start time.Time) *v1beta1.UpgradeJob {
	start = start.Truncate(time.Second)
	return &v1beta1.UpgradeJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: environment.Namespace, Name: name},
		Spec: v1beta1.UpgradeJobSpec{
			StartAfter:     metav1.NewTime(start),
			StartBefore:    metav1.NewTime(start.Add(time.Hour)),
			DesiredVersion: &v1beta1.DesiredVersion{Version: version, Image: sim.Image(version)},
		},
	}
}

// upgradeByConfig measures an upgrade by a job that an UpgradeConfig creates. What the config costs before that is
// over then, and not counted.
func (b *bench) upgradeByConfig(ctx context.Context, version string) (measurement, error) {
	start := time.Now().Add(pinWindow + 2*quiet).Truncate(time.Minute).Add(time.Minute).UTC()
	config := &v1beta1.UpgradeConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: environment.Namespace, Name: "to-" + version},
		Spec: v1beta1.UpgradeConfigSpec{
			Schedule:         v1beta1.UpgradeConfigSchedule{Cron: fmt.Sprintf("%d %d * * *", start.Minute(), start.Hour()), Location: "UTC"},
			PinVersionWindow: &v1beta1.Duration{Duration: pinWindow},
		},
	}
	if err := b.env.Client.Create(ctx, config); err != nil {
		return measurement{}, fmt.Errorf("create UpgradeConfig %s: %w", config.Name, err)
	}
	m, err := b.upgrade(ctx, version, func() (time.Time, error) { return start, nil })
	if err != nil {
		return m, err
	}
	// It would create its next job in the middle of another measurement.
	if err := b.env.Client.Delete(ctx, config); err != nil {
		return m, fmt.Errorf("delete UpgradeConfig %s: %w", config.Name, err)
	}
	return m, nil
}

// upgrade measures the upgrade to a version. It begins when the operator is silent: then prepare is called, and says
// when the job starts.
func (b *bench) upgrade(ctx context.Context, version string, prepare func() (time.Time, error)) (measurement, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 10*time.Minute, errors.New("no end within 10 minutes"))
	defer cancel()
	if _, err := b.untilQuiet(ctx); err != nil {
		return measurement{}, err
	}
	marker, err := startMarker(ctx, b.env.Client, version)
	if err != nil {
		return measurement{}, err
	}
	defer marker.stop()
	start, err := prepare()
	if err != nil {
		return measurement{}, err
	}
	if err := sleep(ctx, time.Until(start)-time.Second); err != nil {
		return measurement{}, err
	}
	before, err := b.operator.Usage()
	if err != nil {
		return measurement{}, err
	}
	if err := marker.await(ctx); err != nil {
		return measurement{}, err
	}
	after, err := b.operator.Usage()
	if err != nil {
		return measurement{}, err
	}
	all, err := b.untilQuiet(ctx)
	if err != nil {
		return measurement{}, err
	}
	m := measurement{start: start, requests: all.ofOperator(), cpu: after.CPU - before.CPU}
	return m, m.times(all, marker.marks)
}

// times finds the times of the upgrade.
func (m *measurement) times(all requests, seen marks) error {
	byOperator := func(resource, subresource string) func(*controlplane.AuditEvent) bool {
		return func(e *controlplane.AuditEvent) bool {
			return e.User.Username == operatorUser && e.ObjectRef.Resource == resource && e.ObjectRef.Subresource == subresource
		}
	}
	desired, ok1 := all.lastWrite(seen.desired, byOperator("clusterversions", ""))
	ended, ok2 := all.lastWrite(seen.ended, byOperator("upgradejobs", "status"))
	complete, ok3 := all.lastWrite(seen.complete, func(e *controlplane.AuditEvent) bool {
		return e.UserAgent == simulatorAgent && e.ObjectRef.Resource == seen.completedBy && e.ObjectRef.Subresource == "status"
	})
	if !ok1 || !ok2 || !ok3 {
		return fmt.Errorf("find the turns of the upgrade in the audit log: desiredUpdate %t, outcome %t, completion %t", ok1, ok2, ok3)
	}
	m.commence, m.conclude = desired.Sub(m.start), ended.Sub(complete)
	return nil
}

// untilQuiet waits until the operator has made no request for a while, and returns all requests of anybody since the
// last call.
func (b *bench) untilQuiet(ctx context.Context) (requests, error) {
	var all requests
	for silent := time.Duration(0); silent < quiet; {
		const step = 500 * time.Millisecond
		if err := sleep(ctx, step); err != nil {
			return nil, err
		}
		more, err := b.audit.next()
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
		silent += step
		if len(more.ofOperator()) > 0 {
			silent = 0
		}
	}
	return all, nil
}

// sleep waits for a time, if it is positive, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
