// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Package notify tells the receivers of config.notifications of a job's transitions.
//
// A transition is appended to the outbox in the job's status, in the same write that
// makes the transition itself: it is told if, and only if, it happened. From there it
// is delivered as a CloudEvent, at least once and in order, at the receiver's own pace.
package notify
