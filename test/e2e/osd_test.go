// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// All that the upgrader OSD does, in a run in which nothing goes wrong.
func TestOSDUpgradesTheCluster(t *testing.T) {
	c := newCluster(t, withPool("infra", 1), withLateWorkers, func(s *sim.Scenario) {
		s.FileIntegrity = &sim.FileIntegrity{}
		s.MachineAPI = &sim.MachineAPI{MachineSets: []sim.InstalledMachineSet{
			{Name: "a-worker", Labels: map[string]string{machinePool: "worker"}, Replicas: new(2)},
			{Name: "b-infra", Labels: map[string]string{machinePool: "infra-large"}, Pool: "infra"},
			{Name: "c-other", Labels: map[string]string{machinePool: "other"}},
		}}
	})
	before := c.nodeNames()
	all, gate := c.aReceiver(), c.aDependency()
	recorder := c.recordSilences()
	c.startOperator()
	job := create(c, aJob(upgradedBy("OSD"), silencing("etcdMembersDown", "KubeAPIDown"), reserving(time.Minute, "infra-*"), depending(gate.URL),
		reinitializing, notifying(c.knownAs("all", all))))
	c.wait(job, succeeded(), withoutFinalizers())

	c.upgradedOnce(job)
	c.everyNodeRuns(offered)
	c.wentThrough(job, stepsOfOSD)
	c.stagesTold(job, all, v1beta1.StageStarted, v1beta1.StageControlPlaneStarted, v1beta1.StageControlPlaneFinished, v1beta1.StageWorkersFinished, v1beta1.StageCompleted)
	c.awaits(all, whole(job), onceEach)
	c.reserved(job, before, "a-worker", "b-infra")
	c.silencedInItsWindows(job)
	c.neverTwo(job, recorder)
	c.nothingLeft(job)
	if gate.asked() == 0 {
		t.Error("the external dependency was not asked")
	}
	c.eventually("the file integrity operator is told", func() error {
		if c.reinits() == 0 { // it does no harm to tell it again, as the next pass does if the status that says so could not be written
			return errors.New("it was not told")
		}
		return nil
	})
}

// reinits is how often the file integrity operator took the machines as they are.
func (c *cluster) reinits() int {
	c.t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: "fileintegrity.openshift.io", Version: "v1alpha1", Kind: "FileIntegrity"})
	object.SetNamespace("openshift-file-integrity")
	object.SetName("osd-fileintegrity")
	c.get(object)
	return sim.Reinits(object)
}

// A job that does not commence in its window fails, for whatever reason, and leaves nothing. Once it has commenced the window is of no
// account.
func TestOSDCommencesInItsWindow(t *testing.T) {
	const window = 3 * time.Second
	c := newCluster(t, withMachines, degraded("storage"))
	before := c.version()
	r := c.aReceiver()
	stages := notifying(c.knownAs("stages", r, ofStages))
	c.startOperator()
	sick := create(c, aJob(named("sick"), upgradedBy("OSD"), silencing(), reserving(time.Minute), commencingWithin(window, time.Second), attentive(), stages))
	c.breaches(sick, window, "storage")
	c.stagesTold(sick, r, v1beta1.StageStarted, v1beta1.StageDelayed, v1beta1.StageFailed)
	c.untouched(before)

	// Everything is prepared, but the cluster cannot tell whether the release is still offered.
	c.change(mended)
	c.change(func(s *sim.Scenario) { s.UpdatesUnknown = &sim.UpdatesUnknown{Reason: "RemoteFailed"} })
	c.offers()
	lost := create(c, aJob(named("lost"), upgradedBy("OSD"), silencing("KubeAPIDown"), reserving(time.Minute), commencingWithin(2*window, 0), attentive(), stages))
	c.wait(lost, waitingIn(commenced, v1beta1.ReasonUpdatesUnknown))
	c.awaitSilences(lost, ofControlPlane, ofCriticals)
	c.extraMachinesExist(1, 1)
	c.breaches(lost, 2*window, "RemoteFailed")
	c.stagesTold(lost, r, v1beta1.StageStarted, v1beta1.StageFailed)
	c.untouched(before)

	c.change(func(s *sim.Scenario) { s.UpdatesUnknown = nil })
	c.change(stuck("network"))
	c.offers(offered)
	job := c.wait(create(c, aJob(named("in-time"), upgradedBy("OSD"), silencing(), commencingWithin(window, 0), stages)), done(commenced))
	c.until(job.Status.StartTime.Add(window + time.Second))
	c.change(mended)
	c.wait(job, succeeded(), withoutFinalizers())
	c.nothingLeft(job)
}

// breaches expects that a job fails when its window is over, and leaves nothing.
func (c *cluster) breaches(job *v1beta1.UpgradeJob, window time.Duration, words ...string) {
	c.t.Helper()
	failed := failedFor(v1beta1.ReasonUpgradeWindowBreached)
	c.wait(job, failed, withoutFinalizers(), saying(v1beta1.ConditionFailed, words...))
	c.promptly("the failure", c.when(job, failed), job.Status.StartTime.Add(window))
	c.nothingLeft(job)
	if writes := c.desiredUpdateWrites(); len(writes) > 0 {
		c.t.Errorf("the cluster was asked for %v", writes[0].object.Spec.DesiredUpdate)
	}
}
