// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift_test

import (
	"testing"

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
