// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// Machines do not become ready, each for a reason of its own. They are waited for until the timeout, and then done without: that is told, with
// the reasons, and none of them is there any more when the upgrade commences.
func TestUpgradeGoesOnWithoutMachinesThatDoNotCome(t *testing.T) {
	const (
		timeOut = 3 * time.Second
		removal = 5 * time.Second
	)
	faults := []sim.MachineSetFault{
		{Name: "pending-upgrade-*", StaysProvisioning: true},
		{Name: "broken-upgrade-*", Fails: "the quota is used up"},
		{Name: "refused-upgrade-*", Refused: "no more machines in this account"},
		{Name: "unready-upgrade-*", StaysNotReady: true},
	}
	c := newCluster(t, withMachines, func(s *sim.Scenario) {
		s.Workers.Size = len(faults)
		s.MachineAPI.Faults = faults
		for _, fault := range faults {
			s.MachineAPI.MachineSets = append(s.MachineAPI.MachineSets, sim.InstalledMachineSet{
				Name: strings.TrimSuffix(fault.Name, "-upgrade-*"), Labels: map[string]string{machinePool: "worker"}, Replicas: new(1),
			})
		}
	})
	before := c.nodeNames()
	r := c.aReceiver()
	c.startOperator()
	job := create(c, aJob(upgradedBy("OSD"), silencing(), reserving(timeOut), notifying(c.knownAs("stages", r, ofStages))))
	c.wait(job, done(commenced))
	if sets, machines := c.extraMachines(); len(sets)+len(machines) > 0 {
		t.Errorf("the upgrade commences with %v and %v", sets, machines)
	}
	c.wait(job, succeeded(), withoutFinalizers(), done(capacityReserved), saying(capacityReserved, "without"))
	c.when(job, waitingIn(capacityReserved, v1beta1.ReasonCapacityScaling), blockers(len(faults)))
	c.when(job, waitingIn(capacityReserved, v1beta1.ReasonCapacityScaling), saying(capacityReserved, "phase Provisioning", "the quota is used up",
		"no more machines in this account", "not ready"))
	if n := len(c.setRequests("create")); n != len(faults)-1 {
		t.Errorf("%d MachineSets were made, want %d", n, len(faults)-1)
	}
	step := stepOf(t, job, capacityReserved)
	c.notLaterThan("the end of the wait", step.CompletionTime.Time, step.StartTime.Time, timeOut+removal+2*time.Second) // whole seconds
	if waited := step.CompletionTime.Sub(step.StartTime.Time); waited < timeOut-time.Second {
		t.Errorf("the step waited for %s, want %s", waited, timeOut)
	}
	c.stagesTold(job, r, v1beta1.StageStarted, v1beta1.StageSkipped, v1beta1.StageControlPlaneStarted, v1beta1.StageControlPlaneFinished,
		v1beta1.StageWorkersFinished, v1beta1.StageCompleted)
	if skipped := newsIn(r.Events()[1]); !strings.Contains(skipped.Message, "no more machines in this account") {
		t.Errorf("it is told that %s", skipped.Message)
	}
	c.nothingLeft(job)
	c.upgradedOnce(job)
	if err := sameNames(before, c.nodeNames()); err != nil {
		t.Error(err)
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
	c := newCluster(t, withMachines, func(s *sim.Scenario) { s.UpdatesUnknown = &sim.UpdatesUnknown{Reason: "RemoteFailed"} })
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
	c := newCluster(t, withMachines, withLateWorkers, func(s *sim.Scenario) {
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
