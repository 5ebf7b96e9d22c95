// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/test/environment"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

const (
	// masters and workers of the small cluster.
	masters, workers = 3, 6
	// maxUnavailable of the workers of the large cluster.
	maxUnavailable = "10%"
)

// The targets of the operator, for two cores and the embedded control plane.
const (
	targetAdded         = 20.0 // ms, median
	targetCommence      = 12.0 // ms, median
	targetRequests      = 12.0
	targetMemory        = 45.0  // MiB
	targetMemoryLarge   = 60.0  // MiB
	targetCPULarge      = 0.2   // s
	targetIdleRequests  = 0.0   // per minute
	targetReconcile     = 100.0 // µs
	targetScheduledNext = 5.0   // µs
)

// bench is a run of all measurements.
type bench struct {
	options
	progress io.Writer
	machine  string

	env      *environment.Environment
	audit    *auditReader
	operator *environment.Operator
	rows     []row
	// plainWrites is how much an upgrade of the large cluster writes.
	plainWrites int
}

func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.progress, "%s "+format+"\n", append([]any{time.Now().Format("15:04:05")}, args...)...)
}

func (b *bench) add(what, unit string, target, measured float64) {
	b.rows = append(b.rows, row{what, unit, target, measured})
	b.say("%s: %s %s", what, figure(measured), unit)
}

// measure does all measurements.
func (b *bench) measure(ctx context.Context) error {
	if err := b.measureSchedule(); err != nil {
		return err
	}
	var err error
	b.env, err = environment.Start(ctx, environment.Options{Audit: true, Progress: b.progress})
	if err != nil {
		return err
	}
	defer func() { _ = b.env.Stop() }()
	b.audit = &auditReader{path: b.env.AuditLog()}

	if err := b.withCluster(ctx, smallCluster(), b.measureSmall); err != nil {
		return fmt.Errorf("measure with %d nodes: %w", masters+workers, err)
	}
	if b.nodes > 0 {
		if err := b.withCluster(ctx, b.largeCluster(), b.measureLarge); err != nil {
			return fmt.Errorf("measure with %d nodes: %w", b.nodes, err)
		}
	}
	if err := b.measureReconciles(ctx); err != nil {
		return fmt.Errorf("measure a reconcile: %w", err)
	}
	if b.nodes > 0 { // last: nobody takes the pods away again
		if err := b.measureDrains(ctx); err != nil {
			return fmt.Errorf("measure drains of %d nodes: %w", b.nodes, err)
		}
	}
	return nil
}

// smallCluster is the simulator's default one: what it takes, it takes in seconds.
func smallCluster() sim.Scenario {
	s := sim.Default()
	s.Masters, s.Workers = sim.Pool{Size: masters}, sim.Pool{Size: workers}
	return s
}

// largeCluster has all of its nodes in the pools of the small one.
func (b *bench) largeCluster() sim.Scenario {
	s := smallCluster()
	unavailable := intstr.FromString(maxUnavailable)
	s.Workers = sim.Pool{Size: b.nodes - masters, MaxUnavailable: &unavailable}
	return s
}

// version is the nth version that the cluster is upgraded to.
func version(n int) string { return fmt.Sprintf("4.18.%d", n+1) }

// withCluster runs do with a simulated cluster and a fresh operator. Each version of the cluster is offered the next
// one, so that it can be upgraded many times.
func (b *bench) withCluster(ctx context.Context, s sim.Scenario, do func(context.Context) error) error {
	s.Updates = nil
	for n := 1; n <= b.runs+b.configRuns+1; n++ {
		s.Updates = append(s.Updates, sim.OfferedUpdate{Version: version(n), From: []string{version(n - 1)}})
	}
	return b.simulated(ctx, s, func(ctx context.Context) (err error) {
		b.operator, err = b.env.StartOperator(ctx, environment.OperatorOptions{Binary: b.manager})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.operator.Stop()) }() // it gives its lease to the next one
		if err := do(ctx); err != nil {
			return err
		}
		return b.forgetJobs(ctx)
	})
}

// forgetJobs deletes all jobs: the next cluster sees the same versions.
func (b *bench) forgetJobs(ctx context.Context) error {
	err := b.env.Client.DeleteAllOf(ctx, &v1beta1.UpgradeJob{}, client.InNamespace(environment.Namespace))
	if err != nil {
		return fmt.Errorf("delete all UpgradeJobs: %w", err)
	}
	return nil
}

// simulated installs a cluster and runs do while its controllers work.
func (b *bench) simulated(ctx context.Context, s sim.Scenario, do func(context.Context) error) error {
	b.say("installing a cluster of %d nodes", s.Masters.Size+s.Workers.Size)
	if err := sim.Install(ctx, b.env.Config(), s); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan error, 1)
	go func() {
		err := sim.Run(ctx, b.env.Config())
		cancel(fmt.Errorf("the simulated cluster has ended: %w", err))
		ended <- err
	}()
	err := do(ctx)
	cancel(nil)
	return errors.Join(err, <-ended)
}

// measureSmall measures with the small cluster.
func (b *bench) measureSmall(ctx context.Context) error {
	startUp, err := b.startUp(ctx)
	if err != nil {
		return err
	}
	var byHand, byConfig []measurement
	var firstPeak int64
	for n := range b.runs {
		m, err := b.upgradeByHand(ctx, version(n+1))
		if err != nil {
			return err
		}
		b.tell("by hand", m)
		byHand = append(byHand, m)
		if n == 0 {
			usage, err := b.operator.Usage()
			if err != nil {
				return err
			}
			firstPeak = usage.PeakRSS
		}
	}
	for n := range b.configRuns {
		m, err := b.upgradeByConfig(ctx, version(b.runs+n+1))
		if err != nil {
			return err
		}
		b.tell("by a config", m)
		byConfig = append(byConfig, m)
	}
	last, err := b.operator.Usage()
	if err != nil {
		return err
	}

	added := each(byHand, measurement.added)
	commence := each(byHand, func(m measurement) time.Duration { return m.commence })
	b.add(fmt.Sprintf("time added to an upgrade, median of %d", b.runs), "ms", targetAdded, milliseconds(percentile(added, 50)))
	b.add("time added to an upgrade, p90", "ms", noTarget, milliseconds(percentile(added, 90)))
	b.add("startAfter to desiredUpdate, median", "ms", targetCommence, milliseconds(percentile(commence, 50)))
	b.add("startAfter to desiredUpdate, p90", "ms", noTarget, milliseconds(percentile(commence, 90)))
	b.addRequests("a job made by hand", byHand)
	b.addRequests("a job of an UpgradeConfig", byConfig)
	b.add("CPU per upgrade, 9 nodes, median", "s", noTarget, percentile(each(byHand, func(m measurement) time.Duration { return m.cpu }), 50).Seconds())
	b.add("CPU to start up, 9 nodes", "s", noTarget, startUp.CPU.Seconds())
	b.add("resident memory when started, 9 nodes", "MiB", noTarget, mebibytes(startUp.PeakRSS))
	b.add("peak resident memory, 9 nodes, one upgrade", "MiB", targetMemory, mebibytes(firstPeak))
	b.add(fmt.Sprintf("peak resident memory, 9 nodes, %d upgrades", b.runs+b.configRuns), "MiB", noTarget, mebibytes(last.PeakRSS))
	return b.measureIdle(ctx)
}

// startUp returns what the operator has used when it has settled down.
func (b *bench) startUp(ctx context.Context) (environment.Usage, error) {
	if _, err := b.untilQuiet(ctx); err != nil {
		return environment.Usage{}, err
	}
	return b.operator.Usage()
}

// measureLarge measures with the large cluster.
func (b *bench) measureLarge(ctx context.Context) error {
	startUp, err := b.startUp(ctx)
	if err != nil {
		return err
	}
	m, err := b.upgradeByHand(ctx, version(1))
	if err != nil {
		return err
	}
	b.tell("by hand", m)
	b.plainWrites = m.writes()
	usage, err := b.operator.Usage()
	if err != nil {
		return err
	}
	nodes := fmt.Sprintf("%d nodes", b.nodes)
	b.add("time added to an upgrade, "+nodes, "ms", noTarget, milliseconds(m.added()))
	b.add("API requests per upgrade, "+nodes, "requests", noTarget, float64(len(m.requests)))
	b.add("CPU per upgrade, "+nodes, "s", targetCPULarge, m.cpu.Seconds())
	b.add("CPU to start up, "+nodes, "s", noTarget, startUp.CPU.Seconds())
	b.add("resident memory when started, "+nodes, "MiB", noTarget, mebibytes(startUp.PeakRSS))
	b.add("peak resident memory, "+nodes+", one upgrade", "MiB", targetMemoryLarge, mebibytes(usage.PeakRSS))
	return nil
}

// measureIdle measures what the operator does while there is nothing to do.
func (b *bench) measureIdle(ctx context.Context) error {
	if b.idle == 0 {
		return nil
	}
	b.say("watching the idle operator for %s", b.idle)
	if _, err := b.untilQuiet(ctx); err != nil {
		return err
	}
	before, err := b.operator.Usage()
	if err != nil {
		return err
	}
	if err := sleep(ctx, b.idle); err != nil {
		return err
	}
	after, err := b.operator.Usage()
	if err != nil {
		return err
	}
	all, err := b.audit.next()
	if err != nil {
		return err
	}
	idle := all.ofOperator()
	if b.verbose && len(idle) > 0 {
		b.say("requests of the idle operator:\n%s", idle.list(idle[0].RequestReceivedTimestamp.Time))
	}
	perMinute := float64(time.Minute) / float64(b.idle)
	b.add("API requests when idle, watches and the lease aside", "per minute", targetIdleRequests, float64(len(idle))*perMinute)
	b.add("CPU when idle", "ms per minute", noTarget, milliseconds(after.CPU-before.CPU)*perMinute)
	return nil
}

// addRequests adds a row about the requests of upgrades, if there were any.
func (b *bench) addRequests(of string, measured []measurement) {
	if len(measured) == 0 {
		return
	}
	counts := each(measured, func(m measurement) int { return len(m.requests) })
	b.add("API requests per upgrade, Events aside: "+of+", median", "requests", targetRequests, float64(percentile(counts, 50)))
	b.add("API requests per upgrade, Events aside: "+of+", most", "requests", noTarget, float64(percentile(counts, 100)))
}

// tell tells of one upgrade.
func (b *bench) tell(how string, m measurement) {
	b.say("upgrade %s: commenced after %.1f ms, concluded after %.1f ms, %d requests, %s CPU",
		how, milliseconds(m.commence), milliseconds(m.conclude), len(m.requests), m.cpu)
	if b.verbose {
		b.say("its requests, with the time since startAfter and how long they took:\n%s", m.requests.list(m.start))
	}
}

// each returns what get gets of each measurement.
func each[T any](measured []measurement, get func(measurement) T) []T {
	values := make([]T, 0, len(measured))
	for _, m := range measured {
		values = append(values, get(m))
	}
	return values
}

func mebibytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }
