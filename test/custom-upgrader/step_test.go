// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/pkg/upgrader"
)

func TestChangeApproved(t *testing.T) {
	api := openshifttest.NewClientBuilder(openshift.NodeField, func(client.Object) []string { return nil }).Build()
	start := time.Date(2030, time.June, 4, 22, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		reason, change string
		after          time.Duration
		want           steps.Outcome
	}{
		{"not yet", "", 0, steps.Running},
		{"approved", "CHG-7", 0, steps.Completed},
		{"too late", "", time.Hour, steps.Skipped},
	} {
		job := &v1beta1.UpgradeJob{}
		job.Spec.StartBefore.Time, job.Annotations = start, map[string]string{approvedBy: tc.change}
		job.Status.StartTime = &job.Spec.StartBefore
		u := &steps.Upgrade{Job: job, Now: start.Add(tc.after), Cluster: openshift.NewCluster(api, api), Version: openshifttest.ClusterVersion()}
		if got := steps.Run(t.Context(), []steps.Step{ChangeApproved(approvedBy)}, u); got.Outcome != tc.want {
			t.Errorf("%s: got %+v", tc.reason, got)
		}
	}
	if err := upgrader.NewCatalogue().Add(changeApprovedEntry()); err != nil {
		t.Error(err)
	}
}
