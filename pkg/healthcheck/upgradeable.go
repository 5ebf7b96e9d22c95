// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// Upgradeable finds what OpenShift itself says against an update to another minor version: Upgradeable=False on
// ClusterVersion, or on a ClusterOperator. ClusterVersion lags its operators by several seconds, within which the
// cluster-version operator would let the update through. excludeOperators does not apply: the cluster-version operator
// would refuse the update all the same.
func Upgradeable() Check { return upgradeable{} }

type upgradeable struct{}

func (upgradeable) Name() string { return "Upgradeable" }

func (upgradeable) Run(ctx context.Context, request Request) (Report, error) {
	target, minor := minorUpdate(request)
	switch {
	case !enabled(request.Config.CheckUpgradeable):
		return Report{Skipped: skippedOff}, nil
	case !minor:
		return Report{Skipped: skippedMinor}, nil
	}
	operators, err := request.Cluster.Operators(ctx)
	if err != nil {
		return Report{}, err
	}
	var report Report
	cv := request.Version
	if c := notUpgradeable(cv.Status.Conditions); c != nil {
		report.Findings = append(report.Findings, Finding{
			Object:     "ClusterVersion/" + cv.Name,
			Reason:     "ClusterVersionNotUpgradeable",
			Message:    fmt.Sprintf("ClusterVersion is not upgradeable to %s (%s): %s", target, c.Reason, c.Message),
			ClearsWhen: "ClusterVersion does not report Upgradeable=False any more",
		})
	}
	for i := range operators {
		if c := notUpgradeable(operators[i].Status.Conditions); c != nil {
			what := fmt.Sprintf("is not upgradeable to %s", target)
			report.Findings = append(report.Findings,
				operatorFinding(&operators[i], "ClusterOperatorNotUpgradeable", what, "does not report Upgradeable=False any more", c))
		}
	}
	return report, nil
}

// notUpgradeable returns the condition that forbids an update to another minor version, or nil.
func notUpgradeable(conditions []configv1.ClusterOperatorStatusCondition) *configv1.ClusterOperatorStatusCondition {
	if c := openshift.Condition(conditions, configv1.OperatorUpgradeable); c != nil && c.Status == configv1.ConditionFalse {
		return c
	}
	return nil
}

// minorUpdate returns the target of the request, and whether that is of another minor or major version than what runs.
// The version of a target that is known by its image alone is that of the update that the cluster offers, if it does.
func minorUpdate(request Request) (target openshift.Release, minor bool) {
	if request.Target == nil {
		return target, false
	}
	target = *request.Target
	if target.Version == "" {
		if offered, ok := openshift.Offered(request.Version, target); ok {
			target = offered
		}
	}
	return target, openshift.MinorUpdate(openshift.RunningVersion(request.Version), target)
}
