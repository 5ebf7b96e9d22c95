// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package healthcheck_test

import (
	"slices"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/pkg/healthcheck"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

func TestClusterVersionHealthy(t *testing.T) {
	type options = []func(*configv1.ClusterVersion)
	failing := func(status configv1.ConditionStatus, reason string) func(*configv1.ClusterVersion) {
		return openshifttest.VersionCondition("Failing", status, reason, "It hurts.")
	}
	one := func(reason, message, clears string) []healthcheck.Finding {
		return []healthcheck.Finding{{
			Check: "ClusterVersion", Object: "ClusterVersion/version", Reason: reason, Message: message, ClearsWhen: clears,
		}}
	}

	for _, tc := range []struct {
		reason  string
		version options
		want    []healthcheck.Finding
	}{
		{"healthy", nil, nil},
		{
			"an update goes on", options{openshifttest.History(openshifttest.Partial("4.18.2"), openshifttest.Completed("4.18.1"))},
			one("UpdateInProgress", "the cluster is being updated to 4.18.2", "the update to 4.18.2 completes"),
		},
		{
			"an update was abandoned for another that is completed",
			options{openshifttest.History(openshifttest.Completed("4.18.3"), openshifttest.Abandoned("4.18.2"), openshifttest.Completed("4.18.1"))}, nil,
		},
		{
			"the spec is invalid", options{openshifttest.VersionCondition("Invalid", configv1.ConditionTrue, "InvalidClusterVersion", "no such version")},
			one("ClusterVersionInvalid", "ClusterVersion is invalid (InvalidClusterVersion): no such version", "the spec of ClusterVersion/version is corrected"),
		},
		{"the spec was invalid", options{openshifttest.VersionCondition("Invalid", configv1.ConditionFalse, "", "")}, nil},
		{
			"failing", options{failing(configv1.ConditionTrue, "UpdatePayloadFailed")},
			one("ClusterVersionFailing", "ClusterVersion is failing (UpdatePayloadFailed): It hurts.", "ClusterVersion reports Failing=False"),
		},
		{
			"failing for several causes", options{failing(configv1.ConditionTrue, "MultipleErrors")},
			one("ClusterVersionFailing", "ClusterVersion is failing (MultipleErrors): It hurts.", "ClusterVersion reports Failing=False"),
		},
		{"failing for an operator: the check of the operators knows better", options{failing(configv1.ConditionTrue, "ClusterOperatorDegraded")}, nil},
		{"the same for several", options{failing(configv1.ConditionTrue, "ClusterOperatorsDegraded")}, nil},
		{"for one that is away", options{failing(configv1.ConditionTrue, "ClusterOperatorNotAvailable")}, nil},
		{"for several that are away", options{failing(configv1.ConditionTrue, "ClusterOperatorsNotAvailable")}, nil},
		{"slow is not failing", options{failing(configv1.ConditionUnknown, "SlowClusterOperator")}, nil},
		{
			"not available", options{openshifttest.VersionCondition(configv1.OperatorAvailable, configv1.ConditionFalse, "NoPods", "It is away.")},
			one("ClusterVersionNotAvailable", "ClusterVersion is not available (NoPods): It is away.", "ClusterVersion reports Available=True"),
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got := examine(t, healthcheck.ClusterVersionHealthy(), healthcheck.Request{Version: openshifttest.ClusterVersion(tc.version...)})
			expectReport(t, healthcheck.Report{Findings: tc.want}, got)
		})
	}
}

// What ClusterVersion says of an operator is left to the check of the operators. It has to find whatever operator the
// cluster-version operator is failing for, and nothing when that one is well, although ClusterVersion still says so.
func TestFailingForAnOperatorIsFoundByOneOfTheChecks(t *testing.T) {
	statuses := []configv1.ConditionStatus{configv1.ConditionTrue, configv1.ConditionFalse, configv1.ConditionUnknown, "absent"}
	for _, available := range statuses {
		for _, degraded := range statuses {
			t.Run(string("Available="+available+" Degraded="+degraded), func(t *testing.T) {
				co := openshifttest.ClusterOperator("dns", func(co *configv1.ClusterOperator) { co.Status.Conditions = nil })
				for kind, status := range map[configv1.ClusterStatusConditionType]configv1.ConditionStatus{
					configv1.OperatorAvailable: available, configv1.OperatorDegraded: degraded,
				} {
					if status != "absent" {
						openshifttest.OperatorCondition(kind, status, "Why", "")(co)
					}
				}
				// As the cluster-version operator judges it: it looks for Degraded only if the operator is available.
				reason, well := "ClusterOperatorDegraded", available == configv1.ConditionTrue && degraded == configv1.ConditionFalse
				if available != configv1.ConditionTrue {
					reason = "ClusterOperatorNotAvailable"
				}
				got := healthcheck.RunAll(t.Context(), []healthcheck.Check{healthcheck.ClusterVersionHealthy(), healthcheck.DegradedOperators()}, healthcheck.Request{
					Version: openshifttest.ClusterVersion(openshifttest.VersionCondition("Failing", configv1.ConditionTrue, reason, "Cluster operator dns is sick")),
					Cluster: cluster(co, openshifttest.ClusterOperator("etcd")), Now: night, MaxAge: maxAge,
				})
				found := slices.ContainsFunc(got.Findings, func(f healthcheck.Finding) bool { return f.Object == "ClusterOperator/dns" && f.Reason == reason })
				if found == well || (well && len(got.Findings) > 0) {
					t.Errorf("got %+v, want it found: %t", got.Findings, !well)
				}
			})
		}
	}
}

// The cluster-version operator sets Failing to False for milliseconds on each of its retries.
func TestFailingHasToSettle(t *testing.T) {
	changed := time.Date(2026, time.November, 24, 22, 0, 0, 0, time.UTC)
	cv := openshifttest.ClusterVersion(openshifttest.VersionCondition("Failing", configv1.ConditionFalse, "", ""), func(cv *configv1.ClusterVersion) {
		for i := range cv.Status.Conditions {
			cv.Status.Conditions[i].LastTransitionTime = metav1.NewTime(changed)
		}
	})
	for since, recheck := range map[time.Duration]time.Duration{
		0: 1500 * time.Millisecond, time.Second: 500 * time.Millisecond, 1500 * time.Millisecond: 0, time.Hour: 0,
	} {
		want := healthcheck.Report{Recheck: recheck}
		if recheck > 0 {
			want.Findings = []healthcheck.Finding{{
				Check: "ClusterVersion", Object: "ClusterVersion/version", Reason: "ClusterVersionFailing",
				Message: "ClusterVersion was failing a moment ago", ClearsWhen: "Failing has been False for a moment",
			}}
		}
		t.Run(since.String(), func(t *testing.T) {
			expectReport(t, want, examine(t, healthcheck.ClusterVersionHealthy(), healthcheck.Request{Version: cv, Now: changed.Add(since)}))
		})
	}
}
