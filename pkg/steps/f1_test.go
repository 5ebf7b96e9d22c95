// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"testing"
	"time"

	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
)

// A job that waits for its channel has not commenced, whatever somebody else asks the cluster for meanwhile.
func TestF1WhoWaitsForAChannelHasNotCommenced(t *testing.T) {
	w := newStageWorld(t, newJob(inChannel("eus-4.18")), openshifttest.ClusterVersion(openshifttest.Available()))
	step := steps.IfOffered(steps.UpgradeCommenced())
	w.pass(0, steps.UntilCommenced(answering(t, "Preflight", isDone)), step) // sets the channel, and waits
	w.update(openshifttest.Desired(target))                               // by hand
	result := w.pass(time.Minute, steps.UntilCommenced(answering(t, "Preflight", waiting)), step)
	if result.Outcome != steps.Running || result.Reason != "Busy" {
		t.Errorf("got %+v, want the preflight to be judged", result)
	}
}
