// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package healthcheck_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang/mock/gomock"
	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/healthcheck"
	"github.com/appuio/managed-upgrade-operator/pkg/healthcheck/mocks"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

type answer = func(context.Context, healthcheck.Request) (healthcheck.Report, error)

func check(t *testing.T, name string, run answer) healthcheck.Check {
	c := mocks.NewMockCheck(gomock.NewController(t))
	c.EXPECT().Name().Return(name).AnyTimes()
	c.EXPECT().Run(gomock.Any(), gomock.Any()).DoAndReturn(run)
	return c
}

func finds(findings ...healthcheck.Finding) answer {
	return func(context.Context, healthcheck.Request) (healthcheck.Report, error) {
		return healthcheck.Report{Findings: slices.Clone(findings)}, nil
	}
}

// hangs answers when its context ends.
func hangs(ctx context.Context, _ healthcheck.Request) (healthcheck.Report, error) {
	<-ctx.Done()
	return healthcheck.Report{}, context.Cause(ctx)
}

func finding(check, object, reason string) healthcheck.Finding {
	return healthcheck.Finding{Check: check, Object: object, Reason: reason, Message: "..."}
}

// lines are findings as people see them, in order.
func lines(findings []healthcheck.Finding) []string {
	var l []string
	for _, f := range findings {
		l = append(l, f.Check+" "+f.Object+" "+f.Reason+": "+f.Message)
	}
	return l
}

func TestRunAllReportsEveryFindingInAStableOrder(t *testing.T) {
	want := []healthcheck.Finding{
		finding("A", "Node/a", "NotReady"), finding("A", "Node/b", "DiskPressure"), finding("A", "Node/b", "NotReady"), finding("B", "Node/a", "Cordoned"),
	}
	got := healthcheck.RunAll(t.Context(), []healthcheck.Check{
		check(t, "B", finds(want[3])), check(t, "Healthy", finds()), check(t, "A", finds(want[2], want[0], want[1])),
	}, healthcheck.Request{}).Findings
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRunAllWithoutFindingsIsHealthy(t *testing.T) {
	for reason, checks := range map[string][]healthcheck.Check{
		"no check":       nil,
		"healthy checks": {check(t, "A", finds()), check(t, "B", finds())},
	} {
		if diff := cmp.Diff(healthcheck.Report{}, healthcheck.RunAll(t.Context(), checks, healthcheck.Request{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
}

func TestACheckWithoutAnAnswerIsAFinding(t *testing.T) {
	got := healthcheck.RunAll(t.Context(), []healthcheck.Check{
		check(t, "Healthy", finds()),
		check(t, "Alerts", func(context.Context, healthcheck.Request) (healthcheck.Report, error) {
			return healthcheck.Report{
				Findings: []healthcheck.Finding{finding("Alerts", "Alert/EtcdDown", "Firing")}, Notes: []string{"1 left out"},
			}, errors.New("no route to host")
		}),
	}, healthcheck.Request{MaxAge: time.Minute})
	want := healthcheck.Report{Notes: []string{"1 left out"}, Recheck: time.Minute, Findings: []healthcheck.Finding{
		{
			Check: "Alerts", Reason: "HealthCheckUnanswered", Message: "Alerts cannot be answered: no route to host", ClearsWhen: "the check gets an answer",
		},
		finding("Alerts", "Alert/EtcdDown", "Firing"), // what it found before is not lost
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A check that breaks must not take the operator along.
func TestACheckThatPanicsIsAFinding(t *testing.T) {
	got := healthcheck.RunAll(t.Context(), []healthcheck.Check{
		check(t, "Broken", func(context.Context, healthcheck.Request) (healthcheck.Report, error) { panic("no such index") }),
		check(t, "Nodes", finds(finding("Nodes", "Node/a", "NotReady"))),
	}, healthcheck.Request{})
	want := []string{"Broken  HealthCheckUnanswered: Broken cannot be answered: the check panicked: no such index", "Nodes Node/a NotReady: ..."}
	if diff := cmp.Diff(want, lines(got.Findings)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Two checks that wait for each other: one after the other they would not get an answer.
func TestRunAllRunsChecksInParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		meet := func(here, there chan struct{}) answer {
			return func(ctx context.Context, _ healthcheck.Request) (healthcheck.Report, error) {
				close(here)
				select {
				case <-there:
					return healthcheck.Report{}, nil
				case <-ctx.Done():
					return healthcheck.Report{}, errors.New("nobody came")
				}
			}
		}
		a, b := make(chan struct{}), make(chan struct{})
		got := healthcheck.RunAll(t.Context(), []healthcheck.Check{check(t, "A", meet(a, b)), check(t, "B", meet(b, a))}, healthcheck.Request{}).Findings
		if len(got) != 0 {
			t.Errorf("got %v", lines(got))
		}
	})
}

func TestEachCheckHasItsOwnDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		got := healthcheck.RunAll(t.Context(), []healthcheck.Check{
			check(t, "Hangs", hangs), check(t, "Finds", finds(finding("Finds", "Node/a", "NotReady"))),
		}, healthcheck.Request{}).Findings
		if took := time.Since(begin); took != healthcheck.Timeout {
			t.Errorf("took %s, want %s", took, healthcheck.Timeout)
		}
		want := []string{
			"Finds Node/a NotReady: ...",
			"Hangs  HealthCheckUnanswered: Hangs cannot be answered: context deadline exceeded",
		}
		if diff := cmp.Diff(want, lines(got)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestRunAllEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		begin := time.Now()
		time.AfterFunc(time.Second, cancel)
		got := healthcheck.RunAll(ctx, []healthcheck.Check{check(t, "Hangs", hangs)}, healthcheck.Request{}).Findings
		if took := time.Since(begin); took != time.Second {
			t.Errorf("took %s", took)
		}
		if len(got) != 1 || got[0].Reason != healthcheck.CodeUnanswered {
			t.Errorf("got %v, want that the check is not answered", lines(got))
		}
	})
}

func TestEachCheckGetsTheRequest(t *testing.T) {
	want := healthcheck.Request{Config: v1beta1.HealthChecks{ExcludeOperators: []string{"dns"}}, Version: openshifttest.ClusterVersion()}
	see := func(_ context.Context, got healthcheck.Request) (healthcheck.Report, error) {
		if diff := cmp.Diff(want.Config, got.Config); diff != "" || got.Version != want.Version {
			t.Errorf("got %+v", got)
		}
		return healthcheck.Report{}, nil
	}
	healthcheck.RunAll(t.Context(), []healthcheck.Check{check(t, "A", see), check(t, "B", see)}, want)
}

// What needs no time to clear does not shorten the wait for what does.
func TestRunAllLooksAgainForFindingsOnly(t *testing.T) {
	report := func(recheck time.Duration, findings ...healthcheck.Finding) answer {
		return func(context.Context, healthcheck.Request) (healthcheck.Report, error) {
			return healthcheck.Report{Findings: findings, Recheck: recheck}, nil
		}
	}
	sick := finding("", "Node/a", "NotReady")
	for _, tc := range []struct {
		reason string
		a, b   answer
		want   time.Duration
	}{
		{"the sooner one", report(time.Minute, sick), report(time.Second, sick), time.Second},
		{"a healthy check does not matter", report(time.Minute, sick), report(time.Second), time.Minute},
		{"nor one that is watched", report(time.Minute, sick), report(0, sick), time.Minute},
		{"all are watched", report(0, sick), report(0, sick), 0},
	} {
		got := healthcheck.RunAll(t.Context(), []healthcheck.Check{check(t, "A", tc.a), check(t, "B", tc.b)}, healthcheck.Request{})
		if got.Recheck != tc.want {
			t.Errorf("%s: got %s, want %s", tc.reason, got.Recheck, tc.want)
		}
	}
}

// Every check of this package, by what an administrator can turn off.
func TestChecksThatAreTurnedOff(t *testing.T) {
	sick := openshifttest.ClusterVersion(
		openshifttest.VersionCondition("Failing", configv1.ConditionTrue, "UpdatePayloadFailed", "..."),
		openshifttest.VersionCondition(configv1.OperatorAvailable, configv1.ConditionFalse, "...", "..."),
		openshifttest.VersionCondition("Invalid", configv1.ConditionTrue, "InvalidClusterVersion", "..."),
		openshifttest.History(openshifttest.Partial("4.18.2"), openshifttest.Completed("4.18.1")),
	)
	for reason, config := range map[string]v1beta1.HealthChecks{
		"checkDegradedOperators":          {CheckDegradedOperators: new(false)},
		"skipDegradedOperatorsCheck":      {SkipDegradedOperatorsCheck: true},
		"skipDegradedOperatorsCheck wins": {SkipDegradedOperatorsCheck: true, CheckDegradedOperators: new(true)},
	} {
		t.Run(reason, func(t *testing.T) {
			got := healthcheck.RunAll(t.Context(), []healthcheck.Check{healthcheck.ClusterVersionHealthy(), healthcheck.DegradedOperators()},
				healthcheck.Request{Config: config, Version: sick, Cluster: cluster(degraded("dns"))}).Findings
			var reasons []string
			for _, f := range got {
				reasons = append(reasons, f.Reason)
			}
			if diff := cmp.Diff([]string{"ClusterVersionInvalid", "UpdateInProgress"}, reasons); diff != "" {
				t.Errorf("all but what would make an update impossible (-want +got):\n%s", diff)
			}
		})
	}
}
