// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 holds the kinds of group managedupgrade.appuio.io: when a
// cluster is upgraded (UpgradeConfig, UpgradeSuspensionWindow), one upgrade
// (UpgradeJob), and what the cluster's own ClusterVersion shall look like
// between upgrades (ClusterVersion).
//
// Conditions are built by the constructors in conditions.go only; their reasons
// are the constants in reasons.go, which people and alerts may rely on.
//
// +kubebuilder:object:generate=true
// +groupName=managedupgrade.appuio.io
package v1beta1
