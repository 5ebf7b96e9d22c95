// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// The whole way, as a user has it: a schedule, a pinned version, an upgrade at its minute, nobody awake.
func TestUpgradeByCron(t *testing.T) {
	c := newClusterFor(t, 2*patience, func(s *sim.Scenario) {
		s.Updates = []sim.OfferedUpdate{
			{Version: "4.18.9"}, {Version: "4.18.10"},
			{Version: "4.18.11", Risks: []sim.Risk{{Name: "DataLoss", Message: "Data may be lost.", Applies: sim.AppliesYes}}},
		}
	})
	// What an earlier update, by hand, may have left.
	edit(c, c.version(), func(cv *configv1.ClusterVersion) {
		cv.Spec.DesiredUpdate = &configv1.Update{Version: installed, Force: true, Architecture: configv1.ClusterVersionArchitectureMulti}
	})
	c.fromNowOn()
	before := c.version()
	c.startOperator()

	// The pin leaves a few seconds to see that the job is not created before its time.
	const pin = 5 * time.Second
	start := time.Now().Add(pin + 5*time.Second).Truncate(time.Minute).Add(time.Minute)
	config := create(c, aConfig(func(config *v1beta1.UpgradeConfig) {
		config.Spec.Schedule.Cron = start.UTC().Format("4 15 * * *")
		config.Spec.PinVersionWindow = duration(pin)
		config.Spec.JobTemplate.Metadata.Labels = map[string]string{"team": "night"}
	}))
	c.waitConfig(config, v1beta1.ConditionReady, metav1.ConditionTrue, v1beta1.ReasonValid)
	c.waitConfig(config, v1beta1.ConditionScheduling, metav1.ConditionTrue, v1beta1.ReasonScheduled,
		start.Add(-pin).UTC().Format(time.RFC3339), start.UTC().Format(time.RFC3339))
	if got := config.Status.NextPossibleSchedules; len(got) != 10 || !got[0].Time.Equal(start) {
		t.Errorf("the next starts are %v, want ten from %s on", got, start)
	}

	job := c.jobOf(config)
	c.promptly("the creation of the job", c.when(job), start.Add(-pin))
	if got := job.Spec.DesiredVersion; got == nil || got.Version != "4.18.10" || got.Image != sim.Image("4.18.10") {
		t.Errorf("the job is pinned to %+v, want 4.18.10 with its image", got)
	}
	if !job.Spec.StartAfter.Time.Equal(start) || !job.Spec.StartBefore.Time.Equal(start.Add(time.Hour)) {
		t.Errorf("the job may start from %s to %s, want the hour from %s", job.Spec.StartAfter, job.Spec.StartBefore, start)
	}
	if job.Labels["team"] != "night" {
		t.Errorf("the labels of the template are missing: %v", job.Labels)
	}
	c.wait(job, notStarted(v1beta1.ReasonWaitingForStart))

	c.wait(job, succeeded())
	c.promptly("the start", job.Status.StartTime.Time, start)
	c.promptly("the write of desiredUpdate", c.versionPatches()[0].RequestReceivedTimestamp.Time, start)
	if job.Status.FromVersion != installed {
		t.Errorf("fromVersion is %q", job.Status.FromVersion)
	}
	c.upgradedOnce(job)
	if got := len(c.versionPatches()); got != 2 {
		t.Errorf("ClusterVersion was patched %d times, want two: the desired update with the lock, and the release of the lock", got)
	}
	after := c.version()
	want := before.DeepCopy().Spec
	want.DesiredUpdate = &configv1.Update{Version: "4.18.10", Image: sim.Image("4.18.10")}
	if diff := cmp.Diff(want, after.Spec); diff != "" {
		t.Errorf("the spec of ClusterVersion (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before.Annotations, after.Annotations); diff != "" {
		t.Errorf("the annotations of ClusterVersion (-want +got):\n%s", diff)
	}
	c.waitConfig(config, v1beta1.ConditionScheduling, metav1.ConditionTrue, v1beta1.ReasonScheduled)
	if got := config.Status.LastScheduledUpgrade; got == nil || !got.Time.Equal(start) {
		t.Errorf("lastScheduledUpgrade is %v, want %s", got, start)
	}
}
