// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/utils/ptr"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

func TestUpdateAvailable(t *testing.T) {
	const unknown = "UpdatesNotRetrieved ClusterVersion/version"
	notRetrieved := openshifttest.VersionCondition(configv1.RetrievedUpdates, configv1.ConditionFalse, "RemoteFailed", "no route to host")
	mirrored := func(job *v1beta1.UpgradeJob) { job.Spec.DesiredVersion.Image = "mirror.example.com/release@sha256:0" }

	for _, tc := range []stepCase{
		{
			reason: "it is offered",
			want:   verdict{outcome: steps.Completed, reason: "Completed", says: "4.18.2 is an available update"},
		},
		{
			reason: "by its version", job: []jobOption{byVersion},
			want: verdict{outcome: steps.Completed, reason: "Completed", says: "4.18.2 is an available update"},
		},
		{
			reason: "by its image", job: []jobOption{byImage},
			want: verdict{outcome: steps.Completed, reason: "Completed", says: "is an available update"},
		},
		{
			reason: "among the updates that are kept while the update server is away", version: []versionOption{notRetrieved},
			want: verdict{outcome: steps.Completed, reason: "Completed", says: "4.18.2 is an available update"},
		},
		{
			reason: "withdrawn: other updates are offered", version: []versionOption{openshifttest.Available("4.18.3")},
			want: verdict{outcome: steps.Skipped, reason: v1beta1.ReasonUpgradeWithdrawn, says: "4.18.2 is not an available update any more."},
		},
		{
			reason: "withdrawn: no update is offered", version: []versionOption{openshifttest.Available()},
			want: verdict{outcome: steps.Skipped, reason: v1beta1.ReasonUpgradeWithdrawn, says: "4.18.2 is not an available update any more."},
		},
		{
			reason: "another image of the version is another release", job: []jobOption{mirrored},
			want: verdict{outcome: steps.Skipped, reason: v1beta1.ReasonUpgradeWithdrawn, says: "4.18.2"},
		},
		{
			reason: "a risk applies: it is not recommended any more",
			version: []versionOption{
				openshifttest.Available("4.18.3"), openshifttest.Conditional("4.18.4", "False", "Other", "..."),
				openshifttest.Conditional(target, "False", "PodsLoseNetwork", "Pods lose their network."),
			},
			want: verdict{
				outcome: steps.Skipped, reason: v1beta1.ReasonUpgradeWithdrawn,
				says: "only a conditional one (PodsLoseNetwork: Pods lose their network.)",
			},
		},
		{
			reason: "whether a risk applies cannot be told",
			version: []versionOption{
				openshifttest.Available(), openshifttest.Conditional(target, "Unknown", "EvaluationFailed", "Prometheus is away."),
			},
			want: verdict{outcome: steps.Skipped, reason: v1beta1.ReasonUpgradeWithdrawn, says: "EvaluationFailed: Prometheus is away."},
		},
		{
			reason:  "a risk that does not apply: in both lists",
			version: []versionOption{openshifttest.Conditional(target, "True", "NotExposedToRisks", "")},
			want:    verdict{outcome: steps.Completed, reason: "Completed", says: "4.18.2 is an available update"},
		},
		{
			reason: "the updates are not known: it may come back within the window", version: []versionOption{openshifttest.Available(), notRetrieved}, after: 10 * time.Minute,
			want: verdict{
				outcome: steps.Running, reason: v1beta1.ReasonUpdatesUnknown, after: 50 * time.Minute,
				blockers: []string{unknown}, says: "RemoteFailed: no route to host",
			},
		},
		{
			reason: "they were never asked for", version: []versionOption{openshifttest.Available(), openshifttest.NoVersionCondition(configv1.RetrievedUpdates)},
			want: verdict{
				outcome: steps.Running, reason: v1beta1.ReasonUpdatesUnknown, after: time.Hour,
				blockers: []string{unknown}, says: "it has not asked for them yet",
			},
		},
		{
			reason: "a moment before the end of the window", version: []versionOption{openshifttest.Available(), notRetrieved}, after: time.Hour - time.Millisecond,
			want: verdict{
				outcome: steps.Running, reason: v1beta1.ReasonUpdatesUnknown, after: time.Millisecond, blockers: []string{unknown},
			},
		},
		{
			reason: "not known until the end of the window", version: []versionOption{openshifttest.Available(), notRetrieved}, after: time.Hour,
			want: verdict{outcome: steps.Skipped, reason: v1beta1.ReasonUpgradeWithdrawn, says: "cannot be told"},
		},
		{
			reason:  "nobody wants to know",
			job:     []jobOption{func(job *v1beta1.UpgradeJob) { job.Spec.DesiredVersionCheckAvailability = ptr.To(false) }},
			version: []versionOption{openshifttest.Available()},
			want:    verdict{outcome: steps.Completed, reason: "Completed", says: "desiredVersionCheckAvailability is false"},
		},
		{
			reason:  "wanted explicitly",
			job:     []jobOption{func(job *v1beta1.UpgradeJob) { job.Spec.DesiredVersionCheckAvailability = ptr.To(true) }},
			version: []versionOption{openshifttest.Available()},
			want:    verdict{outcome: steps.Skipped, reason: v1beta1.ReasonUpgradeWithdrawn, says: "not an available update any more"},
		},
		{
			reason: "a job without a version", job: []jobOption{withoutVersion}, version: []versionOption{openshifttest.Available()},
			want: verdict{outcome: steps.Completed, reason: "Completed", says: "no version"},
		},
		{
			reason:  "what runs is not offered, and need not be",
			version: []versionOption{openshifttest.History(openshifttest.Completed(target)), openshifttest.Available()},
			want:    verdict{outcome: steps.Completed, reason: "Completed", says: "runs 4.18.2 already"},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) { tc.run(t, steps.UpdateAvailable()) })
	}
}
