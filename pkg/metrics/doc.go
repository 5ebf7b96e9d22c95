// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Package metrics tells Prometheus what the operator knows: a Collector reads the manager's cache at each scrape and judges what it finds by pure
// functions. Nothing is remembered between scrapes, so that the series of an object vanish with it.
//
// The table of all metrics is in descriptors.go; docs/metrics.md is generated from it.
package metrics
