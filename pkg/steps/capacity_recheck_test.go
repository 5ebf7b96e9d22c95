// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"context"
	"testing"
	"time"

	"github.com/golang/mock/gomock"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/healthcheck"
	"github.com/appuio/managed-upgrade-operator/pkg/healthcheck/mocks"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// A node that joins is not ready at first. That holds up nothing but the step that waits for it; once it is there the cluster has to be healthy again.
func TestHealthIsJudgedOnceExtraMachinesAreReady(t *testing.T) {
	w := newMachineWorld(t, newJob(capacity()), openshifttest.MachineSet("prod-a"))
	sick := false
	check := mocks.NewMockCheck(gomock.NewController(t))
	check.EXPECT().Name().Return("Nodes").AnyTimes()
	check.EXPECT().Run(gomock.Any(), gomock.Any()).DoAndReturn(func(context.Context, healthcheck.Request) (healthcheck.Report, error) {
		if sick {
			return healthcheck.Report{Findings: []healthcheck.Finding{finding("Node/new")}}, nil
		}
		return healthcheck.Report{}, nil
	}).AnyTimes()
	list := []steps.Step{steps.ClusterHealthyBeforeUpgrade(check), steps.ComputeCapacityReserved()}
	pass := func(after time.Duration, healthy, capacity string) {
		t.Helper()
		w.now = start.Add(after)
		u := w.upgrade()
		result := steps.Run(t.Context(), list, u)
		if err := u.Persist(t.Context()); err != nil || result.Err != nil {
			t.Fatal(err, result.Err)
		}
		for condition, want := range map[string]string{steps.ConditionClusterHealthyBeforeUpgrade: healthy, steps.ConditionComputeCapacityReserved: capacity} {
			if c := meta.FindStatusCondition(w.job().Status.Conditions, condition); c == nil || c.Reason != want || (c.Status == metav1.ConditionTrue) != (want == "Completed") {
				t.Errorf("after %s: got %+v, want reason %s", after, c, want)
			}
		}
	}
	pass(0, "Completed", v1beta1.ReasonCapacityScaling)
	sick = true
	pass(time.Minute, "Completed", v1beta1.ReasonCapacityScaling)
	w.comes(extraA)
	pass(2*time.Minute, "Completed", v1beta1.ReasonCapacityReady)
	pass(2*time.Minute+time.Second, v1beta1.ReasonUnhealthy, v1beta1.ReasonCapacityReady)
	sick = false
	pass(3*time.Minute, "Completed", "Completed")
}
