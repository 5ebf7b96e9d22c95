// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// ConditionUpgradeCommenced is the condition of UpgradeCommenced.
const ConditionUpgradeCommenced = "UpgradeCommenced"

// UpgradeCommenced asks the cluster-version operator for the desired version. It does so once, and not after the job's
// window: see Upgrade.CommenceBefore.
func UpgradeCommenced() Step { return upgradeCommenced{} }

type upgradeCommenced struct{}

func (upgradeCommenced) Condition() string { return ConditionUpgradeCommenced }

func (upgradeCommenced) Run(ctx context.Context, u *Upgrade) (Verdict, error) {
	target, _ := u.Target()
	switch before := u.CommenceBefore(); {
	case !u.Needed():
		return Done(nothingToUpgrade(u)), nil
	case u.Commenced():
		return Done(requested(target)), nil
	case u.Now.After(before):
		return Skip(v1beta1.ReasonExpired, fmt.Sprintf("The upgrade could not commence by %s.", before.UTC().Format(time.RFC3339))), nil
	}
	if offered, ok := openshift.Offered(u.Version, target); ok {
		target = offered // with both version and image, as the cluster offers them
	}

	// From here on there is no way back. A job that somebody else has worked on since this pass began makes the
	// write fail, so a cache that lags behind cannot commence an upgrade twice.
	u.noteCommencement()
	if err := u.Persist(ctx); err != nil {
		return Verdict{}, fmt.Errorf("record that the upgrade is about to commence: %w", err)
	}
	written, err := u.Cluster.SetDesiredUpdate(ctx, u.Version, target, u.Job.LockKey())
	if err != nil {
		return Verdict{}, err
	}
	u.Version = written
	return Done(requested(target)), nil
}

// noteCommencement notes that the upgrade is about to commence: by that a desired update in the cluster is known to be this job's.
func (u *Upgrade) noteCommencement() {
	if u.Job.Status.CommenceTime == nil {
		u.Job.Status.CommenceTime = &metav1.Time{Time: u.Now}
	}
}

func requested(target openshift.Release) string {
	return fmt.Sprintf("ClusterVersion/%s is asked to update to %s.", v1beta1.ClusterVersionName, target)
}
