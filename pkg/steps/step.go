// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
)

//go:generate go tool -modfile=../../boilerplate/tools/go.mod mockgen -destination=mocks/mock_step.go -package=mocks -copyright_file=../../boilerplate/header.txt . Step

// Step is one idempotent part of an upgrade.
type Step interface {
	// Condition is the type of the condition that records the step on the UpgradeJob, in CamelCase, e.g.
	// ControlPlaneUpgraded. It is unique within an upgrader.
	Condition() string
	// Run asks the cluster whether the step is done, and if not does one thing towards it. It may be called at any
	// time and any number of times, and does not write the job's status: its verdict tells the runner what to
	// record. Before it changes anything outside of the job it calls Upgrade.Lock. An error means that something unexpected happened; the step is tried again, with backoff.
	Run(ctx context.Context, upgrade *Upgrade) (Verdict, error)
}
