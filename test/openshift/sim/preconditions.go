// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
)

// preconditions checks whether the cluster may move to a release. Blocking
// failures refuse it, warnings are only recorded.
func preconditions(cv *configv1.ClusterVersion, version, image string) (blocking, warnings []string) {
	current := cv.Status.Desired
	minors, _ := minorsApart(current.Version, version)
	if c := findCondition(cv.Status.Conditions, configv1.OperatorUpgradeable); minors > 0 && c != nil && c.Status == configv1.ConditionFalse {
		blocking = append(blocking, failed("ClusterVersionUpgradeable", c.Reason, c.Message))
	}
	if minors > 1 {
		blocking = append(blocking, failed("ClusterVersionGiantHop", "GiantHop",
			fmt.Sprintf("the update from %s to %s skips a minor version", current.Version, version)))
	}
	if message := rollbackProblem(cv, version); message != "" {
		blocking = append(blocking, failed("ClusterVersionRollback", "LowDesiredVersion", message))
	}
	if reason, message := recommendationProblem(cv, version, image); reason != "" {
		warnings = append(warnings, failed("ClusterVersionRecommendedUpdate", reason, message))
	}
	return blocking, warnings
}

// failed words a failed precondition.
func failed(name, reason, message string) string {
	return fmt.Sprintf("Precondition %q failed because of %q: %s", name, reason, message)
}

// summary words one or more failed preconditions.
func summary(failures []string) string {
	if len(failures) == 1 {
		return failures[0]
	}
	return "Multiple precondition checks failed:\n* " + strings.Join(failures, "\n* ")
}

// rollbackProblem returns why the cluster may not go down to version: only the
// version before the current one, of the same minor version, is allowed.
func rollbackProblem(cv *configv1.ClusterVersion, version string) string {
	current := cv.Status.Desired.Version
	if compareVersions(version, current) >= 0 {
		return ""
	}
	if len(cv.Status.History) < 2 {
		return fmt.Sprintf("%s is less than the current target %s, and the cluster has no previous version", version, current)
	}
	previous := cv.Status.History[1]
	if minors, _ := minorsApart(current, version); previous.Version == version && minors == 0 {
		return ""
	}
	return fmt.Sprintf("%s is less than the current target %s, and the only supported rollback is to the cluster's previous version %s (%s)",
		version, current, previous.Version, previous.Image)
}

// recommendationProblem returns why the update is not a recommended one.
func recommendationProblem(cv *configv1.ClusterVersion, version, image string) (reason, message string) {
	current := cv.Status.Desired.Version
	for _, release := range cv.Status.AvailableUpdates {
		if release.Image == image {
			return "", ""
		}
	}
	for _, update := range cv.Status.ConditionalUpdates {
		if update.Release.Image == image {
			c := update.Conditions[0]
			return c.Reason, fmt.Sprintf("Update from %s to %s is not recommended:\n\n%s", current, version, c.Message)
		}
	}
	retrieved := findCondition(cv.Status.Conditions, configv1.RetrievedUpdates)
	if retrieved == nil {
		return "NotRetrieved", fmt.Sprintf("the updates from %s are not known yet", current)
	}
	return "UnknownUpdate", fmt.Sprintf("RetrievedUpdates=%s (%s), so the update from %s to %s is probably neither recommended nor supported.",
		retrieved.Status, retrieved.Reason, current, version)
}
