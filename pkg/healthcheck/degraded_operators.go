// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// DegradedOperators finds every ClusterOperator that is degraded or not available. The cluster-version operator would
// begin an update with such an operator, and then hang at its manifest.
func DegradedOperators() Check { return degradedOperators{} }

type degradedOperators struct{}

func (degradedOperators) Name() string { return "DegradedOperators" }

func (d degradedOperators) Run(ctx context.Context, request Request) ([]Finding, error) {
	if !checksOperators(request.Config) {
		return nil, nil
	}
	operators, err := request.Cluster.Operators(ctx)
	if err != nil {
		return nil, err
	}
	var findings []Finding
	for i := range operators {
		co := &operators[i]
		if openshift.OperatorExcluded(co, request.Config.ExcludeOperators) {
			continue
		}
		if c := openshift.Condition(co.Status.Conditions, configv1.OperatorAvailable); c != nil && c.Status == configv1.ConditionFalse {
			findings = append(findings, d.finding(co, "ClusterOperatorNotAvailable", "is not available", "reports Available=True", c))
		}
		if c := openshift.Condition(co.Status.Conditions, configv1.OperatorDegraded); c != nil && c.Status == configv1.ConditionTrue {
			findings = append(findings, d.finding(co, "ClusterOperatorDegraded", "is degraded", "reports Degraded=False", c))
		}
	}
	return findings, nil
}

func (d degradedOperators) finding(co *configv1.ClusterOperator, reason, what, clears string, c *configv1.ClusterOperatorStatusCondition) Finding {
	return Finding{
		Check:      d.Name(),
		Object:     "ClusterOperator/" + co.Name,
		Reason:     reason,
		Message:    fmt.Sprintf("ClusterOperator %s %s (%s): %s", co.Name, what, c.Reason, c.Message),
		ClearsWhen: fmt.Sprintf("ClusterOperator %s %s", co.Name, clears),
	}
}

// checksOperators tells whether the configuration asks for the state of the operators; it does by default.
func checksOperators(config v1beta1.HealthChecks) bool {
	return !config.SkipDegradedOperatorsCheck &&
		(config.CheckDegradedOperators == nil || *config.CheckDegradedOperators)
}
