// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"slices"

	configv1 "github.com/openshift/api/config/v1"
)

// OperatorVersion is the version of the release that the ClusterOperator reports to have reached.
func OperatorVersion(co *configv1.ClusterOperator) string {
	for i := range co.Status.Versions {
		if co.Status.Versions[i].Name == "operator" {
			return co.Status.Versions[i].Version
		}
	}
	return ""
}

// OperatorSickness returns the conditions by which the cluster-version operator takes an operator to be sick: an Available
// that is not True, a Degraded that is not False. One that the operator does not have is returned without a status, as
// old as the operator.
func OperatorSickness(co *configv1.ClusterOperator) []configv1.ClusterOperatorStatusCondition {
	var sick []configv1.ClusterOperatorStatusCondition
	for _, well := range []struct {
		kind   configv1.ClusterStatusConditionType
		status configv1.ConditionStatus
	}{{configv1.OperatorAvailable, configv1.ConditionTrue}, {configv1.OperatorDegraded, configv1.ConditionFalse}} {
		c := Condition(co.Status.Conditions, well.kind)
		if c == nil {
			c = &configv1.ClusterOperatorStatusCondition{Type: well.kind, LastTransitionTime: co.CreationTimestamp}
		}
		if c.Status != well.status {
			sick = append(sick, *c)
		}
	}
	return sick
}

// OperatorExcluded tells whether a ClusterOperator is excluded by its name, or by the name of a namespace
// that it lists among its related objects.
func OperatorExcluded(co *configv1.ClusterOperator, excluded []string) bool {
	if len(excluded) == 0 {
		return false
	}
	if slices.Contains(excluded, co.Name) {
		return true
	}
	return slices.ContainsFunc(co.Status.RelatedObjects, func(o configv1.ObjectReference) bool {
		return o.Group == "" && o.Resource == "namespaces" && slices.Contains(excluded, o.Name)
	})
}
