// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the kind of group upgrade.managed.openshift.io: the
// UpgradeConfig of the Managed Upgrade Operator, so that its objects apply as
// they are. docs/muo.md says what they mean here.
//
// +kubebuilder:object:generate=true
// +groupName=upgrade.managed.openshift.io
package v1alpha1
