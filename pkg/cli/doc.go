// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Package cli is the plugin `oc managed-upgrade`: what an administrator asks of upgrades, and does about them, with the rights of the
// administrator. Each command is a file: it reads the cluster once into a snapshot, judges by pure functions of it and the time, and
// prints.
package cli
