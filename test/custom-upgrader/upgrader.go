// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/pkg/upgrader"
)

// Approved upgrades as OpenShift does, once somebody has approved the change.
func Approved() upgrader.Upgrader { return approved{upgrader.OpenShift()} }

// approved has the cleanup of what it is made of.
type approved struct{ upgrader.Upgrader }

func (approved) Name() string { return "Approved" }

func (a approved) Steps() []steps.Step {
	return append([]steps.Step{
		// Before anything is touched: hooks may touch something.
		steps.UntilCommenced(ChangeApproved(approvedBy)),
	}, a.Upgrader.Steps()...)
}
