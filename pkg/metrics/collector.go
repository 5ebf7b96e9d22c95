// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// scrapeTimeout bounds what a scrape waits for the cache, which is for nothing unless it is not synced.
const scrapeTimeout = 2 * time.Second

// Options of a Collector.
type Options struct {
	// Reader is the manager's cache. Required.
	Reader client.Reader
	// Leading tells whether this replica is the leader. The others export nothing that is read from the cache. Required.
	Leading func() bool
	// Namespace that the operator watches; empty for all. Jobs elsewhere are not known to be over.
	Namespace string
	// Steps returns the conditions of an upgrader's steps, in their order; none of an upgrader that is not known. Nil: none is.
	Steps func(ctx context.Context, upgrader string) []string
	// Clock tells the time. Required.
	Clock clock.PassiveClock
	// Version of the operator.
	Version string
}

// Collector reads the cache at each scrape, and gives the series of what it finds. What cannot be read is counted, and fails no scrape.
type Collector struct {
	Options

	failures  *prometheus.CounterVec
	durations *prometheus.HistogramVec
	panicked  sync.Map // by kind: there is a panic of it in the log
}

// NewCollector returns a collector, to be registered once.
func NewCollector(o Options) *Collector {
	return &Collector{
		Options: o,
		failures: prometheus.NewCounterVec(
			prometheus.CounterOpts{Name: collectErrors.Name, Help: collectErrors.Help}, collectErrors.Labels),
		durations: prometheus.NewHistogramVec(
			prometheus.HistogramOpts{Name: stepDuration.Name, Help: stepDuration.Help, Buckets: stepBuckets}, stepDuration.Labels),
	}
}

// StepCompleted counts a step of a job of this upgrader that is done, and took so long.
func (c *Collector) StepCompleted(upgrader, step string, took time.Duration) {
	c.durations.WithLabelValues(bounded(upgrader), bounded(step)).Observe(took.Seconds())
}

// Describe gives the descriptions of all metrics.
func (c *Collector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range all {
		if d != collectErrors && d != stepDuration {
			descs <- d.desc
		}
	}
	c.failures.Describe(descs)
	c.durations.Describe(descs)
}

// Collect gives the series of a scrape.
func (c *Collector) Collect(metrics chan<- prometheus.Metric) {
	s := newSeries()
	leading := c.Leading()
	s.add(buildInfo, 1, c.Version, runtime.Version())
	s.add(leader, number(leading))
	if leading {
		c.collect(context.Background(), s)
	}
	for _, m := range s.metrics {
		metrics <- m
	}
	c.durations.Collect(metrics)
	c.failures.Collect(metrics) // last: it counts those of this scrape
}

// collect gathers what there is, and judges it.
func (c *Collector) collect(ctx context.Context, s *series) {
	ctx, cancel := context.WithTimeout(ctx, scrapeTimeout)
	defer cancel()
	w := c.gather(ctx)
	for _, j := range judges {
		c.guarded(ctx, j.kind, func() error {
			j.judge(s, w)
			return nil
		})
	}
}

// guarded does one part of a scrape. An error costs that part only, and so does a panic: a metric must not end a process that upgrades a cluster.
func (c *Collector) guarded(ctx context.Context, kind string, part func() error) {
	defer func() {
		if r := recover(); r != nil {
			err := fmt.Errorf("panic: %v", r)
			c.failed(ctx, kind, err)
			if _, told := c.panicked.LoadOrStore(kind, true); !told { // the next scrape panics too
				log.FromContext(ctx).WithName("metrics").Error(err, "A part of the metrics is missing because of a defect", "kind", kind, "stack", string(debug.Stack()))
			}
		}
	}()
	if err := part(); err != nil {
		c.failed(ctx, kind, err)
	}
}

func (c *Collector) failed(ctx context.Context, kind string, err error) {
	c.failures.WithLabelValues(kind).Inc()
	log.FromContext(ctx).WithName("metrics").V(1).Info("A part of a scrape failed", "kind", kind, "error", err.Error())
}
