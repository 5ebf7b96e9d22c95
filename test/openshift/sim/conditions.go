// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// condition builds a condition without a time; setCondition gives it one.
func condition(t configv1.ClusterStatusConditionType, status configv1.ConditionStatus, reason, message string) configv1.ClusterOperatorStatusCondition {
	return configv1.ClusterOperatorStatusCondition{Type: t, Status: status, Reason: reason, Message: message}
}

// findCondition returns the condition of that type, nil when there is none.
func findCondition(conditions []configv1.ClusterOperatorStatusCondition, t configv1.ClusterStatusConditionType) *configv1.ClusterOperatorStatusCondition {
	for i := range conditions {
		if conditions[i].Type == t {
			return &conditions[i]
		}
	}
	return nil
}

// conditionIs reports whether the condition has that status; an absent one has none.
func conditionIs(conditions []configv1.ClusterOperatorStatusCondition, t configv1.ClusterStatusConditionType, status configv1.ConditionStatus) bool {
	c := findCondition(conditions, t)
	return c != nil && c.Status == status
}

// setCondition writes c in its place, or last. Its transition time moves only
// with its status.
func setCondition(conditions *[]configv1.ClusterOperatorStatusCondition, c configv1.ClusterOperatorStatusCondition, now time.Time) {
	c.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
	old := findCondition(*conditions, c.Type)
	if old == nil {
		*conditions = append(*conditions, c)
		return
	}
	if old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	*old = c
}

// removeCondition removes the condition of that type.
func removeCondition(conditions *[]configv1.ClusterOperatorStatusCondition, t configv1.ClusterStatusConditionType) {
	kept := (*conditions)[:0]
	for _, c := range *conditions {
		if c.Type != t {
			kept = append(kept, c)
		}
	}
	*conditions = kept
}
