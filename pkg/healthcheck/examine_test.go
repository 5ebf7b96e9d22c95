// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package healthcheck_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/healthcheck"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

// night is when the checks of these tests run.
var night = time.Date(2026, time.November, 24, 22, 0, 0, 0, time.UTC)

func noIndex(client.Object) []string { return nil }

// cluster returns a cluster with these objects.
func cluster(objects ...client.Object) *openshift.Cluster {
	api := openshifttest.NewClientBuilder(openshift.NodeField, noIndex).WithObjects(objects...).Build()
	return openshift.NewCluster(api, api)
}

var errAway = errors.New("the API server is away")

// clusterWithout returns a cluster with these objects, whose API server does not answer lists of that kind; of no kind
// at all if it is empty.
func clusterWithout(kind string, objects ...client.Object) *openshift.Cluster {
	api := openshifttest.NewClientBuilder(openshift.NodeField, noIndex).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			gvk, err := c.GroupVersionKindFor(list)
			if err != nil {
				return err
			}
			if kind == "" || strings.TrimSuffix(gvk.Kind, "List") == kind {
				return errAway
			}
			return c.List(ctx, list, opts...)
		},
	}).Build()
	return openshift.NewCluster(api, api)
}

// examine returns the report of one check.
func examine(t *testing.T, check healthcheck.Check, request healthcheck.Request) healthcheck.Report {
	t.Helper()
	if request.Now.IsZero() {
		request.Now = night
	}
	request.MaxAge = maxAge
	return healthcheck.RunAll(t.Context(), []healthcheck.Check{check}, request)
}

// maxAge is how old an answer may be in these tests.
const maxAge = 30 * time.Second

func expectReport(t *testing.T, want, got healthcheck.Report) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A check that gets no answer says so; one that has nothing to ask does not ask.
func TestChecksOfAClusterThatDoesNotAnswer(t *testing.T) {
	minor, patch := openshift.Release{Version: "4.19.0"}, openshift.Release{Version: "4.18.2"}
	for _, tc := range []struct {
		check healthcheck.Check
		off   v1beta1.HealthChecks
		// minorOnly is set if the check is about updates to another minor version.
		minorOnly bool
		kind      string
	}{
		{check: healthcheck.DegradedOperators(), off: v1beta1.HealthChecks{CheckDegradedOperators: new(false)}, kind: "ClusterOperator"},
		{check: healthcheck.MachineConfigPools(), off: v1beta1.HealthChecks{CheckMachineConfigPools: new(false)}, kind: "MachineConfigPool"},
		{check: healthcheck.Nodes(), off: v1beta1.HealthChecks{CheckNodes: new(false)}, kind: "Node"},
		{check: healthcheck.PodDisruptionBudgets(), off: v1beta1.HealthChecks{CheckPodDisruptionBudgets: new(false)}, kind: "PodDisruptionBudget"},
		{check: healthcheck.Upgradeable(), off: v1beta1.HealthChecks{CheckUpgradeable: new(false)}, minorOnly: true, kind: "ClusterOperator"},
		{check: healthcheck.RemovedAPIs(), off: v1beta1.HealthChecks{CheckRemovedAPIs: new(false)}, minorOnly: true, kind: "APIRequestCount"},
	} {
		t.Run(tc.check.Name(), func(t *testing.T) {
			request := healthcheck.Request{Cluster: clusterWithout(""), Version: openshifttest.ClusterVersion(), Target: &minor, Now: night, MaxAge: maxAge}
			if _, err := tc.check.Run(t.Context(), request); !errors.Is(err, errAway) {
				t.Errorf("got %v, want the error of the API", err)
			}
			expectReport(t, healthcheck.Report{
				Findings: []healthcheck.Finding{{
					Check: tc.check.Name(), Reason: healthcheck.CodeUnanswered, ClearsWhen: "the check gets an answer",
					Message: tc.check.Name() + " cannot be answered: list " + tc.kind + "s: the API server is away",
				}},
				Recheck: maxAge,
			}, examine(t, tc.check, request))

			off := request
			off.Config = tc.off
			expectReport(t, healthcheck.Report{}, examine(t, tc.check, off))
			if tc.minorOnly {
				request.Target = &patch
				expectReport(t, healthcheck.Report{}, examine(t, tc.check, request))
				request.Target = nil
				expectReport(t, healthcheck.Report{}, examine(t, tc.check, request))
			}
		})
	}
}
