// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"errors"
	"testing"

	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

func TestUntilCommenced(t *testing.T) {
	skip := steps.Skip("NotNow", "It is not the time.")
	for _, tc := range []struct {
		reason  string
		job     []jobOption
		version []versionOption
		over    bool
	}{
		{reason: "before: the step is judged", over: false},
		{reason: "the job recorded that the upgrade has commenced", job: []jobOption{commenced}, over: true},
		{
			reason: "the process ended between the write and the record of it", version: []versionOption{openshifttest.Desired(target)},
			job: []jobOption{begun(steps.ConditionUpgradeCommenced, 0)}, over: true,
		},
		{reason: "somebody else has asked for the same update", version: []versionOption{openshifttest.Desired(target)}, over: false},
		{reason: "another update is desired", version: []versionOption{openshifttest.Desired("4.18.3")}, over: false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, newJob(tc.job...), openshifttest.ClusterVersion(tc.version...))
			step, want := steps.UntilCommenced(never(t, "Preflight")), steps.Completed
			if !tc.over {
				step, want = steps.UntilCommenced(answering(t, "Preflight", skip)), steps.Skipped
			}
			if got := step.Condition(); got != "Preflight" {
				t.Errorf("condition: got %s", got)
			}
			if result := w.pass(step); result.Outcome != want {
				t.Errorf("got %+v, want outcome %d", result, want)
			}
		})
	}
	t.Run("an error of the step is handed on", func(t *testing.T) {
		broken := errors.New("on fire")
		w := newWorld(t, newJob(), openshifttest.ClusterVersion())
		if result := w.pass(steps.UntilCommenced(failing(t, "Preflight", broken))); !errors.Is(result.Err, broken) {
			t.Errorf("got %+v", result)
		}
	})
}
