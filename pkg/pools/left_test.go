// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package pools_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/pools"
)

func TestLeft(t *testing.T) {
	job := func(name string, phase v1beta1.Phase, finalizers ...string) v1beta1.UpgradeJob {
		return v1beta1.UpgradeJob{
			ObjectMeta: metav1.ObjectMeta{Namespace: "upgrades", Name: name, Finalizers: finalizers}, Status: v1beta1.UpgradeJobStatus{Phase: phase},
		}
	}
	jobs := []v1beta1.UpgradeJob{
		job("runs", v1beta1.PhaseActive), job("over", v1beta1.PhaseFailed), job("ending", v1beta1.PhaseFailed, v1beta1.UpgradeJobFinalizer),
	}
	for _, tc := range []struct {
		reason, holder, namespace string
		want                      bool
	}{
		{"a job that runs", "upgrades/runs", "", false},
		{"a job that has ended", "upgrades/over", "", true},
		{"a job that has ended, and gives back what it held", "upgrades/ending", "", false},
		{"a job that is gone", "upgrades/gone", "", true},
		{"a job that is gone from the one namespace that is known", "upgrades/gone", "upgrades", true},
		{"a job of another namespace than is known", "elsewhere/over", "upgrades", false},
		{"a job of that name elsewhere", "elsewhere/runs", "", true},
		{"what is no job", "somebody", "", false},
		{"nobody", "", "", false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if got := pools.Left(tc.holder, jobs, tc.namespace); got != tc.want {
				t.Errorf("left is %t, want %t", got, tc.want)
			}
		})
	}
}
