// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"context"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// DegradedOperators finds every ClusterOperator that is degraded or not available. The cluster-version operator would
// begin an update with such an operator, and then hang at its manifest.
//
// Operators flap for seconds, such as when a pod of theirs moves: a finding is fresh for a minute, or for half of the
// time in which the cluster has to be healthy, if that is shorter.
func DegradedOperators() Check { return degradedOperators{} }

type degradedOperators struct{}

// operatorRipens is how old the sickness of an operator is when it does not count as a flap any more. A sickness of the
// near future is one of a cluster whose clock is ahead.
const operatorRipens = time.Minute

func (degradedOperators) Name() string { return "DegradedOperators" }

func (d degradedOperators) Run(ctx context.Context, request Request) (Report, error) {
	if !checksOperators(request.Config) {
		return Report{}, nil
	}
	operators, err := request.Cluster.Operators(ctx)
	if err != nil {
		return Report{}, err
	}
	var report Report
	for i := range operators {
		co := &operators[i]
		if openshift.OperatorExcluded(co, request.Config.ExcludeOperators) {
			continue
		}
		if c := openshift.Condition(co.Status.Conditions, configv1.OperatorAvailable); c != nil && c.Status == configv1.ConditionFalse {
			d.add(&report, request, c, operatorFinding(co, "ClusterOperatorNotAvailable", "is not available", "reports Available=True", c))
		}
		if c := openshift.Condition(co.Status.Conditions, configv1.OperatorDegraded); c != nil && c.Status == configv1.ConditionTrue {
			d.add(&report, request, c, operatorFinding(co, "ClusterOperatorDegraded", "is degraded", "reports Degraded=False", c))
		}
	}
	return report, nil
}

// add adds a finding because of a condition, and has it looked at again when it will have ripened.
func (degradedOperators) add(report *Report, request Request, c *configv1.ClusterOperatorStatusCondition, f Finding) {
	ripens := min(operatorRipens, request.Config.Timeout.Or(v1beta1.DefaultHealthCheckTimeout)/2)
	age := request.Now.Sub(c.LastTransitionTime.Time)
	if f.Fresh = age.Abs() < ripens; f.Fresh {
		left := ripens - age
		if report.Recheck == 0 || left < report.Recheck {
			report.Recheck = left
		}
	}
	report.Findings = append(report.Findings, f)
}

func operatorFinding(co *configv1.ClusterOperator, reason, what, clears string, c *configv1.ClusterOperatorStatusCondition) Finding {
	return Finding{
		Object:     "ClusterOperator/" + co.Name,
		Reason:     reason,
		Message:    fmt.Sprintf("ClusterOperator %s %s (%s): %s", co.Name, what, c.Reason, c.Message),
		ClearsWhen: fmt.Sprintf("ClusterOperator %s %s", co.Name, clears),
	}
}

// checksOperators tells whether the configuration asks for the state of the operators; it does by default.
func checksOperators(config v1beta1.HealthChecks) bool {
	return !config.SkipDegradedOperatorsCheck && enabled(config.CheckDegradedOperators)
}
