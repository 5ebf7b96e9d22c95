// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// UnacceptedUpdateWithdrawn is cleanup: it takes back a desired update that the job set and the cluster-version
// operator has not taken up. Left there, the update would begin by itself when the obstacle goes, at any hour.
func UnacceptedUpdateWithdrawn() Step { return unacceptedUpdateWithdrawn{} }

type unacceptedUpdateWithdrawn struct{}

func (unacceptedUpdateWithdrawn) Condition() string { return "UnacceptedUpdateWithdrawn" }

func (unacceptedUpdateWithdrawn) Run(ctx context.Context, u *Upgrade) (Verdict, error) {
	target, ok := u.Target()
	if !ok || u.Job.Status.CommenceTime == nil || openshift.Accepted(u.Version, target) {
		return Done(""), nil
	}
	// A cache that lags behind the write of desiredUpdate would leave it there for good.
	live, err := u.Cluster.LiveVersion(ctx)
	if err != nil {
		return Verdict{}, err
	}
	u.Version = live
	// The lock is set by the write that sets the desired update, and released after this step: without it the update
	// that stands there is somebody else's.
	mine := live.Annotations[v1beta1.UpgradeJobAnnotation] == u.Job.LockKey()
	if !mine || !openshift.Desires(live, target) || openshift.Accepted(live, target) {
		return Done(""), nil
	}
	written, err := u.Cluster.ClearDesiredUpdate(ctx, u.Version)
	if err != nil {
		return Verdict{}, err
	}
	u.Version = written
	return Done(""), nil
}
