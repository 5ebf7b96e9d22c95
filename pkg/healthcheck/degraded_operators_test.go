// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package healthcheck_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/healthcheck"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

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
	silent := openshifttest.ClusterOperator("dns", func(co *configv1.ClusterOperator) { co.Status.Conditions = nil })

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
	unwell := func(what, reason, clears string) healthcheck.Finding {
		return healthcheck.Finding{
			Check: "DegradedOperators", Object: "ClusterOperator/dns", Reason: reason, Message: "ClusterOperator dns " + what, ClearsWhen: "ClusterOperator dns reports " + clears,
		}
	}

	for _, tc := range []struct {
		reason    string
		config    v1beta1.HealthChecks
		operators []client.Object
		want      []healthcheck.Finding
		notes     []string
	}{
		{reason: "no operators"},
		{reason: "all are well", operators: []client.Object{openshifttest.ClusterOperator("dns"), openshifttest.ClusterOperator("etcd")}},
		{reason: "work is no sickness", operators: []client.Object{busy}},
		{reason: "what an operator does not report is not so", operators: []client.Object{silent}, want: []healthcheck.Finding{
			unwell("does not report whether it is degraded", "ClusterOperatorDegraded", "Degraded=False"),
			unwell("does not report whether it is available", "ClusterOperatorNotAvailable", "Available=True"),
		}},
		{reason: "nor what it does not know", operators: []client.Object{unknown}, want: []healthcheck.Finding{
			unwell("does not know whether it is degraded (NoData)", "ClusterOperatorDegraded", "Degraded=False"),
			unwell("does not know whether it is available (NoData)", "ClusterOperatorNotAvailable", "Available=True"),
		}},
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
			operators: []client.Object{both, degraded("etcd"), degraded("dns")}, want: []healthcheck.Finding{isDegraded("etcd")},
			notes: []string{"2 sick ClusterOperators left out by excludeOperators: dns, network"},
		},
		{
			reason: "one is excluded, which is not known to be well", config: v1beta1.HealthChecks{ExcludeOperators: []string{"dns"}}, operators: []client.Object{unknown},
			notes: []string{"1 sick ClusterOperator left out by excludeOperators: dns"},
		},
		{
			reason: "that one that is well is excluded is not worth a note", config: v1beta1.HealthChecks{ExcludeOperators: []string{"etcd"}},
			operators: []client.Object{openshifttest.ClusterOperator("etcd"), degraded("dns")}, want: []healthcheck.Finding{isDegraded("dns")},
		},
		{reason: "turned off", config: v1beta1.HealthChecks{CheckDegradedOperators: new(false)}, operators: []client.Object{degraded("dns")}},
		{reason: "turned off in the old spelling", config: v1beta1.HealthChecks{SkipDegradedOperatorsCheck: true}, operators: []client.Object{degraded("dns")}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got := examine(t, healthcheck.DegradedOperators(), healthcheck.Request{Config: tc.config, Cluster: cluster(tc.operators...)})
			expectReport(t, healthcheck.Report{Findings: tc.want, Notes: tc.notes}, got)
		})
	}
}

// A cache lists objects as it likes.
func TestExcludedOperatorsAreNamedInOrder(t *testing.T) {
	api := openshifttest.NewClientBuilder(openshift.NodeField, noIndex).WithObjects(degraded("dns"), degraded("etcd")).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			err := c.List(ctx, list, opts...)
			if operators, ok := list.(*configv1.ClusterOperatorList); ok {
				slices.Reverse(operators.Items)
			}
			return err
		},
	}).Build()
	got := examine(t, healthcheck.DegradedOperators(), healthcheck.Request{
		Config: v1beta1.HealthChecks{ExcludeOperators: []string{"dns", "etcd"}}, Cluster: openshift.NewCluster(api, api),
	})
	expectReport(t, healthcheck.Report{Notes: []string{"2 sick ClusterOperators left out by excludeOperators: dns, etcd"}}, got)
}

// A flap of seconds must not end an upgrade.
func TestOperatorsThatAreSickForAMoment(t *testing.T) {
	since := func(co *configv1.ClusterOperator, t configv1.ClusterStatusConditionType, age time.Duration) *configv1.ClusterOperator {
		openshift.Condition(co.Status.Conditions, t).LastTransitionTime = metav1.NewTime(night.Add(-age))
		return co
	}
	sick := func(name string, age time.Duration) client.Object {
		return since(degraded(name), configv1.OperatorDegraded, age)
	}
	both := func(away, sick time.Duration) client.Object {
		co := since(degraded("dns"), configv1.OperatorDegraded, sick)
		openshifttest.OperatorCondition(configv1.OperatorAvailable, configv1.ConditionFalse, "Gone", "It is away.")(co)
		return since(co, configv1.OperatorAvailable, away)
	}
	newborn := func(age time.Duration) client.Object {
		return openshifttest.ClusterOperator("dns", func(co *configv1.ClusterOperator) {
			co.CreationTimestamp, co.Status.Conditions = metav1.NewTime(night.Add(-age)), nil
		})
	}
	unsure := since(openshifttest.ClusterOperator("dns",
		openshifttest.OperatorCondition(configv1.OperatorAvailable, configv1.ConditionUnknown, "NoData", "")), configv1.OperatorAvailable, 40*time.Second)
	for _, tc := range []struct {
		reason    string
		operators []client.Object
		fresh     []string
		ripe      []string
		recheck   time.Duration
		config    v1beta1.HealthChecks
	}{
		{"since this moment", []client.Object{sick("dns", 0)}, []string{"dns ClusterOperatorDegraded"}, nil, time.Minute, v1beta1.HealthChecks{}},
		{"for a while", []client.Object{sick("dns", 45*time.Second)}, []string{"dns ClusterOperatorDegraded"}, nil, 15 * time.Second, v1beta1.HealthChecks{}},
		{"a moment before it is serious", []client.Object{sick("dns", 59*time.Second)}, []string{"dns ClusterOperatorDegraded"}, nil, time.Second, v1beta1.HealthChecks{}},
		{"serious", []client.Object{sick("dns", time.Minute)}, nil, []string{"dns ClusterOperatorDegraded"}, 0, v1beta1.HealthChecks{}},
		{"for hours", []client.Object{sick("dns", 5*time.Hour)}, nil, []string{"dns ClusterOperatorDegraded"}, 0, v1beta1.HealthChecks{}},
		{"the cluster's clock is ahead", []client.Object{sick("dns", -30*time.Second)}, []string{"dns ClusterOperatorDegraded"}, nil, 90 * time.Second, v1beta1.HealthChecks{}},
		{"the cluster's clock is wrong", []client.Object{sick("dns", -time.Minute)}, nil, []string{"dns ClusterOperatorDegraded"}, 0, v1beta1.HealthChecks{}},
		{
			"it is new, and has reported nothing yet", []client.Object{newborn(50 * time.Second)},
			[]string{"dns ClusterOperatorDegraded", "dns ClusterOperatorNotAvailable"}, nil, 10 * time.Second, v1beta1.HealthChecks{},
		},
		{
			"it should have reported by now", []client.Object{newborn(time.Minute)},
			nil, []string{"dns ClusterOperatorDegraded", "dns ClusterOperatorNotAvailable"}, 0, v1beta1.HealthChecks{},
		},
		{"it has not known for a while", []client.Object{unsure}, []string{"dns ClusterOperatorNotAvailable"}, nil, 20 * time.Second, v1beta1.HealthChecks{}},
		{
			"one is serious: the other is looked at again all the same", []client.Object{sick("dns", time.Hour), sick("etcd", 20*time.Second)},
			[]string{"etcd ClusterOperatorDegraded"}, []string{"dns ClusterOperatorDegraded"}, 40 * time.Second, v1beta1.HealthChecks{},
		},
		{
			"the next one to become serious decides", []client.Object{sick("dns", 10*time.Second), sick("etcd", 50*time.Second), sick("network", 30*time.Second)},
			[]string{"dns ClusterOperatorDegraded", "etcd ClusterOperatorDegraded", "network ClusterOperatorDegraded"}, nil, 10 * time.Second, v1beta1.HealthChecks{},
		},
		{
			"each condition has its own time", []client.Object{both(20*time.Second, time.Hour)},
			[]string{"dns ClusterOperatorNotAvailable"}, []string{"dns ClusterOperatorDegraded"}, 40 * time.Second, v1beta1.HealthChecks{},
		},
		{
			"there is little time to be healthy in", []client.Object{sick("dns", 4*time.Second), sick("etcd", 5*time.Second)},
			[]string{"dns ClusterOperatorDegraded"}, []string{"etcd ClusterOperatorDegraded"}, time.Second,
			v1beta1.HealthChecks{Timeout: &v1beta1.Duration{Duration: 10 * time.Second}},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got := examine(t, healthcheck.DegradedOperators(), healthcheck.Request{Config: tc.config, Cluster: cluster(tc.operators...)})
			var fresh, ripe []string
			for _, f := range got.Findings {
				what := strings.TrimPrefix(f.Object, "ClusterOperator/") + " " + f.Reason
				if f.Fresh {
					fresh = append(fresh, what)
				} else {
					ripe = append(ripe, what)
				}
			}
			if diff := cmp.Diff([][]string{tc.fresh, tc.ripe}, [][]string{fresh, ripe}); diff != "" {
				t.Errorf("those that are fresh, those that are not (-want +got):\n%s", diff)
			}
			if got.Recheck != tc.recheck {
				t.Errorf("to be looked at again after %s, want %s", got.Recheck, tc.recheck)
			}
		})
	}
}
