// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshifttest

import (
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterOperator returns an operator that is healthy at 4.18.1.
func ClusterOperator(name string, options ...func(*configv1.ClusterOperator)) *configv1.ClusterOperator {
	co := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: name}}
	co.Status.RelatedObjects = []configv1.ObjectReference{
		{Resource: "namespaces", Name: "openshift-" + name},
		{Group: "operator.openshift.io", Resource: "configs", Name: "cluster"},
	}
	OperatorAt("4.18.1")(co)
	OperatorCondition(configv1.OperatorAvailable, configv1.ConditionTrue, "AsExpected", "All is well")(co)
	OperatorCondition(configv1.OperatorDegraded, configv1.ConditionFalse, "AsExpected", "All is well")(co)
	OperatorCondition(configv1.OperatorProgressing, configv1.ConditionFalse, "AsExpected", "")(co)
	for _, option := range options {
		option(co)
	}
	return co
}

// OperatorAt sets the version that the operator has reached.
func OperatorAt(version string) func(*configv1.ClusterOperator) {
	return func(co *configv1.ClusterOperator) {
		co.Status.Versions = []configv1.OperandVersion{{Name: "operand", Version: "1.31.5"}, {Name: "operator", Version: version}}
	}
}

// OperatorCondition sets a condition of a ClusterOperator.
func OperatorCondition(t configv1.ClusterStatusConditionType, status configv1.ConditionStatus, reason, message string) func(*configv1.ClusterOperator) {
	return func(co *configv1.ClusterOperator) {
		setCondition(&co.Status.Conditions, t, status, reason, message)
	}
}
