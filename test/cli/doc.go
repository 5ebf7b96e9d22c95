// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Package cli runs the plugin as its users do: `kubectl managed-upgrade`, found on the PATH, with the token of a service account that has the roles of
// deploy/rbac/users and no other rights, against a real API server, the simulated OpenShift and the operator.
//
// What the commands print at each phase of an upgrade is compared with testdata, with everything replaced that differs from run to run; see normalise.
// `go test ./test/cli -update` writes it anew.
package cli
