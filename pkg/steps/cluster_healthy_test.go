// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang/mock/gomock"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/healthcheck"
	"github.com/appuio/managed-upgrade-operator/pkg/healthcheck/mocks"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// checkFinding returns a check that answers with these findings.
func checkFinding(t *testing.T, name string, findings ...healthcheck.Finding) healthcheck.Check {
	return checkAnswering(t, name, healthcheck.Report{Findings: findings}, nil)
}

func checkAnswering(t *testing.T, name string, report healthcheck.Report, err error) healthcheck.Check {
	check := mocks.NewMockCheck(gomock.NewController(t))
	check.EXPECT().Name().Return(name).AnyTimes()
	check.EXPECT().Run(gomock.Any(), gomock.Any()).DoAndReturn(func(context.Context, healthcheck.Request) (healthcheck.Report, error) {
		report.Findings = slices.Clone(report.Findings)
		return report, err
	}).MinTimes(1)
	return check
}

func finding(object string) healthcheck.Finding {
	return healthcheck.Finding{Object: object, Reason: "Sick", Message: object + " is sick", ClearsWhen: object + " is well"}
}

func TestClusterHealthy(t *testing.T) {
	sick := []healthcheck.Finding{finding("Node/b"), finding("Node/a")}
	blockers := []string{"Sick Node/a", "Sick Node/b"}
	unhealthy := func(left time.Duration) verdict {
		return verdict{outcome: steps.Running, reason: v1beta1.ReasonUnhealthy, after: left, blockers: blockers, says: "The cluster is not healthy: Node/a is sick; Node/b is sick"}
	}
	healthy := verdict{outcome: steps.Completed, reason: "Completed", says: "The cluster is healthy."}
	timeouts := func(before, after time.Duration) jobOption {
		return func(job *v1beta1.UpgradeJob) {
			job.Spec.Config.PreUpgradeHealthChecks.Timeout = &v1beta1.Duration{Duration: before}
			job.Spec.Config.PostUpgradeHealthChecks.Timeout = &v1beta1.Duration{Duration: after}
		}
	}

	for _, step := range []struct {
		condition string
		make      func(...healthcheck.Check) steps.Step
		own       func(time.Duration) jobOption // its own timeout, not that of the other
		tooLate   verdict
	}{
		{
			steps.ConditionClusterHealthyBeforeUpgrade, steps.ClusterHealthyBeforeUpgrade,
			func(d time.Duration) jobOption { return timeouts(d, time.Nanosecond) },
			verdict{outcome: steps.Skipped, reason: v1beta1.ReasonPreHealthCheckFailed, blockers: blockers},
		},
		{
			steps.ConditionClusterHealthyAfterUpgrade, steps.ClusterHealthyAfterUpgrade,
			func(d time.Duration) jobOption { return timeouts(time.Nanosecond, d) },
			verdict{outcome: steps.Failed, reason: v1beta1.ReasonPostHealthCheckFailed, blockers: blockers},
		},
	} {
		tooLate := func(says string) verdict {
			v := step.tooLate
			v.says = says
			return v
		}
		begunAtOnce := begun(step.condition, 0)
		for _, tc := range []struct {
			stepCase
			findings []healthcheck.Finding
		}{
			{stepCase: stepCase{reason: "healthy", want: healthy}},
			{stepCase: stepCase{reason: "healthy at last, however late", job: []jobOption{begunAtOnce}, after: 5 * time.Hour, want: healthy}},
			{stepCase: stepCase{reason: "sick: every finding is a blocker, in a stable order", want: unhealthy(30 * time.Minute)}, findings: sick},
			{stepCase: stepCase{reason: "the time counts from the beginning of the step", job: []jobOption{begunAtOnce}, after: 10 * time.Minute, want: unhealthy(20 * time.Minute)}, findings: sick},
			{stepCase: stepCase{reason: "it is configured", job: []jobOption{begunAtOnce, step.own(time.Hour)}, after: 10 * time.Minute, want: unhealthy(50 * time.Minute)}, findings: sick},
			{stepCase: stepCase{reason: "a moment before it is over", job: []jobOption{begunAtOnce}, after: 30*time.Minute - time.Millisecond, want: unhealthy(time.Millisecond)}, findings: sick},
			{stepCase: stepCase{reason: "it is over", job: []jobOption{begunAtOnce}, after: 30 * time.Minute, want: tooLate("did not become healthy within 30m0s: Node/a is sick; Node/b is sick")}, findings: sick},
			{stepCase: stepCase{reason: "no patience at all", job: []jobOption{step.own(0)}, want: tooLate("within 0s")}, findings: sick},
			{stepCase: stepCase{reason: "a resume gives it fresh time", job: []jobOption{begunAtOnce, resumed(5 * time.Hour)}, after: 5 * time.Hour, want: unhealthy(30 * time.Minute)}, findings: sick},
			{
				stepCase: stepCase{reason: "also if the step was done before", job: []jobOption{done(step.condition, 0), resumed(5 * time.Hour)}, after: 5 * time.Hour, want: unhealthy(30 * time.Minute)},
				findings: sick,
			},
			{stepCase: stepCase{reason: "a cluster that has become sick has all the time to recover", job: []jobOption{done(step.condition, 0)}, after: 40 * time.Minute, want: unhealthy(30 * time.Minute)}, findings: sick},
		} {
			t.Run(step.condition+"/"+tc.reason, func(t *testing.T) {
				tc.run(t, step.make(checkFinding(t, "Version"), checkFinding(t, "Nodes", tc.findings...)))
			})
		}
	}
}

// A cluster that is sick again is not worse off for a step that was done before: its clock runs from when it was undone.
func TestClusterHealthyCountsFromWhenTheClusterBecameSick(t *testing.T) {
	w := newWorld(t, newJob(), openshifttest.ClusterVersion())
	well := steps.ClusterHealthyAfterUpgrade(checkFinding(t, "Nodes"))
	sick := steps.ClusterHealthyAfterUpgrade(checkFinding(t, "Nodes", finding("Node/a")))
	for _, tc := range []struct {
		minute  int
		step    steps.Step
		outcome steps.Outcome
		left    time.Duration
	}{
		{0, well, steps.Completed, 0},
		{40, sick, steps.Running, 30 * time.Minute},
		{60, sick, steps.Running, 10 * time.Minute},
		{65, well, steps.Completed, 0},
		{66, sick, steps.Running, 30 * time.Minute},
		{96, sick, steps.Failed, 0},
	} {
		w.now = start.Add(time.Duration(tc.minute) * time.Minute)
		if result := w.pass(tc.step); result.Outcome != tc.outcome || result.After != tc.left {
			t.Errorf("minute %d: got %+v, want outcome %d, %s left", tc.minute, result, tc.outcome, tc.left)
		}
	}
}

// A cluster whose health is not known is not healthy.
func TestClusterHealthyFailsClosed(t *testing.T) {
	tc := stepCase{want: verdict{
		outcome: steps.Running, reason: v1beta1.ReasonUnhealthy, after: 30 * time.Second, // it is asked again
		blockers: []string{"HealthCheckUnanswered "}, says: "Alerts cannot be answered: no route to host",
	}}
	tc.run(t, steps.ClusterHealthyBeforeUpgrade(checkFinding(t, "Nodes"), checkAnswering(t, "Alerts", healthcheck.Report{}, errors.New("no route to host"))))
}

func TestClusterHealthySummarizes(t *testing.T) {
	var findings []healthcheck.Finding
	for i := range 8 {
		findings = append(findings, finding(fmt.Sprintf("Node/%d", i)))
	}
	findings[0].Message += strings.Repeat("!", 1000)
	w := newWorld(t, newJob(), openshifttest.ClusterVersion())
	result := w.pass(steps.ClusterHealthyBeforeUpgrade(checkFinding(t, "Nodes", findings...)))

	const want = "!...; Node/1 is sick; Node/2 is sick; Node/3 is sick; Node/4 is sick; and 3 more"
	if !strings.HasSuffix(result.Message, want) || len(result.Message) > 400 {
		t.Errorf("got %q, want the first five in short, and how many more", result.Message)
	}
	if got := len(w.job().Status.Blockers); got != 8 {
		t.Errorf("got %d blockers, want all", got)
	}
	for _, b := range w.job().Status.Blockers {
		if b.Check != "Nodes" {
			t.Errorf("a blocker names check %q, want that which found it", b.Check)
		}
	}
}

// What cannot be watched is looked at again, within the time that is left.
func TestClusterHealthyLooksAgain(t *testing.T) {
	interval := func(d time.Duration) jobOption {
		return func(job *v1beta1.UpgradeJob) {
			job.Spec.Config.PreUpgradeHealthChecks.Interval = &v1beta1.Duration{Duration: d}
		}
	}
	began := begun(steps.ConditionClusterHealthyBeforeUpgrade, 0)
	polled := func(t *testing.T, findings ...healthcheck.Finding) healthcheck.Check {
		check := mocks.NewMockCheck(gomock.NewController(t))
		check.EXPECT().Name().Return("Alerts").AnyTimes()
		check.EXPECT().Run(gomock.Any(), gomock.Any()).DoAndReturn(func(_ context.Context, r healthcheck.Request) (healthcheck.Report, error) {
			return healthcheck.Report{Findings: findings, Recheck: r.MaxAge}, nil
		})
		return check
	}
	for _, tc := range []struct {
		reason  string
		job     []jobOption
		after   time.Duration
		watched []healthcheck.Finding
		polled  []healthcheck.Finding
		want    time.Duration
	}{
		{reason: "by default every 30 seconds", polled: []healthcheck.Finding{finding("Alert/a")}, want: 30 * time.Second},
		{reason: "as configured", job: []jobOption{interval(7 * time.Second)}, polled: []healthcheck.Finding{finding("Alert/a")}, want: 7 * time.Second},
		{reason: "sooner at the end", job: []jobOption{began}, after: 30*time.Minute - time.Second, polled: []healthcheck.Finding{finding("Alert/a")}, want: time.Second},
		{reason: "not for what is watched", watched: []healthcheck.Finding{finding("ClusterOperator/a")}, want: 30 * time.Minute},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			(&stepCase{job: tc.job, after: tc.after, want: verdict{
				outcome: steps.Running, reason: v1beta1.ReasonUnhealthy, after: tc.want, says: "The cluster is not healthy: ",
				blockers: []string{"Sick " + append(tc.watched, tc.polled...)[0].Object},
			}}).run(t, steps.ClusterHealthyBeforeUpgrade(checkFinding(t, "Operators", tc.watched...), polled(t, tc.polled...)))
		})
	}
}

// A flap of seconds does not end an upgrade, but an operator that flaps all the time does.
func TestClusterHealthyGivesAFlapTheTimeToGo(t *testing.T) {
	flap, serious := finding("ClusterOperator/a"), finding("ClusterOperator/b")
	flap.Fresh = true
	late := []jobOption{begun(steps.ConditionClusterHealthyAfterUpgrade, 0)}
	fresh := healthcheck.Report{Findings: []healthcheck.Finding{flap}, Recheck: 20 * time.Second}
	waits := func(after time.Duration) verdict {
		return verdict{outcome: steps.Running, reason: v1beta1.ReasonUnhealthy, after: after, blockers: []string{"Sick ClusterOperator/a"}, says: "ClusterOperator/a is sick"}
	}
	fails := verdict{outcome: steps.Failed, reason: v1beta1.ReasonPostHealthCheckFailed, blockers: []string{"Sick ClusterOperator/a"}, says: "within 30m0s"}
	for _, tc := range []struct {
		reason string
		after  time.Duration
		report healthcheck.Report
		want   verdict
	}{
		{"there is time", 30*time.Minute - 10*time.Second, fresh, waits(10 * time.Second)},
		{"the time is over, but it may be a flap", 30 * time.Minute, fresh, waits(20 * time.Second)},
		{"for a minute in all", 30*time.Minute + 50*time.Second, fresh, waits(10 * time.Second)},
		{"and no longer", 31 * time.Minute, fresh, fails},
		{"something else is no flap", 30 * time.Minute, healthcheck.Report{Findings: []healthcheck.Finding{flap, serious}, Recheck: 20 * time.Second}, verdict{
			outcome: steps.Failed, reason: v1beta1.ReasonPostHealthCheckFailed, blockers: []string{"Sick ClusterOperator/a", "Sick ClusterOperator/b"}, says: "within 30m0s",
		}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			(&stepCase{job: late, after: tc.after, want: tc.want}).run(t, steps.ClusterHealthyAfterUpgrade(checkAnswering(t, "Operators", tc.report, nil)))
		})
	}
}

// While the cluster is waited for, what cannot be watched is asked for once in an interval; but what decides is fresh.
func TestClusterHealthyDecidesByFreshAnswers(t *testing.T) {
	for _, tc := range []struct {
		reason   string
		interval time.Duration
		after    time.Duration
		sick     bool
		want     []time.Duration
	}{
		{"a short interval", 5 * time.Second, 0, false, []time.Duration{5 * time.Second}},
		{"a long one, while the cluster is sick", 10 * time.Minute, 0, true, []time.Duration{10 * time.Minute}},
		{"a long one, when it is healthy", 10 * time.Minute, 0, false, []time.Duration{10 * time.Minute, 30 * time.Second}},
		{"at the deadline", 30 * time.Second, 30 * time.Minute, true, []time.Duration{time.Nanosecond}},
		{"a moment later an answer since then", 30 * time.Second, 30*time.Minute + 10*time.Second, true, []time.Duration{10 * time.Second}},
		{"much later", 30 * time.Second, time.Hour, true, []time.Duration{30 * time.Second}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			var ages []time.Duration
			check := mocks.NewMockCheck(gomock.NewController(t))
			check.EXPECT().Name().Return("Alerts").AnyTimes()
			check.EXPECT().Run(gomock.Any(), gomock.Any()).DoAndReturn(func(_ context.Context, r healthcheck.Request) (healthcheck.Report, error) {
				ages = append(ages, r.MaxAge)
				if tc.sick {
					return healthcheck.Report{Findings: []healthcheck.Finding{finding("Alert/a")}}, nil
				}
				return healthcheck.Report{}, nil
			}).MinTimes(1)
			w := newWorld(t, newJob(begun(steps.ConditionClusterHealthyBeforeUpgrade, 0), func(job *v1beta1.UpgradeJob) {
				job.Spec.Config.PreUpgradeHealthChecks.Interval = &v1beta1.Duration{Duration: tc.interval}
			}), openshifttest.ClusterVersion())
			w.now = start.Add(tc.after)
			w.pass(steps.ClusterHealthyBeforeUpgrade(check))
			if diff := cmp.Diff(tc.want, ages); diff != "" {
				t.Errorf("ages that an answer may have (-want +got):\n%s", diff)
			}
		})
	}
}

// A query that could not be asked after the upgrade is found before it.
func TestClusterHealthyLooksAtTheQueriesOfTheOtherSide(t *testing.T) {
	invalid := func(job *v1beta1.UpgradeJob) {
		job.Spec.Config.PostUpgradeHealthChecks.CustomQueries = []v1beta1.CustomQuery{{Query: "up =="}}
	}
	(&stepCase{job: []jobOption{invalid}, want: verdict{
		outcome: steps.Running, reason: v1beta1.ReasonUnhealthy, after: 30 * time.Minute, blockers: []string{"InvalidQuery "},
		says: "postUpgradeHealthChecks.customQueries[0]: the query is not PromQL",
	}}).run(t, steps.ClusterHealthyBeforeUpgrade(checkFinding(t, "Nodes")))
}

// A server that hangs does not make the deadline late.
func TestClusterHealthyDoesNotHangBeyondItsDeadline(t *testing.T) {
	plain := func(*v1beta1.UpgradeJob) {}
	window := func(job *v1beta1.UpgradeJob) {
		job.Spec.StartBefore = metav1.NewTime(start.Add(time.Hour))
		job.Spec.Config.PreUpgradeHealthChecks.Timeout = &v1beta1.Duration{Duration: 2 * time.Hour}
		job.Status.StartTime = &metav1.Time{Time: start.Add(-time.Hour)}
	}
	for _, tc := range []struct {
		reason  string
		job     jobOption
		after   time.Duration
		takes   time.Duration
		outcome steps.Outcome
	}{
		{"there is time", plain, 0, healthcheck.Timeout, steps.Running},
		{"the deadline is near", plain, 30*time.Minute - 5*time.Second, 5 * time.Second, steps.Running},
		{"the end of the window is near", window, time.Hour - 3*time.Second, 3 * time.Second, steps.Running},
		{"it has come: the last look is a whole one", plain, 30 * time.Minute, healthcheck.Timeout, steps.Skipped},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				check := mocks.NewMockCheck(gomock.NewController(t))
				check.EXPECT().Name().Return("Alerts").AnyTimes()
				check.EXPECT().Run(gomock.Any(), gomock.Any()).DoAndReturn(func(ctx context.Context, _ healthcheck.Request) (healthcheck.Report, error) {
					<-ctx.Done()
					return healthcheck.Report{}, context.Cause(ctx)
				})
				w := newWorld(t, newJob(begun(steps.ConditionClusterHealthyBeforeUpgrade, 0), tc.job), openshifttest.ClusterVersion())
				w.now = start.Add(tc.after)
				began := time.Now()
				result := w.pass(steps.ClusterHealthyBeforeUpgrade(check))
				if took := time.Since(began); took != tc.takes || result.Outcome != tc.outcome {
					t.Errorf("took %s and came to %d (%s), want %s, %d", took, result.Outcome, result.Message, tc.takes, tc.outcome)
				}
			})
		})
	}
}

// What was left out is said, whether the cluster is healthy or not.
func TestClusterHealthySaysWhatWasLeftOut(t *testing.T) {
	left := healthcheck.Report{Notes: []string{"2 alerts left out"}}
	healthy := stepCase{want: verdict{outcome: steps.Completed, reason: "Completed", says: "The cluster is healthy; 2 alerts left out."}}
	healthy.run(t, steps.ClusterHealthyBeforeUpgrade(checkAnswering(t, "Alerts", left, nil)))

	left.Findings = []healthcheck.Finding{finding("Alert/a")}
	sick := stepCase{want: verdict{
		outcome: steps.Running, reason: v1beta1.ReasonUnhealthy, after: 30 * time.Minute, blockers: []string{"Sick Alert/a"},
		says: "The cluster is not healthy: Alert/a is sick. Beside that: 2 alerts left out",
	}}
	sick.run(t, steps.ClusterHealthyBeforeUpgrade(checkAnswering(t, "Alerts", left, nil)))
}

// Each check sees the cluster of the pass, and the configuration of its own side of the upgrade.
func TestClusterHealthyHandsTheRequestOn(t *testing.T) {
	exclude := func(job *v1beta1.UpgradeJob) {
		job.Spec.Config.PreUpgradeHealthChecks.ExcludeOperators = []string{"before"}
		job.Spec.Config.PostUpgradeHealthChecks.ExcludeOperators = []string{"after"}
	}
	for name, makeStep := range map[string]func(...healthcheck.Check) steps.Step{
		"before": steps.ClusterHealthyBeforeUpgrade,
		"after":  steps.ClusterHealthyAfterUpgrade,
	} {
		w := newWorld(t, newJob(exclude), openshifttest.ClusterVersion())
		u := w.upgrade()
		var got healthcheck.Request
		check := mocks.NewMockCheck(gomock.NewController(t))
		check.EXPECT().Run(gomock.Any(), gomock.Any()).DoAndReturn(func(_ context.Context, r healthcheck.Request) (healthcheck.Report, error) {
			got = r
			return healthcheck.Report{}, nil
		})
		steps.Run(t.Context(), []steps.Step{makeStep(check)}, u)
		if diff := cmp.Diff([]string{name}, got.Config.ExcludeOperators); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got.Version != u.Version || got.Cluster != u.Cluster || got.Monitoring != u.Monitoring {
			t.Errorf("%s: the check looks at another cluster", name)
		}
		if target, _ := u.Target(); got.Target == nil || *got.Target != target || !got.Now.Equal(u.Now) || got.MaxAge != 30*time.Second {
			t.Errorf("%s: got target %v, now %s, answers at most %s old", name, got.Target, got.Now, got.MaxAge)
		}
	}
}
