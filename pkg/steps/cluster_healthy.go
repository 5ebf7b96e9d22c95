// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"fmt"
	"strings"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/healthcheck"
)

// Conditions of the health steps.
const (
	ConditionClusterHealthyBeforeUpgrade = "ClusterHealthyBeforeUpgrade"
	ConditionClusterHealthyAfterUpgrade  = "ClusterHealthyAfterUpgrade"
)

// ClusterHealthyBeforeUpgrade waits for a healthy cluster, and skips the job if it does not become healthy within
// preUpgradeHealthChecks.timeout.
func ClusterHealthyBeforeUpgrade(checks ...healthcheck.Check) Step {
	return clusterHealthy{
		condition: ConditionClusterHealthyBeforeUpgrade,
		checks:    checks,
		config:    func(c *v1beta1.UpgradeJobConfig) v1beta1.HealthChecks { return c.PreUpgradeHealthChecks },
		tooLate: func(message string, blockers ...v1beta1.Blocker) Verdict {
			return Skip(v1beta1.ReasonPreHealthCheckFailed, message, blockers...)
		},
	}
}

// ClusterHealthyAfterUpgrade waits for a healthy cluster, and fails the job if it does not become healthy within
// postUpgradeHealthChecks.timeout.
func ClusterHealthyAfterUpgrade(checks ...healthcheck.Check) Step {
	return clusterHealthy{
		condition: ConditionClusterHealthyAfterUpgrade,
		checks:    checks,
		config:    func(c *v1beta1.UpgradeJobConfig) v1beta1.HealthChecks { return c.PostUpgradeHealthChecks },
		tooLate: func(message string, blockers ...v1beta1.Blocker) Verdict {
			return Fail(v1beta1.ReasonPostHealthCheckFailed, message, blockers...)
		},
	}
}

type clusterHealthy struct {
	condition string
	checks    []healthcheck.Check
	config    func(*v1beta1.UpgradeJobConfig) v1beta1.HealthChecks
	tooLate   func(message string, blockers ...v1beta1.Blocker) Verdict
}

func (s clusterHealthy) Condition() string { return s.condition }

func (s clusterHealthy) Run(ctx context.Context, u *Upgrade) (Verdict, error) {
	config := s.config(&u.Job.Spec.Config)
	findings := healthcheck.RunAll(ctx, s.checks, healthcheck.Request{
		Config: config, Cluster: u.Cluster, Version: u.Version, Now: u.Now,
	})
	if len(findings) == 0 {
		return Done("The cluster is healthy."), nil
	}

	timeout := config.Timeout.Or(v1beta1.DefaultHealthCheckTimeout)
	left := u.StepStarted(s.condition).Add(timeout).Sub(u.Now)
	if left <= 0 {
		return s.tooLate(fmt.Sprintf("The cluster did not become healthy within %s: %s", timeout, summary(findings)), blockersOf(findings)...), nil
	}
	for _, f := range findings {
		if f.Recheck > 0 {
			left = min(left, f.Recheck)
		}
	}
	return Wait(left, v1beta1.ReasonUnhealthy, "The cluster is not healthy: "+summary(findings), blockersOf(findings)...), nil
}

// summary names the first findings and counts the rest.
func summary(findings []healthcheck.Finding) string {
	const named = 5
	messages := make([]string, 0, named+1)
	for i, f := range findings {
		if i == named {
			messages = append(messages, fmt.Sprintf("and %d more", len(findings)-named))
			break
		}
		messages = append(messages, v1beta1.Truncate(f.Message, 160))
	}
	return strings.Join(messages, "; ")
}

func blockersOf(findings []healthcheck.Finding) []v1beta1.Blocker {
	blockers := make([]v1beta1.Blocker, 0, len(findings))
	for _, f := range findings {
		blockers = append(blockers, v1beta1.Blocker{
			Code: f.Reason, Object: f.Object, Message: f.Message, ClearsWhen: f.ClearsWhen,
		})
	}
	return blockers
}
