// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// BenchmarkUpgrade measures a whole update, all nodes included, and the time
// to install the cluster.
func BenchmarkUpgrade(b *testing.B) {
	small := sim.Default()
	large := sim.Default()
	quarter := intstr.FromString("25%")
	large.Workers = sim.Pool{Size: 1997, MaxUnavailable: &quarter}
	for name, scenario := range map[string]sim.Scenario{"nodes=9": small, "nodes=2000": large} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				began := time.Now()
				c := start(b, scenario)
				installed := time.Now()
				c.desire(&configv1.Update{Version: "4.18.2"})
				c.eventually("ClusterVersion completed", c.completed("4.18.2"))
				completed := time.Now()
				c.eventually("pools updated", c.updated("4.18.2"))
				b.ReportMetric(installed.Sub(began).Seconds(), "s/install")
				b.ReportMetric(completed.Sub(installed).Seconds(), "s/control-plane")
				b.ReportMetric(time.Since(installed).Seconds(), "s/upgrade")
				c.halt()
			}
		})
	}
}
