// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"regexp"
	"slices"
	"strconv"

	configv1 "github.com/openshift/api/config/v1"
)

// Conditions of ClusterVersion that openshift/api has no constant for. Source: the cluster-version operator.
const (
	// Failing is True while the cluster-version operator cannot reconcile the release.
	Failing configv1.ClusterStatusConditionType = "Failing"
	// ReleaseAccepted is False while the cluster-version operator refuses, or could not load, the desired release.
	ReleaseAccepted configv1.ClusterStatusConditionType = "ReleaseAccepted"
	// Invalid is True while the spec asks for something impossible; the cluster-version operator then stands still.
	Invalid configv1.ClusterStatusConditionType = "Invalid"
)

// RunningVersion is the version that the cluster runs: that of the newest history entry that is Completed,
// and during the installation that of the oldest entry. status.desired is not it, except between updates.
func RunningVersion(cv *configv1.ClusterVersion) string {
	history := cv.Status.History
	for i := range history {
		if history[i].State == configv1.CompletedUpdate {
			return history[i].Version
		}
	}
	if len(history) > 0 {
		return history[len(history)-1].Version
	}
	return ""
}

// Runs tells whether the cluster has completed the update to the release, and is not on its way to another one.
func Runs(cv *configv1.ClusterVersion, r Release) bool {
	h := cv.Status.History
	return len(h) > 0 && h[0].State == configv1.CompletedUpdate && r.Matches(h[0].Version, h[0].Image)
}

// Accepted tells whether the cluster-version operator has taken up the release: its newest history entry is of it.
func Accepted(cv *configv1.ClusterVersion, r Release) bool {
	h := cv.Status.History
	return len(h) > 0 && r.Matches(h[0].Version, h[0].Image)
}

// Updating returns the release that the cluster is on its way to, if it is.
func Updating(cv *configv1.ClusterVersion) (Release, bool) {
	h := cv.Status.History
	if len(h) == 0 || h[0].State == configv1.CompletedUpdate {
		return Release{}, false
	}
	return Release{Version: h[0].Version, Image: h[0].Image}, true
}

// donePattern finds how far it is in what the cluster-version operator says, as in "Working towards 4.18.2: 503 of 842 done (59% complete)".
var donePattern = regexp.MustCompile(`\b(\d{1,9}) of (\d{1,9}) done\b`)

// Progress reads how many of the release's manifests are applied, and how many there are: never more than these. It returns false while the
// cluster-version operator is not at it, or does not say so.
func Progress(cv *configv1.ClusterVersion) (done, total int, ok bool) {
	condition := Condition(cv.Status.Conditions, configv1.OperatorProgressing)
	if condition == nil || condition.Status != configv1.ConditionTrue {
		return 0, 0, false
	}
	found := donePattern.FindStringSubmatch(condition.Message)
	if found == nil {
		return 0, 0, false
	}
	done, _ = strconv.Atoi(found[1]) // nine digits
	total, _ = strconv.Atoi(found[2])
	return min(done, total), total, total > 0
}

// Desires tells whether spec.desiredUpdate names the release.
func Desires(cv *configv1.ClusterVersion, r Release) bool {
	u := cv.Spec.DesiredUpdate
	return u != nil && r.Matches(u.Version, u.Image)
}

// Condition returns the condition of that type, or nil.
func Condition(conditions []configv1.ClusterOperatorStatusCondition, t configv1.ClusterStatusConditionType) *configv1.ClusterOperatorStatusCondition {
	i := slices.IndexFunc(conditions, func(c configv1.ClusterOperatorStatusCondition) bool { return c.Type == t })
	if i < 0 {
		return nil
	}
	return &conditions[i]
}

// ConditionIs tells whether the condition of that type exists and has that status.
func ConditionIs(conditions []configv1.ClusterOperatorStatusCondition, t configv1.ClusterStatusConditionType, status configv1.ConditionStatus) bool {
	c := Condition(conditions, t)
	return c != nil && c.Status == status
}
