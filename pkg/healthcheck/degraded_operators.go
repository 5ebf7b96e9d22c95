// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"context"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// DegradedOperators finds every ClusterOperator that is degraded or not available, or of which that is not known: the
// cluster-version operator makes no difference. It would begin an update with such an operator, and then hang at its
// manifest.
//
// Operators flap for seconds, such as when a pod of theirs moves: a finding is fresh until it has ripened. A condition
// that an operator does not report is as old as the operator, which may be new.
func DegradedOperators() Check { return degradedOperators{} }

type degradedOperators struct{}

func (degradedOperators) Name() string { return "DegradedOperators" }

func (d degradedOperators) Run(ctx context.Context, request Request) (Report, error) {
	if !checksOperators(request.Config) {
		return Report{Skipped: skippedOff}, nil
	}
	operators, err := request.Cluster.Operators(ctx)
	if err != nil {
		return Report{}, err
	}
	var report Report
	var excluded []string
	for i := range operators {
		co := &operators[i]
		sick := openshift.OperatorSickness(co)
		if len(sick) > 0 && openshift.OperatorExcluded(co, request.Config.ExcludeOperators) {
			excluded = append(excluded, co.Name)
			continue
		}
		for _, c := range sick {
			d.add(&report, request, co, c)
		}
	}
	if len(excluded) > 0 {
		slices.Sort(excluded)
		report.Notes = []string{fmt.Sprintf("%s left out by excludeOperators: %s", count(len(excluded), "sick ClusterOperator"), list(excluded))}
	}
	return report, nil
}

// add adds a finding because of a condition, and has it looked at again when it will have ripened. A condition of the near
// future is one of a cluster whose clock is ahead.
func (degradedOperators) add(report *Report, request Request, co *configv1.ClusterOperator, c configv1.ClusterOperatorStatusCondition) {
	reason, what, clears := "ClusterOperatorNotAvailable", "available", "reports Available=True"
	is := "is not available"
	if c.Type == configv1.OperatorDegraded {
		reason, what, clears = "ClusterOperatorDegraded", "degraded", "reports Degraded=False"
		is = "is degraded"
	}
	switch c.Status {
	case configv1.ConditionTrue, configv1.ConditionFalse:
	case configv1.ConditionUnknown:
		is = "does not know whether it is " + what
	default:
		is = "does not report whether it is " + what
	}
	f := operatorFinding(co, reason, is, clears, &c)
	ripens, age := Ripens(request.Config), request.Now.Sub(c.LastTransitionTime.Time)
	if f.Fresh = age.Abs() < ripens; f.Fresh {
		left := ripens - age
		if report.Recheck == 0 || left < report.Recheck {
			report.Recheck = left
		}
	}
	report.Findings = append(report.Findings, f)
}

// operatorFinding is a finding because of a condition of an operator, with its reason and its message as far as there are.
func operatorFinding(co *configv1.ClusterOperator, reason, what, clears string, c *configv1.ClusterOperatorStatusCondition) Finding {
	f := Finding{
		Object:     "ClusterOperator/" + co.Name,
		Reason:     reason,
		Message:    fmt.Sprintf("ClusterOperator %s %s", co.Name, what),
		ClearsWhen: fmt.Sprintf("ClusterOperator %s %s", co.Name, clears),
	}
	if c.Reason != "" {
		f.Message += fmt.Sprintf(" (%s)", c.Reason)
	}
	if c.Message != "" {
		f.Message += ": " + c.Message
	}
	return f
}

// checksOperators tells whether the configuration asks for the state of the operators; it does by default.
func checksOperators(config v1beta1.HealthChecks) bool {
	return !config.SkipDegradedOperatorsCheck && enabled(config.CheckDegradedOperators)
}
