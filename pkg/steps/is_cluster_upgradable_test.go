// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/golang/mock/gomock"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/healthcheck"
	"github.com/appuio/managed-upgrade-operator/pkg/healthcheck/mocks"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

func TestIsClusterUpgradable(t *testing.T) {
	blockers := []string{"Sick ClusterOperator/a", "Sick ClusterOperator/b"}
	refused := func(left time.Duration) verdict {
		return verdict{
			outcome: steps.Running, reason: v1beta1.ReasonNotUpgradeable, after: left, blockers: blockers,
			says: "OpenShift cannot be upgraded: ClusterOperator/a is sick; ClusterOperator/b is sick",
		}
	}
	nothing := verdict{outcome: steps.Completed, reason: "Completed", says: "OpenShift says nothing against the upgrade."}
	fine := func(t *testing.T) healthcheck.Check { return checkFinding(t, "Fine") }
	sick := func(t *testing.T) healthcheck.Check {
		return checkFinding(t, "Sick", finding("ClusterOperator/b"), finding("ClusterOperator/a"))
	}
	sickFor := func(d time.Duration) func(*testing.T) healthcheck.Check {
		return func(t *testing.T) healthcheck.Check {
			return checkAnswering(t, "Sick", healthcheck.Report{Findings: []healthcheck.Finding{finding("ClusterOperator/b"), finding("ClusterOperator/a")}, Recheck: d}, nil)
		}
	}
	for _, tc := range []struct {
		stepCase
		check func(*testing.T) healthcheck.Check
	}{
		{stepCase{reason: "nothing is against it", want: nothing}, fine},
		{stepCase{reason: "something is: the watches tell when it goes", want: refused(time.Minute)}, sick},
		{stepCase{reason: "or the check has to be asked again", want: refused(5 * time.Second)}, sickFor(5 * time.Second)},
		{stepCase{reason: "no longer than to the end of the window", after: time.Hour - time.Second, want: refused(time.Second + time.Millisecond)}, sick},
		{stepCase{reason: "then the job is skipped", after: time.Hour + 1, want: verdict{
			outcome: steps.Skipped, reason: v1beta1.ReasonExpired, blockers: blockers, says: "OpenShift cannot be upgraded: ClusterOperator/a is sick",
		}}, sick},
		{stepCase{reason: "a check without an answer is a finding", want: verdict{
			outcome: steps.Running, reason: v1beta1.ReasonNotUpgradeable, after: 30 * time.Second, blockers: []string{"HealthCheckUnanswered "}, says: "on fire",
		}}, func(t *testing.T) healthcheck.Check {
			return checkAnswering(t, "Sick", healthcheck.Report{}, errors.New("on fire"))
		}},
		{stepCase{reason: "what runs already", version: []versionOption{upgraded()}, want: verdict{outcome: steps.Completed, reason: "Completed", says: "runs 4.18.2 already"}}, checkNeverAsked},
		{stepCase{reason: "a job without a version", job: []jobOption{withoutVersion}, want: verdict{outcome: steps.Completed, reason: "Completed", says: "no version"}}, checkNeverAsked},
	} {
		t.Run(tc.reason, func(t *testing.T) { tc.run(t, steps.IsClusterUpgradable(tc.check(t))) })
	}
}

// The checks are asked about the version of the job, and with its settings.
func TestIsClusterUpgradableAsks(t *testing.T) {
	var got healthcheck.Request
	check := mocks.NewMockCheck(gomock.NewController(t))
	check.EXPECT().Name().Return("Check").AnyTimes()
	check.EXPECT().Run(gomock.Any(), gomock.Any()).DoAndReturn(func(_ context.Context, r healthcheck.Request) (healthcheck.Report, error) {
		got = r
		return healthcheck.Report{}, nil
	})
	off := false
	w := newWorld(t, newJob(func(job *v1beta1.UpgradeJob) { job.Spec.Config.PreUpgradeHealthChecks.CheckUpgradeable = &off }), openshifttest.ClusterVersion())
	if result := w.pass(steps.IsClusterUpgradable(check)); result.Outcome != steps.Completed {
		t.Fatalf("got %+v", result)
	}
	if got.Target == nil || got.Target.Version != target || got.Version.Name != "version" || !got.Now.Equal(start) || got.Config.CheckUpgradeable == nil || got.Cluster == nil {
		t.Errorf("it asks %+v", got)
	}
}

// With the check that OSD has: OpenShift refuses updates to another minor version only.
func TestIsClusterUpgradableOfOpenShift(t *testing.T) {
	not := openshifttest.VersionCondition(configv1.OperatorUpgradeable, configv1.ConditionFalse, "AdminAckRequired", "APIs are removed.")
	minor := func(job *v1beta1.UpgradeJob) {
		job.Spec.DesiredVersion = &v1beta1.DesiredVersion{Version: "4.19.0", Image: openshifttest.Image("4.19.0")}
	}
	for _, tc := range []stepCase{
		{reason: "within the minor version", version: []versionOption{not}, want: verdict{outcome: steps.Completed, reason: "Completed"}},
		{reason: "to another one", job: []jobOption{minor}, version: []versionOption{not}, want: verdict{
			outcome: steps.Running, reason: v1beta1.ReasonNotUpgradeable, after: time.Minute,
			blockers: []string{"ClusterVersionNotUpgradeable ClusterVersion/version"}, says: "AdminAckRequired): APIs are removed.",
		}},
	} {
		t.Run(tc.reason, func(t *testing.T) { tc.run(t, steps.IsClusterUpgradable(healthcheck.Upgradeable())) })
	}
}
