// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift_test

import (
	"errors"
	"path"
	"strings"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

func TestMachinePoolsSelect(t *testing.T) {
	temporary := func(value string) func(*machinev1beta1.MachineSet) {
		return func(s *machinev1beta1.MachineSet) { s.Labels["upgrade.managed.openshift.io"] = value }
	}
	deleted := func(s *machinev1beta1.MachineSet) { s.DeletionTimestamp = new(metav1.NewTime(now)) }
	for _, tc := range []struct {
		reason   string
		patterns []string
		set      []func(*machinev1beta1.MachineSet)
		want     bool
	}{
		{"of the pool worker", nil, nil, true},
		{"of another", nil, []func(*machinev1beta1.MachineSet){openshifttest.MachinePool("infra")}, false},
		{"of one that is named", []string{"db", "infra"}, []func(*machinev1beta1.MachineSet){openshifttest.MachinePool("infra")}, true},
		{"of one that matches", []string{"in*"}, []func(*machinev1beta1.MachineSet){openshifttest.MachinePool("infra")}, true},
		{"of one that matches in part", []string{"in"}, []func(*machinev1beta1.MachineSet){openshifttest.MachinePool("infra")}, false},
		{"of none", []string{"*"}, []func(*machinev1beta1.MachineSet){openshifttest.MachinePool("")}, false},
		{"for the time of an upgrade", []string{"*"}, []func(*machinev1beta1.MachineSet){temporary("true")}, false},
		{"not so any more", nil, []func(*machinev1beta1.MachineSet){temporary("false")}, true},
		{"going", nil, []func(*machinev1beta1.MachineSet){deleted}, false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			pools, err := openshift.ParseMachinePools(tc.patterns)
			if err != nil {
				t.Fatal(err)
			}
			if got := pools.Select(openshifttest.MachineSet("prod-a", tc.set...)); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

func TestParseMachinePoolsNamesWhatIsWrong(t *testing.T) {
	if _, err := openshift.ParseMachinePools([]string{"gpu-*", "a[", "b["}); !errors.Is(err, path.ErrBadPattern) || !strings.Contains(err.Error(), `"a["`) {
		t.Errorf("got %v", err)
	}
}
