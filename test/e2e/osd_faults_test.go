// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/test/environment"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// holdingAll is a job of the upgrader OSD that makes everything that it can make for the time of an upgrade.
func (c *cluster) holdingAll() (job *v1beta1.UpgradeJob, expect func()) {
	c.t.Helper()
	before := c.nodeNames()
	r := c.aReceiver()
	recorder := c.recordSilences()
	job = aJob(upgradedBy("OSD"), silencing("KubeAPIDown"), reserving(time.Minute), forcingDrains(time.Minute, time.Minute, time.Minute),
		attentive(), notifying(c.knownAs("all", r)))
	return job, func() {
		c.t.Helper()
		c.wait(job, succeeded(), withoutFinalizers())
		c.upgradedOnce(job)
		c.everyNodeRuns(offered)
		c.wentThrough(job, stepsOfOSD)
		c.awaits(r, whole(job))
		c.stagesTold(job, r, v1beta1.StageStarted, v1beta1.StageControlPlaneStarted, v1beta1.StageControlPlaneFinished, v1beta1.StageWorkersFinished, v1beta1.StageCompleted)
		c.reserved(job, before, "worker")
		c.silencedInItsWindows(job)
		c.neverTwo(job, recorder)
		c.nothingLeft(job)
	}
}

// About every other write fails, in one way or another. Nothing is made twice, and nothing is left.
func TestEveryOtherWriteOfOSDFails(t *testing.T) {
	faults := []*environment.Fault{
		nil, nil, nil, nil,
		{Code: http.StatusInternalServerError}, {Code: http.StatusConflict}, {Commit: true, Code: http.StatusGatewayTimeout}, {Commit: true},
	}
	c := newClusterFor(t, 2*patience, withMachines, withLateWorkers)
	proxy := c.startProxy()
	c.startOperatorThrough(proxy)
	chance := rand.New(rand.NewPCG(3, 4))
	proxy.Interpose(func(int, environment.Write) *environment.Fault { return faults[chance.IntN(len(faults))] })
	job, expect := c.holdingAll()
	create(c, job)
	expect()
	if n := len(proxy.Writes()); n < 20 {
		t.Errorf("the proxy saw %d writes only", n)
	}
}

// The operator is killed again and again, at any moment. Nothing is made twice, and nothing is left.
func TestOSDIsKilledAtAnyMoment(t *testing.T) {
	c := newClusterFor(t, 2*patience, withMachines, withLateWorkers, func(s *sim.Scenario) {
		s.Timings.Operator = sim.Duration(150 * time.Millisecond)
		s.Timings.Reboot = sim.Duration(200 * time.Millisecond)
	})
	job, expect := c.holdingAll()
	running := c.startOperator()
	create(c, job)
	chance := rand.New(rand.NewPCG(5, 6))
	kills := 0
	for ; kills < 16; kills++ {
		c.until(time.Now().Add(time.Duration(chance.IntN(800)) * time.Millisecond))
		if c.get(job); check(job, succeeded(), withoutFinalizers()) == nil {
			break
		}
		running.Kill()
		running = c.startOperator()
	}
	t.Logf("the operator was killed %d times", kills)
	expect()
	if kills < 5 {
		t.Errorf("the operator was killed %d times only", kills)
	}
}
