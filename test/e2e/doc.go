// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Package e2e holds the end-to-end tests: the operator as its own process, with
// exactly the permissions of deploy/, against a real API server and a simulated
// OpenShift. All tests share one control plane and run one after another; each
// begins with a freshly installed cluster and leaves nothing of ours behind.
package e2e
