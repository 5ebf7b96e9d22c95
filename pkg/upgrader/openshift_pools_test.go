// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package upgrader_test

import (
	"slices"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/pkg/upgrader"
)

// Hours after the control plane, when the time of a pool has come, the cluster has to be fit for it. Machines that are on
// their way by then, of other pools, are what the night is for: they hold nothing up.
func TestOpenShiftReleasesPoolsOfAHealthyClusterOnly(t *testing.T) {
	const target = "4.18.2"
	all := upgrader.OpenShift().Steps()
	step := all[slices.IndexFunc(all, func(s steps.Step) bool { return s.Condition() == steps.ConditionDelayedPoolsUpgraded })]
	start := time.Date(2026, time.November, 24, 22, 0, 0, 0, time.UTC)
	broken := openshifttest.VersionCondition("Failing", configv1.ConditionTrue, "UpdatePayloadFailed", "a manifest cannot be applied")
	for _, tc := range []struct {
		reason   string
		version  func(*configv1.ClusterVersion)
		objects  []client.Object
		released bool
	}{
		{"all is well", nil, nil, true},
		{"other machines are on their way", nil, []client.Object{
			openshifttest.Pool("worker", openshifttest.PoolTowards(target, 1)),
			openshifttest.Node("worker-1", "worker", openshifttest.NodeRebooting("x"), openshifttest.NodeCondition(corev1.NodeReady, corev1.ConditionFalse, "KubeletNotReady", "gone")),
		}, true},
		{"an operator is degraded", nil, []client.Object{
			openshifttest.ClusterOperator("dns", openshifttest.OperatorCondition(configv1.OperatorDegraded, configv1.ConditionTrue, "Sick", "It is sick.")),
		}, false},
		{"the cluster-version operator fails", broken, nil, false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			job := &v1beta1.UpgradeJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "job"}}
			job.Spec.StartAfter = metav1.NewTime(start)
			job.Spec.DesiredVersion = &v1beta1.DesiredVersion{Version: target}
			job.Spec.Config.PostUpgradeHealthChecks.CheckCriticalAlerts = new(bool)
			job.Spec.Config.MachineConfigPools = []v1beta1.MachineConfigPoolConfig{{
				MatchLabels:  &v1beta1.PoolSelector{Labels: map[string]string{"night": ""}},
				DelayUpgrade: &v1beta1.DelayUpgrade{DelayMin: &v1beta1.Duration{Duration: time.Hour}},
			}}
			version := []func(*configv1.ClusterVersion){openshifttest.Desired(target), openshifttest.History(openshifttest.Completed(target), openshifttest.Completed("4.18.1"))}
			if tc.version != nil {
				version = append(version, tc.version)
			}
			cv := openshifttest.ClusterVersion(version...)
			night := openshifttest.Pool("night", openshifttest.PoolTowards(target, 0), openshifttest.PoolPausedBy("ns/job"), func(p *mcfgv1.MachineConfigPool) { p.Labels["night"] = "" })
			api := openshifttest.NewClientBuilder(openshift.NodeField, func(client.Object) []string { return nil }).WithObjects(append(tc.objects, job, cv, night)...).Build()
			cluster := openshift.NewCluster(api, api)
			live, err := cluster.LiveVersion(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			result := steps.Run(t.Context(), []steps.Step{step}, &steps.Upgrade{Job: job, Now: start.Add(2 * time.Hour), Cluster: cluster, Version: live})
			if result.Err != nil {
				t.Fatal(result.Err)
			}
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(night), night); err != nil {
				t.Fatal(err)
			}
			if released := !night.Spec.Paused; released != tc.released || (result.Reason == v1beta1.ReasonUnhealthy) == tc.released {
				t.Errorf("released %t, want %t: %+v", released, tc.released, result)
			}
		})
	}
}
