// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/forcedrain"
	"github.com/appuio/managed-upgrade-operator/pkg/healthcheck"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
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
		before:    true,
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
	before    bool // the upgrade
	checks    []healthcheck.Check
	config    func(*v1beta1.UpgradeJobConfig) v1beta1.HealthChecks
	tooLate   func(message string, blockers ...v1beta1.Blocker) Verdict
}

func (s clusterHealthy) Condition() string { return s.condition }

func (s clusterHealthy) Run(ctx context.Context, u *Upgrade) (Verdict, error) {
	config := s.config(&u.Job.Spec.Config)
	timeout := config.Timeout.Or(v1beta1.DefaultHealthCheckTimeout)
	left := u.StepStarted(s.condition).Add(timeout).Sub(u.Now)
	if s.before && !u.CommenceBy.IsZero() { // until then the job has time, and then it fails
		left = max(left, u.CommenceBy.Sub(u.Now))
	}
	report := s.judge(ctx, u, left)
	if len(report.Findings) == 0 {
		return Done(healthy(report)), nil
	}
	// What may be a flap is given the time to go, or to become serious, but no more than that: the next flap is none.
	patience := left
	if allFresh(report.Findings) {
		patience += healthcheck.Ripens(config)
	}
	if patience <= 0 {
		return s.tooLate(fmt.Sprintf("The cluster did not become healthy within %s: %s", timeout, summary(report)), blockersOf(report.Findings)...), nil
	}
	after := patience
	if left > 0 {
		after = left
	}
	if report.Recheck > 0 {
		after = min(after, report.Recheck)
	}
	return Wait(after, v1beta1.ReasonUnhealthy, unhealthy(report), blockersOf(report.Findings)...), nil
}

// decisiveAge is how old an answer may be that lets an upgrade go on: as old as what Prometheus scrapes.
const decisiveAge = 30 * time.Second

// judge looks at the cluster. While it is waited for, what cannot be watched is asked for once in an interval. But an
// upgrade does not go on because of what was true a whole interval ago, and no job ends because of it.
func (s clusterHealthy) judge(ctx context.Context, u *Upgrade, left time.Duration) healthcheck.Report {
	config := s.config(&u.Job.Spec.Config)
	interval := config.Interval.Or(v1beta1.DefaultHealthCheckInterval)
	if left <= 0 { // an answer since the deadline
		return s.look(ctx, u, min(interval, max(-left, time.Nanosecond)), healthcheck.Timeout)
	}
	limit := left
	if !u.Commenced() {
		if window := u.CommenceBefore().Sub(u.Now); window > 0 { // a look that takes long must not end after the window
			limit = min(limit, window)
		}
	}
	report := s.look(ctx, u, interval, limit)
	if len(report.Findings) == 0 && interval > decisiveAge {
		report = s.look(ctx, u, decisiveAge, limit)
	}
	return report
}

// look asks all checks, and gives them so much time in all. Answers of what cannot be watched may be as old as maxAge.
func (s clusterHealthy) look(ctx context.Context, u *Upgrade, maxAge, limit time.Duration) healthcheck.Report {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	request := healthcheck.Request{
		Config: s.config(&u.Job.Spec.Config), Cluster: u.Cluster, Monitoring: u.Monitoring, Version: u.Version, Now: u.Now, MaxAge: maxAge,
	}
	if target, ok := u.Target(); ok {
		request.Target = &target
	}
	report := healthcheck.RunAll(ctx, s.checks, request)
	if s.before {
		report.Findings = append(report.Findings, invalidLater(&u.Job.Spec.Config)...)
	}
	return report
}

// invalidLater finds before the upgrade what could not be asked after it.
func invalidLater(config *v1beta1.UpgradeJobConfig) []healthcheck.Finding {
	var findings []healthcheck.Finding
	if err := healthcheck.Validate(config.PostUpgradeHealthChecks); err != nil {
		findings = append(findings, healthcheck.Finding{
			Reason:     v1beta1.ReasonInvalidQuery,
			Message:    "postUpgradeHealthChecks." + err.Error(),
			ClearsWhen: "the query is corrected, in a new job",
		})
	}
	if err := ValidatePatterns(config); err != nil {
		findings = append(findings, healthcheck.Finding{Reason: v1beta1.ReasonInvalidPattern, Message: err.Error(), ClearsWhen: "the pattern is corrected, in a new job"})
	}
	return findings
}

// ValidatePatterns returns an error that names the first pattern of the config that is none.
func ValidatePatterns(config *v1beta1.UpgradeJobConfig) error {
	if spec, wanted := ForcedDrain(config); wanted {
		if _, problem := forcedrain.NewSelection(&spec); problem != nil {
			return fmt.Errorf("nodeDrain: %s", problem.Message)
		}
	}
	if m := config.Maintenance; m != nil {
		for _, name := range m.ControlPlaneCriticals {
			if _, err := regexp.Compile("^(?:" + name + ")$"); err != nil {
				return fmt.Errorf("maintenance.controlPlaneCriticals: %q is neither a name nor a regular expression", name)
			}
		}
	}
	if c := config.CapacityReservation; c != nil && c.Enabled {
		if _, err := openshift.ParseMachinePools(c.ExtraMachinePools); err != nil {
			return fmt.Errorf("capacityReservation.extraMachinePools: %w", err)
		}
	}
	return nil
}

// allFresh tells whether every finding may be a flap.
func allFresh(findings []healthcheck.Finding) bool {
	return !slices.ContainsFunc(findings, func(f healthcheck.Finding) bool { return !f.Fresh })
}

type clusterHealthyBefore struct{ clusterHealthy }

// Run does not look while machines are added for the upgrade: their nodes join, and are not ready at first. When they are there it looks again.
func (s clusterHealthyBefore) Run(ctx context.Context, u *Upgrade) (Verdict, error) {
	if u.scaling() {
		return Done(""), nil
	}
	return s.clusterHealthy.Run(ctx, u)
}

// Preview tells what the step would find now.
func (s clusterHealthyBefore) Preview(ctx context.Context, u *Upgrade, maxAge time.Duration) Preview {
	limit := u.Job.Spec.StartAfter.Sub(u.Now)
	if limit <= 0 { // it waits for something else
		limit = healthcheck.Timeout
	}
	report := s.look(ctx, u, maxAge, limit)
	if len(report.Findings) == 0 {
		return Preview{Condition: v1beta1.PreflightHealthy(healthy(report))}
	}
	return Preview{
		Condition: v1beta1.PreflightUnhealthy(unhealthy(report)),
		Blockers:  blockersOf(report.Findings),
		After:     min(report.Recheck, PreviewInterval),
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
			Code: f.Reason, Check: f.Check, Object: f.Object, Message: f.Message, ClearsWhen: f.ClearsWhen,
		})
	}
	return blockers
}
