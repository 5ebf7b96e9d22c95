// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Package programs builds and runs the real programs that tests and demos need:
// those of the Kubernetes control plane, Prometheus, Alertmanager.
//
//   - Module: a Go module of this repository that pins programs and is built on
//     first use, once per machine, into the user's cache folder.
//   - Process: a running program that does not outlive this process, with its log.
//   - Port: a loopback port that stays reserved while its program comes and goes.
//   - Folder: where programs keep their data; a temporary one is removed, if need
//     be by the next process.
package programs
