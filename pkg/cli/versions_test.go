// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	o "github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

func TestVersions(t *testing.T) {
	risk := func(cv *configv1.ClusterVersion) {
		cv.Status.ConditionalUpdates[0].Risks = []configv1.ConditionalUpdateRisk{
			{Name: "DualStackLeak", Message: "On dual stack clusters routes leak.", URL: "https://example.com/leak"},
		}
	}
	toVersion := func(version string) func(*v1beta1.UpgradeJob) {
		return func(job *v1beta1.UpgradeJob) {
			job.Spec.DesiredVersion = &v1beta1.DesiredVersion{Version: version, Image: o.Image(version)}
		}
	}
	for _, tc := range []struct {
		name string
		cv   *configv1.ClusterVersion
		jobs []*v1beta1.UpgradeJob
	}{
		{"conditional", o.ClusterVersion(o.Available("4.18.2", "4.18.10", "4.19.0-rc.1"),
			o.Conditional("4.18.12", metav1.ConditionFalse, "DualStackLeak", "On dual stack clusters routes leak."), risk,
			o.Conditional("4.18.11", metav1.ConditionUnknown, "EvaluationFailed", "Prometheus does not answer."),
			o.Conditional("4.18.10", metav1.ConditionTrue, "AsExpected", "The risk does not apply.")),
			[]*v1beta1.UpgradeJob{upgradeJob(toVersion("4.18.2")), upgradeJob(jobNamed("other", time.Hour), toVersion("4.18.2"))}},
		{"withdrawn", o.ClusterVersion(o.Available()), []*v1beta1.UpgradeJob{upgradeJob(),
			upgradeJob(jobNamed("past", -time.Hour), toVersion("4.18.3"), finished(v1beta1.Skipped("X", ""), 0))}},
		{"unknown", o.ClusterVersion(o.Available(), o.VersionCondition(configv1.RetrievedUpdates, configv1.ConditionFalse, "RemoteFailed", "the update service does not answer")), nil},
		{"updating", updating("Working towards 4.18.2: 1 of 842 done (0% complete)"), nil},
		{"refused", o.ClusterVersion(o.Desired("4.18.9"), o.Available("4.18.2")), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			objects := cluster()[1:]
			objects = append(objects, tc.cv)
			for _, job := range tc.jobs {
				objects = append(objects, job)
			}
			c := world(objects...).Build()
			for _, format := range []string{"", "wide", "json"} {
				args := []string{"versions"}
				if format != "" {
					args = append(args, "-o", format)
				}
				out, errOut, status := runTool(t, c, window.Add(-time.Hour), args...)
				if status != ExitOK || errOut != "" {
					t.Errorf("exit status %d, %s", status, errOut)
				}
				golden(t, "look/versions/"+tc.name+"."+format+".txt", out)
			}
		})
	}
}
