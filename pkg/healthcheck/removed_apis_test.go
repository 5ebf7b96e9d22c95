// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package healthcheck_test

import (
	"fmt"
	"strings"
	"testing"

	apiserverv1 "github.com/openshift/api/apiserver/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/healthcheck"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

const flowschemas = "flowschemas.v1beta3.flowcontrol.apiserver.k8s.io"

func usedBy(user, agent string) func(*apiserverv1.APIRequestCount) {
	return openshifttest.RequestsAt(3, "master-0", user, agent, 7)
}

func inUse(api, removed, target, kubernetes, by string) healthcheck.Finding {
	return healthcheck.Finding{
		Check: "RemovedAPIs", Object: "APIRequestCount/" + api, Reason: "RemovedAPIInUse",
		Message: fmt.Sprintf("API %s is removed in Kubernetes %s, %s has Kubernetes %s, and it was used in the last 24 hours by %s",
			api, removed, target, kubernetes, by),
		ClearsWhen: "nobody but ignored clients has used API " + api + " for 24 hours",
	}
}

func TestRemovedAPIs(t *testing.T) {
	const garbageCollector = "system:serviceaccount:kube-system:generic-garbage-collector"
	eve, collector := usedBy("eve", "kubectl/v1.28.2"), usedBy(garbageCollector, "kube-controller-manager/v1.31.5")
	unnamed := openshifttest.UnnamedRequestsAt(3, "master-0", 5)
	found := func(by string) healthcheck.Report {
		return healthcheck.Report{Findings: []healthcheck.Finding{inUse(flowschemas, "1.32", "4.19.0", "1.32", by)}, Recheck: maxAge}
	}
	noted := func(report healthcheck.Report, note string) healthcheck.Report {
		report.Notes = []string{note}
		return report
	}
	ignored := healthcheck.Report{Notes: []string{"requests for " + flowschemas + " are ignored: the garbage collector lists every API"}}

	for _, tc := range []struct {
		reason string
		target openshift.Release // 4.19.0 if empty
		config v1beta1.HealthChecks
		counts []client.Object
		want   healthcheck.Report
	}{
		{reason: "nobody uses it", counts: []client.Object{openshifttest.APIRequestCount(flowschemas, "1.32")}},
		{reason: "an API that stays", counts: []client.Object{openshifttest.APIRequestCount("pods.v1", "", eve)}},
		{reason: "an API that goes later", counts: []client.Object{openshifttest.APIRequestCount(flowschemas, "1.33", eve)}},
		{reason: "one that goes now", counts: []client.Object{openshifttest.APIRequestCount(flowschemas, "1.32", eve)}, want: found("eve (kubectl/v1.28.2)")},
		{
			reason: "versions are compared as numbers", counts: []client.Object{openshifttest.APIRequestCount(flowschemas, "1.9", eve), openshifttest.APIRequestCount("b", "1.100", eve)},
			want: healthcheck.Report{Findings: []healthcheck.Finding{inUse(flowschemas, "1.9", "4.19.0", "1.32", "eve (kubectl/v1.28.2)")}, Recheck: maxAge},
		},
		{
			reason: "each API, in order", counts: []client.Object{openshifttest.APIRequestCount("b", "1.32", eve), openshifttest.APIRequestCount("a", "1.29", eve)},
			want: healthcheck.Report{Findings: []healthcheck.Finding{
				inUse("a", "1.29", "4.19.0", "1.32", "eve (kubectl/v1.28.2)"), inUse("b", "1.32", "4.19.0", "1.32", "eve (kubectl/v1.28.2)"),
			}, Recheck: maxAge},
		},
		{
			reason: "in order of name, whoever asks more, and no more than five",
			counts: []client.Object{openshifttest.APIRequestCount(flowschemas, "1.32",
				usedBy("f", "x"), openshifttest.RequestsAt(3, "master-1", "e", "x", 10000), usedBy("d", "x"), usedBy("c", "x"), usedBy("b", "x"), usedBy("a", "x"))},
			want: found("a (x), b (x), c (x), d (x), e (x), other clients"),
		},
		{
			reason: "five are not too many",
			counts: []client.Object{openshifttest.APIRequestCount(flowschemas, "1.32", usedBy("e", "x"), usedBy("d", "x"), usedBy("c", "x"), usedBy("b", "x"), usedBy("a", "x"))},
			want:   found("a (x), b (x), c (x), d (x), e (x)"),
		},
		{reason: "and others", counts: []client.Object{openshifttest.APIRequestCount(flowschemas, "1.32", eve, unnamed)}, want: found("eve (kubectl/v1.28.2), other clients")},
		{reason: "others alone", counts: []client.Object{openshifttest.APIRequestCount(flowschemas, "1.32", unnamed)}, want: found("clients that the API server does not name")},
		{
			reason: "long agents are cut, and shown once",
			counts: []client.Object{openshifttest.APIRequestCount(flowschemas, "1.32", usedBy("eve", strings.Repeat("x", 100)+"1"), usedBy("eve", strings.Repeat("x", 100)+"2"))},
			want:   found("eve (" + strings.Repeat("x", 77) + "...)"),
		},

		{reason: "a client that is ignored", counts: []client.Object{openshifttest.APIRequestCount(flowschemas, "1.32", collector)}, want: ignored},
		{reason: "beside one that is not", counts: []client.Object{openshifttest.APIRequestCount(flowschemas, "1.32", collector, eve)}, want: found("eve (kubectl/v1.28.2)")},
		{reason: "beside one that is not named", counts: []client.Object{openshifttest.APIRequestCount(flowschemas, "1.32", collector, unnamed)}, want: found("clients that the API server does not name")},
		{reason: "an API that goes later is not worth a note", counts: []client.Object{openshifttest.APIRequestCount(flowschemas, "1.33", collector)}},

		{
			reason: "an older target", target: openshift.Release{Version: "4.17.9"}, counts: []client.Object{openshifttest.APIRequestCount(flowschemas, "1.31", eve)},
		},
		{
			reason: "the version of Kubernetes is configured", target: openshift.Release{Version: "5.0.1"}, config: v1beta1.HealthChecks{KubernetesVersion: "1.36"},
			counts: []client.Object{openshifttest.APIRequestCount("a", "1.36", eve), openshifttest.APIRequestCount("b", "1.37", eve)},
			want:   healthcheck.Report{Findings: []healthcheck.Finding{inUse("a", "1.36", "5.0.1", "1.36", "eve (kubectl/v1.28.2)")}, Recheck: maxAge},
		},
		{
			reason: "what is configured has become too low", config: v1beta1.HealthChecks{KubernetesVersion: "1.31"}, counts: []client.Object{openshifttest.APIRequestCount(flowschemas, "1.32", eve)},
			want: noted(found("eve (kubectl/v1.28.2)"), "kubernetesVersion is 1.31, but 4.19.0 has Kubernetes 1.32: the higher one counts"),
		},
		{
			reason: "what is configured is too high", config: v1beta1.HealthChecks{KubernetesVersion: "1.33"},
			counts: []client.Object{openshifttest.APIRequestCount("a", "1.33", eve), openshifttest.APIRequestCount("b", "1.34", eve)},
			want: noted(healthcheck.Report{Findings: []healthcheck.Finding{inUse("a", "1.33", "4.19.0", "1.33", "eve (kubectl/v1.28.2)")}, Recheck: maxAge},
				"kubernetesVersion is 1.33, but 4.19.0 has Kubernetes 1.32: the higher one counts"),
		},
		{
			reason: "what is configured is right", config: v1beta1.HealthChecks{KubernetesVersion: "1.32"}, counts: []client.Object{openshifttest.APIRequestCount(flowschemas, "1.32", eve)},
			want: found("eve (kubectl/v1.28.2)"),
		},
		{
			reason: "what is configured is wrong, and nobody uses anything", config: v1beta1.HealthChecks{KubernetesVersion: "1.31"},
			want: healthcheck.Report{Notes: []string{"kubernetesVersion is 1.31, but 4.19.0 has Kubernetes 1.32: the higher one counts"}},
		},
		{
			reason: "an image that is offered", target: openshift.Release{Image: openshifttest.Image("4.19.0")}, counts: []client.Object{openshifttest.APIRequestCount(flowschemas, "1.32", eve)},
			want: found("eve (kubectl/v1.28.2)"),
		},
		{
			reason: "an image that is offered, of a patch", target: openshift.Release{Image: openshifttest.Image("4.18.2")},
			counts: []client.Object{openshifttest.APIRequestCount(flowschemas, "1.31", eve)},
		},
		{
			reason: "an image, with the version of Kubernetes", target: openshift.Release{Image: "registry/a"}, config: v1beta1.HealthChecks{KubernetesVersion: "1.32"},
			counts: []client.Object{openshifttest.APIRequestCount(flowschemas, "1.32", eve)},
			want:   healthcheck.Report{Findings: []healthcheck.Finding{inUse(flowschemas, "1.32", "registry/a", "1.32", "eve (kubectl/v1.28.2)")}, Recheck: maxAge},
		},
		{reason: "a patch", target: openshift.Release{Version: "4.18.2"}, counts: []client.Object{openshifttest.APIRequestCount(flowschemas, "1.31", eve)}},
		{
			reason: "turned on explicitly", config: v1beta1.HealthChecks{CheckRemovedAPIs: new(true)}, counts: []client.Object{openshifttest.APIRequestCount(flowschemas, "1.32", eve)},
			want: found("eve (kubectl/v1.28.2)"),
		},
		{reason: "turned off", config: v1beta1.HealthChecks{CheckRemovedAPIs: new(false)}, counts: []client.Object{openshifttest.APIRequestCount(flowschemas, "1.32", eve)}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if tc.target == (openshift.Release{}) {
				tc.target.Version = "4.19.0"
			}
			expectReport(t, tc.want, examine(t, healthcheck.RemovedAPIs(), healthcheck.Request{
				Config: tc.config, Target: &tc.target, Version: openshifttest.ClusterVersion(openshifttest.Available("4.18.2", "4.19.0")), Cluster: cluster(tc.counts...),
			}))
		})
	}
}

func TestClientsOfRemovedAPIsThatAreIgnored(t *testing.T) {
	for _, tc := range []struct {
		user, agent string
		ignored     bool
	}{
		{"system:serviceaccount:kube-system:generic-garbage-collector", "kube-controller-manager/v1.31.5", true},
		{"system:serviceaccount:kube-system:namespace-controller", "kube-controller-manager/v1.31.5", true},
		{"system:kube-controller-manager", "kube-controller-manager/v1.31.5", true},
		{"system:kube-controller-manager", "cluster-policy-controller/v0.0.0 (linux/amd64) kubernetes/$Format", true},
		{"system:serviceaccount:openshift-infra:namespace-security-allocation-controller", "cluster-policy-controller/v0.0.0", true},
		{"system:cluster-policy-controller", "controller/v1", true},
		{"system:serviceaccount:openshift-adp:velero", "velero-server/v1.14.1 (linux/amd64) 8afe3ce", true},
		{"system:serviceaccount:velero:velero", "velero/v1.14.1", true},
		{"system:serviceaccount:openshift-insights:gather", "insights-operator/v0.0.0", true},

		{"system:serviceaccount:kube-system:generic-garbage-collector-2", "x", false},
		{"system:serviceaccount:shop:generic-garbage-collector", "x", false},
		{"system:serviceaccount:shop:web", "my-velero/1.0", false},
		{"system:serviceaccount:shop:web", "velerox/1.0", false},
		{"insights-operator/v0.0.0", "x", false},
		{"", "", false},
	} {
		t.Run(tc.user+" "+tc.agent, func(t *testing.T) {
			got := examine(t, healthcheck.RemovedAPIs(), healthcheck.Request{
				Target: &openshift.Release{Version: "4.19.0"}, Version: openshifttest.ClusterVersion(),
				Cluster: cluster(openshifttest.APIRequestCount(flowschemas, "1.32", usedBy(tc.user, tc.agent))),
			})
			if ignored := len(got.Findings) == 0; ignored != tc.ignored || len(got.Notes) == 0 == tc.ignored {
				t.Errorf("got %+v, want it ignored: %t", got, tc.ignored)
			}
		})
	}
}

func TestRemovedAPIsThatCannotBeTold(t *testing.T) {
	eve := usedBy("eve", "kubectl/v1.28.2")
	for _, tc := range []struct {
		reason string
		target openshift.Release
		config v1beta1.HealthChecks
		count  client.Object
		want   string
	}{
		{
			"a release whose Kubernetes is not known", openshift.Release{Version: "5.0.1"}, v1beta1.HealthChecks{}, openshifttest.APIRequestCount(flowschemas, "1.32", eve),
			"the Kubernetes version of 5.0.1 is not known: set preUpgradeHealthChecks.kubernetesVersion",
		},
		{
			"an image", openshift.Release{Image: "registry/a"}, v1beta1.HealthChecks{}, openshifttest.APIRequestCount(flowschemas, "1.32", eve),
			"the Kubernetes version of registry/a is not known: set preUpgradeHealthChecks.kubernetesVersion",
		},
		{
			"a version that cannot be parsed", openshift.Release{Version: "4.19.0"}, v1beta1.HealthChecks{KubernetesVersion: "new"}, openshifttest.APIRequestCount(flowschemas, "1.32", eve),
			`"new" is no minor version of Kubernetes such as 1.33`,
		},
		{
			"a removal that cannot be parsed", openshift.Release{Version: "4.19.0"}, v1beta1.HealthChecks{}, openshifttest.APIRequestCount(flowschemas, "soon", eve),
			"removedInRelease of APIRequestCount/" + flowschemas + `: "soon" is no minor version of Kubernetes such as 1.33`,
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got := examine(t, healthcheck.RemovedAPIs(), healthcheck.Request{
				Config: tc.config, Target: &tc.target, Version: openshifttest.ClusterVersion(), Cluster: cluster(tc.count),
			})
			expectReport(t, healthcheck.Report{Findings: []healthcheck.Finding{{
				Check: "RemovedAPIs", Reason: healthcheck.CodeUnanswered, Message: "RemovedAPIs cannot be answered: " + tc.want, ClearsWhen: "the check gets an answer",
			}}, Recheck: maxAge}, got)
		})
	}
}
