// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Package openshift holds what the operator knows about OpenShift's own
// objects: facts (pure functions of a ClusterVersion, ClusterOperator,
// MachineConfigPool or Node) and verbs (the few writes that an upgrade needs).
//
// The facts follow the cluster-version operator and the machine-config
// operator as they behave, not as their fields read: a history entry with a
// completionTime may still be Partial, and a pool may be Updated for a rendered
// configuration of the old release.
package openshift
