// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// channelPatience is how long the cluster may take to offer what its new channel has. The cluster-version operator asks for it at once, but
// it does not say of which channel its answer is.
const channelPatience = 5 * time.Minute

// IfOffered runs the step once the cluster offers the desired version: it sets the channel of the job first, and skips the job
// if the version is not offered any more. For lists without UpdateAvailable, which does the same under its own name.
func IfOffered(step Step) Step { return ifOffered{step} }

type ifOffered struct{ Step }

func (s ifOffered) Run(ctx context.Context, u *Upgrade) (Verdict, error) {
	if u.Needed() && !u.Commenced() {
		if verdict, err := offer(ctx, u, s.Condition()); err != nil || verdict.kind != kindDone {
			return verdict, err
		}
	}
	return s.Step.Run(ctx, u)
}

// Unwrap returns the step itself.
func (s ifOffered) Unwrap() Step { return s.Step }

// offer sees to it that the cluster offers the desired version, for the step of that condition.
func offer(ctx context.Context, u *Upgrade, condition string) (Verdict, error) {
	target, ok := u.Target()
	if !ok || !u.Needed() {
		return Done(nothingToUpgrade(u)), nil
	}
	channel := u.Job.Spec.Config.Channel
	if channel != "" && channel != u.Version.Spec.Channel {
		return switchChannel(ctx, u, channel)
	}
	if check := u.Job.Spec.DesiredVersionCheckAvailability; check != nil && !*check {
		return Done(fmt.Sprintf("%s is taken as given: desiredVersionCheckAvailability is false.", target)), nil
	}
	if _, offered := openshift.Offered(u.Version, target); offered {
		return Done(fmt.Sprintf("%s is an available update.", target)), nil
	}
	retrieved := openshift.Condition(u.Version.Status.Conditions, configv1.RetrievedUpdates)
	if retrieved == nil || retrieved.Status != configv1.ConditionTrue {
		return awaitUpdates(u, target, retrieved), nil
	}
	if left := u.StepStarted(condition).Add(channelPatience).Sub(u.Now); channel != "" && left > 0 {
		return u.awaitBeforeCommencing(left, v1beta1.ReasonChannelChanging, fmt.Sprintf("%s is not offered in channel %s yet.", target, channel), []v1beta1.Blocker{
			updatesBlocker(u, fmt.Sprintf("ClusterVersion does not offer %s yet, which channel %s is to have.", target, channel), "it does, or gives it up"),
		}), nil
	}
	message := fmt.Sprintf("%s is not an available update any more%s.", target, onlyConditionally(u.Version, target))
	if channel != "" {
		message += fmt.Sprintf(" The cluster stays in channel %s.", channel)
	}
	return Skip(v1beta1.ReasonUpgradeWithdrawn, message), nil
}

// switchChannel sets the channel, unless the job is too late.
func switchChannel(ctx context.Context, u *Upgrade, channel string) (Verdict, error) {
	message := fmt.Sprintf("ClusterVersion/%s is set to channel %s, and does not know its updates yet.", u.Version.Name, channel)
	verdict := u.awaitBeforeCommencing(channelPatience, v1beta1.ReasonChannelChanging, message, []v1beta1.Blocker{
		updatesBlocker(u, message, "ClusterVersion knows the updates of the channel"),
	})
	if verdict.kind != kindWait {
		return verdict, nil
	}
	if err := u.Lock(ctx); err != nil {
		return Verdict{}, err
	}
	written, err := u.Cluster.SetChannel(ctx, u.Version, channel)
	if err != nil {
		return Verdict{}, err
	}
	u.Version = written
	return verdict, nil
}

// awaitUpdates waits for the cluster to know its updates.
func awaitUpdates(u *Upgrade, target openshift.Release, retrieved *configv1.ClusterOperatorStatusCondition) Verdict {
	why := "it has not asked for them yet"
	if retrieved != nil {
		why = fmt.Sprintf("%s: %s", retrieved.Reason, retrieved.Message)
	}
	message := fmt.Sprintf("Whether %s is still available cannot be told: the cluster does not know its updates (%s).", target, why)
	left := u.CommenceBefore().Sub(u.Now)
	if left <= 0 {
		return Skip(v1beta1.ReasonUpgradeWithdrawn, message)
	}
	return Wait(left, v1beta1.ReasonUpdatesUnknown, message, updatesBlocker(u, message, "ClusterVersion reports RetrievedUpdates=True"))
}

func updatesBlocker(u *Upgrade, message, clearsWhen string) v1beta1.Blocker {
	return v1beta1.Blocker{Code: "UpdatesNotRetrieved", Object: "ClusterVersion/" + u.Version.Name, Message: message, ClearsWhen: clearsWhen}
}
