// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

func TestOperatorVersion(t *testing.T) {
	if got := openshift.OperatorVersion(openshifttest.ClusterOperator("dns", openshifttest.OperatorAt("4.18.2"))); got != "4.18.2" {
		t.Errorf("the version of the operator, not of its operands: got %q", got)
	}
	if got := openshift.OperatorVersion(&configv1.ClusterOperator{}); got != "" {
		t.Errorf("an operator that reports none: got %q", got)
	}
}

// An operator is as sick as the cluster-version operator takes it to be, which believes nothing but Available=True and
// Degraded=False.
func TestOperatorSickness(t *testing.T) {
	statuses := []configv1.ConditionStatus{configv1.ConditionTrue, configv1.ConditionFalse, configv1.ConditionUnknown, "", "absent"}
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
				var want, got []configv1.ClusterStatusConditionType
				if available != configv1.ConditionTrue {
					want = append(want, configv1.OperatorAvailable)
				}
				if degraded != configv1.ConditionFalse {
					want = append(want, configv1.OperatorDegraded)
				}
				for _, c := range openshift.OperatorSickness(co) {
					got = append(got, c.Type)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestOperatorExcluded(t *testing.T) {
	co := openshifttest.ClusterOperator("dns")
	for _, tc := range []struct {
		reason   string
		excluded []string
		want     bool
	}{
		{"nothing is excluded", nil, false},
		{"by its name", []string{"console", "dns"}, true},
		{"by a namespace of it", []string{"openshift-dns"}, true},
		{"another operator", []string{"console"}, false},
		{"a related object that is no namespace", []string{"cluster"}, false},
		{"names are not patterns", []string{"openshift-*", "dn"}, false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if got := openshift.OperatorExcluded(co, tc.excluded); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
