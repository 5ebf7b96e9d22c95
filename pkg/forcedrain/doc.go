// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Package forcedrain decides for a NodeForceDrain which drains it follows, which
// pods it deletes from a node whose drain hangs, and when it has to look again.
// It reads and writes nothing itself.
//
// The times of a drain, with nodeDrainGracePeriod and podForceDeleteGracePeriod:
//
//	seen first              + node grace
//	    |------------------------|----------------------> time
//	    evictions, as            pods that remain
//	    budgets allow            are deleted
//
//	      deletion asked for     + pod grace
//	          |----------------------|------------------> time
//	          the pod's own          deleted with a
//	          grace period           grace of a second
//
// Pods that a PodDisruptionBudget protects may have a time of their own instead of
// the node grace, protectedPodGracePeriod.
//
// No time is ever taken to be earlier than it was: where a clock has been cut to
// whole seconds, the second after it counts.
package forcedrain
