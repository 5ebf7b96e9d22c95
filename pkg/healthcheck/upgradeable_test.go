// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package healthcheck_test

import (
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/healthcheck"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

func TestUpgradeable(t *testing.T) {
	operator := func(name string, status configv1.ConditionStatus) client.Object {
		return openshifttest.ClusterOperator(name, openshifttest.OperatorCondition(configv1.OperatorUpgradeable, status, "OldAPI", "Migrate first."))
	}
	refuses := func(name, target string) healthcheck.Finding {
		return healthcheck.Finding{
			Check: "Upgradeable", Object: "ClusterOperator/" + name, Reason: "ClusterOperatorNotUpgradeable",
			Message:    "ClusterOperator " + name + " is not upgradeable to " + target + " (OldAPI): Migrate first.",
			ClearsWhen: "ClusterOperator " + name + " does not report Upgradeable=False any more",
		}
	}
	versionRefuses := openshifttest.VersionCondition(configv1.OperatorUpgradeable, configv1.ConditionFalse, "AdminAckRequired", "Kubernetes 1.32 removes APIs.")
	refusal := healthcheck.Finding{
		Check: "Upgradeable", Object: "ClusterVersion/version", Reason: "ClusterVersionNotUpgradeable",
		Message:    "ClusterVersion is not upgradeable to 4.19.0 (AdminAckRequired): Kubernetes 1.32 removes APIs.",
		ClearsWhen: "ClusterVersion does not report Upgradeable=False any more",
	}
	minor := openshift.Release{Version: "4.19.0"}

	for _, tc := range []struct {
		reason    string
		config    v1beta1.HealthChecks
		target    *openshift.Release
		version   []func(*configv1.ClusterVersion)
		operators []client.Object
		want      []healthcheck.Finding
	}{
		{reason: "nobody says anything", target: &minor, operators: []client.Object{openshifttest.ClusterOperator("dns")}},
		{reason: "nothing against it", target: &minor, operators: []client.Object{operator("dns", configv1.ConditionTrue), operator("etcd", configv1.ConditionUnknown)}},
		{
			reason: "ClusterVersion is against it", target: &minor, version: []func(*configv1.ClusterVersion){versionRefuses}, want: []healthcheck.Finding{refusal},
		},
		{
			reason: "each one that is against it, in order", target: &minor, version: []func(*configv1.ClusterVersion){versionRefuses},
			operators: []client.Object{operator("network", configv1.ConditionFalse), operator("dns", configv1.ConditionFalse), operator("etcd", configv1.ConditionTrue)},
			want:      []healthcheck.Finding{refuses("dns", "4.19.0"), refuses("network", "4.19.0"), refusal},
		},
		{
			reason: "another major version", target: &openshift.Release{Version: "5.18.1"}, operators: []client.Object{operator("dns", configv1.ConditionFalse)},
			want: []healthcheck.Finding{refuses("dns", "5.18.1")},
		},
		{
			reason: "an image of which the version is not known", target: &openshift.Release{Image: "registry/a"}, operators: []client.Object{operator("dns", configv1.ConditionFalse)},
			want: []healthcheck.Finding{refuses("dns", "registry/a")},
		},
		{
			reason: "an image that is offered", target: &openshift.Release{Image: openshifttest.Image("4.19.0")}, version: []func(*configv1.ClusterVersion){openshifttest.Available("4.18.2", "4.19.0")},
			operators: []client.Object{operator("dns", configv1.ConditionFalse)}, want: []healthcheck.Finding{refuses("dns", "4.19.0")},
		},
		{
			reason: "an image that is offered, of a patch", target: &openshift.Release{Image: openshifttest.Image("4.18.2")}, version: []func(*configv1.ClusterVersion){openshifttest.Available("4.18.2", "4.19.0")},
			operators: []client.Object{operator("dns", configv1.ConditionFalse)},
		},
		{
			reason: "a patch", target: &openshift.Release{Version: "4.18.2"}, version: []func(*configv1.ClusterVersion){versionRefuses},
			operators: []client.Object{operator("dns", configv1.ConditionFalse)},
		},
		{
			reason: "a patch of what runs, not of what is desired", target: &openshift.Release{Version: "4.18.2"},
			version:   []func(*configv1.ClusterVersion){openshifttest.History(openshifttest.Abandoned("4.19.0"), openshifttest.Completed("4.18.1"))},
			operators: []client.Object{operator("dns", configv1.ConditionFalse)},
		},
		{reason: "no upgrade", version: []func(*configv1.ClusterVersion){versionRefuses}, operators: []client.Object{operator("dns", configv1.ConditionFalse)}},
		{
			reason: "exclusions do not help: OpenShift does not know them", config: v1beta1.HealthChecks{ExcludeOperators: []string{"dns"}}, target: &minor,
			operators: []client.Object{operator("dns", configv1.ConditionFalse)}, want: []healthcheck.Finding{refuses("dns", "4.19.0")},
		},
		{
			reason: "turned on explicitly", config: v1beta1.HealthChecks{CheckUpgradeable: new(true)}, target: &minor,
			version: []func(*configv1.ClusterVersion){versionRefuses}, want: []healthcheck.Finding{refusal},
		},
		{
			reason: "turned off", config: v1beta1.HealthChecks{CheckUpgradeable: new(false)}, target: &minor,
			version: []func(*configv1.ClusterVersion){versionRefuses}, operators: []client.Object{operator("dns", configv1.ConditionFalse)},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got := examine(t, healthcheck.Upgradeable(), healthcheck.Request{
				Config: tc.config, Target: tc.target, Version: openshifttest.ClusterVersion(tc.version...), Cluster: cluster(tc.operators...),
			})
			expectReport(t, healthcheck.Report{Findings: tc.want}, got)
		})
	}
}
