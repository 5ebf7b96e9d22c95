// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// Machines that do not become ready are waited for until the timeout, each in its own way, and then gone without. That is told. None of
// them is left in the end.
func TestUpgradeGoesOnWithoutMachinesThatDoNotCome(t *testing.T) {
	const timeOut = 3 * time.Second
	for name, tt := range map[string]struct {
		fault sim.MachineSetFault
		words string
		made  int
	}{
		"stays provisioning": {sim.MachineSetFault{StaysProvisioning: true}, "phase Provisioning", 1},
		"fails":              {sim.MachineSetFault{Fails: "the quota is used up"}, "the quota is used up", 1},
		"is not ready":       {sim.MachineSetFault{StaysNotReady: true}, "not ready", 1},
		"is refused":         {sim.MachineSetFault{Refused: "no more machines in this account"}, "no more machines in this account", 0},
	} {
		t.Run(name, func(t *testing.T) {
			tt.fault.Name = "*-upgrade-*"
			c := newCluster(t, withMachines, machineFault(tt.fault))
			before := c.nodeNames()
			r := c.aReceiver()
			c.startOperator()
			job := create(c, aJob(upgradedBy("OSD"), silencing(), reserving(timeOut), notifying(c.knownAs("stages", r, ofStages))))
			c.wait(job, succeeded(), withoutFinalizers(), done(capacityReserved), saying(capacityReserved, tt.words))
			c.when(job, waitingIn(capacityReserved, v1beta1.ReasonCapacityScaling), blockers(1))
			if n := len(c.setRequests("create")); n != tt.made {
				t.Errorf("%d MachineSets were made, want %d", n, tt.made)
			}
			step := stepOf(t, job, capacityReserved)
			c.notLaterThan("the end of the wait", step.CompletionTime.Time, step.StartTime.Time, timeOut+2*time.Second) // whole seconds
			if waited := step.CompletionTime.Sub(step.StartTime.Time); waited < timeOut-time.Second {
				t.Errorf("the step waited for %s, want %s", waited, timeOut)
			}
			c.stagesTold(job, r, v1beta1.StageStarted, v1beta1.StageSkipped, v1beta1.StageControlPlaneStarted, v1beta1.StageControlPlaneFinished,
				v1beta1.StageWorkersFinished, v1beta1.StageCompleted)
			c.nothingLeft(job)
			c.upgradedOnce(job)
			if after := c.nodeNames(); !slices.Equal(before, after) {
				t.Errorf("the nodes are %v, were %v", after, before)
			}
		})
	}
}

// A cluster that has the Machine API, and no MachineSet, gets no machine either.
func TestUpgradeOfAClusterWithoutMachineSets(t *testing.T) {
	c := newCluster(t, func(s *sim.Scenario) { s.MachineAPI = &sim.MachineAPI{NoMachineSets: true} })
	r := c.aReceiver()
	c.startOperator()
	job := create(c, aJob(upgradedBy("ARO"), reserving(time.Minute), notifying(c.knownAs("stages", r, v1beta1.NotificationFilter(v1beta1.NotificationUpgradeScaleSkipped)))))
	c.wait(job, succeeded(), withoutFinalizers())
	c.awaits(r, atLeast(1), onceEach)
	if n := len(c.setRequests("create")); n > 0 {
		t.Errorf("%d MachineSets were made", n)
	}
}

// The extra machines go with the job: when it fails after it has commenced, and when it is deleted, before it has and after.
func TestMachinesGoWithTheJob(t *testing.T) {
	c := newCluster(t, withMachines, degraded("storage"))
	before := c.nodeNames()
	c.startOperator()
	reserved := func(name string, changes ...func(*v1beta1.UpgradeJob)) *v1beta1.UpgradeJob {
		return create(c, aJob(append(changes, named(name), upgradedBy("OSD"), silencing(), reserving(time.Minute), attentive())...))
	}
	ended := func(job *v1beta1.UpgradeJob) {
		t.Helper()
		c.nothingLeft(job)
		c.eventually("the nodes", func() error { return sameNames(before, c.nodeNames()) })
	}

	c.change(mended)
	c.change(func(s *sim.Scenario) { s.UpdatesUnknown = &sim.UpdatesUnknown{Reason: "RemoteFailed"} })
	early := c.wait(reserved("deleted-early"), waitingIn(commenced, v1beta1.ReasonUpdatesUnknown), done(capacityReserved))
	c.extraMachinesExist(1, 1)
	c.remove(early)
	c.gone(early)
	ended(early)

	c.change(func(s *sim.Scenario) { s.UpdatesUnknown = nil })
	c.change(stuck("network"))
	c.offers(offered)
	failing := c.wait(reserved("fails", timingOutAfter(6*time.Second)), done(commenced))
	c.extraMachinesExist(1, 1)
	c.wait(failing, failedFor(v1beta1.ReasonTimedOut), withoutFinalizers())
	ended(failing)
	c.change(mended)
	c.completed(offered)
	for _, pool := range []string{"master", "worker"} {
		c.pool(pool, updated)
	}

	// A resumed one finds the cluster through, and has nothing to reserve.
	c.resume(failing, "the network is mended")
	c.wait(failing, succeeded(), withoutFinalizers())
	ended(failing)
}

// The drain of an extra machine hangs: the job waits, and says for what. Alerts are silenced for as long.
func TestRemovalOfAMachineThatHangs(t *testing.T) {
	c := newCluster(t, withMachines, func(s *sim.Scenario) {
		all := intstr.FromString("100%")
		s.Workers.MaxUnavailable = &all
		s.Nodes = []sim.NodeFault{{Name: "worker-2", HangsDraining: true}}
	})
	before := c.nodeNames()
	c.startOperator()
	job := c.wait(create(c, aJob(upgradedBy("OSD"), silencing(), reserving(time.Minute))), done(commenced))
	extra := c.extraNodes(before...)
	if len(extra) != 1 {
		t.Fatalf("there are the extra nodes %v", extra)
	}
	c.nodeIs(extra[0].name, "Done", offered)
	web := c.runs(c.namespace(nil), "web", extra[0].name)
	budget := c.protect(web)
	c.change(func(s *sim.Scenario) { s.Nodes = nil })
	c.wait(job, waitingIn(capacityRemoved, v1beta1.ReasonCapacityRemoving), sayingInBlockers("web"))
	c.leftThere(web)
	if err := c.silenced(job, ofWorkers); err != nil {
		t.Error(err)
	}
	c.remove(budget)
	c.wait(job, succeeded(), withoutFinalizers())
	c.nothingLeft(job)
	c.upgradedOnce(job)
	if err := sameNames(before, c.nodeNames()); err != nil {
		t.Error(err)
	}
}
