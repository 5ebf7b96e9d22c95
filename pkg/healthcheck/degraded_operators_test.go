// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package healthcheck_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/healthcheck"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

func noIndex(client.Object) []string { return nil }

func cluster(objects ...client.Object) *openshift.Cluster {
	api := openshifttest.NewClientBuilder(openshift.NodeField, noIndex).WithObjects(objects...).Build()
	return openshift.NewCluster(api, api)
}

func degraded(name string) *configv1.ClusterOperator {
	return openshifttest.ClusterOperator(name, openshifttest.OperatorCondition(configv1.OperatorDegraded, configv1.ConditionTrue, "Sick", "It hurts."))
}

func unavailable(name string) *configv1.ClusterOperator {
	return openshifttest.ClusterOperator(name, openshifttest.OperatorCondition(configv1.OperatorAvailable, configv1.ConditionFalse, "Gone", "It is away."))
}

func TestDegradedOperators(t *testing.T) {
	both := degraded("network")
	openshifttest.OperatorCondition(configv1.OperatorAvailable, configv1.ConditionFalse, "Gone", "It is away.")(both)
	unknown := openshifttest.ClusterOperator("dns",
		openshifttest.OperatorCondition(configv1.OperatorDegraded, configv1.ConditionUnknown, "NoData", ""),
		openshifttest.OperatorCondition(configv1.OperatorAvailable, configv1.ConditionUnknown, "NoData", ""))
	busy := openshifttest.ClusterOperator("dns", openshifttest.OperatorCondition(configv1.OperatorProgressing, configv1.ConditionTrue, "Resync", ""))
	newborn := openshifttest.ClusterOperator("dns", func(co *configv1.ClusterOperator) { co.Status.Conditions = nil })

	isDegraded := func(name string) healthcheck.Finding {
		return healthcheck.Finding{
			Check: "DegradedOperators", Object: "ClusterOperator/" + name, Reason: "ClusterOperatorDegraded",
			Message: "ClusterOperator " + name + " is degraded (Sick): It hurts.", ClearsWhen: "ClusterOperator " + name + " reports Degraded=False",
		}
	}
	isAway := func(name string) healthcheck.Finding {
		return healthcheck.Finding{
			Check: "DegradedOperators", Object: "ClusterOperator/" + name, Reason: "ClusterOperatorNotAvailable",
			Message: "ClusterOperator " + name + " is not available (Gone): It is away.", ClearsWhen: "ClusterOperator " + name + " reports Available=True",
		}
	}

	for _, tc := range []struct {
		reason    string
		config    v1beta1.HealthChecks
		operators []client.Object
		want      []healthcheck.Finding
	}{
		{reason: "no operators"},
		{reason: "all are well", operators: []client.Object{openshifttest.ClusterOperator("dns"), openshifttest.ClusterOperator("etcd")}},
		{reason: "work is no sickness", operators: []client.Object{busy}},
		{reason: "what an operator does not report is not held against it", operators: []client.Object{newborn}},
		{reason: "nor what it does not know", operators: []client.Object{unknown}},
		{
			reason: "each one that is sick, not only the first", operators: []client.Object{degraded("network"), openshifttest.ClusterOperator("etcd"), unavailable("dns")},
			want: []healthcheck.Finding{isAway("dns"), isDegraded("network")},
		},
		{reason: "one may be both", operators: []client.Object{both}, want: []healthcheck.Finding{isDegraded("network"), isAway("network")}},
		{
			reason: "turned on explicitly", config: v1beta1.HealthChecks{CheckDegradedOperators: new(true)}, operators: []client.Object{degraded("dns")},
			want: []healthcheck.Finding{isDegraded("dns")},
		},
		{
			reason: "excluded by name, and by namespace", config: v1beta1.HealthChecks{ExcludeOperators: []string{"dns", "openshift-network"}},
			operators: []client.Object{degraded("dns"), both, degraded("etcd")}, want: []healthcheck.Finding{isDegraded("etcd")},
		},
		{reason: "turned off", config: v1beta1.HealthChecks{CheckDegradedOperators: new(false)}, operators: []client.Object{degraded("dns")}},
		{reason: "turned off in the old spelling", config: v1beta1.HealthChecks{SkipDegradedOperatorsCheck: true}, operators: []client.Object{degraded("dns")}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got := healthcheck.RunAll(t.Context(), []healthcheck.Check{healthcheck.DegradedOperators()},
				healthcheck.Request{Config: tc.config, Cluster: cluster(tc.operators...)})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDegradedOperatorsThatCannotBeListed(t *testing.T) {
	broken := errors.New("the API server is away")
	api := openshifttest.NewClientBuilder(openshift.NodeField, noIndex).WithInterceptorFuncs(interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return broken },
	}).Build()
	request := healthcheck.Request{Cluster: openshift.NewCluster(api, api)}

	if _, err := healthcheck.DegradedOperators().Run(t.Context(), request); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	got := healthcheck.RunAll(t.Context(), []healthcheck.Check{healthcheck.DegradedOperators()}, request)
	if len(got) != 1 || got[0].Reason != healthcheck.CodeUnanswered || got[0].Object != "" {
		t.Errorf("got %+v, want that it is not answered", got)
	}

	request.Config.SkipDegradedOperatorsCheck = true
	if got := healthcheck.RunAll(t.Context(), []healthcheck.Check{healthcheck.DegradedOperators()}, request); len(got) != 0 {
		t.Errorf("turned off: got %+v", got)
	}
}
