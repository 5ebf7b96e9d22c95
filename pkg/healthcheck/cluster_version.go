// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"context"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// ClusterVersionHealthy finds a ClusterVersion that is failing, not available, invalid, or on its way to another
// release.
func ClusterVersionHealthy() Check { return clusterVersion{} }

type clusterVersion struct{}

// operatorReasons are the reasons for which ClusterVersion is failing because a ClusterOperator is. They are left to
// the check of the operators: that one judges each operator as the cluster-version operator does, so that it finds the one
// that is meant as long as it is sick; it names it, honours exclusions, and sees it recover at once, where ClusterVersion
// follows minutes later.
var operatorReasons = []string{
	"ClusterOperatorNotAvailable", "ClusterOperatorsNotAvailable", "ClusterOperatorDegraded", "ClusterOperatorsDegraded",
}

// failingSettles is how long Failing must not have been True to count: the cluster-version operator sets it to False for
// milliseconds on each of its retries. The API rounds the time down to a second, so that at least half a second is left.
const failingSettles = 1500 * time.Millisecond

func (clusterVersion) Name() string { return "ClusterVersion" }

func (clusterVersion) Run(_ context.Context, request Request) (Report, error) {
	cv := request.Version
	var report Report
	add := func(reason, clears, format string, args ...any) {
		report.Findings = append(report.Findings, Finding{
			Object:     "ClusterVersion/" + cv.Name,
			Reason:     reason,
			Message:    fmt.Sprintf(format, args...),
			ClearsWhen: clears,
		})
	}
	conditions := cv.Status.Conditions

	// Two updates at once are never healthy, so this cannot be turned off.
	if r, updating := openshift.Updating(cv); updating {
		add("UpdateInProgress", fmt.Sprintf("the update to %s completes", r), "the cluster is being updated to %s", r)
	}
	if c := openshift.Condition(conditions, openshift.Invalid); c != nil && c.Status == configv1.ConditionTrue {
		add("ClusterVersionInvalid", "the spec of ClusterVersion/version is corrected",
			"ClusterVersion is invalid (%s): %s", c.Reason, c.Message)
	}
	if !checksOperators(request.Config) {
		return report, nil
	}
	if c := openshift.Condition(conditions, openshift.Failing); c != nil {
		since := request.Now.Sub(c.LastTransitionTime.Time)
		switch {
		case c.Status == configv1.ConditionTrue && !slices.Contains(operatorReasons, c.Reason):
			add("ClusterVersionFailing", "ClusterVersion reports Failing=False",
				"ClusterVersion is failing (%s): %s", c.Reason, c.Message)
		case c.Status != configv1.ConditionTrue && since >= 0 && since < failingSettles:
			add("ClusterVersionFailing", "Failing has been False for a moment", "ClusterVersion was failing a moment ago")
			report.Recheck = failingSettles - since
		}
	}
	if c := openshift.Condition(conditions, configv1.OperatorAvailable); c != nil && c.Status == configv1.ConditionFalse {
		add("ClusterVersionNotAvailable", "ClusterVersion reports Available=True",
			"ClusterVersion is not available (%s): %s", c.Reason, c.Message)
	}
	return report, nil
}
