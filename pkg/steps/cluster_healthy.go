// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/healthcheck"
)

// Conditions of the health steps.
const (
	ConditionClusterHealthyBeforeUpgrade = "ClusterHealthyBeforeUpgrade"
	ConditionClusterHealthyAfterUpgrade  = "ClusterHealthyAfterUpgrade"
)

// ClusterHealthyBeforeUpgrade waits for a healthy cluster, and skips the job if it does not become healthy within
// preUpgradeHealthChecks.timeout. It can be previewed.
func ClusterHealthyBeforeUpgrade(checks ...healthcheck.Check) Step {
	return clusterHealthyBefore{clusterHealthy{
		condition: ConditionClusterHealthyBeforeUpgrade,
		checks:    checks,
		config:    func(c *v1beta1.UpgradeJobConfig) v1beta1.HealthChecks { return c.PreUpgradeHealthChecks },
		tooLate: func(message string, blockers ...v1beta1.Blocker) Verdict {
			return Skip(v1beta1.ReasonPreHealthCheckFailed, message, blockers...)
		},
	}}
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
	timeout := config.Timeout.Or(v1beta1.DefaultHealthCheckTimeout)
	left := u.StepStarted(s.condition).Add(timeout).Sub(u.Now)
	report := s.look(ctx, u, config.Interval.Or(v1beta1.DefaultHealthCheckInterval), left)
	if len(report.Findings) == 0 {
		return Done(healthy(report)), nil
	}
	if left <= 0 && !allFresh(report.Findings) {
		return s.tooLate(fmt.Sprintf("The cluster did not become healthy within %s: %s", timeout, summary(report)), blockersOf(report.Findings)...), nil
	}
	after := left
	if report.Recheck > 0 && (left <= 0 || report.Recheck < left) {
		after = report.Recheck
	}
	return Wait(max(after, time.Millisecond), v1beta1.ReasonUnhealthy, unhealthy(report), blockersOf(report.Findings)...), nil
}

// look asks all checks, until the deadline that is so far away: a server that hangs must not make it late. At the
// deadline itself there is a second.
func (s clusterHealthy) look(ctx context.Context, u *Upgrade, maxAge, left time.Duration) healthcheck.Report {
	ctx, cancel := context.WithTimeout(ctx, max(left, time.Second))
	defer cancel()
	request := healthcheck.Request{
		Config: s.config(&u.Job.Spec.Config), Cluster: u.Cluster, Monitoring: u.Monitoring, Version: u.Version, Now: u.Now, MaxAge: maxAge,
	}
	if target, ok := u.Target(); ok {
		request.Target = &target
	}
	return healthcheck.RunAll(ctx, s.checks, request)
}

// allFresh tells whether every finding may be a flap. Such findings do not end a job: they are given the time to go, or
// to become serious.
func allFresh(findings []healthcheck.Finding) bool {
	return !slices.ContainsFunc(findings, func(f healthcheck.Finding) bool { return !f.Fresh })
}

type clusterHealthyBefore struct{ clusterHealthy }

// Preview tells what the step would find now.
func (s clusterHealthyBefore) Preview(ctx context.Context, u *Upgrade, maxAge time.Duration) Preview {
	left := u.Job.Spec.StartAfter.Sub(u.Now)
	if left <= 0 { // it waits for something else
		left = healthcheck.Timeout
	}
	report := s.look(ctx, u, maxAge, left)
	if len(report.Findings) == 0 {
		return Preview{Condition: v1beta1.PreflightHealthy(healthy(report))}
	}
	return Preview{
		Condition: v1beta1.PreflightUnhealthy(unhealthy(report)),
		Blockers:  blockersOf(report.Findings),
		After:     report.Recheck,
	}
}

func healthy(r healthcheck.Report) string {
	return "The cluster is healthy" + notes(r, "; ") + "."
}

func unhealthy(r healthcheck.Report) string {
	return "The cluster is not healthy: " + summary(r)
}

// summary names the first findings, counts the rest, and says what was left out.
func summary(r healthcheck.Report) string {
	const named = 5
	messages := make([]string, 0, named+1)
	for i, f := range r.Findings {
		if i == named {
			messages = append(messages, fmt.Sprintf("and %d more", len(r.Findings)-named))
			break
		}
		messages = append(messages, v1beta1.Truncate(f.Message, 160))
	}
	return strings.Join(messages, "; ") + notes(r, ". Beside that: ")
}

// notes are the report's notes behind a separator; nothing where there are none.
func notes(r healthcheck.Report, separator string) string {
	if len(r.Notes) == 0 {
		return ""
	}
	return separator + strings.Join(r.Notes, "; ")
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
