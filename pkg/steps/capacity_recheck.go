// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// scaling tells whether machines that are added for the upgrade were waited for when the pass began, and the cluster's health is not to be looked at again yet.
func (u *Upgrade) scaling() bool {
	s := stepStatus(u.Job, ConditionComputeCapacityReserved)
	c := meta.FindStatusCondition(u.Job.Status.Conditions, ConditionComputeCapacityReserved)
	return s != nil && s.CompletionTime == nil && !s.StartTime.Time.Before(resumed(u.Job)) && c != nil && c.Reason != v1beta1.ReasonCapacityReady
}

// thenHealthAgain makes a step that was waited for done in the pass after: ClusterHealthyBeforeUpgrade has not looked meanwhile, and the upgrade must not commence
// before it has.
type thenHealthAgain struct{ Step }

func (s thenHealthAgain) Run(ctx context.Context, u *Upgrade) (Verdict, error) {
	waited := u.scaling()
	verdict, err := s.Step.Run(ctx, u)
	if err != nil || verdict.kind != kindDone || !waited || u.Commenced() {
		return verdict, err
	}
	return Wait(time.Millisecond, v1beta1.ReasonCapacityReady, "The cluster's health is looked at again. "+verdict.message), nil
}

// Unwrap returns the step itself.
func (s thenHealthAgain) Unwrap() Step { return s.Step }
