// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Package hooks runs UpgradeJobHooks: a batch Job for each hook, event and key of
// an UpgradeJob, and never a second one.
//
// A run is recorded in status.hookTracker before its Job is created, and again
// before its Job is let go of:
//
//	Pending ──▶ status written under optimistic lock ──▶ Job created ──▶ Active ──▶ Job finished
//	        ──▶ Succeeded or Failed ──▶ status written ──▶ finalizer of the Job removed
//
// Whoever works with a stale status fails at one of the writes. A process that
// dies in between leaves a run that is Pending, whose Job is created or found by its name,
// or Active, whose Job is still there because of its finalizer.
package hooks
