// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"context"
	"testing"
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

func TestLookAhead(t *testing.T) {
	sick := healthcheck.Report{Findings: []healthcheck.Finding{finding("Node/b"), finding("Node/a")}, Notes: []string{"1 alert left out"}}
	soon := sick
	soon.Recheck = time.Minute
	for _, tc := range []struct {
		reason   string
		report   healthcheck.Report
		want     metav1.Condition
		blockers []string
		after    time.Duration
	}{
		{"healthy", healthcheck.Report{}, v1beta1.PreflightHealthy("The cluster is healthy."), nil, steps.PreviewInterval},
		{
			"sick", sick, v1beta1.PreflightUnhealthy("The cluster is not healthy: Node/a is sick; Node/b is sick. Beside that: 1 alert left out"),
			[]string{"Sick Node/a", "Sick Node/b"}, steps.PreviewInterval,
		},
		{
			"sick, and worth another look", soon, v1beta1.PreflightUnhealthy("The cluster is not healthy: Node/a is sick; Node/b is sick. Beside that: 1 alert left out"),
			[]string{"Sick Node/a", "Sick Node/b"}, time.Minute,
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			u := newWorld(t, newJob(), openshifttest.ClusterVersion()).upgrade()
			before := u.Job.DeepCopy()
			since := metav1.NewTime(start.Add(-time.Hour))
			got, ok := steps.LookAhead(t.Context(), []steps.Step{
				steps.UpdateAvailable(),
				steps.UntilCommenced(steps.ClusterHealthyBeforeUpgrade(checkAnswering(t, "Nodes", tc.report, nil))),
				steps.ClusterHealthyAfterUpgrade(), // what comes after the upgrade is not looked at before
			}, u, []v1beta1.Blocker{{Code: "Sick", Object: "Node/b", Since: since}})
			if diff := cmp.Diff(tc.want, got.Condition); !ok || diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
			var blockers []string
			for _, b := range got.Blockers {
				blockers = append(blockers, b.Code+" "+b.Object)
				if want := map[string]time.Time{"Node/a": u.Now, "Node/b": since.Time}[b.Object]; !b.Since.Time.Equal(want) {
					t.Errorf("%s stands since %s, want %s", b.Object, b.Since, want)
				}
			}
			if diff := cmp.Diff(tc.blockers, blockers); diff != "" || got.After != tc.after {
				t.Errorf("after %s, want %s; blockers (-want +got):\n%s", got.After, tc.after, diff)
			}
			if diff := cmp.Diff(before, u.Job); diff != "" {
				t.Errorf("looking changed the job (-before +after):\n%s", diff)
			}
		})
	}
}

// A healthy cluster is looked at less often while the start is far away; one that is not is looked at soon again.
func TestLookAheadAsksSeldom(t *testing.T) {
	for _, tc := range []struct {
		before time.Duration
		sick   bool
		want   time.Duration
	}{
		{0, false, 5 * time.Minute}, {4 * time.Hour, false, 5 * time.Minute}, {8 * time.Hour, false, 5 * time.Minute}, {100 * time.Hour, false, time.Hour},
		{100 * time.Hour, true, 5 * time.Minute},
	} {
		u := newWorld(t, newJob(), openshifttest.ClusterVersion()).upgrade()
		u.Now = u.Job.Spec.StartAfter.Add(-tc.before)
		var got healthcheck.Request
		check := mocks.NewMockCheck(gomock.NewController(t))
		check.EXPECT().Name().Return("Alerts").AnyTimes()
		check.EXPECT().Run(gomock.Any(), gomock.Any()).DoAndReturn(func(_ context.Context, r healthcheck.Request) (healthcheck.Report, error) {
			got = r
			if tc.sick {
				return healthcheck.Report{Findings: []healthcheck.Finding{finding("Alert/a")}, Recheck: r.MaxAge}, nil
			}
			return healthcheck.Report{}, nil
		})
		preview, _ := steps.LookAhead(t.Context(), []steps.Step{steps.ClusterHealthyBeforeUpgrade(check)}, u, nil)
		if got.MaxAge != 5*time.Minute || preview.After != tc.want {
			t.Errorf("%s before the start, sick %t: answers may be %s old, and it looks again after %s, want 5m and %s", tc.before, tc.sick, got.MaxAge, preview.After, tc.want)
		}
	}
}

// A resumed job that cannot start again yet would find its own update in the way.
func TestLookAheadOfAnUpgradeThatHasCommenced(t *testing.T) {
	w := newWorld(t, newJob(done(steps.ConditionUpgradeCommenced, 0)), openshifttest.ClusterVersion())
	if got, ok := steps.LookAhead(t.Context(), []steps.Step{steps.ClusterHealthyBeforeUpgrade(checkNeverAsked(t))}, w.upgrade(), nil); ok {
		t.Errorf("got %+v", got)
	}
}

// checkNeverAsked fails the test when it is asked.
func checkNeverAsked(t *testing.T) healthcheck.Check {
	return mocks.NewMockCheck(gomock.NewController(t))
}

func TestLookAheadWithoutAStepThatCan(t *testing.T) {
	u := newWorld(t, newJob(), openshifttest.ClusterVersion()).upgrade()
	if got, ok := steps.LookAhead(t.Context(), []steps.Step{steps.UntilCommenced(steps.UpdateAvailable())}, u, nil); ok {
		t.Errorf("got %+v", got)
	}
}
