// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/pkg/upgrader"
)

// approvedBy is the annotation of an UpgradeJob that names the approved change.
const approvedBy = "example.com/approved-change"

// interval is how often the annotation is looked at: annotations wake nobody.
const interval = 5 * time.Second

// ChangeApproved waits until the job has the annotation, and skips the job if that comes too late for it.
func ChangeApproved(annotation string) steps.Step { return changeApproved{annotation} }

type changeApproved struct{ annotation string }

func (changeApproved) Condition() string { return "ChangeApproved" }

func (s changeApproved) Run(_ context.Context, u *steps.Upgrade) (steps.Verdict, error) {
	if change := u.Job.Annotations[s.annotation]; change != "" {
		return steps.Done(fmt.Sprintf("Change %s is approved.", change)), nil
	}
	left := u.CommenceBefore().Sub(u.Now)
	if left <= 0 {
		return steps.Skip("ChangeNotApproved", "Nobody has approved the change in time."), nil
	}
	return steps.Wait(min(left, interval), "ChangeNotApproved", "Nobody has approved the change yet.", v1beta1.Blocker{
		Code:       "ChangeNotApproved",
		Object:     "UpgradeJob/" + u.Job.Name,
		Message:    "The upgrade is not approved.",
		ClearsWhen: fmt.Sprintf("the job has the annotation %s with the number of the change", s.annotation),
	}), nil
}

// changeApprovedEntry lets objects of kind Upgrader use the step.
func changeApprovedEntry() upgrader.Entry {
	return upgrader.Entry{
		Condition:  "ChangeApproved",
		Summary:    "Waits until an annotation of the job names an approved change.",
		Parameters: []upgrader.Parameter{{Name: "annotation", Meaning: "name of the annotation", Default: approvedBy}},
		Rules:      []upgrader.Rule{upgrader.StandsBefore("UpgradeCommenced", "nothing is changed without an approval")},
		New: func(p upgrader.Parameters) (steps.Step, error) {
			return steps.UntilCommenced(ChangeApproved(p["annotation"])), nil
		},
	}
}
