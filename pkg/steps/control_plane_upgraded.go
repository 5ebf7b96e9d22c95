// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// ConditionControlPlaneUpgraded is the condition of ControlPlaneUpgraded.
const ConditionControlPlaneUpgraded = "ControlPlaneUpgraded"

// ControlPlaneUpgraded waits until the cluster-version operator has completed the release: every ClusterOperator and
// the master machines run it. It fails the job if the release is not accepted within releaseAcceptTimeout, or if
// somebody asks the cluster for another one.
func ControlPlaneUpgraded() Step { return controlPlaneUpgraded{} }

type controlPlaneUpgraded struct{}

func (controlPlaneUpgraded) Condition() string { return ConditionControlPlaneUpgraded }

func (s controlPlaneUpgraded) Run(ctx context.Context, u *Upgrade) (Verdict, error) {
	if !u.Needed() {
		return Done(s.doneMessage(u)), nil
	}
	target, _ := u.Target()
	if !openshift.Desires(u.Version, target) {
		// A cache that lags behind this job's own write looks the same, and a job must not fail for that.
		live, err := u.Cluster.LiveVersion(ctx)
		if err != nil {
			return Verdict{}, err
		}
		u.Version = live
		if !u.Needed() {
			return Done(s.doneMessage(u)), nil
		}
		if verdict, superseded := s.superseded(live, target); superseded {
			return verdict, nil
		}
	}
	if !openshift.Accepted(u.Version, target) {
		return s.awaitAcceptance(u, target), nil
	}
	return s.updating(ctx, u, target)
}

func (controlPlaneUpgraded) doneMessage(u *Upgrade) string {
	if target, ok := u.Target(); ok {
		return fmt.Sprintf("The cluster-version operator has completed %s.", target)
	}
	return nothingToUpgrade(u)
}

// superseded judges a ClusterVersion that does not ask for the target. A desired update that was cleared after it had
// been accepted changes nothing: the cluster-version operator goes on.
func (controlPlaneUpgraded) superseded(cv *configv1.ClusterVersion, target openshift.Release) (Verdict, bool) {
	desired := cv.Spec.DesiredUpdate
	switch {
	case openshift.Desires(cv, target), desired == nil && openshift.Accepted(cv, target):
		return Verdict{}, false
	case desired == nil:
		return Fail(v1beta1.ReasonUpgradeSuperseded, fmt.Sprintf("Somebody cleared the desired update to %s.", target)), true
	default:
		other := openshift.Release{Version: desired.Version, Image: desired.Image}
		return Fail(v1beta1.ReasonUpgradeSuperseded, fmt.Sprintf("Somebody changed the desired update from %s to %s.", target, other)), true
	}
}

// awaitAcceptance waits for the history entry with which the cluster-version operator takes the release up. It may
// refuse a release that was offered: a bad signature, a precondition, an image that cannot be pulled.
func (s controlPlaneUpgraded) awaitAcceptance(u *Upgrade, target openshift.Release) Verdict {
	timeout := u.Job.Spec.Config.ReleaseAcceptTimeout.Or(v1beta1.DefaultReleaseAcceptTimeout)
	left := u.StepStarted(s.Condition()).Add(timeout).Sub(u.Now)

	reason, code := v1beta1.ReasonControlPlaneUpdating, "AwaitingAcceptance"
	message := fmt.Sprintf("The cluster-version operator has not accepted %s yet.", target)
	conditions := u.Version.Status.Conditions
	if c := openshift.Condition(conditions, openshift.Invalid); c != nil && c.Status == configv1.ConditionTrue {
		reason, code = v1beta1.ReasonReleaseNotAccepted, "ReleaseNotAccepted"
		message = fmt.Sprintf("The cluster-version operator finds the update to %s invalid (%s): %s", target, c.Reason, c.Message)
	} else if c := openshift.Condition(conditions, openshift.ReleaseAccepted); c != nil && c.Status == configv1.ConditionFalse {
		reason, code = v1beta1.ReasonReleaseNotAccepted, "ReleaseNotAccepted"
		message = fmt.Sprintf("The cluster-version operator does not accept %s (%s): %s", target, c.Reason, c.Message)
	}
	blocker := v1beta1.Blocker{
		Code:       code,
		Object:     "ClusterVersion/" + u.Version.Name,
		Message:    message,
		ClearsWhen: fmt.Sprintf("ClusterVersion has a history entry of %s", target),
	}
	if left <= 0 {
		return Fail(v1beta1.ReasonReleaseNotAccepted, fmt.Sprintf("Not accepted within %s. %s", timeout, message), blocker)
	}
	return Wait(left, reason, message, blocker)
}

// updating waits for the cluster-version operator, and names the operators and the machines that it waits for.
func (s controlPlaneUpgraded) updating(ctx context.Context, u *Upgrade, target openshift.Release) (Verdict, error) {
	operators, err := u.Cluster.Operators(ctx)
	if err != nil {
		return Verdict{}, err
	}
	version := u.Version.Status.History[0].Version // also where the job names an image alone
	blockers := operatorBlockers(operators, version)

	all, err := u.Cluster.Pools(ctx)
	if err != nil {
		return Verdict{}, err
	}
	required, err := judgePools(ctx, u.Cluster, all, version)
	if err != nil {
		return Verdict{}, err
	}
	required = slices.DeleteFunc(required, func(p judgedPool) bool {
		return !openshift.RequiredForUpgrade(p.pool) || p.State == openshift.PoolNotRendered
	})
	blockers = append(blockers, poolBlockers(u, required)...)

	message := fmt.Sprintf("The cluster-version operator works towards %s.", target)
	if c := openshift.Condition(u.Version.Status.Conditions, configv1.OperatorProgressing); c != nil && c.Message != "" {
		message = c.Message
	}
	failing := openshift.Condition(u.Version.Status.Conditions, openshift.Failing)
	isFailing := failing != nil && failing.Status == configv1.ConditionTrue
	if isFailing || len(blockers) == 0 {
		b := v1beta1.Blocker{
			Code:       "ClusterVersionUpdating",
			Object:     "ClusterVersion/" + u.Version.Name,
			Message:    message,
			ClearsWhen: fmt.Sprintf("ClusterVersion has completed %s", target),
		}
		if isFailing {
			b.Code = "ClusterVersionFailing"
			b.Message = fmt.Sprintf("ClusterVersion is failing (%s): %s", failing.Reason, failing.Message)
		}
		blockers = slices.Insert(blockers, 0, b)
	}
	return Wait(openshift.NodesInterval, v1beta1.ReasonControlPlaneUpdating, message, blockers...), nil
}

// operatorBlockers names the operators that hold the release up: those that are broken, and those that are working on
// it. Operators whose turn has not come are left out.
func operatorBlockers(operators []configv1.ClusterOperator, version string) []v1beta1.Blocker {
	var blockers []v1beta1.Blocker
	for i := range operators {
		co := &operators[i]
		conditions := co.Status.Conditions
		b := v1beta1.Blocker{Object: "ClusterOperator/" + co.Name}
		describe := func(code string, t configv1.ClusterStatusConditionType, what, clears string) {
			c := openshift.Condition(conditions, t)
			b.Code, b.ClearsWhen = code, fmt.Sprintf("ClusterOperator %s %s", co.Name, clears)
			b.Message = fmt.Sprintf("ClusterOperator %s %s (%s): %s", co.Name, what, c.Reason, c.Message)
		}
		switch {
		case openshift.ConditionIs(conditions, configv1.OperatorAvailable, configv1.ConditionFalse):
			describe("ClusterOperatorNotAvailable", configv1.OperatorAvailable, "is not available", "reports Available=True")
		case openshift.ConditionIs(conditions, configv1.OperatorDegraded, configv1.ConditionTrue):
			describe("ClusterOperatorDegraded", configv1.OperatorDegraded, "is degraded", "reports Degraded=False")
		case openshift.OperatorVersion(co) != version && openshift.ConditionIs(conditions, configv1.OperatorProgressing, configv1.ConditionTrue):
			describe("ClusterOperatorUpdating", configv1.OperatorProgressing, "is updating", "reports version "+version)
		default:
			continue
		}
		blockers = append(blockers, b)
	}
	slices.SortFunc(blockers, func(a, b v1beta1.Blocker) int { return cmp.Compare(a.Object, b.Object) })
	return blockers
}
