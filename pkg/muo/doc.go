// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Package muo understands the object and the ConfigMap of the Managed Upgrade
// Operator: it reads the tunables, judges whether the upgrade can be done,
// describes the UpgradeJob that does it, and tells in the object's status how
// the job goes. It is pure: everything that it needs to know is given.
package muo
