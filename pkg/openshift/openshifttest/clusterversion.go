// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshifttest

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// installed is when the cluster of this package was installed.
var installed = metav1.NewTime(time.Date(2026, time.January, 5, 9, 0, 0, 0, time.UTC))

// Image is the pull spec of a release.
func Image(version string) string {
	return fmt.Sprintf("quay.io/openshift-release-dev/ocp-release@sha256:%x", sha256.Sum256([]byte(version)))
}

// ClusterVersion returns ClusterVersion/version of a cluster that runs 4.18.1 and is offered 4.18.2.
func ClusterVersion(options ...func(*configv1.ClusterVersion)) *configv1.ClusterVersion {
	cv := &configv1.ClusterVersion{
		ObjectMeta: metav1.ObjectMeta{Name: "version", Generation: 1, Annotations: map[string]string{"example.com/owner": "platform"}},
		Spec: configv1.ClusterVersionSpec{
			ClusterID: "6d26220a-7dca-47cb-ad87-895a77daec73",
			Channel:   "stable-4.18",
			Upstream:  "https://updates.example.com/graph",
			Overrides: []configv1.ComponentOverride{{
				Kind: "Deployment", Group: "apps", Namespace: "openshift-console", Name: "console", Unmanaged: true,
			}},
		},
		Status: configv1.ClusterVersionStatus{ObservedGeneration: 1},
	}
	for _, option := range slices.Concat([]func(*configv1.ClusterVersion){
		History(Completed("4.18.1")),
		Available("4.18.2"),
		VersionCondition(configv1.OperatorAvailable, configv1.ConditionTrue, "", "Done applying 4.18.1"),
		VersionCondition(configv1.OperatorProgressing, configv1.ConditionFalse, "", "Cluster version is 4.18.1"),
		VersionCondition("Failing", configv1.ConditionFalse, "", ""),
		VersionCondition("ReleaseAccepted", configv1.ConditionTrue, "PayloadLoaded", `Payload loaded version="4.18.1"`),
		VersionCondition(configv1.RetrievedUpdates, configv1.ConditionTrue, "", ""),
	}, options) {
		option(cv)
	}
	return cv
}

// History replaces the history; the newest entry comes first. The release that the operator reconciles is the newest.
func History(entries ...configv1.UpdateHistory) func(*configv1.ClusterVersion) {
	return func(cv *configv1.ClusterVersion) {
		cv.Status.History = entries
		if len(entries) > 0 {
			cv.Status.Desired = configv1.Release{Version: entries[0].Version, Image: entries[0].Image}
		}
	}
}

// Completed is the history entry of an update that is over.
func Completed(version string) configv1.UpdateHistory {
	return configv1.UpdateHistory{
		State: configv1.CompletedUpdate, Version: version, Image: Image(version), StartedTime: installed, CompletionTime: &installed, Verified: true,
	}
}

// Partial is the history entry of an update that goes on.
func Partial(version string) configv1.UpdateHistory {
	entry := Completed(version)
	entry.State, entry.CompletionTime = configv1.PartialUpdate, nil
	return entry
}

// Abandoned is the history entry of an update that another one took the place of: it has a completionTime, and was
// never completed.
func Abandoned(version string) configv1.UpdateHistory {
	entry := Completed(version)
	entry.State = configv1.PartialUpdate
	return entry
}

// Available replaces the available updates; none means that there are none.
func Available(versions ...string) func(*configv1.ClusterVersion) {
	return func(cv *configv1.ClusterVersion) {
		cv.Status.AvailableUpdates = nil
		for _, v := range versions {
			cv.Status.AvailableUpdates = append(cv.Status.AvailableUpdates, configv1.Release{Version: v, Image: Image(v)})
		}
	}
}

// Conditional adds a conditional update of which the cluster says whether it recommends it.
func Conditional(version string, recommended metav1.ConditionStatus, reason, message string) func(*configv1.ClusterVersion) {
	return func(cv *configv1.ClusterVersion) {
		cv.Status.ConditionalUpdates = append(cv.Status.ConditionalUpdates, configv1.ConditionalUpdate{
			Release:    configv1.Release{Version: version, Image: Image(version)},
			Conditions: []metav1.Condition{{Type: "Recommended", Status: recommended, Reason: reason, Message: message}},
		})
	}
}

// Desired sets spec.desiredUpdate to a version and its image.
func Desired(version string) func(*configv1.ClusterVersion) {
	return DesiredUpdate(configv1.Update{Version: version, Image: Image(version)})
}

// DesiredUpdate sets spec.desiredUpdate.
func DesiredUpdate(update configv1.Update) func(*configv1.ClusterVersion) {
	return func(cv *configv1.ClusterVersion) { cv.Spec.DesiredUpdate = &update }
}

// VersionCondition sets a condition of a ClusterVersion.
func VersionCondition(t configv1.ClusterStatusConditionType, status configv1.ConditionStatus, reason, message string) func(*configv1.ClusterVersion) {
	return func(cv *configv1.ClusterVersion) {
		setCondition(&cv.Status.Conditions, t, status, reason, message)
	}
}

// NoVersionCondition removes a condition of a ClusterVersion.
func NoVersionCondition(t configv1.ClusterStatusConditionType) func(*configv1.ClusterVersion) {
	return func(cv *configv1.ClusterVersion) {
		cv.Status.Conditions = slices.DeleteFunc(cv.Status.Conditions, func(c configv1.ClusterOperatorStatusCondition) bool { return c.Type == t })
	}
}

func setCondition(conditions *[]configv1.ClusterOperatorStatusCondition, t configv1.ClusterStatusConditionType, status configv1.ConditionStatus, reason, message string) {
	c := configv1.ClusterOperatorStatusCondition{Type: t, Status: status, Reason: reason, Message: message, LastTransitionTime: installed}
	for i := range *conditions {
		if (*conditions)[i].Type == t {
			(*conditions)[i] = c
			return
		}
	}
	*conditions = append(*conditions, c)
}
