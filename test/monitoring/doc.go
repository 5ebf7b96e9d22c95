// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Package monitoring runs a real Prometheus and a real Alertmanager for tests and
// demos, with alerts that really fire: a rule is evaluated on a sample that was
// scraped, and what becomes of it is sent to Alertmanager.
//
//	test binary, demo                                child processes
//	+--------------------------------+
//	| Exporter  test_alert{...} 1  <----- scrapes ---- Prometheus --- alerts --+
//	|   ^                            |                   ^                     |
//	|   | Fire, Resolve              |                   | rules, reload       v
//	| Monitoring -----------------------------------------+             Alertmanager
//	|   AwaitFiring, AwaitResolved   |                   ^                     ^
//	|                                |                   |              Silence, Expire
//	| Gateway   TLS, bearer token ------------------------+---------------------+
//	|   ^                            |
//	+---|----------------------------+
//	    |
//	operator under test
//
// Start runs all but the gateway. Each part may also be started alone.
//
//	m, err := monitoring.Start(ctx, monitoring.Options{})
//	defer m.Close()
//	err = m.Fire(ctx, "EtcdDown", map[string]string{"severity": "critical", "namespace": "openshift-etcd"})
//	err = m.Prometheus.AwaitFiring(ctx, "EtcdDown")
//
// # Time
//
// A cluster's Prometheus scrapes and evaluates every 30 s and looks back 5 min. This
// one does so every 200 ms and looks back 10 s, so what Fire and Resolve change
// takes half a second to be seen. That it looks back at all matters when Prometheus
// was away: an alert that was resolved meanwhile is told of until it is 10 s old.
//
// # Life
//
// Both programs, like the gateway, can be stopped and started again: the address
// stays, and so does the data. They end by Close, with the context of their start,
// or with the process that started them. On Linux the last holds however that
// process dies.
//
// # Programs
//
// They are built from the modules in the folder binaries on first use, which takes
// minutes and needs the Go module proxy; see EnsurePrograms. There are two modules
// because their dependencies exclude each other.
package monitoring
