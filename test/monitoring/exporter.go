// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Exporter serves gauges for Prometheus to scrape, from within this process. Its methods
// may be called from any goroutine.
type Exporter struct {
	address string
	server  *http.Server

	mu     sync.Mutex
	gauges map[string]gauge // by name and labels
}

// gauge is one series.
type gauge struct {
	name        string
	labels      map[string]string
	values      []string // of the labels, in the order of the description
	description *prometheus.Desc
	metric      prometheus.Metric
}

// StartExporter serves at a free loopback port until Close is called or ctx ends.
func StartExporter(ctx context.Context) (*Exporter, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the exporter: %w", err)
	}
	e := &Exporter{address: listener.Addr().String(), gauges: map[string]gauge{}}
	registry := prometheus.NewRegistry()
	registry.MustRegister(e)
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	e.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = e.server.Serve(listener) }() // ends by Close
	context.AfterFunc(ctx, func() { _ = e.Close() })
	return e, nil
}

// Set makes the gauge of the name and exactly these labels have the value.
func (e *Exporter) Set(name string, labels map[string]string, value float64) error {
	gauge, err := newGauge(name, labels, value)
	if err != nil {
		return fmt.Errorf("set gauge %s: %w", name, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.gauges[gauge.id()] = gauge
	return nil
}

// SetAll makes those gauges of the name that have these labels, and whatever others,
// have the value.
func (e *Exporter) SetAll(name string, labels map[string]string, value float64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for id, gauge := range e.gauges {
		if gauge.name == name && gauge.has(labels) {
			e.gauges[id] = gauge.withValue(value)
		}
	}
}

// Delete removes the gauges of the name that have these labels, and whatever others.
func (e *Exporter) Delete(name string, labels map[string]string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.gauges, func(_ string, g gauge) bool { return g.name == name && g.has(labels) })
}

func newGauge(name string, labels map[string]string, value float64) (gauge, error) {
	keys := slices.Sorted(maps.Keys(labels))
	values := make([]string, len(keys))
	for i, key := range keys {
		values[i] = labels[key]
	}
	description := prometheus.NewDesc(name, "A gauge of a test.", keys, nil)
	metric, err := prometheus.NewConstMetric(description, prometheus.GaugeValue, value, values...)
	return gauge{name: name, labels: maps.Clone(labels), values: values, description: description, metric: metric}, err
}

// withValue cannot fail: what may be wrong with a gauge is its name and labels.
func (g gauge) withValue(value float64) gauge {
	g.metric = prometheus.MustNewConstMetric(g.description, prometheus.GaugeValue, value, g.values...)
	return g
}

// id is different for different series.
func (g gauge) id() string {
	id := strconv.Quote(g.name)
	for _, key := range slices.Sorted(maps.Keys(g.labels)) {
		id += fmt.Sprintf(" %q=%q", key, g.labels[key])
	}
	return id
}

func (g gauge) has(labels map[string]string) bool {
	for key, value := range labels {
		if got, ok := g.labels[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// Describe is that of a prometheus.Collector. It says nothing, as the gauges are not
// known beforehand.
func (e *Exporter) Describe(chan<- *prometheus.Desc) {}

// Collect is that of a prometheus.Collector.
func (e *Exporter) Collect(metrics chan<- prometheus.Metric) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, gauge := range e.gauges {
		metrics <- gauge.metric
	}
}

// Address is the host and port.
func (e *Exporter) Address() string {
	return e.address
}

// URL is where the metrics are.
func (e *Exporter) URL() string {
	return "http://" + e.address + "/metrics"
}

// Close ends the exporter for good. Further calls do nothing.
func (e *Exporter) Close() error {
	if err := e.server.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("close the exporter: %w", err)
	}
	return nil
}
