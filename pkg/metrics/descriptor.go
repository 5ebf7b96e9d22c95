// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// Prefix is what the names of all metrics of the operator begin with.
const Prefix = "managedupgrade_"

// Type of a metric, as Prometheus calls it.
type Type string

// The types that are used.
const (
	Gauge     Type = "gauge"
	Counter   Type = "counter"
	Histogram Type = "histogram"
)

// Descriptor describes a metric.
type Descriptor struct {
	// Name with the prefix.
	Name string
	// Type of the metric.
	Type Type
	// Labels by name, in the order of their values.
	Labels []string
	// Help says what a value means, with its unit.
	Help string
	// Group is the heading that the metric stands under in the docs.
	Group string
	// EveryReplica tells that each replica exports the metric; the others only the leader does.
	EveryReplica bool

	desc *prometheus.Desc
}

// Descriptors returns all metrics of the operator, as the docs list them.
func Descriptors() []*Descriptor { return slices.Clone(all) }

// all has the descriptors that were described.
var all []*Descriptor

// section describes the metrics of a group.
type section struct {
	group        string
	everyReplica bool
}

func (s section) gauge(name, help string, labels ...string) *Descriptor {
	return s.describe(Gauge, name, help, labels)
}

func (s section) counter(name, help string, labels ...string) *Descriptor {
	return s.describe(Counter, name, help, labels)
}

func (s section) histogram(name, help string, labels ...string) *Descriptor {
	return s.describe(Histogram, name, help, labels)
}

func (s section) describe(t Type, name, help string, labels []string) *Descriptor {
	d := &Descriptor{Name: Prefix + name, Type: t, Labels: labels, Help: help, Group: s.group, EveryReplica: s.everyReplica}
	d.desc = prometheus.NewDesc(d.Name, d.Help, d.Labels, nil)
	all = append(all, d)
	return d
}
