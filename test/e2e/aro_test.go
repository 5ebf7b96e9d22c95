// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// The upgrader ARO leaves three steps out. There is no machine to be added on a cluster that does not have the Machine API, which is told.
func TestAROUpgradesTheCluster(t *testing.T) {
	c := newCluster(t, withLateWorkers)
	r := c.aReceiver()
	c.startOperator()
	job := create(c, aJob(upgradedBy("ARO"), silencing(), reserving(time.Minute), commencingWithin(time.Second, time.Second), notifying(c.knownAs("stages", r, ofStages))))
	c.wait(job, succeeded(), withoutFinalizers())
	c.upgradedOnce(job)
	c.everyNodeRuns(offered)
	c.wentThrough(job, stepsOfARO)
	c.stagesTold(job, r, v1beta1.StageStarted, v1beta1.StageScaleSkipped, v1beta1.StageControlPlaneStarted, v1beta1.StageControlPlaneFinished,
		v1beta1.StageWorkersFinished, v1beta1.StageCompleted)
	c.silencedInItsWindows(job)
	c.nothingLeft(job)
}

// What has not commenced in the window of the job, of which upgradeWindow is no part here, is skipped.
func TestAROIsSkippedAfterItsHealthTimeout(t *testing.T) {
	c := newCluster(t, degraded("storage"))
	before := c.version()
	c.startOperator()
	job := create(c, aJob(upgradedBy("ARO"), silencing(), commencingWithin(time.Second, 0), attentive(givingUpAfter(3*time.Second))))
	c.wait(job, skippedFor(v1beta1.ReasonPreHealthCheckFailed), withoutFinalizers())
	c.notLaterThan("the end", c.when(job, inPhase(v1beta1.PhaseSkipped)), job.Status.StartTime.Add(3*time.Second), 2*promptness)
	c.nothingLeft(job)
	c.untouched(before)
}
